"""Reads Gemini CLI's recorded sessions (`.json`, `.jsonl`), saved chats and restore points.

Source: docs/formats/gemini-cli.md. A current session file is a log of changes to a list of
messages, which is replayed: messages are written again as they grow, a rewind deletes, `$set`
replaces the whole list (start, resume, compression). If a change removes an answer, the list before
it is a conversation of its own: a segment before a compression, `rewound` before a rewind or
rollback. An answer in several of them is a target in one and a repeat in the others. When the
program rewrites its history (masked outputs of tools, compressions), it first records all of it
once more: these copies are not part of the list before, and an answer among them that the model did
not give is `inserted`. System prompt and tools are not recorded. Only current versions record the
opening `<session_context>`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Context,
    Conversation,
    Event,
    Ignored,
    Json,
    Message,
    ToolCall,
)
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.gemini_cli.records import (
    NOT_RECORDED,
    call_ids,
    copies_of,
    has_answer,
    starts_with,
    view_of,
    with_repeats,
)
from builder.readers.api.gemini.contents import content_messages
from builder.readers.homes import Home
from builder.readers.toolkit.call_keys import CallKeys
from builder.readers.toolkit.comparison import common_prefix
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none, unknown_code
from builder.readers.toolkit.places import ignored, span
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.segments import Segments
from builder.readers.toolkit.unknown_records import carries_content
from builder.sources.source import Source

_UI_TYPES = frozenset({"info", "error", "warning"})


def recognise(source: Source) -> str | None:
    """Claims sessions by their metadata or messages, saved chats and restore points by shape."""
    if _is_companion(source.name):
        return "a file that gemini-cli keeps next to its sessions"
    peek = source.peek
    if peek.kind == "jsonl":
        for item in peek.objects:
            if _is_metadata(item):
                return "a session's metadata (sessionId, projectHash)"
            if isinstance(item.get("$rewindTo"), str) or "messages" in as_dict(item.get("$set")):
                return "a change to the list of messages ($set, $rewindTo)"
            if item.get("type") == "gemini" and {"id", "content", "timestamp"} <= item.keys():
                return "a message of type gemini"
    elif peek.kind == "json":
        is_list = source.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        return _document_kind(list(peek.records) if is_list else peek.records[0])
    return None


def _is_companion(name: str) -> bool:
    """Returns whether a file belongs to the sessions: their project's path, or a large output."""
    folders, _, file = name.rpartition("/")
    return file == ".project_root" or "tool-outputs" in folders.split("/")


def _is_metadata(item: dict[str, Json]) -> bool:
    return isinstance(item.get("sessionId"), str) and isinstance(item.get("projectHash"), str)


def _document_kind(document: Json) -> str | None:
    if isinstance(document, list):
        if document and all(_is_content(item) for item in document):
            return "a saved chat: a list of Content (role, parts)"
        if document and all(_is_prompt(item) for item in document):
            return "a log of prompts (sessionId, messageId, message)"
        return None
    item = as_dict(document)
    if _is_metadata(item):
        return "a session (sessionId, projectHash)"
    if item.keys() <= {"history", "authType"} and _are_contents(item.get("history")):
        return "a saved chat: history of Content (role, parts)"
    if "toolCall" in item and _are_contents(item.get("clientHistory")):
        return "a restore point (clientHistory, toolCall)"
    return None


def _is_content(value: Json) -> bool:
    item = as_dict(value)
    return item.get("role") in ("user", "model") and isinstance(item.get("parts"), list)


def _are_contents(value: Json) -> bool:
    items = as_list(value)
    return bool(items) and all(map(_is_content, items))


def _is_prompt(value: Json) -> bool:
    return {"sessionId", "messageId", "type", "message"} <= as_dict(value).keys()


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of a session: its last state and each abandoned one."""
    if _is_companion(source.name):
        source.count_records()
        yield Ignored("session_file", source.records_read)
        return
    if source.peek.kind != "json":
        yield from _event_log(source)
        return
    document = source.document()
    item = document if isinstance(document, dict) else {}
    if isinstance(item.get("messages"), list):
        yield from _legacy(source, item)
    elif isinstance(document, list) and document and all(map(_is_prompt, document)):
        yield Ignored("prompt_log", sum(1 for _ in source.counted(document)))
    elif isinstance(document, list):
        yield from _saved(source, document)
    elif _are_contents(item.get("clientHistory")):
        yield from _saved(source, as_list(item["clientHistory"]), as_dict(item.get("toolCall")))
    elif _are_contents(item.get("history")):
        yield from _saved(source, as_list(item["history"]))
    else:
        yield from _event_log(source)


@dataclass(slots=True)
class _State:
    """The list of messages at one time.

    messages     message records by id
    first, last  places of its first and last record
    records      number of records since the previous state
    rewound      the user undid its end
    """

    messages: dict[str, dict[str, Json]]
    first: str = ""
    last: str = ""
    records: int = 0
    rewound: bool = False
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True)
class _Session:
    """A session while its log is replayed."""

    id: str
    closed: list[_State] = field(default_factory=list)
    now: _State = field(default_factory=lambda: _State({}))
    ignored: Counter[str] = field(default_factory=Counter)
    fault: Problem | None = None
    copied: dict[str, str | None] = field(default_factory=dict)
    """For each answer that the program recorded itself: the id of the answer that it repeats."""

    def apply(self, where: str, item: dict[str, Json]) -> None:
        """Replays one record, with tests in the order of the program's own reader."""
        if isinstance(target := item.get("$rewindTo"), str):
            self._rewind(where, target)
        elif isinstance(item.get("id"), str):
            self._message(where, item)
        elif "$set" in item:
            changed = as_dict(item["$set"])
            if isinstance(changed.get("messages"), list):
                self._replace(where, as_list(changed["messages"]))
            else:
                self.ignored["metadata"] += 1
        elif _is_metadata(item):
            self.ignored["metadata"] += 1
        else:
            self.ignored[unknown_code(item.get("type"))] += 1

    def _count(self, where: str) -> None:
        self.now.first = self.now.first or where
        self.now.last = where
        self.now.records += 1

    def _message(self, where: str, item: dict[str, Json]) -> None:
        kind = item.get("type")
        if kind not in ("user", "gemini"):
            is_known = as_str(kind) in _UI_TYPES
            self.ignored["ui_message" if is_known else unknown_code(kind)] += 1
            if not is_known and carries_content(item):
                self.now.messages[as_str(item["id"])] = item
            return
        if self.fault is not None:  # the lost record may have been part of this list
            self.now.problems += (replace(self.fault, records=0),)
            self.fault = None
        key = as_str(item["id"])
        before = self.now.messages.get(key)
        if before is not None and not call_ids(before) <= call_ids(item):
            self._store(rewound=True)  # written again without a call that it had
        self._count(where)
        self.now.messages[key] = item

    def _rewind(self, where: str, target: str) -> None:
        ids = list(self.now.messages)
        at = ids.index(target) if target in self.now.messages else 0
        self._store(rewound=True)
        if at == 0:
            self.now.first = where
        self._count(where)
        for key in ids[at:]:
            del self.now.messages[key]

    def _replace(self, where: str, items: list[Json]) -> None:
        ids = [as_str(value, "id") for value in items]
        if copies := copies_of(self.now.messages, ids):
            for key, answer in copies.items():
                self.copied[key] = self.copied.get(answer, answer) if answer else None
            for key in ids:
                del self.now.messages[key]
        self._store(rewound=False)
        self._count(where)
        self.now.first = where
        self.now.problems = ()
        self.fault = None
        self.now.messages = {}
        for index, value in enumerate(items):
            message = as_dict(value)
            if message.get("type") in ("user", "gemini"):
                self.now.messages[name_or_none(message.get("id")) or f"{where}[{index}]"] = message
        self._store(rewound=False)  # keeps the new list, to compare the previous state with it

    def _store(self, *, rewound: bool) -> None:
        """Stores the state; the next one begins as a copy of it."""
        now = self.now
        self.closed.append(replace(now, messages=dict(now.messages), rewound=rewound))
        now.records = 0

    def events(self, names: Counter[str]) -> Iterator[Event]:
        """Yields the last state, and each earlier state that no later one contains."""
        states = [*self.closed, self.now]
        views = [view_of(state.messages.items(), self.id, self.copied) for state in states]
        segments, first = Segments(self.id, taken=names), ""
        conversations: list[Conversation] = []
        for at, (state, view) in enumerate(zip(states, views, strict=True)):
            segments.records += state.records
            first = first or state.first
            later = [other.compared for other in views[at + 1 :] if other.compared]
            if not view.compared or any(starts_with(other, view.compared) for other in later):
                continue
            if later and not has_answer(view.compared[common_prefix(view.compared, later[0]) :]):
                continue  # only messages of the user were undone
            problems = state.problems
            if state.rewound or (later and starts_with(view.compared, later[0])):
                detail = "the session went on from an earlier message"
                problems += (Problem("rewound", state.last, detail, records=0),)
            conversations.append(
                Conversation(
                    id=segments.next_name(),
                    record=span(first, state.last),
                    messages=view.messages,
                    model=view.model,
                    records=segments.take_records(),
                    problems=problems,
                    context=view.context,
                )
            )
            first = ""
        yield from with_repeats(conversations)
        yield from segments.rest("no_turns")
        yield from ignored(self.ignored)


def _event_log(source: Source) -> Iterator[Event]:
    session: _Session | None = None
    names: Counter[str] = Counter()
    for record in objects(source.records()):
        session = session or _Session(source.name)
        if isinstance(record, Problem):
            session.fault = record
            yield record
            continue
        where, item = record
        if _is_metadata(item) and (name := as_str(item["sessionId"])) != session.id:
            if session.now.messages:  # another session in one file
                yield from session.events(names)
                session = _Session(name)
            session.id = name
        session.apply(where, item)
    if session is not None:
        yield from session.events(names)


def _legacy(source: Source, document: dict[str, Json]) -> Iterator[Event]:
    session = _Session(as_str(document.get("sessionId")) or source.name)
    for record in objects(source.counted(as_list(document["messages"]))):
        if isinstance(record, Problem):
            session.fault = record
            yield record
        else:
            where, item = record
            session.apply(where, {"id": where, **item})
    written = session.now.messages.values()
    if (
        "kind" not in document
        and any(item.get("type") == "gemini" for item in written)
        and not any(map(call_ids, written))
    ):
        # In headless mode, the first versions recorded no calls, only the first text.
        detail = "this version may have called tools without recording it"
        session.now.problems += (Problem("calls_unrecorded", "file", detail, records=0),)
    yield from session.events(Counter())


def _saved(
    source: Source, contents: list[Json], pending: dict[str, Json] | None = None
) -> Iterator[Event]:
    """Yields a history that was saved as sent; `pending` is the call after a restore point."""
    keys = CallKeys(source.name)
    messages: list[Message] = []
    records = 0
    for record in objects(source.counted(contents)):
        if isinstance(record, Problem):
            yield record
        else:
            records += 1
            messages += content_messages(record[1], keys)
    if pending:
        call = ToolCall(as_str(pending.get("name")), pending.get("args"))
        last = messages[-1].parts if messages else ()
        if not any(isinstance(part, ToolCall) and part.name == call.name for part in last):
            messages.append(Message("assistant", (call,)))
    if not messages:
        yield from [Ignored("no_turns", records)] if records else []
        return
    yield Conversation(
        id="saved chat",
        record=span("[0]", f"[{len(contents) - 1}]"),
        messages=tuple(messages),
        records=records,
        context=Context.lacking(NOT_RECORDED),
    )


READER = Reader(
    name="gemini-cli",
    summary=(
        "Gemini CLI sessions, saved chats and restore points (also of Qwen Code's first "
        "layout): sessionId with projectHash, or $set/$rewindTo records"
    ),
    evidence=("source", "files"),
    recognise=recognise,
    is_agent=True,
    checked="0.61.0",
    homes=(
        Home("Gemini CLI", "~/.gemini/tmp"),
        Home("Qwen Code", "~/.qwen/tmp"),
    ),
    read=read,
)
