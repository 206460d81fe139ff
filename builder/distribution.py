"""The name under which the program is installed, and how its extras are installed."""

from __future__ import annotations

DISTRIBUTION = "toolcall-builder"


def install_line(*extras: str) -> str:
    """Returns the command that installs the program with extras: `pip install 'NAME[s3]'`."""
    return f"pip install '{DISTRIBUTION}[{','.join(extras)}]'"
