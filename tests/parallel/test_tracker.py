"""A resource tracker that the system kills leaves no traceback of another one behind."""

import subprocess
import sys

import pytest

PROGRAM = """
import multiprocessing, os, signal, warnings
from multiprocessing import resource_tracker
from builder.parallel.tracker import follow_resource_tracker
warnings.filterwarnings("ignore", "resource_tracker: process died", UserWarning)
follow_resource_tracker()
lock = multiprocessing.get_context("spawn").Lock()
os.kill(resource_tracker._resource_tracker._pid, signal.SIGKILL)
os.waitid(os.P_PID, resource_tracker._resource_tracker._pid, os.WEXITED | os.WNOWAIT)
multiprocessing.get_context("spawn").Lock()
del lock
print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no tracker")
def test_what_a_killed_tracker_had_is_not_unregistered_at_another():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "done\n"
    assert done.stderr == "", "without it Python prints a KeyError here"
