"""Reads Qwen Code sessions: a tree of JSONL records with Gemini contents.

Source: docs/formats/qwen-code.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import (
    LOST_RECORD,
    REPEAT,
    Context,
    Conversation,
    Event,
    Json,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    Used,
)
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api.gemini import content_messages
from builder.readers.toolkit.chat_messages import as_harness
from builder.readers.toolkit.comparison import CallKeys, mark_repeats, without_key
from builder.readers.toolkit.history import Links, lost_message, supply_results
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none, unknown_code
from builder.readers.toolkit.places import ignored, span, unique_name
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.unknown_keys import carries_content, unknown_message
from builder.sources.source import Source

_TYPES = frozenset({"user", "assistant", "tool_result", "system"})
_ADDED = ("model", "usageMetadata", "toolCallResult")
"""Keys that a record has only when it is written a second time under its uuid (0.21)."""
_HOOK = "<qwen:user-prompt-submit-context>"
"""The beginning of a text that a hook adds to the user's."""
_SILENT = frozenset({"realtime_message", "code_mode_tool_result"})
"""Subtypes of records with messages that never reach the model."""
_TYPED = frozenset({"", "mid_turn_user_message", "cron"})
"""Subtypes of `user` with text of the user; the text of all others is the program's."""
_SYSTEM = frozenset({
    "agent_launch_prompt", "agent_retry", "agent_session_ready", "at_command",
    "attribution_snapshot", "background_task_completed", "branch_checkpoint", "cron",
    "custom_title", "file_history_snapshot", "goal_runtime", "goal_state", "goal_turn_end",
    "notification", "omni_recall", "parent_session", "rewind", "session_approval_mode",
    "session_artifact_event", "session_artifact_snapshot", "session_execution_engine",
    "session_model", "session_notes", "session_source", "session_sources_snapshot",
    "slash_command", "turn_attempt", "turn_result", "ui_telemetry", "user_text_elements",
})  # fmt: skip
"""Subtypes of `system` that add nothing to the context."""


def _recognise(source: Source) -> str | None:
    """Claims records with uuid and sessionId and a message of parts or a systemPayload."""
    for item in source.peek.objects:
        if isinstance(item.get("uuid"), str) and isinstance(item.get("sessionId"), str):
            if as_str(item.get("type")) in _TYPES and isinstance(
                as_dict(item.get("message")).get("parts"), list
            ):
                return "a record with uuid, sessionId and message.parts"
            if item.get("type") == "system" and "systemPayload" in item:
                return "a system record with uuid, sessionId and systemPayload"
    return None


@dataclass(slots=True)
class _Entry:
    """A record of the tree: all lines with its uuid. `used`: a conversation counts it."""

    where: str
    item: dict[str, Json]
    used: bool = False

    @property
    def parent(self) -> str | None:
        return name_or_none(self.item.get("parentUuid"))


_MISSING = ("reminders", "system", "tools")

_NO_RESULT = (
    "Tool execution result was not recorded \u2014 likely interrupted by network failure, abort, "
    "or process exit. Treat as failure and retry if needed."
)
"""Source: @qwen-code/qwen-code 0.24.4, ORPHAN_TOOL_USE_REPAIR_REASON."""


def _no_result(call: ToolCall) -> ToolResult:
    return ToolResult((Text(_NO_RESULT),), call.id, call.name, is_error=True)


@dataclass(slots=True)
class _Segment:
    """The context of the model between two compressions, and the uuids of its records.

    `hidden` contains the codes of the parts of the context that are not logged.
    """

    keys: CallKeys
    uuids: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    model: str | None = None
    problems: tuple[Problem, ...] = ()
    hidden: set[str] = field(default_factory=set)
    answer: str | None = None
    """The record with which the answer began that the last record belongs to."""

    def add(self, content: Json, turn: str | None) -> None:
        context = Context.lacking({*_MISSING, *self.hidden}) if self.hidden else None
        for message in content_messages(content, self.keys):
            name = None if message.role == "tool" else turn
            lacking = context if message.role == "assistant" else None
            self.messages.append(replace(message, turn=name, context=lacking))

    def lose(self, *, in_agent: bool) -> None:
        """Notes that records are missing here; `in_agent`: an answer may have several."""
        if in_agent and self.answer is not None:
            self.cut()
        self.hidden.add("history")
        self.messages.append(lost_message())
        self.answer = None

    def cut(self) -> None:
        """Marks the last message, if it is an answer, as cut off."""
        before = self.messages[-1] if self.messages else None
        if before is not None and before.role == "assistant":
            cut = Unparsed("", "truncated_answer")
            self.messages[-1] = replace(before, parts=(*before.parts, cut))

    def mark_kept(self, before: _Segment) -> None:
        """Marks the messages that a compression kept: its summary, and earlier answers."""
        if self.messages and self.messages[0].role == "user":
            self.messages[0] = _by_program(self.messages[0])
        answers = {_comparable(message) for message in before.messages}
        for at, message in enumerate(self.messages):
            if message.role == "assistant":
                code = REPEAT if _comparable(message) in answers else "inserted"
                self.messages[at] = replace(message, untrained=code)


def _comparable(message: Message) -> str:
    return repr([without_key(part) for part in message.parts])


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of a file: the sessions, then the abandoned branches."""
    entries: dict[str, _Entry] = {}
    repeated = 0
    for record in objects(source.records()):
        if isinstance(record, Problem):
            yield record
            continue
        where, item = record
        uuid = name_or_none(item.get("uuid"))
        if uuid is None:
            yield Problem("no_uuid", where, "a record without uuid is in no conversation")
        elif uuid in entries and entries[uuid].item.get("type") != item.get("type"):
            detail = f"its uuid is that of the record at {entries[uuid].where}, of another type"
            yield Problem("duplicate_id", where, detail)
        elif uuid in entries:
            repeated += 1
            _merge(entries[uuid], item)
        else:
            entries[uuid] = _Entry(where, item)
    if repeated:
        yield Used(repeated)
    yield from _conversations(entries)
    rest: Counter[str] = Counter()
    for entry in entries.values():
        if not entry.used:
            rest[_code(entry.item)] += 1
    yield from ignored(rest)


def _merge(entry: _Entry, item: dict[str, Json]) -> None:
    """Adds the new parts of a record that was written again under its uuid."""
    old, new = as_dict(entry.item.get("message")), as_dict(item.get("message"))
    parts = as_list(old.get("parts"))
    if more := [part for part in as_list(new.get("parts")) if part not in parts]:
        entry.item = {**entry.item, "message": {**new, **old, "parts": [*parts, *more]}}
    added = {key: item[key] for key in _ADDED if item.get(key) is not None}
    entry.item = {**entry.item, **added}


def _code(item: dict[str, Json]) -> str:
    """Returns the code for ignoring a record that is in no conversation."""
    if item.get("type") == "system":
        subtype = item.get("subtype")
        return subtype if isinstance(subtype, str) and subtype in _SYSTEM else unknown_code(subtype)
    if as_str(item.get("type")) not in _TYPES:
        return unknown_code(item.get("type"))
    return "not_for_model" if as_str(item.get("subtype")) in _SILENT else "no_turns"


def _conversations(entries: dict[str, _Entry]) -> Iterator[Conversation]:
    counts: Counter[str] = Counter()
    last = {as_str(entry.item.get("sessionId")): uuid for uuid, entry in entries.items()}
    links = _links(entries)
    paths = [links.path(leaf) for leaf in last.values()]
    inner = {uuid for path in paths for uuid in path[:-1]}
    covered: set[str] = set()
    for path in paths:
        if path[-1] in inner:  # the session was continued under another id
            continue
        covered.update(path)
        for segment in _segments(entries, path):
            yield from _emit(entries, segment, counts)
    for leaf in links.leaves:
        if leaf in covered:
            continue
        own = [uuid for uuid in links.path(leaf, until=covered) if uuid in entries]
        covered.update(own)
        if not any(entries[uuid].item.get("type") == "assistant" for uuid in own):
            continue
        for segment in _segments(entries, links.path(leaf)):
            if any(uuid in own for uuid in segment.uuids):
                detail = "the session went on from an earlier message"
                segment.problems += (Problem("rewound", entries[leaf].where, detail, 0),)
                yield from _emit(entries, segment, counts)


def _links(entries: dict[str, _Entry]) -> Links[str]:
    """Returns the tree; the first record of another session in the file is no record's child."""
    parents: dict[str, str | None] = {}
    session: Json = None
    for uuid, entry in entries.items():
        is_other = session is not None and session != entry.item.get("sessionId")
        lost = is_other and entry.parent not in entries
        parents[uuid] = None if lost else entry.parent
        session = entry.item.get("sessionId")
    return Links(parents, has_holes=True)


def _emit(
    entries: dict[str, _Entry], segment: _Segment, counts: Counter[str]
) -> Iterator[Conversation]:
    if not segment.messages or not segment.uuids:  # only records of unknown types
        return
    inside = [entries[uuid] for uuid in segment.uuids]
    seen = {uuid for uuid in segment.uuids if entries[uuid].used}
    messages, supplied = supply_results(segment.messages, _no_result)
    fresh = [entry for entry in inside if not entry.used]
    for entry in fresh:
        entry.used = True
    session = as_str(inside[-1].item.get("sessionId"))
    yield Conversation(
        id=unique_name(session, counts),
        record=span(inside[0].where, inside[-1].where),
        messages=tuple(mark_repeats(messages, seen)),
        version=name_or_none(inside[-1].item.get("version")),
        folder=name_or_none(inside[-1].item.get("cwd")),
        model=segment.model,
        records=len(fresh),
        problems=segment.problems,
        changes={"result_supplied": supplied} if supplied else {},
        context=Context.lacking(_MISSING),
    )


def _segments(entries: dict[str, _Entry], path: list[str]) -> list[_Segment]:
    """Returns the path as the model saw it: one segment, and one more for each compression."""
    root = next(uuid for uuid in path if uuid in entries)
    segments = [_Segment(CallKeys(root))]  # a fork copies the root into its own file and session
    if entries[root].parent is not None:
        segments[0].hidden.add("history")  # the record before the first is not in the file
    for uuid in path:
        if uuid not in entries:
            segments[-1].lose(in_agent=bool(entries[root].item.get("isSidechain")))
            continue
        entry = entries[uuid]
        item = entry.item
        history = as_dict(item.get("systemPayload")).get("compressedHistory")
        if item.get("subtype") == "chat_compression" and history:
            segments.append(_Segment(CallKeys(root), [uuid]))
            if not isinstance(history, list):
                segments[-1].hidden.add("history")
            for content in as_list(history):
                segments[-1].add(content, None)
            segments[-1].mark_kept(segments[-2])
        elif item.get("type") == "system":
            _system(segments[-1], entry)
        elif as_str(item.get("type")) not in _TYPES:
            if carries_content(item):
                segments[-1].messages.append(unknown_message(item.get("type")))
        elif item.get("message") is not None and as_str(item.get("subtype")) not in _SILENT:
            segments[-1].uuids.append(uuid)
            before = entries.get(entry.parent or "")
            _message(segments[-1], uuid, entry, None if before is None else _response_id(before))
    return segments


def _response_id(entry: _Entry) -> str | None:
    """Returns the provider's id in the record that precedes an answer, or None."""
    event = as_dict(entry.item, "systemPayload", "uiEvent")
    is_answer = as_str(event.get("event.name")).endswith(".api_response")
    return name_or_none(event.get("response_id")) if is_answer else None


def _message(segment: _Segment, uuid: str, entry: _Entry, response: str | None) -> None:
    kind, subtype = entry.item.get("type"), as_str(entry.item.get("subtype"))
    parts = as_dict(entry.item["message"]).get("parts")
    start = len(segment.messages)
    role = "model" if kind == "assistant" else "user"
    segment.answer = _answer_of(segment, uuid, entry) if kind == "assistant" else None
    segment.add({"role": role, "parts": parts}, segment.answer or uuid)
    added = segment.messages[start:]
    if kind == "assistant":
        model = name_or_none(entry.item.get("model"))
        segment.model = model or segment.model
        added = [replace(message, model=model, response=response) for message in added]
    elif kind == "tool_result":
        status = as_str(entry.item, "toolCallResult", "status")
        added = [_result_message(message, status) for message in added]
    elif subtype not in _TYPED:
        added = [_by_program(message) for message in added]
    else:
        added = [replace(one, parts=tuple(map(_marked, one.parts))) for one in added]
    follows_lost = start > 0 and LOST_RECORD in segment.messages[start - 1].parts
    segment.messages[start:] = added
    if kind == "assistant" and follows_lost and _is_begun(entry):
        segment.cut()  # the record with its beginning is lost


def _is_begun(entry: _Entry) -> bool:
    return bool(entry.item.get("isSidechain")) and "usageMetadata" not in entry.item


def _answer_of(segment: _Segment, uuid: str, entry: _Entry) -> str:
    """Returns the first record of the answer to which a record of the model belongs.

    In the files of sub-agents each call of an answer has a record of its own; the first record of
    an answer has its usage. Two answers in a row have an unlogged prompt between them (a retry
    after the output limit): the first was cut off, and later requests join their texts (`history`).
    """
    if segment.answer is None:
        return uuid
    if _is_begun(entry):
        return segment.answer
    segment.hidden.add("history")
    segment.cut()
    return uuid


def _marked(part: Part) -> Part:
    """Returns a part of the user's message; the text of a hook is marked as the program's."""
    is_hook = isinstance(part, Text) and part.text.startswith(_HOOK)
    return replace(part, harness=True) if isinstance(part, Text) and is_hook else part


def _by_program(message: Message) -> Message:
    return replace(message, parts=as_harness(message.parts))


def _result_message(message: Message, status: str) -> Message:
    if message.role != "tool":
        return _by_program(message)
    parts = (
        replace(
            part,
            is_error=(part.is_error or status == "error") and status != "cancelled",
            is_interrupted=status == "cancelled",
        )
        if isinstance(part, ToolResult)
        else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts))


def _system(segment: _Segment, entry: _Entry) -> None:
    """Applies a system record that affects the model's history."""
    payload = as_dict(entry.item.get("systemPayload"))
    if entry.item.get("subtype") == "agent_bootstrap":
        segment.hidden.add("history")
    if entry.item.get("subtype") != "slash_command" or not segment.messages:
        return
    output = as_list(payload.get("outputHistoryItems"))
    last = segment.messages[-1]
    # The program answered a command itself: the model saw neither.
    if (
        payload.get("phase") == "result"
        and payload.get("sentToModel") is not True
        and output
        and all(as_dict(item).get("type") == "assistant" for item in output)
        and last.role == "user"
        and last.parts == (Text(as_str(payload.get("rawCommand"))),)
    ):
        segment.messages[-1] = _by_program(last)


READER = declared("qwen-code", recognise=_recognise, read=read)
