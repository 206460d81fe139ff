"""Builds on Ray: a cluster of two nodes on this machine, whose workers are killed on purpose.

Starting a cluster takes longer than the tests themselves, and so does a worker, which loads a
tokenizer. So they share a cluster, and its workers by sharing a connection.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.logs.chats import write_logs
from support.runs.builds import build, files

from builder.build import ray_engine
from builder.problem import UsageError

pytestmark = [
    pytest.mark.slow,
    # Importing it here would take every run of the tests half a second in each worker.
    pytest.mark.skipif(find_spec("ray") is None, reason="the extra `ray` is not installed"),
    pytest.mark.filterwarnings("default"),  # warnings of other libraries
]


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return write_logs(tmp_path_factory.mktemp("ray-logs"), rows=40)


@pytest.fixture(scope="module")
def undisturbed(logs, tmp_path_factory):
    out = tmp_path_factory.mktemp("ray-local") / "out"
    assert build(out, "--workers", "1", inputs=[logs]) == 0
    return files(out)


ONE = ("--workers", "1")
"""Each further worker starts a process that loads a tokenizer."""
SMALL = {"num_cpus": 1, "object_store_memory": 80 << 20}


@pytest.fixture(scope="module", autouse=True)
def settings_of_ray():
    """Keeps Ray's idle workers, and gives them the priority of the tests that would starve them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("RAY_idle_worker_killing_time_threshold_ms", "600000")
        yield


@pytest.fixture(scope="module")
def shared_cluster():
    import ray
    from ray.cluster_utils import Cluster

    started = Cluster(initialize_head=True, head_node_args={**SMALL, "include_dashboard": False})
    yield started
    ray.shutdown()
    started.shutdown()


@pytest.fixture
def disconnected():
    import ray

    ray.shutdown()


@pytest.fixture
def cluster(shared_cluster):
    """Returns two idle nodes to which this process is connected.

    Replaces a node that an earlier test has removed, and ends what still runs of its tasks.
    """
    import ray

    if not ray.is_initialized():
        ray.init(shared_cluster.address, log_to_driver=False, logging_level="ERROR")
    if not shared_cluster.worker_nodes:
        shared_cluster.add_node(**SMALL)
    shared_cluster.wait_for_nodes()
    has_waited = after(20)
    while left := at_work():
        if has_waited():
            for pid in left:  # Ray starts new workers
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    return shared_cluster


def data_of(made):
    """Returns the output without the paths of the inputs."""
    return {
        name: data for name, data in made.items() if name.startswith(("data/", "meta/", "rejects"))
    }


def start(cluster, logs, out, **environment):
    command = [sys.executable, "-m", "builder", "build", str(logs), "-o", str(out), "--quiet"]
    return subprocess.Popen(
        [*command, "--engine", "ray", *ONE],
        start_new_session=True,
        env={**os.environ, "RAY_ADDRESS": cluster.address, **environment},
    )


def run_here(cluster, logs, out, *more):
    """Builds on the cluster with this process as the driver; returns the exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", cluster.address)
        return build(out, "--engine", "ray", *more, inputs=[logs])


def below(pid):
    """Returns all descendants of a process."""
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from below(child)


def at_work():
    """Returns the workers of our cluster that are running a task."""
    found = []
    for pid in below(os.getpid()):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::_run_remote"):
                found.append(pid)
    return found


def after(seconds):
    """Returns a function that tells whether so many seconds have passed."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


class EndedTooEarlyError(Exception):
    """A run ended before it could be disturbed."""


def until(condition, has_ended):
    while not (found := condition()):
        if has_ended():
            raise EndedTooEarlyError
        time.sleep(0.02)
    return found


def run_disturbed(cluster, logs, folder, disturb):
    """Builds here while `disturb(has_ended)` runs in a thread; returns the output folder.

    On a busy machine a node may start its worker only when the other one has done all tasks: then
    there was nothing to disturb, and another build is made.
    """
    for attempt in range(5):
        out = folder / f"out-{attempt}"
        ended = threading.Event()
        with ThreadPoolExecutor(1) as thread:
            disturbed = thread.submit(disturb, ended.is_set)
            try:
                assert run_here(cluster, logs, out) == 0
            finally:
                ended.set()
            with contextlib.suppress(EndedTooEarlyError):
                disturbed.result()
                return out
    raise EndedTooEarlyError


def finished(out):
    return {path.name: path.stat() for path in out.glob(".state/results/??/*")}


@pytest.mark.usefixtures("disconnected")
def test_a_ray_of_its_own_gives_the_same_bytes(logs, undisturbed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # paths relative to the driver's folder do not exist elsewhere
    Path("logs").symlink_to(logs)
    assert build("out", "--engine", "ray", *ONE, inputs=["logs"]) == 0
    assert data_of(files(tmp_path / "out")) == data_of(undisturbed)
    run = json.loads((tmp_path / "out" / "manifest.json").read_bytes())["run"]
    assert (run["engine"], run["workers"]) == ("ray", 1)
    assert len(finished(tmp_path / "out")) == 13


@pytest.mark.usefixtures("disconnected")
def test_no_cluster_at_the_address_is_one_clear_line(logs, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert build(tmp_path / "out", "--engine", "ray", inputs=[logs]) == 2
    assert "no cluster there" in capsys.readouterr().err


def test_a_connected_program_keeps_its_connection(cluster, logs, undisturbed, tmp_path):
    import ray

    out = tmp_path / "out"
    assert build(out, "--engine", "ray", *ONE, inputs=[logs]) == 0
    assert files(out) == undisturbed
    assert ray.get_runtime_context().gcs_address == cluster.address


def test_the_running_tasks_of_a_failed_run_are_cancelled(
    monkeypatch, capsys, cluster, logs, tmp_path
):
    asleep = tmp_path / "asleep"

    def sleeps(task, *_):
        if task.origin == "0/00.jsonl":
            until(asleep.exists, after(60))
            raise UsageError("on purpose")
        asleep.touch()
        time.sleep(600)

    replace_remote(monkeypatch, sleeps)
    assert run_here(cluster, logs, tmp_path / "out") == 2
    assert "on purpose" in capsys.readouterr().err
    until(lambda: not at_work(), after(60))


def test_a_killed_driver_is_started_again(cluster, logs, undisturbed, tmp_path):
    out = tmp_path / "out"
    process = start(cluster, logs, out)
    until(lambda: finished(out), lambda: process.poll() is not None)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "manifest.json").exists()
    before = finished(out)
    assert run_here(cluster, logs, out, *ONE) == 0
    assert files(out) == undisturbed
    after = finished(out)
    assert before
    assert all(after[name].st_mtime_ns == seen.st_mtime_ns for name, seen in before.items())


def test_machines_without_a_common_folder_share_results_in_a_store(
    cluster, logs, undisturbed, tmp_path, monkeypatch
):
    store = tmp_path / "store"
    url = f"local://{store}"
    first = {"XDG_CACHE_HOME": str(tmp_path / "first")}
    process = start(cluster, f"local://{logs}", url, **first)
    until(lambda: finished(store), lambda: process.poll() is not None)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = finished(store)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another-machine"))
    assert run_here(cluster, f"local://{logs}", url, *ONE) == 0
    assert data_of(files(store)) == data_of(undisturbed)
    after = finished(store)
    assert len(after) == 13
    assert all(after[name].st_mtime_ns == seen.st_mtime_ns for name, seen in before.items())
    assert not (store / ".state" / "work").exists()
    (logs / "bad.jsonl").rename(tmp_path / "bad.jsonl")
    try:
        assert run_here(cluster, f"local://{logs}", url, *ONE) == 0
    finally:
        (tmp_path / "bad.jsonl").rename(logs / "bad.jsonl")
    assert len(finished(store)) == 12, "the result of the removed file is removed"


def replace_remote(monkeypatch, function):
    """Replaces the function that the nodes run with one of this module."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    function.__qualname__ = "_run_remote"  # `at_work` finds the processes by it
    monkeypatch.setattr(ray_engine, "_run_remote", function)


def refused(monkeypatch, capsys, cluster, logs, out, name, other):
    """Returns the command's message if the engine's `name` is `other` on the nodes."""

    def elsewhere(task, *rest):
        with pytest.MonkeyPatch.context() as patch:  # the next test uses the same worker
            patch.setattr(ray_engine, name, other)
            return ray_engine._run_remote(task, *rest)  # the node's own

    replace_remote(monkeypatch, elsewhere)
    assert run_here(cluster, logs, out, *ONE) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_a_node_that_differs_from_the_driver_is_refused(
    monkeypatch, capsys, cluster, logs, tmp_path
):
    out = tmp_path / "out"

    def refuse(name, other):
        with monkeypatch.context() as patch:
            return refused(patch, capsys, cluster, logs, out, name, other)

    assert "does not see the output folder" in refuse("_sees", lambda *_: False)
    assert "has other versions" in refuse("_identity", lambda *_: "other")
    assert "does not see the input" in refuse("_missing", lambda task: task.source.path)
    lacks = RuntimeError("The remote function failed to import on the worker")
    assert "does not have this program" in refuse(
        "_identity", lambda *_: (_ for _ in ()).throw(lacks)
    )


def test_a_chunk_whose_workers_always_die_is_a_reject(monkeypatch, cluster, logs, tmp_path):
    tries = tmp_path / "tries"

    def dies(task, *rest):
        if task.origin == "0/03.jsonl":
            with tries.open("a") as stream:
                stream.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return ray_engine._run_remote(task, *rest)  # the node's own

    replace_remote(monkeypatch, dies)
    out = tmp_path / "out"
    assert run_here(cluster, logs, out, *ONE) == 0
    assert tries.read_text() == "xxx"
    rejects = [json.loads(line) for line in (out / "rejects.jsonl").read_bytes().splitlines()]
    (died,) = [row for row in rejects if row["code"] == "worker_died"]
    assert (died["source"], died["message"]) == (
        "03.jsonl",
        "the worker was killed 3 times (out of memory?)",
    )
    monkeypatch.undo()
    tries.unlink()
    assert build(out, "--engine", "local", "--workers", "1", inputs=[logs]) == 0
    assert b"worker_died" not in (out / "rejects.jsonl").read_bytes()


def test_the_tasks_of_a_killed_worker_and_of_a_lost_node_are_tried_again(
    cluster, logs, undisturbed, tmp_path
):
    (second,) = cluster.worker_nodes
    raylet = second.all_processes["raylet"][0].process.pid

    def busy_on_the_first():
        """Returns the workers of the first node that run a task, once the second runs one, too."""
        busy, on_the_second = {*at_work()}, {*below(raylet)}
        return busy - on_the_second if busy & on_the_second else None

    def kill_one_and_remove_the_other(has_ended):
        os.kill(until(busy_on_the_first, has_ended).pop(), signal.SIGKILL)
        cluster.remove_node(second, allow_graceful=False)

    out = run_disturbed(cluster, logs, tmp_path, kill_one_and_remove_the_other)
    assert files(out) == undisturbed
