"""`python -m builder` and the console script `builder`.

Every worker process imports this module anew: what a command needs it imports when it is called.
"""


def main() -> None:
    """Run the command line."""
    from builder.cli import main as run  # noqa: PLC0415 - see above

    run()


if __name__ == "__main__":
    main()
