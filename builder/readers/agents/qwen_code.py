"""Qwen Code: session files, a tree of JSONL records with Gemini contents.

Source: gemini-cli.md "Qwen Code"; records that change the model's history: QwenLM/qwen-code
packages/core/src/services/session-api-history.ts @03291a25 (Apache-2.0).
The path from the first record to the last of the file is the session; a compression on it begins
a new segment. Branches that the session left (a rewind) are conversations with the code `rewound`.
System prompt and tools are not recorded (but by `--openai-logging`: another format). The first
layout of the sessions was Gemini CLI's and is read by that reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import Conversation, Event, Json, Message, Text, ToolResult, Used
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.api.gemini.contents import content_messages
from builder.readers.toolkit.call_keys import CallKeys
from builder.readers.toolkit.chat_messages import unknown_parts
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none, unknown_code
from builder.readers.toolkit.places import ignored, span, unique_name
from builder.sources.source import Source

_TYPES = frozenset({"user", "assistant", "tool_result", "system"})
_SILENT = frozenset({"realtime_message", "code_mode_tool_result"})
"""Subtypes whose message never reaches the model."""
_TYPED = frozenset({"", "mid_turn_user_message", "cron"})
"""Subtypes of `user` whose words are the user's; under all others the program speaks."""
_SYSTEM = frozenset({
    "agent_launch_prompt", "agent_retry", "agent_session_ready", "at_command",
    "attribution_snapshot", "background_task_completed", "branch_checkpoint", "cron",
    "custom_title", "file_history_snapshot", "goal_runtime", "goal_state", "goal_turn_end",
    "notification", "omni_recall", "parent_session", "rewind", "session_approval_mode",
    "session_artifact_event", "session_artifact_snapshot", "session_execution_engine",
    "session_model", "session_notes", "session_source", "session_sources_snapshot",
    "slash_command", "turn_attempt", "turn_result", "ui_telemetry", "user_text_elements",
})  # fmt: skip
"""Subtypes of `system` that say nothing of what the model saw."""


def recognise(source: Source) -> str | None:
    """Why the source is a session of Qwen Code, or None."""
    if source.peek.kind not in ("jsonl", "json"):
        return None
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
    """A record of the tree; lines with an equal uuid are one. `used`: counted somewhere."""

    where: str
    item: dict[str, Json]
    used: bool = False

    @property
    def parent(self) -> str | None:
        return name_or_none(self.item.get("parentUuid"))


@dataclass(slots=True)
class _Segment:
    """What the model saw between two compressions, and the uuids of its records."""

    keys: CallKeys
    uuids: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    model: str | None = None
    problems: tuple[Problem, ...] = ()

    def add(self, content: Json, turn: str | None, where: str) -> None:
        """Add the messages of a Content."""
        messages, odd = content_messages(content, self.keys)
        self.messages += [
            message if message.role == "tool" else replace(message, turn=turn)
            for message in messages
        ]
        self.problems += unknown_parts(odd, where)

    def doubt(self, where: str, detail: str) -> None:
        """Something is in it that may change what the model saw and cannot be read."""
        self.problems += (Problem("unknown_part", where, detail, records=0),)


def read(source: Source) -> Iterator[Event]:
    """The conversations of a file: the sessions, then the branches that they left."""
    entries: dict[str, _Entry] = {}
    repeated = 0
    for record in source.records():
        if isinstance(record, Problem):
            yield record
            continue
        item = record.value
        if not isinstance(item, dict):
            yield Problem("not_object", record.where, f"a {type(item).__name__}")
            continue
        uuid = name_or_none(item.get("uuid"))
        if uuid is None:
            yield Problem("no_uuid", record.where, "a record without uuid is in no conversation")
        elif uuid in entries:
            repeated += 1
            _merge(entries[uuid], item)
        else:
            entries[uuid] = _Entry(record.where, item)
    if repeated:
        yield Used(repeated)
    yield from _conversations(entries)
    rest: Counter[str] = Counter()
    for entry in entries.values():
        if not entry.used:
            rest[_code(entry.item)] += 1
    yield from ignored(rest)


def _merge(entry: _Entry, item: dict[str, Json]) -> None:
    """What is written again under its uuid adds the parts that it did not have."""
    old, new = as_dict(entry.item.get("message")), as_dict(item.get("message"))
    parts = as_list(old.get("parts"))
    if more := [part for part in as_list(new.get("parts")) if part not in parts]:
        entry.item = {**entry.item, "message": {**new, **old, "parts": [*parts, *more]}}


def _code(item: dict[str, Json]) -> str:
    """The code under which a record is ignored that is in no conversation."""
    if item.get("type") == "system":
        subtype = item.get("subtype")
        return subtype if isinstance(subtype, str) and subtype in _SYSTEM else unknown_code(subtype)
    if as_str(item.get("type")) not in _TYPES:
        return unknown_code(item.get("type"))
    return "not_for_model" if as_str(item.get("subtype")) in _SILENT else "no_turns"


# -- the tree ------------------------------------------------------------------------------------


def _conversations(entries: dict[str, _Entry]) -> Iterator[Conversation]:
    found: Counter[str] = Counter()
    last = {as_str(entry.item.get("sessionId")): uuid for uuid, entry in entries.items()}
    paths = [_path(entries, leaf) for leaf in last.values()]
    inner = {uuid for path in paths for uuid in path[:-1]}
    covered: set[str] = set()
    broken = False
    for path in paths:
        if path[-1] in inner:  # the session was continued under another id
            continue
        broken = broken or entries[path[0]].parent is not None
        covered.update(path)
        for segment in _segments(entries, path):
            yield from _emit(entries, segment, found)
    parents = {entry.parent for entry in entries.values()}
    for leaf, end in entries.items():
        if leaf in parents or leaf in covered:
            continue
        own = _path(entries, leaf, until=covered)
        # A session whose beginning is lost did not leave what stands before the loss.
        left = entries[own[0]].parent in covered or not broken
        covered.update(own)
        if not any(entries[uuid].item.get("type") == "assistant" for uuid in own):
            continue
        for segment in _segments(entries, _path(entries, leaf)):
            if any(uuid in own for uuid in segment.uuids):
                if left:
                    detail = "the session went on from an earlier message"
                    segment.problems += (Problem("rewound", end.where, detail, records=0),)
                yield from _emit(entries, segment, found)


def _path(entries: dict[str, _Entry], leaf: str, until: Container[str] = ()) -> list[str]:
    """The uuids from the root (or from just after one of `until`) to `leaf`."""
    found: dict[str, None] = {}
    at: str | None = leaf
    while at is not None and at in entries and at not in found and at not in until:
        found[at] = None
        at = entries[at].parent
    return list(found)[::-1]


def _emit(
    entries: dict[str, _Entry], segment: _Segment, found: Counter[str]
) -> Iterator[Conversation]:
    if not segment.messages:
        return
    inside = [entries[uuid] for uuid in segment.uuids]
    fresh = [entry for entry in inside if not entry.used]
    for entry in fresh:
        entry.used = True
    session = as_str(inside[-1].item.get("sessionId"))
    yield Conversation(
        id=unique_name(session, found),
        record=span(inside[0].where, inside[-1].where),
        messages=tuple(segment.messages),
        model=segment.model,
        records=len(fresh),
        problems=segment.problems,
    )


# -- one path ------------------------------------------------------------------------------------


def _segments(entries: dict[str, _Entry], path: list[str]) -> list[_Segment]:
    """The path as the model saw it: one segment, and one more for each compression."""
    root = entries[path[0]]  # a fork copies it into its own file and session
    segments = [_Segment(CallKeys(path[0]))]
    if root.parent is not None:
        detail = "the record before the first is not in the file"
        segments[0].problems = (Problem("missing_parent", root.where, detail, records=0),)
    for uuid in path:
        entry = entries[uuid]
        item = entry.item
        history = as_dict(item.get("systemPayload")).get("compressedHistory")
        if item.get("subtype") == "chat_compression" and history:
            segments.append(_Segment(CallKeys(path[0]), [uuid]))
            if not isinstance(history, list):
                segments[-1].doubt(entry.where, "compressedHistory")
            for content in as_list(history):
                segments[-1].add(content, None, entry.where)
        elif item.get("type") == "system":
            _system(segments[-1], entry)
        elif item.get("message") is not None and as_str(item.get("subtype")) not in _SILENT:
            segments[-1].uuids.append(uuid)
            _message(segments[-1], uuid, entry)
    return segments


def _message(segment: _Segment, uuid: str, entry: _Entry) -> None:
    kind, subtype = entry.item.get("type"), as_str(entry.item.get("subtype"))
    parts = as_dict(entry.item["message"]).get("parts")
    start = len(segment.messages)
    role = "model" if kind == "assistant" else "user"
    segment.add({"role": role, "parts": parts}, uuid, entry.where)
    added = segment.messages[start:]
    if kind == "assistant":
        segment.model = name_or_none(entry.item.get("model")) or segment.model
    elif kind == "tool_result":
        status = as_dict(entry.item.get("toolCallResult")).get("status")
        added = [_result_message(message, status in ("error", "cancelled")) for message in added]
    elif kind != "user":
        segment.doubt(entry.where, f"type {as_str(kind)[:40]}")
    elif subtype not in _TYPED:
        added = [_by_program(message) for message in added]
    segment.messages[start:] = added


def _by_program(message: Message) -> Message:
    parts = (
        replace(part, harness=True) if isinstance(part, Text) else part for part in message.parts
    )
    return replace(message, parts=tuple(parts))


def _result_message(message: Message, failed: bool) -> Message:
    if message.role != "tool":
        return _by_program(message)
    parts = (
        replace(part, is_error=part.is_error or failed) if isinstance(part, ToolResult) else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts))


def _system(segment: _Segment, entry: _Entry) -> None:
    """System records that say something of the model's history."""
    payload = as_dict(entry.item.get("systemPayload"))
    if entry.item.get("subtype") == "agent_bootstrap":
        segment.doubt(entry.where, "agent_bootstrap")
    if entry.item.get("subtype") != "slash_command" or not segment.messages:
        return
    shown = as_list(payload.get("outputHistoryItems"))
    last = segment.messages[-1]
    # A command that the program answered by itself: neither reached the model.
    if (
        payload.get("phase") == "result"
        and payload.get("sentToModel") is not True
        and shown
        and all(as_dict(item).get("type") == "assistant" for item in shown)
        and last.role == "user"
        and last.parts == (Text(as_str(payload.get("rawCommand"))),)
    ):
        segment.messages[-1] = _by_program(last)


READER = Reader(
    name="qwen-code",
    summary="Qwen Code sessions: JSONL records with uuid, parentUuid and message.parts",
    recognise=recognise,
    read=read,
)
