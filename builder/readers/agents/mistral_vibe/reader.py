"""Reads Mistral Vibe sessions: the store of version 3, and the files of versions 1 and 2.

Source: docs/formats/mistral-vibe.md. A store keeps the requests of its last process in a journal,
with their digests, and all messages in a checkpoint. Version 2 writes a row for each message next
to a `meta.json` with prompt and tools, version 1 both in one file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from builder.conversation import Context, Event, Ignored, Json, Message
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.mistral_vibe.messages import logged_row
from builder.readers.agents.mistral_vibe.store import NAME, STORE_FORMAT, read_store
from builder.readers.homes import Home
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.narrow import (
    as_dict,
    as_list,
    as_str,
    model_of,
    name_or_none,
    tuple_or_none,
)
from builder.readers.toolkit.rows import objects
from builder.sources.listing import Listing
from builder.sources.source import Record, Source

_ROWS = "messages.jsonl"


def is_store(folder: Listing) -> bool:
    """Returns whether a folder is a session's store, or has its messages and metadata."""
    if folder.is_file("CURRENT"):
        return STORE_FORMAT.encode() in folder.first("CURRENT", 4096)
    if not (folder.is_file(_ROWS) and folder.is_file("meta.json")):
        return False
    head = folder.first("meta.json", 1 << 16)
    return b'"session_id"' in head and b'"environment"' in head


def holds(name: str) -> bool:
    """Returns whether a file belongs to the session itself, not to one of its sub-agents."""
    return not name.startswith("agents/")


def recognise(source: Source) -> str | None:
    """Claims a store by its format's name, and rows with `injected` next to the message's id.

    The first rows of version 2 had neither: they are known by the `meta.json` beside them.
    """
    if source.peek.kind == "folder":
        for member in source.members:
            if member.name == "meta.json" and any(map(_is_metadata, _peek(member))):
                return "messages with the metadata of a session"
            if any(as_str(v.get("store_format")).startswith(STORE_FORMAT) for v in _peek(member)):
                return f"a store {STORE_FORMAT}"
            if member.name == _ROWS and (reason := recognise(member)):
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


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of a session."""
    session = source.name.rpartition("/")[2].removesuffix(".jsonl").removesuffix(".json")
    files = {member.name: member for member in source.members}
    if "CURRENT" in files:
        yield from read_store(source, session)
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
    yield from _Session(SessionHistory(NAME, session or "session", source.name), meta).events(rows)


@dataclass(slots=True)
class _Session:
    """The rows of a session. `again`: the entry that the next row repeats, in a joined log."""

    history: SessionHistory
    meta: dict[str, Json]
    again: int | None = None

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
            message = logged_row(row)
            if message.role == "system":
                if head.system is None:  # version 1 logs the prompt as the first message
                    head = replace(head, system=name_or_none(row.get("content")))
                continue
            if self._repeats(row):
                continue
            if row.get("context_boundary") == "compaction":
                self.history.replace()
            if self.again is not None:
                self.history.rewind(self.again)
                self.again = None
            entry = self.history.append(message, where, kind=_row_id(row))
            if message.role == "assistant":
                entry.request = head
                entry.message = _with_context(message, head, is_damaged=is_damaged)
        yield from self.history.conversations(records)

    def _repeats(self, row: dict[str, Json]) -> bool:
        """Returns whether a row repeats an earlier one: the log was written again, and joined."""
        ids = [entry.kind for entry in self.history.entries]
        name = _row_id(row)
        if self.again is not None and self.again < len(ids) and ids[self.again] == name:
            self.again += 1
            return True
        if self.again is None and row.get("message_id") is not None and name in ids:
            self.again = ids.index(name) + 1
            return True
        return False


def _row_id(row: dict[str, Json]) -> str:
    return as_str(row.get("message_id")) or as_str(row.get("tool_call_id"))


def _with_context(message: Message, head: RequestHead, *, is_damaged: bool) -> Message:
    missing = ["history"] if is_damaged else []
    missing += ["system"] if head.system is None else []
    missing += ["tools"] if head.tools is None else []
    return replace(message, context=Context.lacking(missing))


READER = Reader(
    name=NAME,
    summary=(
        "Mistral Vibe sessions: the store of version 3 (CURRENT with store_format), and "
        "messages.jsonl or JSON of versions 1 and 2 (rows with injected and message_id; meta.json)"
    ),
    evidence=("source", "files"),
    recognise=recognise,
    checked="3.0.3",
    homes=(Home("Mistral Vibe", "${VIBE_HOME:-~/.vibe}/logs/session"),),
    is_agent=True,
    read=read,
    is_store=is_store,
    holds=holds,
    exclusive=False,
)
