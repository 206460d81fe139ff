"""Reads answers of Cohere's chat API (v2) as choices of a chat completion.

Its requests have the fields of chat completions; the thought before calls is `tool_plan`, and
results may be lists of documents. An answer is `message` beside `finish_reason`; the events of a
stream have a type and a `delta`. Source: Cohere's reference of `POST /v2/chat`.
"""

from __future__ import annotations

from builder.conversation import Json
from builder.readers.toolkit.narrow import as_dict, as_str

EVENTS = frozenset({
    "message-start", "message-end", "content-start", "content-delta", "content-end",
    "tool-plan-delta", "tool-call-start", "tool-call-delta", "tool-call-end", "citation-start",
    "citation-end",
})  # fmt: skip
_REASONS = frozenset({"COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TOOL_CALL", "ERROR", "TIMEOUT"})


def is_cohere(body: dict[str, Json]) -> bool:
    """Returns whether a response's body, or an event of a streamed one, is Cohere's."""
    if as_str(body.get("type")) in EVENTS:
        return "delta" in body or "index" in body or "id" in body
    is_answer = (
        isinstance(body.get("message"), dict) and as_str(body.get("finish_reason")) in _REASONS
    )
    return is_answer and "choices" not in body


def choice_of(body: dict[str, Json]) -> dict[str, Json]:
    """Returns the choice of a response, or the piece of it that an event adds."""
    kind, delta = as_str(body.get("type")), as_dict(body.get("delta"))
    if kind not in EVENTS:
        message, reason = as_dict(body.get("message")), as_str(body.get("finish_reason"))
        return {"index": 0, "message": message, "finish_reason": reason.lower()}
    message = as_dict(delta.get("message"))
    piece: dict[str, Json] = {}
    if kind in ("content-start", "content-delta"):
        content = as_dict(message.get("content"))
        piece["content"] = content.get("text")
        piece["reasoning_content"] = content.get("thinking")
    elif kind == "tool-plan-delta":
        piece["reasoning_content"] = message.get("tool_plan")
    elif kind in ("tool-call-start", "tool-call-delta"):
        call = as_dict(message.get("tool_calls"))
        piece["tool_calls"] = [{**call, "index": body.get("index")}]
    ended = as_str(delta.get("finish_reason")).lower()
    return {"index": 0, "delta": piece, "finish_reason": ended or None}
