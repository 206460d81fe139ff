"""Replays the patch log in which VS Code stores an object.

Source: docs/formats/vscode-copilot.md.
"""

from __future__ import annotations

import copy

from builder.conversation import Json
from builder.readers.toolkit.narrow import as_list


def apply(root: Json, entry: dict[str, Json]) -> tuple[Json, bool]:
    """Returns the object after an entry of the log, and whether the entry could be applied.

    The object may be changed in place; values of the entry are copied. Kind 0 replaces the object,
    1 sets the value at a path, 2 cuts the list at a path to `i` items and appends values, 3 deletes
    the value at a path.
    """
    kind, value = entry.get("kind"), entry.get("v")
    if kind == 0:
        return copy.deepcopy(value), True
    path = as_list(entry.get("k"))
    if not path or kind not in (1, 2, 3):
        return root, False
    parent = root
    for step in path[:-1]:
        known, parent = _at(parent, step)
        if not known:
            return root, False
    last = path[-1]
    if kind == 1:
        return root, _set(parent, last, copy.deepcopy(value))
    if kind == 3:
        return root, _delete(parent, last)
    known, items = _at(parent, last)
    if not known or items is None:
        items = []
        if not _set(parent, last, items):
            return root, False
    if not isinstance(items, list):
        return root, False
    length = entry.get("i")
    if isinstance(length, int) and length >= 0:
        del items[length:]
    items += copy.deepcopy(as_list(value))
    return root, True


def _at(parent: Json, step: Json) -> tuple[bool, Json]:
    """Returns whether there is a value at a step, and the value."""
    if isinstance(parent, dict) and isinstance(step, str | int):
        return str(step) in parent, parent.get(str(step))
    if isinstance(parent, list) and isinstance(step, int) and 0 <= step < len(parent):
        return True, parent[step]
    return False, None


def _set(parent: Json, step: Json, value: Json) -> bool:
    if isinstance(parent, dict) and isinstance(step, str | int):
        parent[str(step)] = value
        return True
    if isinstance(parent, list) and isinstance(step, int) and 0 <= step <= len(parent):
        parent[step : step + 1] = [value]
        return True
    return False


def _delete(parent: Json, step: Json) -> bool:
    if isinstance(parent, dict) and isinstance(step, str | int):
        parent.pop(str(step), None)
        return True
    if isinstance(parent, list) and isinstance(step, int) and 0 <= step < len(parent):
        del parent[step]
        return True
    return False
