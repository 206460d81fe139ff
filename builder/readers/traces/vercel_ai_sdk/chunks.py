"""Makes parts of the chunks of a UI message stream, which some applications store as `parts`.

Source: docs/formats/vercel-ai-sdk.md, "UI messages". A text or a call is several chunks; the first
alphas of AI SDK 5 stored them like this.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Json
from builder.jsonio import dumps
from builder.readers.toolkit.narrow import as_dict, as_str

_STEPS = frozenset({"start-step", "step-start"})
_MARKS = frozenset({"start", "finish", "finish-step", "message-metadata", "reasoning-part-finish"})
"""Chunks without content."""
_TEXTS = {
    "text-start": "text", "text-delta": "text", "text-end": "text",
    "reasoning-start": "reasoning", "reasoning-delta": "reasoning", "reasoning-end": "reasoning",
}  # fmt: skip
_CALLS = {
    "tool-input-start": "input-streaming",
    "tool-call-streaming-start": "input-streaming",
    "tool-input-delta": "input-streaming",
    "tool-call-delta": "input-streaming",
    "tool-input-available": "input-available",
    "tool-input-error": "input-streaming",
    "tool-call": "input-available",
    "tool-output-available": "output-available",
    "tool-result": "output-available",
    "tool-output-error": "output-error",
    "tool-output-denied": "output-denied",
}
"""Types of chunks of a call, and the state of the call after them."""
_DROPPED = frozenset({"type", "inputTextDelta", "argsTextDelta"})
"""Keys of a chunk that a call does not have: pieces of arguments, which a later chunk repeats."""
_RENAMED = {"args": "input", "result": "output"}

CHUNKS = frozenset({*_TEXTS, *_CALLS, *_MARKS, *_STEPS})


def is_chunk(part: dict[str, Json]) -> bool:
    """Returns whether a part is a chunk of a stream, not a call of a tool of the same name."""
    return as_str(part.get("type")) in CHUNKS and "state" not in part


def assembled(parts: list[Json]) -> list[Json]:
    """Returns the parts with their chunks joined; unchanged if there are none.

    A text is where it begins, a call where its last chunk is. A text without an end is one that was
    still being streamed.
    """
    return list(_joined(parts)) if any(is_chunk(as_dict(part)) for part in parts) else parts


def _joined(parts: list[Json]) -> Iterator[Json]:
    texts: dict[str, dict[str, Json]] = {}
    calls: dict[str, dict[str, Json]] = {}
    for value in parts:
        part = as_dict(value)
        kind = as_str(part.get("type"))
        if not is_chunk(part):
            yield value
        elif kind in _STEPS:
            yield {"type": "step-start"}
        elif kind in _TEXTS:
            key = f"{_TEXTS[kind]} {_id(part.get('id'))}"
            if key not in texts:
                texts[key] = {"type": _TEXTS[kind], "text": "", "state": "streaming"}
                yield texts[key]
            text = texts[key]
            piece = as_str(part.get("delta")) or as_str(part.get("text"))
            text["text"] = as_str(text["text"]) + piece
            if kind.endswith("-end"):
                text["state"] = "done"
                del texts[key]
        elif kind in _CALLS:
            yield _call(part, calls)


def _call(part: dict[str, Json], calls: dict[str, dict[str, Json]]) -> dict[str, Json]:
    """Returns a call in its state after a chunk."""
    known = {_RENAMED.get(key, key): value for key, value in part.items() if key not in _DROPPED}
    key = _id(part.get("toolCallId"))
    state = _CALLS[as_str(part.get("type"))]
    call = {**calls.get(key, {}), **known, "type": "dynamic-tool", "state": state}
    calls[key] = call
    return call


def _id(value: Json) -> str:
    return value if isinstance(value, str) else dumps(value)
