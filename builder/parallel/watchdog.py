"""Kills a process that received SIGTERM or SIGINT and has not ended in time: `watchdog.py PID`.

Standard input is the pipe to which that process's C code writes the numbers of its signals
(`signal.set_wakeup_fd`); it ends when the process does. To start within milliseconds, it runs as an
isolated script and imports nothing of the package.
"""

import os
import select
import signal
import sys
import time

GRACE_SECONDS = 1.5
SIGNALS = {signal.SIGTERM: "terminated", signal.SIGINT: "interrupted"}
MESSAGE = "builder: {}; finished work is kept, the same command resumes\n"


def main() -> None:
    """Waits for a signal, then for the end of the process; kills it after GRACE_SECONDS."""
    driver = int(sys.argv[1])
    while data := os.read(0, 64):
        received = next((name for number, name in SIGNALS.items() if number in data), None)
        if received is None:
            continue
        end = time.monotonic() + GRACE_SECONDS
        while select.select([0], [], [], max(end - time.monotonic(), 0))[0]:
            if not os.read(0, 64):
                return
        os.kill(driver, signal.SIGKILL)
        sys.stderr.write(MESSAGE.format(received))
        return


if __name__ == "__main__":
    main()
