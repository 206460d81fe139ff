"""Reads calls and results of Kiro's CLI, which sessions and databases have in common."""

from __future__ import annotations

from builder.conversation import Content, Data, Json, Part, Text, ToolCall, ToolResult, unknown_part
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str, model_of, name_or_none

_ERRORS = frozenset({"error", "Error"})
_TOO_LARGE = ": the actual tool use arguments were too complicated to be generated"


def result(value: dict[str, Json], id_key: str) -> ToolResult:
    """Returns the result in an item with content, status and, under `id_key`, the call's id."""
    content: list[Content] = []
    for item in as_dicts(value.get("content")):
        kind = as_str(item.get("kind"))
        text = item.get("data") if kind == "text" else item.get("Text")
        json = item.get("data") if kind == "json" else item.get("Json")
        if isinstance(text, str):
            content.append(Text(text))
        elif kind == "json" or "Json" in item:
            content.append(Data(json))
        else:
            content.append(unknown_part(kind or next(iter(item), "")))
    failed = as_str(value.get("status")) in _ERRORS
    return ToolResult(tuple(content), name_or_none(value.get(id_key)), is_error=failed)


def model_id(value: dict[str, Json]) -> str | None:
    """Returns the name of the model in an object with `model_info`; None if it was chosen later."""
    return model_of(as_dict(value, "model_info"), "model_id", "model_name")


def stand_in(parts: list[Part]) -> str | None:
    """Returns `inserted` for an answer with a call whose arguments the program wrote.

    When a response ends before the arguments do, the program stores a call with a note in their
    place and asks again.
    """
    for part in parts:
        if isinstance(part, ToolCall) and isinstance(part.arguments, dict):
            note = part.arguments.get("key")
            if isinstance(note, str) and note.endswith(_TOO_LARGE) and len(part.arguments) == 1:
                return "inserted"
    return None
