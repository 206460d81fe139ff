"""A resource tracker killed by the system: one line of warning, and no second traceback."""

import os
import subprocess
import sys

import pytest

from builder.parallel.server import MESSAGE

PROGRAM = """
import multiprocessing, os, signal
from multiprocessing import resource_tracker
from builder.parallel.server import followed_resource_tracker
followed = followed_resource_tracker()
followed.__enter__()
lock = multiprocessing.get_context("spawn").Lock()
os.kill(resource_tracker._resource_tracker._pid, signal.SIGKILL)
os.waitid(os.P_PID, resource_tracker._resource_tracker._pid, os.WEXITED | os.WNOWAIT)
multiprocessing.get_context("spawn").Lock()
del lock
print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no tracker")
def test_names_of_a_killed_tracker_are_not_unregistered_at_the_next_one():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "done\n"
    assert done.stderr == f"{MESSAGE}\n", "otherwise Python prints a KeyError here"


WORK = """
import multiprocessing, os, signal
from support.runs.processes import double, helpers
from builder.parallel.pool import imap
found = imap(double, range(400), 2, None)
first = [next(found) for _ in range(20)]
(tracker,) = helpers("resource_tracker")
os.kill(tracker, signal.SIGKILL)
print(first + list(found) == [2 * number for number in range(400)])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for its processes")
def test_work_continues_with_a_warning_after_the_tracker_is_killed():
    done = subprocess.run(
        [sys.executable, "-c", WORK],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("True\n", f"{MESSAGE}\n")
