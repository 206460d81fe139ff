"""Locates the logs that agents keep on a machine: Linux, macOS and Windows."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

APPDATA = "<appdata>"
"""In a pattern: the folder of applications' data, where editors such as VS Code keep theirs."""

_APPDATA = {
    "win32": ("APPDATA", "~/AppData/Roaming"),
    "darwin": ("", "~/Library/Application Support"),
}
"""{platform: (the environment variable that names the folder, the folder without it)}."""

_VARIABLE = re.compile(r"\$\{([A-Z_]+):-([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Home:
    """A place where an agent keeps its logs.

    agent    the agent's name, as its users write it
    pattern  a path or glob. `~` is the user's home folder, `${NAME:-default}` an environment
             variable by which the agent's users move its folder, and a leading `<appdata>` the
             system's folder of applications' data.
    listed   returns the files that a file of this pattern lists, for an agent that keeps its logs
             in its users' projects; None: the matches are the logs
    """

    agent: str
    pattern: str
    listed: Callable[[Path], Iterable[Path]] | None = None

    def places(self, environment: Mapping[str, str] | None = None) -> Iterator[Path]:
        """Yields the existing files and folders that the pattern names, sorted by name."""
        env = os.environ if environment is None else environment
        pattern = _VARIABLE.sub(
            lambda match: glob.escape(env.get(match[1], "")) or match[2], self.pattern
        ).replace(APPDATA, glob.escape(_appdata(env)), 1)
        pattern = re.sub(r"^~(?=/|$)", lambda _: glob.escape(_expanded("~")), pattern)
        paths = map(Path, sorted(glob.glob(pattern)))
        if self.listed is None:
            yield from paths
        else:
            listed = {place for match in paths for place in self.listed(match)}
            yield from sorted(place for place in listed if place.exists())


def _appdata(env: Mapping[str, str]) -> str:
    """Returns the folder of applications' data: XDG_CONFIG_HOME, or the system's own."""
    variable, default = _APPDATA.get(sys.platform, ("XDG_CONFIG_HOME", "~/.config"))
    return env.get(variable) or _expanded(default)


def _expanded(path: str) -> str:
    return os.path.expanduser(path)  # noqa: PTH111 - Path's raises if there is no home folder
