"""Functions that tests run in worker processes, and lookups of helper processes."""

import os
import subprocess
import time


def helpers(kind):
    """Returns the pids of this process's helpers: "forkserver" or "resource_tracker"."""
    listed = subprocess.run(
        ["ps", "-ww", "-o", "pid=", "-o", "args=", "--ppid", str(os.getpid())],
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(line.split()[0]) for line in listed.stdout.splitlines() if f"{kind} import" in line]


def double(number):
    time.sleep(0.002)
    return 2 * number
