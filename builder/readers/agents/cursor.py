"""Reads Cursor's chats. Source: docs/formats/cursor.md."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import takewhile

from builder.conversation import (
    Context,
    Event,
    Ignored,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from builder.jsonio import JsonFault, a_json_type, dumps, loads
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api.anthropic import read_message
from builder.readers.toolkit import protobuf
from builder.readers.toolkit.chat_messages import as_harness, content, tool_calls, tool_result
from builder.readers.toolkit.history import HistoryEntry, RequestHead, SessionHistory
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    json_in_text,
    model_of,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.rows import RecordLog, add_records, objects
from builder.readers.toolkit.unknown_keys import message_keys, noted
from builder.readers.traces.parts import read_parts, read_result
from builder.sources.source import Source
from builder.sources.sqlite_file import (
    first_column,
    guarded,
    json_column,
    listed,
    open_sqlite,
    rows,
    tables,
)

# -- store.db, in which the CLI keeps a chat ------------------------------------------------------

_META = "SELECT CAST(value AS TEXT) FROM meta WHERE key = '0'"
_BLOB = "SELECT CAST(data AS BLOB) FROM blobs WHERE id = ?"
_ID_BYTES = 32
_MAX_BLOBS = 100_000
_MAX_DEPTH = 50

_NAME = "cursor"


def _read_store(source: Source, name: str) -> Iterator[Event]:
    """Yields the conversation of the messages below the store's root.

    A record is a blob; blobs of abandoned branches and of other content are ignored.
    """
    meta: dict[str, Json] = {}
    with open_sqlite(source) as connection:
        (total,) = connection.execute("SELECT count(*) FROM blobs").fetchone()
        source.count_records(total)
        row = connection.execute(_META).fetchone()
        with contextlib.suppress(JsonFault, ValueError, TypeError):
            meta = as_dict(loads(bytes.fromhex(row[0]))) if row else {}
        walk = _Walk(connection)
        root = name_or_none(meta.get("latestRootBlobId"))
        messages = list(walk.messages(root, 0)) if root else []
    history = SessionHistory(_NAME, as_str(meta.get("agentId")) or name, f"cursor/{source.name}")
    prompts = takewhile(lambda value: value.get("role") == "system", messages)
    found = (part for value in prompts for part in content(value.get("content")))
    system = "\n\n".join(part.text for part in found if isinstance(part, Text)) or None
    head = RequestHead(system, None, model_of(meta, "lastUsedModel"))
    missing = ["tools", *(["history"] if walk.is_incomplete else [])]
    missing += ["system"] if system is None else []
    missing += ["digest"] if walk.is_altered else []
    for at, value in enumerate(messages):
        where = f"message {at}"
        if value.get("role") == "system":
            source.seen(where, value)
            continue
        message = noted([_message(value)], value, message_keys("cursor"))[0]
        if message.role != "assistant":
            history.append(message, where)
        elif message.parts:
            code, context = cut_code(value), Context.lacking(missing)
            answer = replace(message, turn=where, untrained=code, context=context)
            history.append(answer, where, head)
    if walk.is_incomplete:
        detail = "a blob is missing, or is neither a message nor a list of them"
        yield Problem("missing_blob", "root", detail, records=0)
    if left := total - len(walk.seen):
        yield Ignored("other_blob", left)
    yield from history.conversations(len(walk.seen))


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
        children: list[str] = []
        is_read = False
        with contextlib.suppress(ValueError):  # JsonFault, or no protobuf message
            if data.lstrip()[:1] == b"{":
                value = as_dict(loads(data))
                if "role" in value:
                    yield value
                    return
            else:  # ids in fields 1 (messages) and 2 (lists)
                children = [
                    value.hex()
                    for number, value in protobuf.entries(data)
                    if number in (1, 2) and isinstance(value, bytes) and len(value) == _ID_BYTES
                ]
                is_read = bool(children) or depth == 0
        self.is_incomplete = self.is_incomplete or not is_read
        for child in children:
            yield from self.messages(child, depth + 1)


def _message(value: dict[str, Json]) -> Message:
    role, logged = as_str(value.get("role"))[:40], value.get("content")
    if role == "assistant":
        return Message(role, (*read_parts(logged), *tool_calls(value.get("tool_calls"))))
    if role == "tool":
        results = [one for one in as_dicts(logged) if one.get("type") == "tool-result"]
        shown = ({**one, "content": one.get("experimental_content") or None} for one in results)
        return Message(role, tuple(map(read_result, shown)) or (tool_result(value),))
    texts = content(logged)
    is_summary = as_dict(value, "providerOptions", "cursor").get("isSummary") is True
    return Message(role, as_harness(texts) if is_summary else texts)


# -- chats ("composers") in state.vscdb -----------------------------------------------------------

_COMPOSERS = "SELECT key FROM cursorDiskKV WHERE key LIKE 'composerData:%' ORDER BY key"
_ROWS = """
SELECT key, CAST(value AS TEXT) AS value FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY key
"""
_BUBBLES = "SELECT key FROM cursorDiskKV WHERE key LIKE 'bubbleId:%'"

_USER, _ASSISTANT = 1, 2
_STORED_EDIT = frozenset({"beforeContentId", "afterContentId"})
"""Keys of results that only name the contents of a file before and after an edit."""


def _read_composer(source: Source, connection: sqlite3.Connection, key: str) -> Iterator[Event]:
    """Yields the conversation of a chat, and the events of its other rows."""
    counts: Counter[str] = Counter()
    records = 0
    composer = key.partition(":")[2]
    values: dict[str, dict[str, Json]] = {}
    for start in (key, f"bubbleId:{composer}:"):
        # Keys that begin with the name: ";" follows ":".
        end = f"{start}\0" if start == key else f"{start[:-1]};"
        for row in rows(connection, _ROWS, start, end):
            source.count_records()
            name = as_str(row.get("key"))
            if row.get("value") is None:
                counts["empty_row"] += 1
                continue
            where = f"key {name}"[:200]
            value = json_column(row.get("value"), where)
            if isinstance(value, dict):
                records += 1
                source.seen(f"key {name}", value)
                values[name] = value
            elif isinstance(value, Problem):
                yield value
            else:
                yield Problem("not_object", where, f"a row that is {a_json_type(value)}")
    head = values.pop(key, {})
    bubbles = _ordered(head, values, f"bubbleId:{composer}:")
    if not as_list(head.get("conversation")):
        left = len(values) - sum(map(bool, bubbles))  # bubbles that were edited or made again
        counts["not_in_conversation"] += left
        records -= left
    chat = _Chat(SessionHistory(_NAME, composer or "chat", f"cursor/{composer}"))
    chat.model = model_of(as_dict(head, "modelConfig"), "modelName")
    for bubble in bubbles:
        chat.add(bubble)
    last = chat.history.entries[-1] if chat.history.entries else None
    if last and last.message.role == "assistant" and head.get("status") in _UNFINISHED:
        last.message = replace(last.message, untrained="aborted")
    yield from ignored(+counts)
    yield from chat.history.conversations(records)


def _ordered(
    head: dict[str, Json], values: dict[str, dict[str, Json]], prefix: str
) -> list[dict[str, Json]]:
    """Returns the bubbles of a chat in the order of its headers; {} for a bubble that is missing.

    Old chats contain their bubbles.
    """
    inline = as_dicts(head.get("conversation"))
    if inline:
        return inline
    by_id = {as_str(bubble.get("bubbleId")): bubble for bubble in values.values()}
    by_id |= {key.removeprefix(prefix): bubble for key, bubble in values.items()}
    found: list[dict[str, Json]] = []
    seen: set[int] = set()
    for header in as_dicts(head.get("fullConversationHeadersOnly")):
        bubble = by_id.get(as_str(header.get("bubbleId")))
        if bubble is None:
            found.append({})
        elif id(bubble) not in seen:
            seen.add(id(bubble))
            found.append({"type": header.get("type"), **bubble})
    return found


_UNFINISHED = ("aborted", "generating")
"""States of a chat whose last answer was stopped, or is being written."""


@dataclass(slots=True)
class _Chat:
    """The bubbles of a chat so far.

    answer      the answer to which the next bubble may belong
    model_call  the id of the request whose answer made the last call of a tool
    has_calls   the answer has calls
    reworded    what the model saw of earlier messages is not in the log
    """

    history: SessionHistory
    model: str | None = None
    answer: HistoryEntry | None = None
    model_call: str = ""
    has_calls: bool = False
    reworded: bool = False
    count: int = 0

    def add(self, bubble: dict[str, Json]) -> None:
        """Adds a bubble: a user's message, or a thought, text or call of the model."""
        self.count += 1
        where = f"bubble {self.count}"
        if not bubble:
            self.reworded = True
            self.answer = None
        if bubble.get("type") == _USER:
            self.answer = None
            text = as_str(bubble.get("text"))
            parts: list[Part] = [Text(text)] if text else []
            chosen = as_dict(bubble, "context").get("selectedImages")
            parts += [Media("image") for _ in as_list(bubble.get("images")) or as_list(chosen)]
            if parts:
                self.history.append(Message("user", tuple(parts)), where)
        elif bubble.get("type") == _ASSISTANT:
            tool = as_dict(bubble.get("toolFormerData"))
            parts = list(_said(bubble))
            if parts:
                self._extend(parts, bubble, where, follows=not self.has_calls)
            if name_or_none(tool.get("name")):
                self._call(tool, bubble, where, alone=not parts)

    def _call(
        self, tool: dict[str, Json], bubble: dict[str, Json], where: str, *, alone: bool
    ) -> None:
        call_id = name_or_none(tool.get("toolCallId"))
        model_call = as_str(tool.get("modelCallId"))
        same = bool(model_call) and model_call == self.model_call
        if alone and self.has_calls and not model_call:
            self.reworded = True  # whether the calls were made together is not logged
        raw = tool.get("rawArgs")
        arguments = tool.get("params") if raw in (None, "") else raw
        call = ToolCall(as_str(tool.get("name")), arguments, call_id)
        self._extend([call], bubble, where, follows=same or not self.has_calls)
        self.has_calls, self.model_call = True, model_call
        if (result := _result_composers(tool, call_id)) is not None:
            self.history.append(Message("tool", (result,)), where)
            self.reworded = True  # the result is logged as the client keeps it

    def _extend(
        self, parts: list[Part], bubble: dict[str, Json], where: str, *, follows: bool
    ) -> None:
        """Adds parts to the open answer, or begins another one."""
        if self.answer is None or not follows:
            missing = ["reminders", "system", "tools", *(["history"] if self.reworded else [])]
            model = model_of(as_dict(bubble, "modelInfo"), "modelName") or self.model
            message = Message("assistant", (), where, context=Context.lacking(missing))
            self.answer = self.history.append(message, where, RequestHead(model=model))
            self.has_calls = False
        message = self.answer.message
        self.answer.message = replace(message, parts=(*message.parts, *parts))


def _said(bubble: dict[str, Json]) -> Iterator[Part]:
    """Yields the thought and the text of a bubble of the model."""
    text = as_str(bubble.get("text"))
    blocks = as_dicts(bubble.get("allThinkingBlocks")) or [as_dict(bubble.get("thinking"))]
    thought = "\n\n".join(filter(None, (as_str(block.get("text")) for block in blocks)))
    if bubble.get("isThought") is True:
        thought, text = thought or text, ""
    if thought:
        yield Reasoning(thought)
    if text.strip():
        yield Text(text)


def _result_composers(tool: dict[str, Json], call_id: str | None) -> ToolResult | None:
    """Returns the result of a call; None if the log does not contain its text."""
    logged = tool.get("result")
    value = json_in_text(logged) if isinstance(logged, str) else logged
    if logged in (None, "") or (isinstance(value, dict) and value and value.keys() <= _STORED_EDIT):
        return None
    status = as_str(tool.get("status"))
    return ToolResult(
        (Text(logged if isinstance(logged, str) else dumps(logged)),),
        call_id,
        name_or_none(tool.get("name")),
        is_error=status == "error",
        is_denied=tool.get("userDecision") == "rejected" or status == "rejected",
        is_interrupted=status in ("cancelled", "aborted"),
    )


# -- agent transcripts ----------------------------------------------------------------------------

_ROLES = frozenset({"user", "assistant", "system"})
_OTHERS = frozenset({"type", "uuid", "sessionId", "timestamp", "id"})
"""Keys of other agents' lines, none of which a transcript has."""
_KNOWN = {"error": "error_message", "turn_ended": "ui_event"}
"""Lines that are no messages: {type: the code for ignoring them}."""
_REDACTED = "[REDACTED]"


def _is_line(value: dict[str, Json]) -> bool:
    message = value.get("message")
    if as_str(value.get("role")) not in _ROLES or not isinstance(message, dict):
        return False
    return "content" in message and value.keys().isdisjoint(_OTHERS)


def _read_transcript(source: Source, name: str) -> Iterator[Event]:
    log = _Transcript(SessionHistory(_NAME, name, source.name))
    records = yield from add_records(log, objects(source.records(), "a line that is "))
    yield from log.history.conversations(records)


@dataclass(slots=True)
class _Transcript(RecordLog):
    def add(self, where: str, value: dict[str, Json]) -> str:
        if not _is_line(value):
            return _KNOWN.get(as_str(value.get("type"))) or unknown_code(value.get("type"))
        for message in read_message({**as_dict(value["message"]), "role": value["role"]}):
            if message.role != "assistant":
                if any(not isinstance(p, Text) or p.text.strip() for p in message.parts):
                    self.history.append(message, where)
                continue
            parts = tuple(_written(message.parts))
            hidden = parts != message.parts
            if parts:
                code = cut_code(value) or cut_code(as_dict(value["message"]))
                context = Context.lacking(self.missing)
                answer = Message("assistant", parts, where, code, context, unknown=message.unknown)
                changes = ("redaction_mark",) if hidden else ()
                self.history.append(answer, where, RequestHead(), changes)
            self.missing |= {"reasoning"} if hidden else set()
        return ""


def _written(parts: tuple[Part, ...]) -> Iterator[Part]:
    """Yields the parts without empty texts and the mark that stands for withheld reasoning."""
    for part in parts:
        if not isinstance(part, Text):
            yield part
            continue
        text = part.text
        if text.rstrip().endswith(_REDACTED):
            text = text.rstrip().removesuffix(_REDACTED).rstrip()
        if text.strip():
            yield replace(part, text=text)


# -- files ----------------------------------------------------------------------------------------


def _recognise(source: Source) -> str | None:
    """Claims the table cursorDiskKV, the tables blobs and meta, and lines of role and message."""
    if source.peek.kind == "sqlite":
        found = tables(source)
        if {"key", "value"} <= found.get("cursorDiskKV", frozenset()):
            return "Cursor's database (cursorDiskKV)"
        if {"id", "data"} <= found.get("blobs", frozenset()) and "key" in found.get("meta", ()):
            return "the store of Cursor's CLI (blobs, meta)"
        return None
    if source.peek.kind in ("jsonl", "json") and any(map(_is_line, source.peek.objects)):
        return "lines with role and message only"
    return None


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of a transcript or of each chat of a database."""
    name = source.name.rpartition("/")[2].partition(".")[0] or "session"
    if source.peek.kind != "sqlite":
        yield from _read_transcript(source, name)
    elif "cursorDiskKV" in tables(source):
        yield from guarded(source, _read_composers(source))
    else:
        yield from guarded(source, _read_store(source, name))


def _read_composers(source: Source) -> Iterator[Event]:
    with open_sqlite(source) as connection:
        composers = first_column(connection, _COMPOSERS)
        for key in composers:
            yield from _read_composer(source, connection, key)
        known = {key.partition(":")[2] for key in composers}
        keys = (as_str(key) for (key,) in listed(connection, _BUBBLES))
        if left := sum(key.split(":")[1] not in known for key in keys):
            source.count_records(left)
            yield Ignored("not_in_conversation", left)


READER = declared(_NAME, recognise=_recognise, read=read)
