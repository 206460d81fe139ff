"""Reads store.db, in which Cursor's CLI keeps a chat. Source: docs/formats/cursor.md."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Content,
    Context,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from builder.jsonio import JsonFault, dumps, loads
from builder.problem import Problem
from builder.readers.toolkit import protobuf
from builder.readers.toolkit.chat_messages import as_harness, content, content_block, tool_calls
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    model_of,
    name_or_none,
)
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted
from builder.sources.source import Source
from builder.sources.sqlite_file import open_sqlite

_META = "SELECT CAST(value AS TEXT) FROM meta WHERE key = '0'"
_BLOB = "SELECT CAST(data AS BLOB) FROM blobs WHERE id = ?"
_ID_BYTES = 32
_MAX_BLOBS = 100_000
_MAX_DEPTH = 50

_KEYS = MESSAGE_KEYS | {"providerOptions"}
"""Keys of messages that are known."""


def read_store(source: Source, name: str) -> Iterator[Event]:
    """Yields the conversation of the messages below the store's root.

    A record is a blob; blobs of abandoned branches and of other content are ignored.
    """
    with open_sqlite(source) as connection:
        (total,) = connection.execute("SELECT count(*) FROM blobs").fetchone()
        source.count_records(total)
        meta = _meta(connection)
        walk = _Walk(connection)
        root = name_or_none(meta.get("latestRootBlobId"))
        messages = list(walk.messages(root, 0)) if root else []
    history = SessionHistory("cursor", as_str(meta.get("agentId")) or name, f"cursor/{source.name}")
    head = RequestHead(walk.system(messages), None, model_of(meta, "lastUsedModel"))
    missing = ["tools", *(["history"] if walk.is_incomplete else [])]
    missing += ["system"] if head.system is None else []
    missing += ["digest"] if walk.is_altered else []
    for at, value in enumerate(messages):
        if value.get("role") == "system":
            source.seen(f"message {at}", value)
            continue
        message = noted([_message(value)], value, _KEYS)[0]
        if message.role != "assistant":
            history.append(message, f"message {at}")
        elif message.parts:
            answer = replace(message, turn=f"message {at}", context=Context.lacking(missing))
            history.append(answer, f"message {at}", head)
    if walk.is_incomplete:
        detail = "a blob is missing, or is neither a message nor a list of them"
        yield Problem("missing_blob", "root", detail, records=0)
    if left := total - len(walk.seen):
        yield Ignored("other_blob", left)
    yield from history.conversations(len(walk.seen))


def _meta(connection: sqlite3.Connection) -> dict[str, Json]:
    row = connection.execute(_META).fetchone()
    try:
        return as_dict(loads(bytes.fromhex(row[0]))) if row else {}
    except (JsonFault, ValueError, TypeError):
        return {}


@dataclass(slots=True)
class _Walk:
    """The blobs that were read, below the root. A blob's id is the SHA-256 of its bytes."""

    connection: sqlite3.Connection
    seen: set[str] = field(default_factory=set)
    is_incomplete: bool = False
    is_altered: bool = False

    def messages(self, blob_id: str, depth: int) -> Iterator[dict[str, Json]]:
        """Yields the messages below a blob, in order."""
        if blob_id in self.seen or depth > _MAX_DEPTH or len(self.seen) > _MAX_BLOBS:
            return
        row = self.connection.execute(_BLOB, (blob_id,)).fetchone()
        if row is None or not isinstance(row[0], bytes):
            self.is_incomplete = True
            return
        self.seen.add(blob_id)
        data = row[0]
        self.is_altered = self.is_altered or hashlib.sha256(data).hexdigest() != blob_id
        if data.lstrip()[:1] == b"{":
            try:
                value = as_dict(loads(data))
            except JsonFault:
                value = {}
            if "role" in value:
                yield value
            else:
                self.is_incomplete = True
            return
        children = _children(data)
        if children is None or (depth > 0 and not children):
            self.is_incomplete = True
        for child in children or ():
            yield from self.messages(child, depth + 1)

    @staticmethod
    def system(messages: list[dict[str, Json]]) -> str | None:
        """Returns the text of the system messages at the beginning."""
        texts: list[str] = []
        for value in messages:
            if value.get("role") != "system":
                break
            texts += [part.text for part in content(value.get("content")) if isinstance(part, Text)]
        return "\n\n".join(texts) or None


def _children(data: bytes) -> list[str] | None:
    """Returns the ids in fields 1 (messages) and 2 (lists) of a protobuf message, in order.

    None if the bytes are no protobuf message.
    """
    try:
        listed = protobuf.entries(data)
        return [
            value.hex()
            for number, value in listed
            if number in (1, 2) and isinstance(value, bytes) and len(value) == _ID_BYTES
        ]
    except ValueError:
        return None


def _message(value: dict[str, Json]) -> Message:
    role = as_str(value.get("role"))[:40]
    logged = value.get("content")
    blocks = as_dicts(logged) if isinstance(logged, list) else []
    if role == "assistant":
        parts: list[Part] = [] if isinstance(logged, list) else list(content(logged))
        parts += [part for block in blocks if (part := _answer_part(block)) is not None]
        parts += tool_calls(value.get("tool_calls"))
        return Message(role, tuple(parts))
    if role == "tool":
        results = [block for block in blocks if block.get("type") == "tool-result"]
        if not results:
            results = [{"toolCallId": value.get("tool_call_id"), "result": logged}]
        return Message(role, tuple(map(_result, results)))
    own = as_dict(value, "providerOptions", "cursor")
    texts = tuple(map(content_block, blocks)) if isinstance(logged, list) else content(logged)
    is_summary = own.get("isSummary") is True
    return Message(role, as_harness(texts) if is_summary else texts)


def _answer_part(block: dict[str, Json]) -> Part | None:
    match block.get("type"):
        case "reasoning":
            thought = as_str(block.get("text"))
            return Reasoning(thought) if thought else None
        case "redacted-reasoning":
            return None
        case "tool-call":
            arguments = block.get("args", block.get("input"))
            call_id = name_or_none(block.get("toolCallId"))
            return ToolCall(as_str(block.get("toolName")), arguments, call_id)
        case _:
            return content_block(block)


def _result(block: dict[str, Json]) -> ToolResult:
    logged = block.get("experimental_content") or block.get("result", block.get("output"))
    call_id, name = name_or_none(block.get("toolCallId")), name_or_none(block.get("toolName"))
    parts: tuple[Content, ...]
    if isinstance(logged, str):
        parts = (Text(logged),)
    elif isinstance(logged, list) and all(isinstance(item, dict) for item in as_list(logged)):
        parts = tuple(map(content_block, as_dicts(logged)))
    else:
        parts = (Text(dumps(logged)),) if logged is not None else ()
    return ToolResult(parts, call_id, name, is_error=block.get("isError") is True)
