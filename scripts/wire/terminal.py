"""Types into an agent's terminal interface: terminal.py STEP… -- COMMAND….

A step is a text (typed, then Enter), `wait:SECONDS`, or `key:NAME` (esc, enter, up, down, ctrl-c,
ctrl-r). The screen is copied to stdout as it changes.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

_KEYS = {
    "esc": b"\x1b", "enter": b"\r", "up": b"\x1b[A", "down": b"\x1b[B", "tab": b"\t",
    "ctrl-c": b"\x03", "ctrl-b": b"\x02", "ctrl-r": b"\x12", "shift-tab": b"\x1b[Z",
}  # fmt: skip


def main() -> None:
    at = sys.argv.index("--")
    steps, command = sys.argv[1:at], sys.argv[at + 1 :]
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(command[0], command)  # noqa: S606 - the command is the harness's own
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    _show(terminal, 5)
    for step in steps:
        kind, _, rest = step.partition(":")
        if kind == "wait":
            _show(terminal, float(rest))
        elif kind == "key":
            os.write(terminal, _KEYS[rest])
            _show(terminal, 0.4)
        else:
            os.write(terminal, step.encode())
            _show(terminal, 0.7)
            os.write(terminal, b"\r")
            _show(terminal, 0.5)
    for _ in range(2):
        os.write(terminal, _KEYS["ctrl-c"])
        _show(terminal, 0.5)
    _show(terminal, 1.5)
    os.kill(child, signal.SIGTERM)


def _show(terminal: int, seconds: float) -> None:
    """Copies the screen to stdout for the given number of seconds."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        ready, _, _ = select.select([terminal], [], [], min(left, 0.2))
        if ready:
            try:
                sys.stdout.buffer.write(os.read(terminal, 65536))
            except OSError:
                return


if __name__ == "__main__":
    main()
