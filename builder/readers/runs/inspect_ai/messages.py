"""Parses messages of Inspect AI's logs: content, calls, results and attachments.

Long texts are in a sample's `attachments`, to which messages refer as `attachment://<hash>`.
Source: docs/formats/inspect-ai.md.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

from builder.conversation import (
    Content,
    Data,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.jsonio import NotANumber, dumps
from builder.readers.toolkit.chat_messages import content_block
from builder.readers.toolkit.comparison import without_key
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.thoughts import with_thoughts
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted

_ATTACHMENT = re.compile(r"(?:attachment|tc)://(.*)", re.DOTALL)
"""A reference to a text; `tc` was the scheme in 2024."""
_SILENT = frozenset({"data"})
"""Content with internal data of a provider (ContentData)."""
_KEYS = MESSAGE_KEYS | {"source", "function", "error", "internal"}
"""Keys of a message that are known."""
_CUT_SHORT = frozenset({"max_tokens", "model_length", "content_filter"})


class Texts:
    """Resolves the attachments of a sample; `lost` describes those that are not in the log."""

    def __init__(self, attachments: dict[str, Json]) -> None:
        self._attachments = attachments
        self.lost: list[str] = []

    def text(self, value: Json) -> str:
        """Returns the text, or the attachment to which it refers; "" for other values."""
        text = as_str(value)
        reference = _ATTACHMENT.fullmatch(text)
        if reference is None:
            return text
        attached = self._attachments.get(reference[1])
        if isinstance(attached, str):
            return attached
        self.lost.append("missing attachment")
        return text

    def value(self, value: Json) -> Json:
        """Returns the value with its references replaced by the attachments."""
        if isinstance(value, str) and not isinstance(value, NotANumber):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {name: self.value(item) for name, item in value.items()}
        return value


def read_message(item: Json, texts: Texts, stop_reason: str = "") -> list[Message]:
    """Returns the messages of a logged message; a tool run by the provider splits the turn.

    An assistant message that the model did not generate (an example of the dataset, an operator's
    text) is marked `inserted`.
    """
    return noted(_messages(as_dict(item), texts, stop_reason), item, _KEYS)


def _messages(message: dict[str, Json], texts: Texts, stop_reason: str) -> list[Message]:
    role = as_str(message.get("role"))
    turn = name_or_none(message.get("id")) if role == "assistant" else None
    inserted = role == "assistant" and message.get("source") in ("input", "operator")
    untrained = "inserted" if inserted else None
    parts = _content(message.get("content"), texts)
    if role == "tool":
        return [Message(role, (_result(message, parts, texts),))]
    if role == "assistant":
        parts = with_thoughts(parts, message)
    for call in as_dicts(message.get("tool_calls")):
        parts += _call(call, texts)
    if stop_reason in _CUT_SHORT:
        parts.append(Unparsed("", "truncated"))
    split: list[Message] = []
    pending: list[Part] = []
    for number, part in enumerate(parts):
        if isinstance(part, ToolCall) and turn:
            pending.append(replace(part, key=f"{turn}/{number}"))
        else:
            pending.append(part)
        if isinstance(part, ToolResult):
            turn_id = _numbered(turn, len(split))
            split.append(Message(role, tuple(pending[:-1]), turn_id, untrained))
            split.append(Message("tool", (part,)))
            pending = []
    if pending or not split:
        split.append(Message(role, tuple(pending), _numbered(turn, len(split)), untrained))
    return split


def _numbered(turn: str | None, position: int) -> str | None:
    return f"{turn} +{position}" if turn and position else turn


def _content(value: Json, texts: Texts) -> list[Part]:
    parts: list[Part] = []
    for item in [value] if isinstance(value, str) else as_list(value):
        part = as_dict(item)
        kind = as_str(part.get("type"))
        if kind == "text" or isinstance(item, str):
            text = texts.text(part.get("text") if part else item)
            parts += [Text(text)] if text else []
        elif kind == "reasoning":
            # Redacted reasoning is encrypted, but its summary, if any, is not.
            visible = part.get("summary") if part.get("redacted") is True else part.get("reasoning")
            thought = texts.text(visible)
            parts += [Reasoning(thought)] if thought else []
        elif kind == "tool_use":
            parts += _server_call(part, texts)
        elif kind not in _SILENT:
            parts.append(content_block(item))
    return parts


def _call(call: dict[str, Json], texts: Texts) -> list[Part]:
    """Returns a call. With a `parse_error`, its arguments differ from the model's text."""
    name = name_or_none(call.get("function"))
    if name is None:
        return [Unparsed(dumps(call), "bad_call")]
    call_id = name_or_none(call.get("id"))
    made = ToolCall(name, texts.value(call.get("arguments")), id=call_id)
    error = texts.text(call.get("parse_error"))
    return [made, Unparsed(error, "parse_error")] if error else [made]


def _server_call(part: dict[str, Json], texts: Texts) -> list[Part]:
    """Returns a call that the provider ran inside the turn, and its result."""
    call_id = name_or_none(part.get("id"))
    call = ToolCall(as_str(part.get("name")), texts.value(part.get("arguments")), id=call_id)
    error = texts.text(part.get("error"))
    result = error or texts.value(part.get("result"))
    parts = (Text(result) if isinstance(result, str) else Data(result),)
    return [call, ToolResult(parts, call_id=call_id, is_error=bool(error))]


def _result(message: dict[str, Json], parts: list[Part], texts: Texts) -> ToolResult:
    """Returns a tool's result; of a failed call the model saw the error's message."""
    error = as_dict(message.get("error"))
    visible = texts.text(error.get("message"))
    pieces = tuple(part for part in parts if isinstance(part, Content))
    return ToolResult(
        (Text(visible),) if visible else pieces,
        call_id=name_or_none(message.get("tool_call_id")),
        name=name_or_none(message.get("function")),
        is_error=bool(error),
    )


def digests(messages: list[Message]) -> list[bytes]:
    """Returns the digest of each prefix of the messages.

    Ignores thoughts and ids, which a later request may not repeat.
    """
    running = hashlib.blake2b(digest_size=16)
    digests = [running.digest()]
    for message in messages:
        kept = (part for part in message.parts if not isinstance(part, Reasoning | Unparsed))
        parts = tuple(map(without_key, kept))
        plain = replace(message, parts=parts, turn=None, untrained=None, model=None)
        running.update(repr(plain).encode("utf-8", "surrogatepass"))
        digests.append(running.digest())
    return digests
