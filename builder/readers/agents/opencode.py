"""opencode."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Data,
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
    Unparsed,
    unknown_part,
)
from builder.jsonio import a_json_type, json_type
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import as_harness, media_of
from builder.readers.toolkit.comparison import CallKeys
from builder.readers.toolkit.history import supply_results
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.places import Segments, ignored
from builder.readers.toolkit.rows import missing_records
from builder.readers.toolkit.unknown_keys import PART_KEYS, unknown_names
from builder.sources.listing import Listing
from builder.sources.source import Source
from builder.sources.sqlite_file import (
    first_column,
    guarded,
    json_column,
    open_sqlite,
    rows,
    session_sizes,
    tables,
)

# -- converts the rows of an opencode session (messages with their parts) to conversations ---------

_KEYS = PART_KEYS | {"time", "metadata", "synthetic", "ignored", "snapshot", "state", "files"}
"""Keys of parts that are known."""
_SILENT = frozenset({"step-start", "step-finish", "snapshot", "patch", "retry", "agent"})
"""Parts that never reach the model."""
_INLINED = frozenset({"text/plain", "application/x-directory"})
"""Files whose content reaches the model as synthetic text that is logged with them."""
_QUESTION = "What did we do so far?"
"""The text that the program sends before the summary of a compaction."""
_INTERRUPTED = (Text("[Tool execution was interrupted]"),)
"""The result that the program sends for a call that was still running."""
_ABORTED = "Tool execution aborted"
_DENIED = ("The user rejected permission", "The user has specified a rule which prevents")
_MISSING = frozenset({"system", "tools"})
_REPLACED = "invalid"
"""The program's own tool, of which it makes a call in place of one that names no tool or that has
arguments it cannot decode. The model's call is lost, and later requests contain this one."""
_CUT_SHORT = frozenset({"length", "content-filter"})


@dataclass(frozen=True, slots=True)
class _StoreRow:
    """One message: its id, its metadata, and its parts in order, each with its id."""

    id: str
    info: dict[str, Json]
    parts: tuple[dict[str, Json], ...]

    @property
    def role(self) -> str:
        return as_str(self.info.get("role"))

    def of_type(self, kind: str) -> dict[str, Json] | None:
        return next((part for part in self.parts if part.get("type") == kind), None)


def conversations(
    session_id: str,
    session: dict[str, Json],
    rows: Sequence[_StoreRow],
    records: int,
    problems: tuple[Problem, ...] = (),
) -> Iterator[Event]:
    """Yields the session as the model saw it: one conversation, and one more for each compaction.

    `rows` are in the order of their ids. If the user reverted to an earlier message (`revert`), the
    undone part is a conversation with the code `rewound`. `records` are counted in the first
    conversation; those of a session without messages are ignored.
    """
    where = f"session {session_id}"
    kept = list(_kept(rows, as_dict(session.get("revert"))))
    numbered = Segments(session_id, records)
    targets: set[str] = set()
    known = frozenset(row.id for row in rows)
    ends = any(row.of_type("step-finish") for row in rows)
    segments = [(segment, False) for segment in _segments(kept)]
    if any(row.role == "assistant" for row in rows[len(kept) :]) or _calls(rows) > _calls(kept):
        segments.append((_segments(rows)[-1], True))
    for segment, undone in segments:
        reading = _Reading(CallKeys(session_id), targets, known, ends)
        for row in segment:
            reading.take(row)
        context = Context.lacking(_MISSING)
        empty = Conversation(
            id=session_id,
            record=where,
            messages=(),
            model=reading.model,
            context=context,
            version=name_or_none(session.get("version")),
            folder=name_or_none(session.get("directory")),
        )
        for number, failed in enumerate(reading.failed, start=1):
            name = f"{session_id}#{numbered.segments + 1}~{number}"
            problem = Problem("request_failed", where, "the request for the answer failed", 0)
            yield replace(empty, id=name, messages=failed, problems=(problem,))
        if not reading.messages:
            continue
        targets |= {message.turn for message in reading.messages if message.turn}
        rewound = Problem("rewound", where, "the user reverted to an earlier message", records=0)
        messages, supplied = supply_results(
            reading.messages,
            lambda call: ToolResult(_INTERRUPTED, call.id, call.name, is_interrupted=True),
        )
        reading.changes["result_supplied"] += supplied
        yield replace(
            empty,
            id=numbered.next_name(),
            messages=tuple(messages),
            records=numbered.take_records(),
            problems=(*problems, *reading.problems, *((rewound,) if undone else ())),
            changes=dict(sorted((+reading.changes).items())),
        )
    yield from numbered.rest("empty_session")


def _calls(rows: Sequence[_StoreRow]) -> int:
    return sum(part.get("type") == "tool" for row in rows for part in row.parts)


def _kept(rows: Sequence[_StoreRow], revert: dict[str, Json]) -> Iterator[_StoreRow]:
    """Yields the rows before the point to which the user reverted."""
    message, part = name_or_none(revert.get("messageID")), name_or_none(revert.get("partID"))
    for row in rows:
        if message is None or row.id < message:
            yield row
        elif row.id == message and part is not None:
            before = tuple(item for item in row.parts if as_str(item.get("id")) < part)
            if before:
                yield _StoreRow(row.id, row.info, before)


def _segments(rows: Sequence[_StoreRow]) -> list[list[_StoreRow]]:
    """Splits the rows at compactions: a segment begins with the summary and the kept rows."""
    segments: list[list[_StoreRow]] = [[]]
    markers: dict[str, _StoreRow] = {}
    for row in rows:
        marker = row.of_type("compaction")
        if row.role == "user" and marker is not None:
            markers[row.id] = row
            continue
        asked = markers.get(as_str(row.info.get("parentID")))
        if row.info.get("summary") is not True or row.role != "assistant":
            segments[-1].append(row)
        elif row.info.get("finish") and not row.info.get("error"):
            marker = asked.of_type("compaction") if asked else None
            start = name_or_none(as_dict(marker).get("tail_start_id"))
            tail = [
                old for old in rows if start is not None and asked and start <= old.id < asked.id
            ]
            segments.append([row, *(old for old in tail if old.id not in markers)])
    return segments


@dataclass(slots=True)
class _Reading:
    """Reads the rows of a segment.

    targets  turns that are targets in an earlier segment
    known    ids of all messages of the session
    is_cut   what precedes was sent in another form, or is not in the store
    ends     whether steps of the session have an end in the store
    planned  an answer in plan mode precedes: the program says so to the agent `build`
    failed   the conversations that end with a failed request
    cleared  when the first result was cleared
    """

    keys: CallKeys
    targets: set[str]
    known: frozenset[str]
    ends: bool
    planned: bool = False
    messages: list[Message] = field(default_factory=list)
    model: str | None = None
    system: str | None = None
    problems: list[Problem] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)
    failed: list[tuple[Message, ...]] = field(default_factory=list)
    cleared: float | None = None
    is_cut: bool = False

    def take(self, row: _StoreRow) -> None:
        if row.role == "user":
            self._user(row)
        elif row.role != "assistant":
            if content := self._parts(row, row.parts)[0]:
                self.messages.append(Message(row.role, tuple(content), turn=row.id))
        elif row.info.get("summary") is True:
            # The next request begins with it: context, not an answer.
            texts = self._parts(row, [p for p in row.parts if p.get("type") == "text"])[0]
            self.changes["summary_as_context"] += 1
            self.is_cut = True  # sent as question, answer and prompt: here one turn of the user
            parts = as_harness([Text(_QUESTION), *texts])
            self.messages.append(Message("user", parts, turn=row.id))
        else:
            self._assistant(row)

    def _user(self, row: _StoreRow) -> None:
        system = name_or_none(row.info.get("system"))
        if not any(message.role == "user" for message in self.messages):
            self.system = system
            if system is not None:
                self.messages.append(Message("system", (Text(system),)))
        elif system != self.system:
            detail = "a different system text than before"
            self.problems.append(Problem("late_system", f"message {row.id}", detail, records=0))
        if row.of_type("subtask") is not None:  # answered by a call that the program made
            detail = "a subtask that the user started"
            self.problems.append(Problem("harness_call", f"message {row.id}", detail, records=0))
        parts = [part for part in row.parts if part.get("type") != "subtask"]
        if content := self._parts(row, parts)[0]:
            unknown = _unknown(parts)
            self.messages.append(Message("user", tuple(content), turn=row.id, unknown=unknown))

    def _assistant(self, row: _StoreRow) -> None:
        model = name_or_none(row.info.get("modelID"))
        self.model = model or self.model
        asked = name_or_none(row.info.get("parentID"))
        self.is_cut = self.is_cut or (asked is not None and asked not in self.known)
        agent = row.info.get("agent") or row.info.get("mode")
        self.planned = self.planned or agent == "plan"
        steps = _steps(row.parts)
        last = "truncated" if as_str(row.info.get("finish")) in _CUT_SHORT else None
        if error := row.info.get("error"):
            is_stopped = as_dict(error).get("name") == "MessageAbortedError"
            last = "aborted" if is_stopped else "request_failed"
        for number, step in enumerate(steps, start=1):
            fault = last if number == len(steps) else None
            fault = fault or self._break(row, step, is_last=number == len(steps))
            parts, results = self._parts(row, step)
            turn = row.id if number == 1 else f"{row.id}/{number}"
            untrained = REPEAT if turn in self.targets else None
            if any(part.get("type") == "tool" and part.get("tool") == _REPLACED for part in step):
                untrained = "undefined_tool"
            has_content = any(isinstance(part, Text | ToolCall | Media) for part in parts)
            if fault == "request_failed":
                if has_content:  # the program omits it from the next request
                    message = Message("assistant", tuple(parts), turn=turn, model=model)
                    self.failed.append((*self.messages, message))
                continue
            if fault == "aborted":
                if not has_content:
                    continue
                is_whole = any(isinstance(part, ToolCall) for part in parts)
                untrained = untrained if is_whole else "aborted"
            elif fault:
                parts.append(Unparsed("", fault))
            if not parts:
                continue
            created = as_dict(row.info.get("time")).get("created")
            time = created if isinstance(created, int | float) else 0
            saw_cleared = self.cleared is not None and time >= self.cleared
            missing = _MISSING | ({"history"} if saw_cleared or self.is_cut else set())
            # The reminders of the modes are put into the request alone.
            missing |= {"reminders"} if self.planned and agent in ("plan", "build") else set()
            context = None if missing == _MISSING else Context.lacking(missing)
            message = Message("assistant", tuple(parts), turn, untrained, context, model)
            self.messages.append(replace(message, unknown=_unknown(step)))
            if results:
                self.messages.append(Message("tool", tuple(results)))

    def _break(
        self, row: _StoreRow, step: Sequence[dict[str, Json]], *, is_last: bool
    ) -> str | None:
        """Returns the code for a step that has no end, though the session's steps have one.

        If the stream broke off, the program asked again; the last step of a message then has a call
        that was interrupted. A message without an end was still being written.
        """
        if not self.ends or any(part.get("type") == "step-finish" for part in step):
            return None
        states = [as_dict(as_dict(part.get("state")).get("metadata")) for part in step]
        if not is_last or any(state.get("interrupted") is True for state in states):
            return "request_failed"
        return None if row.info.get("finish") else "aborted"

    def _parts(
        self, row: _StoreRow, items: Sequence[dict[str, Json]]
    ) -> tuple[list[Part], list[ToolResult]]:
        parts: list[Part] = []
        results: list[ToolResult] = []
        for item in items:
            match kind := item.get("type"):
                case "text":
                    text = as_str(item.get("text"))
                    if text and item.get("ignored") is not True:
                        parts.append(Text(text, harness=item.get("synthetic") is True))
                case "reasoning":
                    parts += [Reasoning(text)] if (text := as_str(item.get("text"))) else []
                case "file":
                    if as_str(item.get("mime")) not in _INLINED:
                        parts.append(media_of(as_str(item.get("mime"))))
                case "tool":
                    call, result = self._tool(item)
                    parts.append(call)
                    results += [result] if result else []
                case _:
                    if as_str(kind) not in _SILENT:
                        parts.append(unknown_part(as_str(kind) or json_type(kind)))
        return parts, results

    def _tool(self, item: dict[str, Json]) -> tuple[ToolCall, ToolResult | None]:
        """Returns the call, and its result unless it was still pending or running."""
        state = as_dict(item.get("state"))
        name, call_id = as_str(item.get("tool")), name_or_none(item.get("callID"))
        raw = name_or_none(state.get("raw")) if state.get("status") == "pending" else None
        call = ToolCall(name, raw or state.get("input"), call_id, self.keys.of(call_id))
        failed = state.get("status") == "error"
        if not failed and state.get("status") != "completed":
            return call, None
        output = state.get("error" if failed else "output")
        metadata = as_dict(state.get("metadata"))
        stopped = failed and metadata.get("interrupted") is True
        if stopped and isinstance(metadata.get("output"), str):
            output = metadata["output"]  # what the tool had written is sent, not the error
        content: list[Text | Data | Media]
        content = [Text(output) if isinstance(output, str) else Data(output, compact=True)]
        if not failed:
            cleared = as_dict(state.get("time")).get("compacted")
            if isinstance(cleared, int | float):
                self.cleared = min(cleared, self.cleared or cleared)
            for file in as_dicts(state.get("attachments")):
                content.append(media_of(as_str(file.get("mime"))))
        error = as_str(output) if failed else ""
        interrupted = stopped or error.startswith(_ABORTED)
        denied = error.startswith(_DENIED)
        return call, ToolResult(
            tuple(content),
            call_id=call_id,
            name=name or None,
            is_error=failed and not (interrupted or denied),
            is_denied=denied,
            is_interrupted=interrupted,
        )


def _unknown(parts: Sequence[dict[str, Json]]) -> tuple[str, ...]:
    """Returns the keys of parts for the model that hold text and are not known."""
    sent = (part for part in parts if as_str(part.get("type")) not in _SILENT)
    names = (f"parts.{name}" for part in sent for name in unknown_names(part, _KEYS))
    return tuple(dict.fromkeys(names))


def _steps(parts: Sequence[dict[str, Json]]) -> list[list[dict[str, Json]]]:
    """Splits the parts into steps of the model: old versions kept several in one message."""
    steps: list[list[dict[str, Json]]] = [[]]
    for part in parts:
        if part.get("type") == "step-start" and steps[-1]:
            steps.append([])
        else:
            steps[-1].append(part)
    return steps


# -- reads opencode's store of JSON files, its SQLite database and exported sessions ---------------

_OTHER_KINDS = frozenset(
    {"project", "session_diff", "session_share", "share", "todo", "permission", "migration"}
)
"""Kinds of files in a store that belong to no conversation."""


def _is_store(folder: Listing) -> bool:
    """Returns whether the folder is opencode's storage (or that of a project, before 0.6)."""
    first = "session" if folder.is_dir("session") else "info"
    return all(map(folder.is_dir, (first, "message", "part")))


def _recognise(source: Source) -> str | None:
    """Claims a store of files, an exported session, or a database by its tables."""
    if source.peek.kind == "folder":
        tops = {member.name.partition("/")[0] for member in source.members}
        if "message" in tops and "part" in tops and tops & {"session", "info"}:
            return "a store of session, message and part files"
        return None
    if source.peek.kind == "json" and source.peek.records:
        document = as_dict(source.peek.records[0])
        messages = as_list(document.get("messages"))
        if "id" in as_dict(document.get("info")) and any(map(_is_exported, messages)):
            return "an exported session (info, messages of info and parts)"
        return None
    columns = tables(source)
    if {"id", "session_id", "data"} <= columns.get("message", set()) and (
        {"id", "message_id", "data"} <= columns.get("part", set()) and "session" in columns
    ):
        return "a database with the tables session, message and part"
    return None


def _is_exported(value: Json) -> bool:
    item = as_dict(value)
    return "role" in as_dict(item.get("info")) and isinstance(item.get("parts"), list)


def item_sizes(source: Source) -> Sequence[int]:
    """Returns the sizes of the database's sessions, then 0 for the rows that are in no session."""
    sizes = session_sizes(source, _SESSIONS, _SIZES)
    return [*sizes, 0] if sizes else ()


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of all sessions, in the order of their ids."""
    if source.members:
        yield from _Store(source).events()
    elif source.peek.kind == "sqlite":
        yield from guarded(source, _database(source))
    else:
        yield from _exported(source)


def _exported(source: Source) -> Iterator[Event]:
    document = source.document()
    if isinstance(document, Problem):
        source.count_records()
        yield document
        return
    session = as_dict(document, "info")
    rows: list[_StoreRow] = []
    lost: list[Problem] = []
    for record in source.counted(as_list(document, "messages")):
        item = as_dict(record.value)
        info = as_dict(item.get("info"))
        if info:
            parts = tuple(map(as_dict, as_list(item.get("parts"))))
            rows.append(_StoreRow(name_or_none(info.get("id")) or record.where, info, parts))
        else:
            lost.append(Problem("not_object", record.where, "a message without info"))
            yield lost[-1]
    name = name_or_none(session.get("id")) or source.name
    yield from conversations(name, session, rows, len(rows), missing_records(lost))


def _orphans(row: _StoreRow) -> Iterator[Event]:
    """Yields parts without their message, so that their role is unknown."""
    problem = Problem("orphan_part", f"message {row.id}", "the message is missing", records=0)
    return conversations(row.id, {}, [row], len(row.parts), (problem,))


class _Store:
    """The files of a store by the session or message they belong to; read session by session."""

    def __init__(self, source: Source) -> None:
        self.sessions: dict[str, Source] = {}
        self.messages: dict[str, list[Source]] = defaultdict(list)
        self.parts: dict[str, list[Source]] = defaultdict(list)
        self.others: Counter[str] = Counter()
        for member in source.members:
            path = PurePosixPath(member.name)
            kind = path.parts[0]
            match kind if path.suffix == ".json" else None:
                case "session" | "info":
                    self.sessions[path.stem] = member
                case "message":
                    self.messages[path.parent.name].append(member)
                case "part":
                    self.parts[path.parent.name].append(member)
                case _:
                    member.count_records()
                    self.others[kind if kind in _OTHER_KINDS else unknown_code(kind)] += 1

    def events(self) -> Iterator[Event]:
        for session in sorted({*self.sessions, *self.messages}):
            yield from self._session(session)
        for key in sorted(self.parts):  # the remaining parts have no message
            row, problems = self._row(key, {})
            yield from problems
            yield from _orphans(row)
        yield from ignored(self.others)

    def _session(self, name: str) -> Iterator[Event]:
        info: dict[str, Json] | Problem = {}
        records = 0
        if name in self.sessions:
            info = _load(self.sessions[name])
            if isinstance(info, Problem):
                yield info
            else:
                records += 1
        rows: list[_StoreRow] = []
        lost: list[Problem] = []
        for member in self.messages.get(name, ()):
            message = _load(member)
            row, problems = self._row(PurePosixPath(member.name).stem, message)
            records += len(row.parts) + (not isinstance(message, Problem))
            yield from problems
            lost += problems
            rows.append(row)
        session = {} if isinstance(info, Problem) else info
        yield from conversations(name, session, rows, records, missing_records(lost))

    def _row(self, key: str, message: dict[str, Json] | Problem) -> tuple[_StoreRow, list[Problem]]:
        """Returns a message with its parts, and the problems of the unreadable ones."""
        problems = [message] if isinstance(message, Problem) else []
        parts: list[dict[str, Json]] = []
        for file in sorted(self.parts.pop(key, []), key=lambda file: file.name):
            part = _load(file)
            if isinstance(part, Problem):
                problems.append(part)
            else:
                parts.append(part)
        info = {} if isinstance(message, Problem) else message
        return _StoreRow(key, info, tuple(parts)), problems


def _load(member: Source) -> dict[str, Json] | Problem:
    """Loads and counts a file of the store, through a new Source so that no copy is kept."""
    member.count_records()
    limit = member.max_record_bytes
    fresh = Source(member.name, member.path, max_record_bytes=limit) if member.path else member
    fresh.watch = member.watch
    value = fresh.document()
    if isinstance(value, Problem):
        return Problem(value.code, member.name, value.detail)
    if not isinstance(value, dict):
        return Problem("not_object", member.name, a_json_type(value))
    return value


_SESSIONS = "SELECT id FROM session UNION SELECT session_id FROM message ORDER BY 1"
_SIZES = """
SELECT session_id, sum(bytes) FROM (
    SELECT session_id, length(CAST(data AS BLOB)) AS bytes FROM message
    UNION ALL
    SELECT message.session_id, length(CAST(part.data AS BLOB)) AS bytes
    FROM part JOIN message ON message.id = message_id
) GROUP BY 1
"""
_MESSAGES = "SELECT id, data FROM message WHERE session_id = ? ORDER BY id"
_PARTS = """
SELECT part.id, message_id, part.data FROM part JOIN message ON message.id = message_id
WHERE message.session_id = ? ORDER BY part.id
"""
_ORPHANS = """
SELECT id, message_id, data FROM part WHERE message_id NOT IN (SELECT id FROM message) ORDER BY id
"""
_NEXT_GENERATION = """
SELECT count(*) FROM session_message AS m
WHERE NOT EXISTS (SELECT 1 FROM message WHERE message.session_id = m.session_id)
"""


def _database(source: Source) -> Iterator[Event]:
    names = tables(source)
    with open_sqlite(source) as connection:
        for session in source.items_of_chunk([*first_column(connection, _SESSIONS), None]):
            if session is None:
                yield from _no_session(source, connection, names)
            else:
                yield from _stored_session(source, connection, session)


def _no_session(
    source: Source, connection: sqlite3.Connection, names: dict[str, frozenset[str]]
) -> Iterator[Event]:
    """Yields the events of rows that are in no session: orphaned parts, other tables."""
    parts, _ = yield from _parts(source, connection, _ORPHANS)
    for key, items in sorted(parts.items()):
        yield from _orphans(_StoreRow(key, {}, tuple(items)))
    if "event" in names:  # the history of the same messages and parts
        (copies,) = connection.execute("SELECT count(*) FROM event").fetchone()
        source.count_records(copies)
        yield Ignored("event_copy", copies)
    if "session_message" in names:
        (alone,) = connection.execute(_NEXT_GENERATION).fetchone()
        source.count_records(alone)
        detail = "sessions in the table session_message alone"
        yield from [Problem("unverified_format", "session_message", detail, alone)] if alone else []


def _stored_session(
    source: Source, connection: sqlite3.Connection, session: str
) -> Iterator[Event]:
    info: dict[str, Json] = {}
    records = 0
    for row in rows(connection, "SELECT * FROM session WHERE id = ?", session):
        source.count_records()
        records += 1
        info |= {name: row.get(name) for name in ("directory", "version")}
        for name in ("revert", "permission"):
            value = json_column(row[name], name) if row.get(name) is not None else None
            info[name] = None if isinstance(value, Problem) else value
    messages: dict[str, dict[str, Json]] = {}
    lost: list[Problem] = []
    for row in rows(connection, _MESSAGES, session):
        source.count_records()
        key = as_str(row.get("id"))
        value = json_column(row.get("data"), f"message {key}")
        messages[key] = as_dict(None if isinstance(value, Problem) else value)
        if isinstance(value, Problem):
            yield value
            lost.append(value)
        else:
            records += 1
    parts, unreadable = yield from _parts(source, connection, _PARTS, session)
    records += sum(map(len, parts.values()))
    found = [_StoreRow(key, data, tuple(parts[key])) for key, data in messages.items()]
    gaps = missing_records([*lost, *unreadable])
    yield from conversations(session, info, found, records, gaps)


def _parts(
    source: Source, connection: sqlite3.Connection, query: str, *values: str
) -> Generator[Problem, None, tuple[dict[str, list[dict[str, Json]]], list[Problem]]]:
    """Yields the Problems of unreadable parts; returns parts by message id, and the Problems."""
    parts: dict[str, list[dict[str, Json]]] = defaultdict(list)
    lost: list[Problem] = []
    for row in rows(connection, query, *values):
        source.count_records()
        key = as_str(row.get("id"))
        value = json_column(row.get("data"), f"part {key}")
        if isinstance(value, Problem):
            yield value
            lost.append(value)
        else:
            parts[as_str(row.get("message_id"))].append({**as_dict(value), "id": key})
    return parts, lost


READER = declared(
    "opencode", recognise=_recognise, read=read, is_store=_is_store, item_sizes=item_sizes
)
