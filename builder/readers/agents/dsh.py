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
    Part,
    Reasoning,
    ToolCall,
    ToolResult,
)
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.homes import Home
from builder.readers.toolkit.chat_messages import as_harness, content_block
from builder.readers.toolkit.history import HistoryEntry, RequestHead, SessionHistory
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    name_or_none,
    tuple_or_none,
    unknown_code,
)
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.rows import objects
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


def _recognise(source: Source) -> str | None:
    """Claims a session header with a numeric `createdAt`, or events of the surface."""
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


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of each session of a file."""
    names: Counter[str] = Counter()
    name = source.name.rpartition("/")[2].partition(".")[0] or "session"
    session = _Session(source.name, name, 0)
    for record in objects(source.json_lines(), "an event that is "):
        if isinstance(record, Problem):
            session.seq += 1
            session.has_gap = True
            yield record
            continue
        where, value = record
        if _is_header(value):
            yield from session.events(names)
            seed = value.get("seedLength")
            inherited = seed if isinstance(seed, int) and value.get("parentSession") else 0
            session = _Session(source.name, name_or_none(value.get("id")) or name, inherited)
            session.records = 1
        else:
            session.take(value, where)
    yield from session.events(names)


@dataclass(slots=True)
class _Session:
    """The surface of a session.

    `seq` is the number of the next event, `inherited` that of the events copied from the parent's
    log. The `kind` of an entry is its number.
    """

    source: str
    name: str
    inherited: int
    seq: int = 0
    records: int = 0
    head: RequestHead = field(default_factory=RequestHead)
    has_gap: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    history: SessionHistory = field(init=False)

    def __post_init__(self) -> None:
        self.history = SessionHistory(_NAME, self.name, _NAME)

    def events(self, names: Counter[str]) -> Iterator[Event]:
        """Yields the ignored events and the conversations."""
        yield from ignored(self.counts)
        yield from self.history.conversations(self.records, names=names)

    def take(self, value: dict[str, Json], where: str) -> None:
        """Reads one event."""
        kind = as_str(value.get("type"))
        data = as_dict(value.get("data"))
        logged = value.get("seq", value.get("seq0"))
        seq = logged if isinstance(logged, int) else self.seq
        packed = as_list(data.get(_PACKED.get(kind, "")))
        self.seq = seq + (len(packed) or 1)
        if kind in _SURFACE:
            self.records += 1
            self._place(self._entry(kind, data, seq, where), seq, value.get("surfaceOp"))
        elif kind == "request/header":
            self.records += 1
            self._header(as_dict(data.get("header")))
        elif kind.startswith(_LOG_ONLY):
            self.counts["log_only"] += 1
            cut = as_dict(data.get("reason")).get("kind") == "max-tokens"
            if kind == "turn/end" and cut:
                self._mark_last("truncated")
        else:
            self.counts[unknown_code(value.get("type"))] += 1
            self.has_gap = self.has_gap or value.get("ignorable") is not True

    def _header(self, header: dict[str, Json]) -> None:
        config = as_dict(header.get("config"))
        system, tools = header.get("system"), header.get("tools")
        known = isinstance(system, str) and system != "{{system}}"  # a placeholder in test logs
        self.head = RequestHead(
            as_str(system) if known else None,
            tuple_or_none(tools),
            name_or_none(config.get("model")),
        )

    def _entry(self, kind: str, data: dict[str, Json], seq: int, where: str) -> HistoryEntry:
        message = as_dict(data.get("message"))
        if kind == "user/message":
            value = data if "content" in data else message
            typed = as_dict(value.get("source")).get("kind", "user") == "user"
            contents = tuple(map(content_block, as_dicts(value.get("content"))))
            return HistoryEntry(Message("user", contents if typed else as_harness(contents)), where)
        if kind == "tool/result":
            return HistoryEntry(Message("tool", _results(data, message)), where)
        message = message or data  # older logs have no message
        parts = tuple(_answer_part(block) for block in as_dicts(message.get("content")))
        # A session that goes on in another file copies its events: the id stays the same.
        name = name_or_none(message.get("id")) or f"{self.source} {seq}"
        missing = ["history"] if self.has_gap else []
        missing += ["system"] if self.head.system is None else []
        missing += ["tools"] if self.head.tools is None else []
        code = "aborted" if data.get("interrupted") is True else None
        if seq < self.inherited:
            code = code or REPEAT
        context = Context.lacking(missing, "rendered")
        answer = Message("assistant", parts, name, untrained=code, context=context)
        return HistoryEntry(answer, where, self.head)

    def _place(self, entry: HistoryEntry, seq: int, operation: Json) -> None:
        """Appends the entry to the surface, or replaces a range of it."""
        entry.kind = str(seq)
        change = as_dict(operation)
        start, end = change.get("start"), change.get("end")
        entries = self.history.entries
        if change.get("op") != "replace" or not (isinstance(start, int) and isinstance(end, int)):
            entries.append(entry)
            return
        numbers = [int(item.kind) for item in entries]
        shadowed = [at for at, number in enumerate(numbers) if start <= number <= end]
        if not shadowed:
            self.has_gap = True  # it replaces messages that are not in the log
            self.history.replace([entry])
            return
        rest = entries[shadowed[-1] + 1 :]
        self.history.replace([*entries[: shadowed[0]], entry, *rest])

    def _mark_last(self, code: str) -> None:
        answers = [item for item in self.history.entries if item.message.role == "assistant"]
        if answers and answers[-1].message.untrained is None:
            answers[-1].message = replace(answers[-1].message, untrained=code)


def _results(data: dict[str, Json], message: dict[str, Json]) -> tuple[ToolResult, ...]:
    """Returns the results of an event; older logs have a single one without a message."""
    blocks = as_dicts(message.get("content")) if message else [data]
    code = as_str(data, "error", "code")
    return tuple(
        ToolResult(
            tuple(map(content_block, as_dicts(block.get("content")))),
            name_or_none(block.get("toolCallId")) or name_or_none(block.get("callId")),
            is_error=block.get("isError") is True,
            is_interrupted=code in ("TOOL_NOT_STARTED", "TOOL_OUTCOME_UNKNOWN"),
        )
        for block in blocks
    )


def _answer_part(block: dict[str, Json]) -> Part:
    match block.get("type"):
        case "reasoning":
            return Reasoning(as_str(block.get("text")))
        case "tool-call":
            name, call_id = as_str(block.get("name")), name_or_none(block.get("id"))
            return ToolCall(name, block.get("arguments"), call_id)
        case _:
            return content_block(block)


READER = Reader(
    name=_NAME,
    summary=(
        "DeepSeek Harness (dsh) sessions: a session header with createdAt and delegationDepth, "
        "then events with surfaceOp"
    ),
    evidence=("source", "files"),
    recognise=_recognise,
    homes=(Home("DeepSeek Harness", "${DSH_HOME:-~/.dsh}/sessions"),),
    is_agent=True,
    read=read,
)
