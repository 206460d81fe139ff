"""Reads Kimi CLI sessions: folders, or one old file. Source: docs/formats/kimi-cli.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import (
    REPEAT,
    Content,
    Context,
    Conversation,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    Text,
    ToolResult,
    Used,
)
from builder.jsonio import JsonFault, loads
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import content as contents
from builder.readers.toolkit.chat_messages import tool_calls
from builder.readers.toolkit.comparison import common_prefix, with_session_keys
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import as_dict, as_str, name_or_none, unknown_code
from builder.readers.toolkit.places import ignored, span
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.unknown_keys import carries_content, unknown_message
from builder.readers.traces.parts import read_parts
from builder.sources.listing import Listing
from builder.sources.source import Record, Source

_NAME = "kimi-cli"
_Row = dict[str, Json]

_NOTICE = re.compile(r"\s*<(system|system-reminder)>(?:(?!</\1>).)*</\1>\s*", re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f]")


def _rows(source: Source) -> Iterator[Record | Problem]:
    """Yields the rows of a file; strings may contain unescaped control characters."""
    for item in source.lines():
        if isinstance(item, Problem):
            yield item
            continue
        number, line, ended = item
        try:
            yield source.seen(f"line {number}", _lenient(line))
        except JsonFault as fault:
            problem = fault.at(f"line {number}")
            cut = not ended and fault.code in ("bad_json", "bad_utf8")
            yield Problem("truncated", problem.where, problem.detail) if cut else problem


def _lenient(line: bytes) -> Json:
    try:
        return loads(line)
    except JsonFault:
        return loads(_CONTROL.sub(lambda found: b"\\u%04x" % found[0][0], line))


def _row_message(row: _Row, failed: frozenset[str]) -> Message:
    """Returns the message of a row. `failed`: ids of calls with tools that reported an error."""
    role = as_str(row.get("role"))
    content = row.get("content")
    if role == "assistant":
        parts = (*read_parts(content), *tool_calls(row.get("tool_calls")))
        return Message(role, parts, untrained=cut_code(row))
    sent = contents(content)
    if role == "tool":
        call_id = name_or_none(row.get("tool_call_id"))
        first = sent[0] if sent else None
        noted = isinstance(first, Text) and first.text.startswith("<system>ERROR")
        return Message(role, (ToolResult(sent, call_id, is_error=noted or call_id in failed),))
    return Message(role, tuple(map(_marked, sent)) if role == "user" else sent)


def _marked(part: Content) -> Part:
    if isinstance(part, Text) and _NOTICE.fullmatch(part.text):
        return Text(part.text, harness=True)
    return part


_CONTROL_ROWS = frozenset({"_system_prompt", "_checkpoint", "_usage"})
_WIRE = "wire.jsonl"
_CONTEXT = re.compile(r"context(?:_([0-9]{1,9}))?\.jsonl")


def _is_store(folder: Listing) -> bool:
    """Returns whether a folder is a session: a context with a wire or state file."""
    has_more = folder.is_file(_WIRE) or folder.is_file("state.json")
    return has_more and folder.is_file("context.jsonl")


def _recognise(source: Source) -> str | None:
    if source.peek.kind == "folder":
        own = [m for m in source.members if _CONTEXT.fullmatch(_file(m)) or _file(m) == _WIRE]
        return next((reason for member in own if (reason := _recognise(member))), None)
    for value in source.peek.objects:
        role = as_str(value.get("role"))
        if role in _CONTROL_ROWS and value.keys() & {"content", "id", "token_count"}:
            return f"{role} rows"
        is_head = "protocol_version" in value and "created_at" not in value  # of Kimi Code's
        if value.get("type") == "metadata" and is_head:
            return "the head of a stream for the screen"
    return None


def _read(source: Source) -> Iterator[Event]:
    """Yields a conversation for each context that the next one does not contain entirely."""
    session = source.name.rpartition("/")[2].partition(".")[0] or "session"
    if not source.members:
        context = yield from _read_context(source, frozenset())
        yield from _conversations(session, source.name, [context])
        return
    failed = yield from _failed_calls(source)
    chains: dict[str, list[tuple[float, Source]]] = {}
    for member in source.members:
        moved = _CONTEXT.fullmatch(_file(member))
        if moved:
            order = float(moved[1] or "inf")  # the current file comes after the moved files
            chains.setdefault(member.name.rpartition("/")[0], []).append((order, member))
        elif _file(member) != _WIRE:
            member.count_records()
            yield Ignored("other_file")
    for folder, chain in sorted(chains.items()):
        contexts = []
        for _, member in sorted(chain, key=lambda item: item[0]):
            contexts.append((yield from _read_context(member, failed, f"{member.name} ")))
        name = f"{session}/{folder}" if folder else session
        yield from _conversations(name, f"{source.name}/{folder}", contexts)


def _file(member: Source) -> str:
    return member.name.rpartition("/")[2]


def _failed_calls(source: Source) -> Generator[Event, None, frozenset[str]]:
    """Returns the ids of calls that have only failed results in the wire files."""
    reports: dict[str, set[bool]] = {}
    counts: Counter[str] = Counter()
    for member in source.members:
        if _file(member) != _WIRE:
            continue
        for record in _rows(member):
            if isinstance(record, Problem):
                yield replace(record, where=f"{member.name} {record.where}")
                continue
            counts["ui_event"] += 1
            message = as_dict(record.value, "message")
            payload = as_dict(message.get("payload"))
            call_id = name_or_none(payload.get("tool_call_id"))
            if message.get("type") == "ToolResult" and call_id:
                result = as_dict(payload.get("return_value"))
                reports.setdefault(call_id, set()).add(result.get("is_error") is True)
    yield from ignored(counts)
    return frozenset(call_id for call_id, states in reports.items() if states == {True})


@dataclass(slots=True)
class _Context:
    """The content of one context file.

    records  the number of rows of its conversation
    holes    the number of rows that cannot be read, the first of them before the message `lost`
    """

    where: str = ""
    system: str = ""
    messages: list[Message] = field(default_factory=list)
    records: int = 0
    holes: int = 0
    lost: int | None = None


def _read_context(
    source: Source, failed: frozenset[str], file: str = ""
) -> Generator[Event, None, _Context]:
    """Returns the context in a file; yields the events of other records.

    `file` is the prefix of the records' places.
    """
    context = _Context()
    counts: Counter[str] = Counter()
    places: list[str] = []
    for record in objects(_rows(source), "a row that is "):
        if isinstance(record, Problem):
            context.holes += 1
            context.lost = len(context.messages) if context.lost is None else context.lost
            yield replace(record, where=file + record.where)
            continue
        where, row = record
        role = row.get("role")
        if role is None and ("protocol_version" in row or {"timestamp", "message"} <= row.keys()):
            counts["ui_event"] += 1  # a stream for the screen without its context
        elif not isinstance(role, str) or (role.startswith("_") and role not in _CONTROL_ROWS):
            counts[unknown_code(role)] += 1
            if carries_content(row):
                context.messages.append(unknown_message(role))
        elif role in ("_checkpoint", "_usage"):
            is_first = role == "_checkpoint" and "checkpoint" not in counts
            if is_first and row.get("id") not in (0, None):
                context.lost = 0  # a context begins with checkpoint 0
            counts[role[1:]] += 1
        else:
            places.append(where)
            if role == "_system_prompt":
                context.system = context.system or as_str(row.get("content"))
            elif (message := _row_message(row, failed)).parts:
                context.messages.append(message)
    yield from ignored(counts)
    context.where = file + span(places[0], places[-1]) if places else file
    context.records = len(places)
    return context


def _conversations(session: str, scope: str, contexts: Sequence[_Context]) -> Iterator[Event]:
    chain = 0  # number of the chain of contexts that continue one another
    for number, context in enumerate(contexts, start=1):
        following = contexts[number] if number < len(contexts) else None
        kept = common_prefix(context.messages, following.messages) if following else 0
        left = [one for one in context.messages[kept:] if one.role == "assistant"]
        if following is not None and context.holes + following.holes:
            left = [one for one in left if one not in following.messages]
            left = left if len(left) > following.holes or not following.messages else []
        if not context.messages:
            if context.records:
                yield Ignored("no_messages", context.records)
        elif following is not None and kept and not left:
            yield Used(context.records)  # the next context contains all of its answers
        else:
            detail = f"rewound to its message {kept}"
            system = [Message("system", (Text(context.system),))] if context.system else []
            messages = [*system, *_marked_answers(context, kept)]
            yield Conversation(
                id=f"{session}#{number}" if following else session,
                record=context.where,
                messages=tuple(with_session_keys(_NAME, messages, f"{scope}#{chain}")),
                records=context.records,
                problems=(Problem("rewound", context.where, detail, 0),) if kept else (),
            )
        chain += not kept


def _marked_answers(context: _Context, kept: int) -> Iterator[Message]:
    """Yields the messages: the first `kept` answers are repeats, those after a hole lack it."""
    lacking = Context.lacking({"history", "tools", *([] if context.system else ["system"])})
    for at, message in enumerate(context.messages):
        if message.role != "assistant":
            yield message
            continue
        is_after = context.lost is not None and at >= context.lost
        untrained = REPEAT if at < kept else message.untrained
        yield replace(message, untrained=untrained, context=lacking if is_after else None)


READER = declared(_NAME, recognise=_recognise, read=_read, is_store=_is_store)
