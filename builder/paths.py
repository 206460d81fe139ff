"""Paths as users write them."""

from __future__ import annotations

import os
from pathlib import Path


def expand_home(written: str) -> Path:
    """The path with a leading `~` expanded where that names a home folder."""
    return Path(os.path.expanduser(written))  # noqa: PTH111 - Path's raises where there is none
