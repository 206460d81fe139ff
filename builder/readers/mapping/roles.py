"""Finds the role of messages, and what its values mean by their names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from builder.conversation import Json
from builder.readers.mapping.calls import find_calls, scalar_paths
from builder.readers.mapping.check import key_paths
from builder.readers.mapping.names import is_usual, meaning, rank
from builder.readers.mapping.spec import ROLES, value_at
from builder.readers.mapping.structure import alternating_path, plain

Sure = Literal["sure", "likely", "structure"]
"""How sure it is that a key is the role."""

_MAX_ROLES = 24
_MESSAGES = 200
"""Messages among which a role is looked for."""
_CERTAIN = ("user", "assistant")
_SWITCHES = ("is_user", "is_assistant")
_YES, _NO = ("true", "1"), ("false", "0")
"""Values of such a switch; a table in CSV has them as text, in any case."""
_CLEAR = ("role", "sender", "author", "speaker", "who")
"""Names that only a role has, whatever its values are."""


def role_path(messages: Sequence[Json], sure: Sure = "sure") -> str | None:
    """Returns the path of the role in messages; None: there is none.

    A role has few values. `sure`: they include names for the user and for the assistant; `likely`:
    the key or a value is a usual name; `structure`: or they alternate.
    """
    rows = [item for item in messages[:_MESSAGES] if isinstance(item, dict)]
    paths = dict.fromkeys(path for row in rows for path in key_paths(row) if path.count(".") < 3)
    for path in sorted(paths, key=lambda path: (rank("role", path), path.count("."))):
        values = [value_at(path, row) for row in rows]
        if {plain(value) for value in values} <= {*_YES, *_NO}:
            if any(is_usual(key, path) for key in _SWITCHES):
                return path
            continue
        names = {value for value in values if isinstance(value, str)}
        if not 0 < len(names) <= _MAX_ROLES:
            continue
        meanings = {*map(meaning, names)}
        if meanings.issuperset(_CERTAIN):
            return path
        is_role = is_usual("role", path) and all(isinstance(value, str) for value in values)
        is_known = not meanings.isdisjoint(ROLES[:6]) or path in _CLEAR
        if sure != "sure" and is_role and is_known and len(names) > 1:
            return path
    return alternating_path(rows) if sure == "structure" else None


def whole_role(messages: Sequence[Json], role: str) -> str:
    """Returns the path of the role; where some messages have none, with the one that they have.

    Items of the Responses API have `role` if they are messages, and `type` in any case.
    """
    rest = [one for one in messages if value_at(role, one) is None and isinstance(one, dict)]
    paths = dict.fromkeys(path for row in rest for path in key_paths(row) if path.count(".") < 2)
    usual = sorted((path for path in paths if is_usual("role", path)), key=_role_rank)
    for path in usual:
        names = {value for row in rest if isinstance(value := value_at(path, row), str)}
        if names and len(names) <= _MAX_ROLES and any(map(meaning, names)):
            return f"{role} || {path}"
    return role


def with_phase(messages: Sequence[Json], role: str, tools: Collection[str]) -> str:
    """Returns the path of the role, where one value is for calls and results alike.

    For {"type": "tool", "phase": "start"} it is `type == 'tool' && phase || type`.
    """
    for value in dict.fromkeys(value_of(role, one) for one in messages):
        items = [one for one in messages if value_of(role, one) == value]
        shape = find_calls(items, tools, role=role, followed=False)
        if shape is None or shape.evidence < 2 or "'" in value:
            continue
        calls = [one for one in items if value_at(shape.name, one) and shape.path is not None]
        own = {*map(id, calls)}
        rest = [one for one in items if id(one) not in own]
        if meaning(value) not in ("tool", "call") or not calls or not rest:
            continue
        for path in scalar_paths(items):
            starts = {value_of(path, one) for one in calls}
            ends = {value_of(path, one) for one in rest}
            if path == role or len(starts) != 1 or len(ends) != 1:
                continue
            if [meaning(f"tool_{one}") for one in (*starts, *ends)] == ["call", "tool"]:
                return f"{role} == '{value}' && {path} || {role}"
    return role


def _role_rank(path: str) -> int:
    return rank("role", path)


def has_user(messages: Sequence[Json]) -> bool:
    """Returns whether messages have a role that means the user."""
    role = role_path(messages, "likely")
    if role is None:
        return False
    return any(named(role, value) == "user" for value in {value_of(role, one) for one in messages})


def value_of(role: str | None, item: Json) -> str:
    """Returns the role of a message as `roles` names it."""
    return plain(value_at(role, item))


def named(role: str, value: str) -> str:
    """Returns what a value means by its name."""
    if value.lower() in (*_YES, *_NO) and any(is_usual(key, role) for key in _SWITCHES):
        return "user" if (value.lower() in _YES) == is_usual("is_user", role) else "assistant"
    return meaning(value)
