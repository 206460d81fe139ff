"""Shortens paths so that different paths still look different."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import PurePosixPath

PATHS = "source"
"""The facet whose values are paths."""
_KNOWN = 5_000
"""Paths whose common beginning and end are looked for."""


def brief_paths(shown: Iterable[str], known: Sequence[str], most: int) -> dict[str, str]:
    """Returns {path: short form} of the `shown` paths, of about `most` characters.

    Folders and an ending that all `known` paths share are left out. The middle of a long path is
    cut, or another part if that would make two paths look alike; paths that no cut tells apart stay
    whole.
    """
    paths = sorted(set(shown))
    if not paths:
        return {}
    among = sorted({*paths, *known[:_KNOWN]})
    ends = zip(*(path.split("/")[:-1] for path in (among[0], among[-1])), strict=False)
    begin = sum(len(part) + 1 for part, _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    endings = {PurePosixPath(path).suffix for path in among}
    ending = endings.pop() if len(endings) == 1 and len(among) > 1 else ""
    own = [path[begin:].removesuffix(ending) or path for path in paths]
    brief = dict(zip(paths, own, strict=True))
    alike = [path for path in paths if len(brief[path]) > most]
    for cut in (_middle, _begin, _end):
        cuts = {path: cut(brief[path], most) for path in alike}
        taken = Counter(
            [*cuts.values(), *(name for path, name in brief.items() if path not in cuts)]
        )
        brief |= {path: name for path, name in cuts.items() if taken[name] == 1}
        alike = [path for path in alike if taken[cuts[path]] > 1]
    return brief


def _middle(path: str, most: int) -> str:
    half = (most - 1) // 2
    return f"{path[:half]}…{path[len(path) - (most - 1 - half) :]}"


def _begin(path: str, most: int) -> str:
    return f"…{path[len(path) - most + 1 :]}"


def _end(path: str, most: int) -> str:
    return f"{path[: most - 1]}…"
