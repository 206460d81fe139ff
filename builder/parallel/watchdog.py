"""Kills a process that got SIGTERM and has not ended in time: `watchdog.py PID`.

Standard input is the pipe to which that process's C code writes the numbers of its signals
(`signal.set_wakeup_fd`); its end means that the process is gone. Run as a script, isolated, so that
it starts in milliseconds: it imports nothing of the package.
"""

import os
import select
import signal
import sys
import time

GRACE_SECONDS = 1.5
MESSAGE = "builder: terminated; finished work is kept, the same command resumes\n"


def main() -> None:
    """Waits for SIGTERM, then for the end of the process, at most GRACE_SECONDS."""
    driver = int(sys.argv[1])
    while data := os.read(0, 64):
        if signal.SIGTERM not in data:
            continue
        end = time.monotonic() + GRACE_SECONDS
        while select.select([0], [], [], max(end - time.monotonic(), 0))[0]:
            if not os.read(0, 64):
                return
        os.kill(driver, signal.SIGKILL)
        sys.stderr.write(MESSAGE)
        return


if __name__ == "__main__":
    main()
