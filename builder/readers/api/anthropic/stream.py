"""Assembles the events of a streamed message (docs/formats/anthropic-messages.md "Stream")."""

from __future__ import annotations

from collections.abc import Iterable

from builder.conversation import Json
from builder.jsonio import JsonFault, loads
from builder.readers.api.anthropic.blocks import HALF_CALL
from builder.readers.toolkit.narrow import as_dict, as_int, as_list, as_str


def whole_message(events: Iterable[Json]) -> dict[str, Json]:
    """Returns the message of the events, in the form of a response that is not streamed.

    It has no `stop_reason` if the end is missing or an event is an error. A call with incomplete
    arguments has the type HALF_CALL.
    """
    message: dict[str, Json] = {}
    open_blocks: dict[int, _Block] = {}
    broken = False
    for value in events:
        event = as_dict(value)
        kind = event.get("type")
        at = as_int(event.get("index"))
        if kind == "message_start":
            message = {**as_dict(event.get("message"))}
        elif kind == "content_block_start":
            open_blocks[at] = _Block(as_dict(event.get("content_block")))
        elif kind == "content_block_delta":
            open_blocks.setdefault(at, _Block({"type": "text"})).add(as_dict(event.get("delta")))
        elif kind == "content_block_stop" and at in open_blocks:
            open_blocks[at].ended = True
        elif kind == "message_delta":
            message.update(as_dict(event.get("delta")))
            if "context_management" in event:
                message["context_management"] = event["context_management"]
        elif kind == "error":
            broken = True
    if broken:
        message["stop_reason"] = None
    ended = bool(message.get("stop_reason"))
    whole = message.get("stop_reason") in ("end_turn", "tool_use", "stop_sequence")
    content: list[Json] = [
        open_blocks[at].logged(ended=ended, whole=whole) for at in sorted(open_blocks)
    ]
    return {**message, "content": content or as_list(message.get("content"))}


class _Block:
    """A block that is assembled from its pieces."""

    def __init__(self, start: dict[str, Json]) -> None:
        self.start = start
        self.texts = {name: [as_str(start.get(name))] for name in ("text", "thinking")}
        self.citations = list(as_list(start.get("citations")))
        self.json: list[str] = []
        self.ended = False

    def add(self, delta: dict[str, Json]) -> None:
        for name, pieces in self.texts.items():
            pieces.append(as_str(delta.get(name)))
        self.json.append(as_str(delta.get("partial_json")))
        if delta.get("citation") is not None:
            self.citations.append(delta["citation"])

    def logged(self, *, ended: bool, whole: bool) -> dict[str, Json]:
        """Returns the block. `ended`: the message has ended; `whole`: not by a limit or filter."""
        texts = {name: "".join(pieces) for name, pieces in self.texts.items()}
        block = {**self.start, **{name: text for name, text in texts.items() if text}}
        if self.citations:
            block["citations"] = self.citations
        if block.get("type") != "tool_use":
            return block
        if given := "".join(self.json):
            try:
                block["input"] = loads(given)
            except JsonFault:
                if not whole:
                    return {"type": HALF_CALL, "text": given}
                block["input"] = given  # the model's own mistake
        elif not (self.ended or ended):
            return {"type": HALF_CALL, "text": ""}
        return block
