"""A library call leaves the program that made it as it was."""

import json
import os
import subprocess
import sys

import pytest
from support.places import DATA
from support.runs.builds import build

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for its processes"),
]

STATE = """
import gc, json, logging, multiprocessing, os, signal, sys, warnings
from multiprocessing import forkserver, resource_tracker
from support.runs.processes import double, helpers

def state():
    return json.dumps({
        "environment": dict(os.environ),
        "filters": [str(item) for item in warnings.filters],
        "tracker": [str(resource_tracker.register), str(resource_tracker.unregister)],
        "preload": forkserver._forkserver._preload_modules,
        "servers": helpers("forkserver"),
        "children": [child.pid for child in multiprocessing.active_children()],
        "signals": [str(signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM)],
        "collector": [gc.get_threshold(), gc.get_freeze_count()],
        "path": sys.path,
    }, indent=1)
"""


def outcome(program, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", STATE + program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_a_failing_pool_ends_only_its_own_processes():
    """Such as the workers of a data loader in a notebook, which were killed too."""
    program = """
import time
from builder.parallel.pool import worker_pool
other = multiprocessing.get_context("fork").Process(target=time.sleep, args=(100,))
other.start()
try:
    with worker_pool(2, None) as executor:
        ours = executor.submit(os.getpid).result()
        raise KeyError
except KeyError:
    pass
running = {child.pid for child in multiprocessing.active_children()}
print(json.dumps([other.exitcode, ours in running]))
other.kill()
"""
    assert outcome(program) == [None, False]


def test_a_build_with_workers_and_a_failing_one_leave_no_trace(tmp_path):
    program = """
import builder
from builder.parallel.pool import imap
import datasets
def levels():
    log = logging.getLogger("huggingface_hub").level
    return datasets.utils.logging.get_verbosity(), datasets.are_progress_bars_disabled(), log
level = levels()
before = state()
builder.build_dataset([sys.argv[1]], sys.argv[2], workers=2)
builder.export_dataset(sys.argv[2], "openai", sys.argv[2] + "-openai")
middle = state()
assert sum(imap(double, range(40), 2, None)) == 1560
found = imap(double, range(400), 2, None)
next(found)
found.close()
after = state()
print(json.dumps([before, middle, after, level == levels()]))
"""
    before, middle, after, same = outcome(program, DATA / "codex", tmp_path / "out")
    assert json.loads(before) == json.loads(middle) == json.loads(after)
    assert same


def test_the_fork_server_of_the_caller_stays():
    program = """
context = multiprocessing.get_context("forkserver")
def run():
    with context.Pool(1) as pool:
        return pool.apply(os.getppid)
first = run()
from builder.parallel.pool import imap
assert sum(imap(double, range(40), 2, None)) == 1560
print(json.dumps(first == run()))
"""
    assert outcome(program) is True


CLIENT = """
def client():
    from huggingface_hub import constants
    from huggingface_hub.utils import are_progress_bars_disabled
    return [constants.HF_HUB_DISABLE_TELEMETRY, are_progress_bars_disabled()]
"""
"""Reads the switches of the Hub's client, which it takes from the environment when imported."""

COMMANDS = {
    "build": ["build", str(DATA / "codex"), "-o", "{out}", "--quiet", "--workers", "1"],
    "verify": ["verify", "{built}", "--quiet"],
    "push": ["push", "{built}", "someone/something", "--dry-run", "--quiet"],
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("built") / "out"
    assert build(out, inputs=[DATA / "codex"]) == 0
    return out


@pytest.fixture
def loud(monkeypatch):
    """Removes the switches that a command of this process has set."""
    for name in ("HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_PROGRESS_BARS", "DO_NOT_TRACK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_runs_with_a_quiet_client_of_the_hub(name, loud, built, tmp_path):
    arguments = [part.format(built=built, out=tmp_path / "out") for part in COMMANDS[name]]
    program = f"""{CLIENT}
import contextlib, io
from builder import cli
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    cli.main(sys.argv[1:])
print(json.dumps(client()))
"""
    assert outcome(program, *arguments) == [True, True]


def test_a_library_call_leaves_the_client_of_the_hub(loud, built):
    program = f"""{CLIENT}
import builder
builder.verify_dataset(sys.argv[1])
print(json.dumps(client()))
"""
    assert outcome(program, built) == [False, False]
