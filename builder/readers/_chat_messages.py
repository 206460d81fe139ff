"""A chat message as ours (openai-chat.md, "Request fields" and "Converter pitfalls")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builder.conversation import Json, Message, Part, Reasoning, Text, ToolResult
from builder.readers import _tags
from builder.readers._messages import assistant_parts, content, tool_result
from builder.readers._narrow import as_dict, as_str


def read_message(
    item: Json, turn: str, unknown: list[str], changes: Counter[str], *, flat: bool
) -> Iterator[Message]:
    """A logged message as ours; `flat`: calls and results stand in its text."""
    message = as_dict(item)
    role = message.get("role")
    if role is None and (message.get("tool_calls") or "content" in message):
        role = "assistant"  # responses may leave the role out
    trained = message.get("weight") != 0 or isinstance(message.get("weight"), bool)
    if role == "assistant":
        opened = tuple(
            inner
            for part in assistant_parts(message, unknown)
            for inner in _opened(part, changes, flat=flat)
        )
        yield Message("assistant", opened, turn=turn, trained=trained)
    elif role in ("tool", "function"):
        yield Message("tool", (tool_result(message, unknown),))
    elif role in ("system", "developer", "user"):
        parts = content(message.get("content"), unknown)
        text = as_str(message.get("content"))
        answers = _tags.responses(text) if flat and role == "user" else None
        if answers is not None:
            for answer in answers:
                yield Message("tool", (ToolResult((Text(answer),)),))
        else:
            yield Message(str(role), parts)
    else:
        yield Message(str(role)[:40], content(message.get("content"), unknown))


def _opened(part: Part, changes: Counter[str], *, flat: bool) -> tuple[Part, ...]:
    """Words taken apart: calls of the flat form, and a thought that leads the words in tags."""
    if not isinstance(part, Text):
        return (part,)
    if flat:
        return tuple(_tags.assistant_parts(part.text, changes))
    if part.text.lstrip().startswith("<think>") and "</think>" in part.text:
        head, _, rest = part.text.partition("</think>")
        thought = head.partition("<think>")[2]
        changes["think_tags"] += 1
        words = (Text(rest.lstrip("\n")),) if rest.strip() else ()
        return (*((Reasoning(thought.strip("\n")),) if thought.strip() else ()), *words)
    return (part,)
