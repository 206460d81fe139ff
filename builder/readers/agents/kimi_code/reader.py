"""Reads Kimi Code sessions: a session's folder (agents/NAME/wire.jsonl), or one such file.

Source: docs/formats/kimi-code.md. Each agent has a file of records `{type, …, time}`, which are
replayed by the rules of the agent program. A request record names the digests of its system prompt
and tools and the number of its messages, so the context of each answer is checked. The records
`agent.message.appended` of 2.1 repeat all messages and are not read.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import Context, Event, Ignored, Json
from builder.jsonio import packed
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.kimi_code.fold import Fold
from builder.readers.homes import APPDATA, Home
from builder.readers.toolkit.history import HistoryEntry, RequestHead, SessionHistory
from builder.readers.toolkit.narrow import (
    as_dict,
    as_str,
    name_or_none,
    tuple_or_none,
    unknown_code,
)
from builder.readers.toolkit.places import ignored
from builder.readers.toolkit.rows import objects
from builder.sources.listing import Listing
from builder.sources.source import Source

NAME = "kimi-code"

_WIRE = "wire.jsonl"
_INTERNAL = ("ctitle-", "sklsum-", "dvlt-")
"""Beginnings of the names of Kimi Work's own sessions: titles, summaries of skills, its tasks."""

_KIMI_WORK = "kimi-desktop/daimon-share/daimon/runtime/kimi-code/home/sessions"

_HISTORY = frozenset({
    "context.append_message", "context.append_loop_event", "context.undo", "context.clear",
    "context.apply_compaction", "config.update", "profile.bind", "llm.request",
    "llm.tools_snapshot", "swarm_mode.exit", "agent.switched",
})  # fmt: skip
_REPEATS = frozenset({"agent.message.appended", "turn.prompt", "turn.steer"})
_STATE = (
    "agent.", "config.", "cron.", "file_history.", "forked", "full_compaction.", "goal.",
    "interaction.", "interruptionReminder.", "llm.", "mcp.", "metadata", "permission.", "plan.",
    "plan_mode.", "plugin.", "profile.", "prompt.", "runtime.", "staleGuard.", "swarm_mode.",
    "task.", "token_counting.", "tools.", "tower_mode.", "turn.", "usage.",
)  # fmt: skip
"""Beginnings of types of records that are in no request."""


def is_store(folder: Listing) -> bool:
    """Returns whether a folder is a session: agents, each with a wire file, and a state file."""
    if not (folder.is_dir("agents") and folder.is_file("state.json")):
        return False
    return any(folder.is_file(f"agents/{name}/{_WIRE}") for name in folder.folder("agents").names())


def holds(name: str) -> bool:
    """Returns whether a file of a session's folder is read: the wire files and the state."""
    parts = name.split("/")
    return name == "state.json" or (len(parts) == 3 and parts[0] == "agents" and parts[2] == _WIRE)


def recognise(source: Source) -> str | None:
    """Claims a head with protocol_version and created_at, or records of the context."""
    if source.peek.kind == "folder":
        reasons = (recognise(item) for item in source.members if item.name.endswith(_WIRE))
        return next((reason for reason in reasons if reason), None)
    for value in source.peek.objects:
        kind = as_str(value.get("type"))
        if kind == "metadata" and {"protocol_version", "created_at"} <= value.keys():
            return "a head with protocol_version and created_at"
        if kind.startswith(("context.append_", "llm.tools_snapshot")) and "time" in value:
            return f"{kind} records"
    return None


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of each agent of a session."""
    names: Counter[str] = Counter()
    is_internal = any(part.startswith(_INTERNAL) for part in source.name.split("/"))
    folder = source.name.rpartition("/")[2]
    if is_internal and not source.members:
        yield from _helper_requests(source)
    elif not source.members:
        session = folder.removesuffix(".jsonl") or "session"
        yield from _Agent(source, SessionHistory(NAME, session, source.name)).events(names)
    for member in source.members:
        if member.name.endswith(_WIRE) and is_internal:
            yield from _helper_requests(member)
        elif member.name.endswith(_WIRE):
            session = f"{folder}/{member.name.split('/')[-2]}" if "/" in member.name else folder
            scope = f"{source.name}/{member.name}"
            history = SessionHistory(NAME, session, scope, f"{member.name} ")
            yield from _Agent(member, history).events(names)
        else:
            member.count_records()
            yield Ignored("other_file")


def _helper_requests(source: Source) -> Iterator[Event]:
    """Yields the records of a session that the program held with itself as ignored ones."""
    for record in source.json_lines():
        yield record if isinstance(record, Problem) else Ignored("helper_request")


@dataclass(slots=True)
class _Agent:
    """The replay of one wire file."""

    source: Source
    history: SessionHistory
    system: str | None = None
    tools: dict[str, Json] = field(default_factory=dict)
    model: str | None = None  # of the last request
    is_damaged: bool = False

    def events(self, names: Counter[str]) -> Iterator[Event]:
        """Yields a Problem for each damaged record, the ignored ones, and the conversations."""
        fold = Fold(self.history)
        counts: Counter[str] = Counter()
        records = 0
        for record in objects(self.source.json_lines(), "a record that is "):
            if isinstance(record, Problem):
                self.is_damaged = True
                yield replace(record, where=self.history.prefix + record.where)
                continue
            where, value = record
            kind = as_str(value.get("type"))
            if kind in _HISTORY:
                records += 1
                self._apply(fold, kind, value, where)
            elif kind in _REPEATS:
                counts["repeated_message"] += 1
            else:
                counts["state" if kind.startswith(_STATE) else unknown_code(value.get("type"))] += 1
        fold.end()
        yield from ignored(counts)
        yield from self.history.conversations(records, names=names)

    def _apply(self, fold: Fold, kind: str, value: dict[str, Json], where: str) -> None:
        match kind:
            case "context.append_message":
                fold.append_message(as_dict(value.get("message")), where, RequestHead(self.system))
                self._note_damage(*self.history.entries[-1:])
            case "context.append_loop_event":
                event = as_dict(value.get("event"))
                fold.loop_event(event, where)
                if event.get("type") == "step.begin" and fold.open is not None:
                    fold.open.entry.request = RequestHead(self.system, None, self.model)
                    self._note_damage(fold.open.entry)
            case "context.undo":
                count = value.get("count")
                fold.undo(count if isinstance(count, int) else 0)
            case "agent.switched":  # precedes the undo
                fold.keeps_reminders = True
            case "context.clear":
                fold.clear()
            case "context.apply_compaction":
                fold.settle(where)
                fold.compact(value, where)
            case "config.update" | "profile.bind":
                self.system = name_or_none(value.get("systemPrompt")) or self.system
            case "llm.tools_snapshot":
                self.tools[as_str(value.get("hash"))] = value.get("tools")
            case "llm.request":
                self._request(fold, value)
            case _:  # swarm_mode.exit
                fold.end_swarm_mode()

    def _note_damage(self, *entries: HistoryEntry) -> None:
        """Marks answers after a lost record; a logged request states more about them."""
        for entry in entries:
            if self.is_damaged and entry.message.role == "assistant":
                missing = {"history", "tools", *(["system"] if self.system is None else [])}
                entry.message = replace(entry.message, context=Context.lacking(missing))

    def _request(self, fold: Fold, value: dict[str, Json]) -> None:
        """Notes the request of the open step, and what the log lacks of it."""
        if value.get("kind") == "compaction":
            return
        self.model = name_or_none(value.get("model")) or self.model
        if fold.open is None:  # the request of the step that begins next
            return
        sent = value.get("messageCount")
        if isinstance(sent, int):
            fold.continue_compacted(sent)
        missing: set[str] = set()
        system = name_or_none(value.get("systemPrompt")) or self.system
        tools = tuple_or_none(self.tools.get(as_str(value.get("toolsHash"))))
        if system is None:
            missing.add("system")
        elif _digest(system.encode("utf-8", "surrogatepass")) != value.get("systemPromptHash"):
            missing.add("digest")
        if tools is None:
            missing.add("tools")
        elif _digest(packed(list(tools))) != value.get("toolsHash"):
            missing.add("digest")
        if fold.has_gap or self.is_damaged or (sent is not None and sent != fold.count()):
            missing.add("history")
        if "media" in as_str(value.get("projection")):
            missing.add("media")
        entry = fold.open.entry
        entry.request = RequestHead(system, tools, name_or_none(value.get("model")))
        entry.message = replace(entry.message, context=Context.lacking(missing, "rendered"))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


READER = Reader(
    name=NAME,
    summary=(
        "Kimi Code sessions: folders with agents/NAME/wire.jsonl, or one such file "
        "(metadata with created_at, context.append_… records)"
    ),
    evidence=("source", "files"),
    recognise=recognise,
    checked="2.1.0",
    homes=(
        Home("Kimi Code", "${KIMI_CODE_HOME:-~/.kimi-code}/sessions"),
        Home("Kimi Work", f"{APPDATA}/{_KIMI_WORK}"),
    ),
    is_agent=True,
    read=read,
    is_store=is_store,
    holds=holds,
)
