"""Converts what events of Copilot hold to parts of messages.

Source: docs/formats/copilot-cli.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from builder.conversation import Json, Part, Reasoning, Text, ToolCall, unknown_part
from builder.jsonio import json_type
from builder.readers.toolkit.history import HistoryEntry
from builder.readers.toolkit.narrow import as_dicts, as_str, name_or_none


def split(sent: str, typed: str) -> Iterator[Text]:
    """Yields a message as sent: the user's words, and what the program put around them."""
    before, separator, after = sent.partition(typed) if typed else (sent, "", "")
    apart = (not before or before.endswith("\n\n")) and (not after or after.startswith("\n\n"))
    if not separator or not apart:
        yield Text(sent)
        return
    if before:
        yield Text(before[:-2], harness=True)
    yield Text(typed)
    if after:
        yield Text(after[2:], harness=True)


def typed_texts(entries: Iterable[HistoryEntry]) -> list[str]:
    """Returns what the user typed in each message of a history."""
    users = (entry.message for entry in entries if entry.message.role == "user")
    own = (
        [part.text for part in message.parts if isinstance(part, Text) and not part.harness]
        for message in users
    )
    return ["".join(texts) for texts in own if texts]


def summary_text(typed: Iterable[str], summary: str) -> str:
    """Returns the message with which a compacted history begins, as 1.0.102 words it."""
    messages = "\n".join(f"<user_message>\n{text}\n</user_message>" for text in typed)
    return (
        "Some of the conversation history has been summarized to free up context.\n\n"
        "You were originally given instructions from a user over one or more turns. "
        f"Here were the user messages:\n{messages}\n\n"
        f"Here is a summary of the prior context:\n<summary>\n{summary}\n</summary>\n"
    )


def joined(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Returns the parts of all chunks; text that a chunk continues becomes one part again."""
    found: list[Part] = []
    for part in parts:
        last = found[-1] if found else None
        if isinstance(part, Text) and isinstance(last, Text):
            found[-1] = Text(last.text + part.text)
        elif isinstance(part, Reasoning) and isinstance(last, Reasoning):
            found[-1] = Reasoning(last.text + part.text)
        else:
            found.append(part)
    return tuple(found)


def answer_parts(data: dict[str, Json]) -> Iterator[Part]:
    """Yields the parts of an answer or of a chunk of it: thoughts, text and calls."""
    if thought := as_str(data.get("reasoningText")):
        yield Reasoning(thought)
    content = data.get("content")
    if isinstance(content, str) and content:
        yield Text(content)
    elif content not in (None, ""):
        yield unknown_part(json_type(content))
    for call in as_dicts(data.get("toolRequests")):
        arguments = call.get("arguments")
        if call.get("type") == "custom":
            arguments = {"input": arguments}  # free text becomes the only argument
        call_id = name_or_none(call.get("toolCallId"))
        yield ToolCall(as_str(call.get("name")), arguments, call_id)
