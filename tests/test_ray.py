"""The job on Ray: a cluster of two nodes, on this machine, whose parts are killed on purpose."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_build import build, files

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("default")  # what another library warns of is its own


def row(number, turns=1):
    said = [
        {"role": role, "content": f"{number} {turn} {role}"}
        for turn in range(turns)
        for role in ("user", "assistant")
    ]
    return json.dumps({"messages": said, "tools": []}) + "\n"


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray-logs")
    for name in range(12):
        text = "".join(row(f"{name}.{number}", 1 + number % 3) for number in range(40))
        (folder / f"{name:02d}.jsonl").write_text(text)
    (folder / "bad.jsonl").write_text(row("x") + "{broken\n")
    return folder


@pytest.fixture(scope="module")
def undisturbed(logs, tmp_path_factory):
    out = tmp_path_factory.mktemp("ray-local") / "out"
    assert build(out, "--workers", "1", inputs=[logs]) == 0
    return files(out)


@pytest.fixture
def cluster():
    from ray.cluster_utils import Cluster

    small = {"num_cpus": 1, "object_store_memory": 80 << 20}
    made = Cluster(initialize_head=True, head_node_args=small)
    made.second = made.add_node(**small)
    made.wait_for_nodes()
    yield made
    made.shutdown()


def start(cluster, logs, out):
    command = [sys.executable, "-m", "builder", "build", str(logs), "-o", str(out), "--quiet"]
    return subprocess.Popen(
        [*command, "--engine", "ray", "--ray-address", cluster.address], start_new_session=True
    )


def below(pid):
    """All processes that this one, or one below it, has started."""
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from below(child)


def at_work():
    """The workers of our cluster that are doing a task now."""
    found = []
    for pid in below(os.getpid()):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::_do"):
                found.append(pid)
    return found


def until(condition, process):
    while not (found := condition()):
        assert process.poll() is None, "the run has ended before"
        time.sleep(0.02)
    return found


def finished(out):
    return {path.parent.name: path.stat() for path in out.glob(".state/parts/??/*/done.json")}


def test_a_ray_of_its_own_gives_the_same_bytes(logs, undisturbed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what is relative to the driver's folder is nothing elsewhere
    Path("logs").symlink_to(logs)
    assert build("out", "--engine", "ray", "--workers", "2", inputs=["logs"]) == 0
    made = files(tmp_path / "out")
    assert {**made, "manifest.json": None} == {**undisturbed, "manifest.json": None}
    run = json.loads((tmp_path / "out" / "manifest.json").read_bytes())["run"]
    assert (run["engine"], run["workers"]) == ("ray", 2)
    assert len(finished(tmp_path / "out")) == 13


def test_a_worker_that_is_killed_costs_a_second_try(cluster, logs, undisturbed, tmp_path):
    process = start(cluster, logs, tmp_path / "out")
    victim = until(at_work, process)[0]
    os.kill(victim, signal.SIGKILL)
    assert process.wait() == 0
    assert files(tmp_path / "out") == undisturbed


def test_a_node_that_is_gone_costs_a_second_try(cluster, logs, undisturbed, tmp_path):
    process = start(cluster, logs, tmp_path / "out")
    until(lambda: len(at_work()) == 2, process)
    cluster.remove_node(cluster.second, allow_graceful=False)
    assert process.wait() == 0
    assert files(tmp_path / "out") == undisturbed


def test_the_driver_killed_and_started_again(cluster, logs, undisturbed, tmp_path):
    out = tmp_path / "out"
    process = start(cluster, logs, out)
    until(lambda: finished(out), process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "manifest.json").exists()
    before = finished(out)
    assert start(cluster, logs, out).wait() == 0
    assert files(out) == undisturbed
    after = finished(out)
    assert before
    assert all(after[name].st_mtime_ns == seen.st_mtime_ns for name, seen in before.items())
