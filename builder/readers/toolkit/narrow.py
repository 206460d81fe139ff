"""Narrows JSON values to a type, since a log may contain any value anywhere.

`as_str(row, "message", "role")` is the string at `row["message"]["role"]`, or "".
"""

from __future__ import annotations

from builder.conversation import Json
from builder.jsonio import JsonFault, json_type, loads


def as_dict(value: Json, *path: str) -> dict[str, Json]:
    """Returns the value if it is an object, else {}."""
    if path:
        value = _below(value, path)
    return value if isinstance(value, dict) else {}


def as_dicts(value: Json, *path: str) -> list[dict[str, Json]]:
    """Returns the items of a list, with {} for other values than objects; [] for other values."""
    if path:
        value = _below(value, path)
    return [as_dict(item) for item in value] if isinstance(value, list) else []


def as_list(value: Json, *path: str) -> list[Json]:
    """Returns the value if it is a list, else []."""
    if path:
        value = _below(value, path)
    return value if isinstance(value, list) else []


def one_or_many(value: Json) -> list[Json]:
    """Returns the value if it is a list, else a list of the value."""
    return value if isinstance(value, list) else [value]


def as_str(value: Json, *path: str) -> str:
    """Returns the value if it is a string, else ""."""
    if path:
        value = _below(value, path)
    return value if isinstance(value, str) else ""


def as_int(value: Json) -> int:
    """Returns the value if it is an integer (or a boolean), else 0."""
    return value if isinstance(value, int) else 0


def tuple_or_none(value: Json) -> tuple[Json, ...] | None:
    """Returns the items if the value is a list, else None."""
    return tuple(value) if isinstance(value, list) else None


def name_or_none(value: Json) -> str | None:
    """Returns the value if it is a non-empty string, else None."""
    return value if isinstance(value, str) and value else None


def name_of(value: dict[str, Json], *keys: str) -> str | None:
    """Returns the first of the named fields that is a non-empty string, else None."""
    return next((name for key in keys if (name := name_or_none(value.get(key)))), None)


def model_of(value: dict[str, Json], *keys: str) -> str | None:
    """Returns the name of a model, of the first of the fields; None if a router chose the model."""
    model = name_of(value, *keys)
    return None if (model or "").removeprefix("copilot/") in _ROUTERS else model


def flag_or_none(value: Json) -> bool | None:
    """Returns the value if it is a boolean, else None."""
    return value if isinstance(value, bool) else None


def first_of(value: dict[str, Json], *keys: str) -> Json:
    """Returns the first of the named fields that is present and not null, else None."""
    return next((field for key in keys if (field := value.get(key)) is not None), None)


def _below(value: Json, path: tuple[str, ...]) -> Json:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


_ROUTERS = frozenset({"auto", "default", "kiro-auto"})
"""What stands in place of a model's name: the provider chooses one for each request."""

UNKNOWN_TYPE = "unknown:"
"""The beginning of the codes of records of unknown types."""


def unknown_code(name: Json) -> str:
    """Returns the code for ignoring a record of an unknown type: `unknown:<type>`.

    At most 40 printable characters of the type are kept.
    """
    text = name if isinstance(name, str) else json_type(name)
    return UNKNOWN_TYPE + "".join(char for char in text if char.isprintable())[:40]


# -- JSON inside strings --------------------------------------------------------------------------


def json_in_text(value: Json, *, beginnings: str = "{[", levels: int = 1) -> Json:
    """Returns the JSON value inside a string; other text and other values are returned unchanged.

    Decodes only text whose first non-space character is one of `beginnings`, so that by default
    words, numbers and quoted text stay text. `levels` is the maximum depth of JSON within JSON.
    """
    for _ in range(levels):
        if not isinstance(value, str):
            break
        first = value.lstrip()[:1]
        if not first or first not in beginnings:
            break
        try:
            value = loads(value)
        except JsonFault:
            break
    return value


def is_json(text: str) -> bool:
    """Returns whether a text is one JSON value."""
    try:
        loads(text)
    except JsonFault:
        return False
    return True


def command_failed(text: str) -> bool:
    """Returns whether a text is the JSON result of a command, with an exit code other than 0."""
    value = json_in_text(text) if '"exit_code"' in text else None
    code = value.get("exit_code") if isinstance(value, dict) else None
    return isinstance(code, int) and code != 0
