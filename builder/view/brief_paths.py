"""Shortens paths so that different paths still look different."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath

_KNOWN = 5_000
"""Paths whose common beginning and end are looked for."""


def brief_paths(shown: Iterable[str], known: Sequence[str], most: int) -> dict[str, str]:
    """Returns {path: short form} of the `shown` paths, of about `most` characters.

    Folders and an ending that all `known` paths share are left out. The middle of a long path is
    cut, or another part if that would make two paths look alike; paths that no cut tells apart stay
    whole.
    """
    paths = sorted(set(shown))
    among = sorted({*paths, *known[:_KNOWN]})
    folder = os.path.commonprefix([path.rpartition("/")[0] + "/" for path in among])
    begin = folder.rfind("/") + 1
    endings = {PurePosixPath(path).suffix for path in among}
    ending = endings.pop() if len(endings) == 1 and len(among) > 1 else ""
    own = [path[begin:].removesuffix(ending) or path for path in paths]
    for cut in _CUTS:
        cuts = [cut(path, most) if len(path) > most else path for path in own]
        if len({*cuts}) == len(cuts):
            return dict(zip(paths, cuts, strict=True))
    return dict(zip(paths, own, strict=True))


def _middle(path: str, most: int) -> str:
    half = (most - 1) // 2
    return f"{path[:half]}…{path[len(path) - (most - 1 - half) :]}"


def _begin(path: str, most: int) -> str:
    return f"…{path[len(path) - most + 1 :]}"


def _end(path: str, most: int) -> str:
    return f"{path[: most - 1]}…"


_CUTS: tuple[Callable[[str, int], str], ...] = (_middle, _begin, _end)
