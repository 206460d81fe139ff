"""Assembles the events of a ConverseStream answer.

Source: docs/formats/bedrock-converse.md "Stream events".
"""

from __future__ import annotations

from collections.abc import Iterable

from builder.conversation import Json
from builder.readers.api.capture.dialect import BEDROCK_EVENTS
from builder.readers.toolkit.narrow import as_dict, as_int, as_str


def is_event(body: dict[str, Json]) -> bool:
    """Returns whether a body is one event of a stream."""
    return len(body) == 1 and not BEDROCK_EVENTS.isdisjoint(body)


class _Block:
    """A content block that is assembled from its pieces."""

    def __init__(self, start: dict[str, Json]) -> None:
        self.use = as_dict(start.get("toolUse"))
        self.text: list[str] = []
        self.input: list[str] = []
        self.value: Json = None  # an input that came as a value instead of text
        self.thought: list[str] | None = None
        self.other: Json = None
        self.ended = False

    def add(self, delta: dict[str, Json]) -> None:
        self.text.append(as_str(delta.get("text")))
        if "toolUse" in delta:
            piece = as_dict(delta["toolUse"]).get("input")
            if isinstance(piece, str):
                self.input.append(piece)
            elif piece is not None:
                self.value = piece
        if "reasoningContent" in delta:
            thought = as_dict(delta["reasoningContent"])
            self.thought = self.thought or []
            self.thought.append(as_str(thought.get("text")))
        for key in ("image", "toolResult"):
            if key in delta:
                self.other = {key: delta[key]}

    def logged(self) -> dict[str, Json]:
        if self.use:
            text = "".join(self.input)
            given = self.value if self.value is not None and not text else text
            return {"toolUse": {**self.use, "input": given}}
        if self.thought is not None:
            return {"reasoningContent": {"reasoningText": {"text": "".join(self.thought)}}}
        if isinstance(self.other, dict):
            return self.other
        return {"text": "".join(self.text)}


def whole_response(events: Iterable[Json]) -> dict[str, Json]:
    """Returns the assembled response: `output` and `stopReason`.

    It has no stopReason if the end is missing or an event is an error.
    """
    blocks: list[_Block] = []
    at: dict[int, _Block] = {}  # the current block of an index
    stop: Json = None
    broken = False
    for item in events:
        event = as_dict(item)
        if "error" in event or any(key.endswith("Exception") for key in event):
            broken = True
        body = as_dict(next(iter(event.values()), None))
        place = as_int(body.get("contentBlockIndex"))
        if "contentBlockStart" in event:
            at[place] = _Block(as_dict(body.get("start")))
            blocks.append(at[place])
        elif "contentBlockDelta" in event:
            if place not in at or at[place].ended:
                at[place] = _Block({})
                blocks.append(at[place])
            at[place].add(as_dict(body.get("delta")))
        elif "contentBlockStop" in event and place in at:
            at[place].ended = True
        elif "messageStop" in event:
            stop = body.get("stopReason")
    if not blocks and stop is None:
        return {}
    content: list[Json] = [block.logged() for block in blocks]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": None if broken else stop,
    }
