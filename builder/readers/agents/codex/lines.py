"""Reads the lines of a Codex rollout, in any layout, and derives facts that need all of them.

Source: docs/formats/codex.md, "The lines".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from builder.conversation import Json, Text
from builder.problem import Problem
from builder.readers.agents.codex import items
from builder.readers.toolkit.narrow import as_dict, as_list, as_str
from builder.readers.toolkit.rows import not_object
from builder.sources.source import Record

KINDS = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class RolloutLine:
    """One line, in any layout. The `payload` of a response_item is the item.

    `is_numbered`: it has an ordinal, as in the builds since 0.171.
    """

    where: str
    kind: str
    payload: dict[str, Json]
    is_numbered: bool = False

    @property
    def item(self) -> str:
        """The type of the item or event that it contains."""
        return as_str(self.payload.get("type"))


def line_of(record: Record) -> RolloutLine | Problem:
    """Returns the record as a line; bare items and the oldest header get a kind."""
    value = record.value
    if not isinstance(value, dict):
        return not_object(record, "a line that is ")
    kind = as_str(value.get("type"))
    payload = value.get("payload")
    if isinstance(payload, dict):
        return RolloutLine(record.where, kind, payload, isinstance(value.get("ordinal"), int))
    if "payload" in value or kind in KINDS:
        return Problem("not_object", record.where, f"{kind[:40]}: its payload is not an object")
    if "record_type" in value:
        return RolloutLine(record.where, as_str(value["record_type"]), value)
    if not kind and "id" in value:
        return RolloutLine(record.where, "session_meta", value)
    return RolloutLine(record.where, "response_item", value)


def id_in(name: str) -> str:
    """Returns the session id in a file name, for builds that do not write session_meta."""
    file = PurePosixPath(name).name
    match = _UUID.search(file)
    return match[0] if match else file.partition(".")[0] or "session"


def typed_texts(lines: Sequence[RolloutLine]) -> frozenset[str] | None:
    """Collects the texts that the user typed from the events; None if no event has any."""
    texts: set[str] = set()
    for line in lines:
        if line.kind != "event_msg":
            continue
        if line.item == "user_message" and line.payload.get("kind") in (None, "plain"):
            texts.add(as_str(line.payload.get("message")))
        item = as_dict(line.payload.get("item"))
        if line.item == "item_completed" and item.get("type") == "UserMessage":
            pieces = [as_str(part, "text") for part in as_list(item.get("content"))]
            texts.update((*pieces, "".join(pieces), "\n".join(pieces)))
    return frozenset(text for text in texts if text) or None


def item_texts(lines: Sequence[RolloutLine]) -> Iterator[str]:
    """Yields the texts of all messages except the model's."""
    for line in lines:
        if line.item == "message" and line.payload.get("role") != "assistant":
            parts = items.content_parts(line.payload.get("content"))
            yield from (part.text for part in parts if isinstance(part, Text))


def interleaved(lines: Sequence[RolloutLine]) -> frozenset[int]:
    """Returns the indexes of the model's lines that follow a tool output but belong to its turn.

    They can be determined only in a user turn in which the program wrote a line before requests.
    """
    interleaved: set[int] = set()
    candidates: list[int] = []
    marked = answered = marks_requests = False
    for at, line in enumerate(lines):
        if line.kind in ("turn_context", "state"):
            marked = True
        elif line.kind != "response_item" or line.item in items.SILENT:
            continue
        elif line.item == "message" and line.payload.get("role") != "assistant":
            interleaved.update(candidates if marks_requests else ())
            candidates = []
            marked = answered = marks_requests = False
        elif line.item in items.OUTPUTS:
            answered = True
        else:
            if answered and marked:
                marks_requests = True
            elif answered:
                candidates.append(at)
            marked = answered = False
    interleaved.update(candidates if marks_requests else ())
    return frozenset(interleaved)
