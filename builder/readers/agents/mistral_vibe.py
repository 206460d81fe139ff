"""Reads Mistral Vibe. Source: docs/formats/mistral-vibe.md."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Context,
    Event,
    Ignored,
    Json,
    Media,
    Message,
    Part,
    Text,
    ToolResult,
)
from builder.jsonio import packed
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import as_harness, chat_message, content_block
from builder.readers.toolkit.history import HistoryEntry, RequestHead, SessionHistory
from builder.readers.toolkit.marks import finish_fault
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    model_of,
    name_or_none,
    tuple_or_none,
)
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.rows import objects
from builder.readers.traces.parts import read_part
from builder.sources.listing import Listing
from builder.sources.source import Record, Source


def _stored_message(value: dict[str, Json]) -> Message:
    role = as_str(value.get("role"))
    blocks = as_dicts(value.get("content"))
    if role == "assistant":
        return Message(role, tuple(part for block in blocks for part in _answer_parts(block)))
    contents = tuple(map(content_block, blocks))
    if role == "tool":
        failed = value.get("outcome") == "failure"
        call_id, name = name_or_none(value.get("tool_call_id")), name_or_none(value.get("name"))
        return Message(role, (ToolResult(contents, call_id, name, is_error=failed),))
    injected = (as_dict(block.get("_meta")).get("vibe.injected") is True for block in blocks)
    return Message(role[:40], as_harness(contents) if any(injected) else contents)


def _answer_parts(block: dict[str, Json]) -> list[Part]:
    arguments = as_dict(block.get("arguments"))
    raw = arguments.get("raw")
    made = arguments.get("value") if raw is None else raw
    return read_part({**block, "arguments": made} if "arguments" in block else block)


def _logged_row(row: dict[str, Json]) -> Message:
    """Returns a row of `messages.jsonl` (versions 1 and 2)."""
    message = chat_message(row)
    if row.get("injected") is True and message.role == "user":
        message = Message(message.role, as_harness(message.parts))
    if message.role == "tool":
        text = row.get("content")
        failed = isinstance(text, str) and text.startswith("<tool_error>")
        cancelled = as_dict(row.get("tool_result")).get("cancelled") is True
        message = replace(
            message,
            parts=tuple(
                replace(part, is_error=failed, is_interrupted=cancelled)
                for part in message.parts
                if isinstance(part, ToolResult)
            ),
        )
    images = [Media("image") for _ in as_dicts(row.get("images"))]
    return Message(message.role, (*message.parts, *images)) if images else message


# -- the store of version 3 -----------------------------------------------------------------------

_STORE_FORMAT = "mistral.vibe.unified-session-store"
_NAME = "mistral-vibe"


def _read_store(source: Source, session: str) -> Iterator[Event]:
    """Yields the conversations of a session's folder.

    Records are the messages of the current checkpoint and the lines of the journals.
    """
    files = {member.name: member for member in source.members}
    current = _object(files.get("CURRENT"))
    folder = f"generations/{as_str(current.get('generation'))}"
    manifest = _object(files.get(f"{folder}/manifest.json"))
    checkpoint = _object(files.get(f"{folder}/checkpoint.json"))
    chunks = [f"chunks/{name}.json" for name in as_list(manifest, "checkpoint", "chunks")]
    journals = sorted(name for name in files if name.startswith("journal/"))
    known = {*chunks, *journals}
    for name, member in files.items():
        if name not in known:
            member.count_records()
            yield Ignored("other_file")
    model = as_str(_object(files.get("meta.json")), "config", "model_name")
    replay = _Replay(SessionHistory(_NAME, session, source.name), model or None)
    for name in journals:
        yield from replay.read_journal(files[name])
    yield from replay.read_checkpoint(chunks, files, checkpoint)
    yield from ignored(replay.counts)
    yield from replay.history.conversations(replay.records)


def _object(source: Source | None) -> dict[str, Json]:
    """Returns the object in a file of the store; {} if there is none."""
    document = source.document() if source is not None else None
    return document if isinstance(document, dict) else {}


@dataclass(slots=True)
class _Replay:
    """The replay of the requests in the journals, and of the checkpoint at the end.

    sent      the messages of the last request, without the system message
    matched   how many of them are in the history
    first     the first request in the journal
    answers   the requests in the journal that have no answer yet, by action
    given     the answers so far, by their parts
    is_known  whether the messages of the next request are known (False after a damaged record)
    """

    history: SessionHistory
    model: str | None
    sent: list[Message] = field(default_factory=list)
    matched: int = 0
    system: str | None = None
    tools: tuple[Json, ...] | None = None
    first: RequestHead | None = None
    answers: dict[str, HistoryEntry] = field(default_factory=dict)
    given: dict[str, HistoryEntry] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    records: int = 0
    is_known: bool = False

    def read_journal(self, source: Source) -> Iterator[Event]:
        """Reads the requests and answers of a journal."""
        for record in objects(source.json_lines(), "a record that is "):
            if isinstance(record, Problem):
                self.is_known = False
                yield replace(record, where=f"{source.name} {record.where}")
                continue
            where, value = record
            payload = as_dict(value.get("payload"))
            kind = value.get("type")
            request = as_dict(payload.get("request"))
            result = as_dict(payload, "result", "result")
            if kind == "action_intent" and payload.get("kind") == "completion":
                self.records += 1
                self._request(request, as_str(payload.get("request_sha256")), f"journal {where}")
            elif kind == "action_result" and "finish_reason" in result:
                self.records += 1
                self._answer(as_str(payload.get("action_id")), result)
            else:
                self.counts["no_request"] += 1

    def _request(self, request: dict[str, Json], digest: str, where: str) -> None:
        update = as_dict(request.get("model_input"))
        messages = as_dict(update.get("messages"))
        catalog = as_dict(update.get("tool_catalog"))
        new = as_dicts(messages.get("messages"))
        if catalog.get("type") == "replace":
            self.tools = tuple_or_none(catalog.get("tools"))
        if messages.get("type") == "replace":
            self.is_known = True
            prompts = (_stored_message(item) for item in new if item.get("role") == "system")
            self.system = "\n\n".join(
                "".join(part.text for part in prompt.parts if isinstance(part, Text))
                for prompt in prompts
            )
            self.sent, self.matched = [], 0
        self.sent += [_stored_message(item) for item in new if item.get("role") != "system"]
        if not self.is_known or request.get("purpose", "agent") != "agent":
            return  # after a damaged record, the checkpoint has the messages
        self.show(self.sent, where, self.matched)
        self.matched = len(self.sent)
        head = RequestHead(self.system or None, self.tools, self.model)
        self.first = self.first or head
        missing = [] if self.tools is not None else ["tools"]
        same = hashlib.sha256(packed(_ordered(request))).hexdigest() == digest
        context = Context.lacking(missing, "proven" if same else "rendered")
        entry = HistoryEntry(Message("assistant", (), context=context), where, head)
        self.history.entries.append(entry)
        self.answers[as_str(request.get("action_id"))] = entry

    def _answer(self, action: str, result: dict[str, Json]) -> None:
        entry = self.answers.pop(action, None)
        if entry is None:  # that of a compaction
            return
        parts: list[Json] = []
        for part in as_dicts(result.get("parts")):
            raw = {"type": "json", "raw": part.get("arguments_json")}
            parts.append({**part, "arguments": raw} if part.get("type") == "tool_call" else part)
        answer = _stored_message({"role": "assistant", "content": parts})
        code = finish_fault(result.get("finish_reason"))
        entry.message = replace(entry.message, parts=answer.parts, untrained=code)
        self.given[repr(answer.parts)] = entry

    def show(self, shown: Sequence[Message], where: str, same: int = 0) -> None:
        """Brings the history to these messages, of which the first `same` are known to be in it."""
        entries = self.history.entries
        while same < min(len(entries), len(shown)) and _is_same(entries[same], shown[same]):
            same += 1
        is_changed = self.is_known and bool(self.given)  # else answers of an earlier process
        if any(entry.message.parts for entry in entries[same:]):
            self.history.replace(entries[:same])
        else:  # a request without an answer
            self.history.entries = entries[:same]
        for message in shown[same:]:
            key = repr(message.parts)
            if message.role != "assistant":
                self.history.append(message, where)
            elif key in self.given:
                self.history.entries.append(self.given[key])
            else:
                own = replace(message, untrained="edited") if is_changed else message
                self.given[key] = self.history.append(own, where)

    def read_checkpoint(
        self, chunks: Sequence[str], files: dict[str, Source], checkpoint: dict[str, Json]
    ) -> Iterator[Event]:
        """Reads the messages of the checkpoint, which contain those of the last request."""
        found: list[dict[str, Json]] = []
        is_whole = True
        for name in chunks:
            member = files.get(name)
            document = member.document() if member is not None else None
            if member is not None and isinstance(document, list):
                for record in member.counted(document):
                    self.records += 1
                    found.append(as_dict(record.value, "message"))
                continue
            is_whole = False
            if member is not None:
                member.count_records()
            code = document.code if isinstance(document, Problem) else "missing_file"
            detail = "a chunk of the checkpoint is missing or no list"
            yield Problem(code, name, detail, records=0 if member is None else 1)
        context = as_dicts(checkpoint, "context", "messages")
        found += [as_dict(item.get("message")) for item in context]
        known = [item for item in found if as_str(item.get("role")) not in ("", "system")]
        shown = [_stored_message(item) for item in known]
        ahead = len(self.history.entries) >= len(shown) and all(
            map(_is_same, self.history.entries, shown)
        )
        if known and is_whole and not ahead:  # a checkpoint may be older than the journal
            self.show(shown, "checkpoint")
        for entry in self.history.entries:
            if entry.message.role == "assistant" and entry.request is None:
                entry.request = self.first or RequestHead(model=self.model)
                # of an earlier process, which may have had another prompt and other tools
                lacking = ["system", "tools", *([] if is_whole else ["history"])]
                entry.message = replace(entry.message, context=Context.lacking(lacking))
        self.history.entries = [entry for entry in self.history.entries if entry.message.parts]


def _is_same(entry: HistoryEntry, message: Message) -> bool:
    return (entry.message.role, entry.message.parts) == (message.role, message.parts)


def _ordered(value: Json) -> Json:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return {key: _ordered(value[key]) for key in keys}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value


# -- files, and the rows of versions 1 and 2 ------------------------------------------------------

_ROWS = "messages.jsonl"


def _is_store(folder: Listing) -> bool:
    """Returns whether a folder is a session's store, or has its messages and metadata."""
    if folder.is_file("CURRENT"):
        return _STORE_FORMAT.encode() in folder.first("CURRENT", 4096)
    if not (folder.is_file(_ROWS) and folder.is_file("meta.json")):
        return False
    head = folder.first("meta.json", 1 << 16)
    return b'"session_id"' in head and b'"environment"' in head


def _recognise(source: Source) -> str | None:
    """Claims a store by its format's name, and rows with `injected` next to the message's id.

    The first rows of version 2 had neither: they are known by the `meta.json` beside them.
    """
    if source.peek.kind == "folder":
        for member in source.members:
            if member.name == "meta.json" and any(map(_is_metadata, _peek(member))):
                return "messages with the metadata of a session"
            if any(as_str(v.get("store_format")).startswith(_STORE_FORMAT) for v in _peek(member)):
                return f"a store {_STORE_FORMAT}"
            if member.name == _ROWS and (reason := _recognise(member)):
                return reason
        return None
    for value in _peek(source):
        if _is_row(value):
            return "rows with injected and message_id"
        if _is_metadata(as_dict(value, "metadata")) and isinstance(value.get("messages"), list):
            return "a session with metadata and messages"
    return None


def _peek(source: Source) -> Iterable[dict[str, Json]]:
    return source.peek.objects if source.peek.kind in ("json", "jsonl") else ()


def _is_metadata(value: dict[str, Json]) -> bool:
    return {"session_id", "environment"} <= value.keys()


def _is_row(value: dict[str, Json]) -> bool:
    is_message = isinstance(value.get("role"), str) and isinstance(value.get("injected"), bool)
    return is_message and not value.keys().isdisjoint({"message_id", "tool_call_id"})


def _read(source: Source) -> Iterator[Event]:
    session = source.name.rpartition("/")[2].removesuffix(".jsonl").removesuffix(".json")
    files = {member.name: member for member in source.members}
    if "CURRENT" in files:
        yield from _read_store(source, session)
        return
    meta: dict[str, Json] = {}
    rows: Iterable[Record | Problem]
    if source.members:
        for name, member in files.items():
            if name != _ROWS:
                member.count_records()
                yield Ignored("other_file")
        document = files["meta.json"].document() if "meta.json" in files else None
        meta = as_dict(document) if not isinstance(document, Problem) else {}
        rows = files[_ROWS].json_lines() if _ROWS in files else ()
    elif source.peek.kind == "json" and not any(map(_is_row, _peek(source))):
        document = source.document()
        if not isinstance(document, dict):
            rows = source.records()
        else:
            meta = as_dict(document.get("metadata"))
            rows = source.counted(as_list(document.get("messages")), "messages[{}]")
    else:
        rows = source.records()
    yield from _Session(SessionHistory(_NAME, session or "session", source.name), meta).events(rows)


@dataclass(slots=True)
class _Session:
    history: SessionHistory
    meta: dict[str, Json]

    def events(self, rows: Iterable[Record | Problem]) -> Iterator[Event]:
        """Yields a Problem for each damaged row, and the conversations."""
        prompt = self.meta.get("system_prompt")
        system = prompt if isinstance(prompt, str) else as_dict(prompt).get("content")
        config = as_dict(self.meta, "config") or as_dict(self.meta, "agent_config")
        tools = tuple_or_none(self.meta.get("tools_available"))
        model = model_of(config, "model_name", "active_model")
        head = RequestHead(name_or_none(system), tools, model)
        records = 0
        is_damaged = False
        for record in objects(rows, "a row that is "):
            if isinstance(record, Problem):
                is_damaged = True
                yield record
                continue
            where, row = record
            records += 1
            message = _logged_row(row)
            if message.role == "system":
                if head.system is None:  # version 1 logs the prompt as the first message
                    head = replace(head, system=name_or_none(row.get("content")))
                continue
            if self.history.repeats(_row_id(row)):
                continue
            if row.get("context_boundary") == "compaction":
                self.history.replace()
            entry = self.history.append(message, where, kind=_row_id(row))
            if message.role == "assistant":
                entry.request = head
                missing = ["history"] if is_damaged else []
                missing += ["system"] if head.system is None else []
                missing += ["tools"] if head.tools is None else []
                entry.message = replace(message, context=Context.lacking(missing))
        yield from self.history.conversations(records)


def _row_id(row: dict[str, Json]) -> str:
    return as_str(row.get("message_id")) or as_str(row.get("tool_call_id"))


READER = declared(
    _NAME,
    recognise=_recognise,
    read=_read,
    is_store=_is_store,
    holds=lambda name: not name.startswith("agents/"),
    exclusive=False,
)
