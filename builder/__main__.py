"""Implements `python -m builder` and the console script `builder`.

Every worker process imports this module, so commands import what they need when they are called.
"""

INTERRUPTED = 130
"""The exit code after Ctrl-C or SIGTERM."""


def main() -> None:
    """Runs the command line and exits with its code."""
    import os
    import sys
    from typing import TextIO, cast

    try:
        from builder import cli
        from builder.credentials import HidingStream
        from builder.parallel.host import collect_seldom, keep_loaded

        collect_seldom()
        sys.stderr = cast("TextIO", HidingStream(sys.stderr))  # also for libraries and tracebacks
        code = cli.main()
        keep_loaded()  # else the exit traverses everything: 0.13 s, a twentieth of a small build
    except KeyboardInterrupt:  # while modules are imported
        print("builder: interrupted", file=sys.stderr)
        code = INTERRUPTED
    if code == INTERRUPTED:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # not `exit`, which waits for threads: one may be in a long library call
    sys.exit(code)


if __name__ == "__main__":
    main()
