"""`python -m builder` and the console script `builder`.

Every worker process imports this module: what a command needs it imports when it is called.
"""


def main() -> None:
    """Runs the command line and exits with its code."""
    import sys  # noqa: PLC0415 - see above

    from builder import cli  # noqa: PLC0415
    from builder.parallel.garbage import collect_seldom  # noqa: PLC0415

    collect_seldom()
    sys.exit(cli.main())


if __name__ == "__main__":
    main()
