"""Represents paths as users write them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

COLLECT_STATE = ".builder-collect"
"""The folder in which `builder collect` keeps its state; it contains no logs."""


def expand_home(written: str) -> Path:
    """Returns the path with a leading `~` expanded, if there is such a home folder."""
    return Path(os.path.expanduser(written))  # noqa: PTH111 - Path's raises if there is none


def file_inside(folder: Path, name: str) -> Path | None:
    """Returns the resolved path of a file of that name inside the folder; None if there is none.

    The name may be hostile and lead out of the folder, also through links.
    """
    try:
        path = (folder / name).resolve()
        return path if path.is_relative_to(folder.resolve()) and path.is_file() else None
    except (OSError, ValueError, RuntimeError):  # not a valid file name; links in a circle
        return None


@dataclass(frozen=True, slots=True)
class UserPath:
    """A path as the user wrote it, and the folder it is relative to (None: the current one).

    It may also be another name (a Hub id, a URL, `-`): only the code that uses it knows.
    """

    written: str
    base: Path | None = None

    @property
    def located(self) -> Path:
        """Returns the path to open."""
        return (self.base or Path()) / expand_home(self.written)

    @property
    def located_or_name(self) -> str:
        """Returns the path to open if it exists, else the name as written."""
        return str(self.located) if self.located.exists() else self.written

    @property
    def published(self) -> str:
        """Returns the path for published files: as written, with the home folder as `~`."""
        home = str(expand_home("~"))
        if home != "/" and self.written.startswith(home + os.sep):
            return "~" + self.written[len(home) :].replace(os.sep, "/")
        return self.written
