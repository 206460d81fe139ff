"""A library call leaves the program that made it as it was."""

import json
import os
import subprocess
import sys

import pytest
from places import DATA

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for its processes"),
]

STATE = """
import gc, json, logging, multiprocessing, os, signal, sys, warnings
from multiprocessing import forkserver, resource_tracker
from forked import double, helpers

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
