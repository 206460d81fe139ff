"""Reads sessions of DeepSeek Harness (dsh): one log of events for each session.

Source: docs/formats/dsh.md. The events that carry a message form the surface, which is what the
model sees: each is appended to it or replaces a range of it. A `request/header` has the prompt and
the tools of the requests that follow, so contexts are `rendered`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import (
    REPEAT,
    Context,
    Event,
    Json,
    Message,
    ToolResult,
)
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import as_harness, content_block
from builder.readers.toolkit.history import HistoryEntry, RequestHead, SessionHistory, lost_message
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    name_of,
    name_or_none,
    tuple_or_none,
    unknown_code,
)
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.rows import objects
from builder.readers.traces.parts import read_parts
from builder.sources.source import Source

_NAME = "dsh"
_SURFACE = frozenset({"user/message", "assistant/message", "tool/result"})
_PACKED = {"text-chunks": "texts", "reasoning-chunks": "texts", "tool-call-chunks": "args"}
"""Rows that each stand for several events of a stream, by the list with one item for each."""
_LOG_ONLY = (
    "agent/", "agent-preset/", "approval/", "assistant/", "command/", "compaction/", "feedback/",
    "goal/", "hook/", "llm/", "permission/", "plan/", "request/context", "sandbox/", "schedule/",
    "session/", "step/", "subagent/", "team/", "todo/", "tool-workflow/", "tool/", "turn/", "web/",
    *_PACKED,
)  # fmt: skip
"""Beginnings of types of events that add nothing to the surface."""
_UNKNOWN_RESULTS = ("TOOL_NOT_STARTED", "TOOL_OUTCOME_UNKNOWN")


def _recognise(source: Source) -> str | None:
    for value in source.peek.objects:
        if _is_header(value):
            return "a session header with delegationDepth"
        if as_str(value.get("type")) in _SURFACE and {"data", "surfaceOp"} <= value.keys():
            return "events with surfaceOp"
        if value.get("type") == "request/header" and "header" in as_dict(value.get("data")):
            return "a request/header event"
    return None


def _is_header(value: dict[str, Json]) -> bool:
    is_dated = isinstance(value.get("createdAt"), int | float)
    known = not value.keys().isdisjoint({"delegationDepth", "seedLength", "version"})
    return value.get("type") == "session" and is_dated and known


def _read(source: Source) -> Iterator[Event]:
    names: Counter[str] = Counter()
    name = source.name.rpartition("/")[2].partition(".")[0] or "session"
    session = _Session(source.name, SessionHistory(_NAME, name, _NAME))
    for record in objects(source.json_lines(), "an event that is "):
        if isinstance(record, Problem):
            if record.code != "truncated":
                session.lose(record.where)
            yield record
        elif _is_header(record[1]):
            yield from session.events(names)
            seed = record[1].get("seedLength")
            inherited = seed if isinstance(seed, int) and record[1].get("parentSession") else 0
            history = SessionHistory(_NAME, name_or_none(record[1].get("id")) or name, _NAME)
            session = _Session(source.name, history, inherited, records=1)
        else:
            session.take(*record)
    yield from session.events(names)


@dataclass(slots=True)
class _Session:
    """The surface of a session.

    `seq` is the number of the next event, `inherited` that of the events copied from the parent's
    log. The `kind` of an entry is its number. `is_open`: the turn of the last answer has not ended.
    """

    source: str
    history: SessionHistory
    inherited: int = 0
    seq: int = 0
    records: int = 0
    head: RequestHead = field(default_factory=RequestHead)
    has_gap: bool = False
    is_open: bool = False
    counts: Counter[str] = field(default_factory=Counter)

    def events(self, names: Counter[str]) -> Iterator[Event]:
        """Yields the ignored events and the conversations."""
        yield from ignored(self.counts)
        yield from self.history.conversations(self.records, names=names)

    def lose(self, where: str) -> None:
        """Notes that an event cannot be read: it may have said that the answer was cut."""
        if self.is_open:
            self._mark_last("truncated")
        self.history.entries.append(HistoryEntry(lost_message(), where, kind=str(self.seq)))
        self.seq += 1
        self.has_gap = True

    def take(self, where: str, value: dict[str, Json]) -> None:
        kind = as_str(value.get("type"))
        data = as_dict(value.get("data"))
        logged = value.get("seq", value.get("seq0"))
        seq = logged if type(logged) is int else self.seq
        self.seq = seq + (len(as_list(data.get(_PACKED.get(kind, "")))) or 1)
        if kind in _SURFACE:
            self.records += 1
            entry = self._entry(kind, data, seq, where)
            self.is_open = entry.message.role == "assistant"
            self._place(entry, as_dict(value.get("surfaceOp")))
        elif kind == "request/header":
            self.records += 1
            header = as_dict(data.get("header"))
            system = header.get("system")
            known = isinstance(system, str) and system != "{{system}}"  # a placeholder in test logs
            self.head = RequestHead(
                as_str(system) if known else None,
                tuple_or_none(header.get("tools")),
                name_or_none(as_dict(header.get("config")).get("model")),
            )
        elif kind.startswith(_LOG_ONLY):
            self.counts["log_only"] += 1
            self.is_open = self.is_open and kind != "turn/end"
            if kind == "turn/end" and as_dict(data.get("reason")).get("kind") == "max-tokens":
                self._mark_last("truncated")
        else:
            self.counts[unknown_code(value.get("type"))] += 1
            self.has_gap = self.has_gap or value.get("ignorable") is not True

    def _entry(self, kind: str, data: dict[str, Json], seq: int, where: str) -> HistoryEntry:
        message = as_dict(data.get("message"))
        if kind == "user/message":
            value = data if "content" in data else message
            typed = as_dict(value.get("source")).get("kind", "user") == "user"
            contents = tuple(map(content_block, as_dicts(value.get("content"))))
            read = Message("user", contents if typed else as_harness(contents))
        elif kind == "tool/result":
            read = Message("tool", tuple(_results(data, message)))
        else:
            message = message or data  # older logs have no message
            # A session that goes on in another file copies its events: the id stays the same.
            name = name_or_none(message.get("id")) or f"{self.source} {seq}"
            missing = ["history"] if self.has_gap else []
            missing += ["system"] if self.head.system is None else []
            missing += ["tools"] if self.head.tools is None else []
            code = cut_code(data) or (REPEAT if seq < self.inherited else None)
            parts = tuple(read_parts(message.get("content")))
            read = Message("assistant", parts, name, code, Context.lacking(missing, "rendered"))
        return HistoryEntry(
            read, where, self.head if read.role == "assistant" else None, kind=str(seq)
        )

    def _place(self, entry: HistoryEntry, change: dict[str, Json]) -> None:
        """Appends the entry to the surface, or replaces a range of it."""
        start, end = change.get("start"), change.get("end")
        entries = self.history.entries
        if change.get("op") != "replace" or not (isinstance(start, int) and isinstance(end, int)):
            entries.append(entry)
            return
        shadowed = [at for at, item in enumerate(entries) if start <= int(item.kind) <= end]
        if not shadowed:
            self.has_gap = True  # it replaces messages that are not in the log
            self.history.replace([entry])
        else:
            rest = entries[shadowed[-1] + 1 :]
            self.history.replace([*entries[: shadowed[0]], entry, *rest])

    def _mark_last(self, code: str) -> None:
        answers = [item for item in self.history.entries if item.message.role == "assistant"]
        if answers and answers[-1].message.untrained is None:
            answers[-1].message = replace(answers[-1].message, untrained=code)


def _results(data: dict[str, Json], message: dict[str, Json]) -> Iterator[ToolResult]:
    """Yields the results of an event; older logs have a single one without a message."""
    for block in as_dicts(message.get("content")) if message else [data]:
        yield ToolResult(
            tuple(map(content_block, as_dicts(block.get("content")))),
            name_of(block, "toolCallId", "callId"),
            is_error=block.get("isError") is True,
            is_interrupted=as_str(data, "error", "code") in _UNKNOWN_RESULTS,
        )


READER = declared(_NAME, recognise=_recognise, read=_read)
