"""Reads Kimi CLI sessions: a session's folder (context.jsonl and wire.jsonl), or one old file.

Source: docs/formats/kimi-cli.md.

- `context.jsonl` contains the model's context in OpenAI's shape, and control rows with roles that
  begin with an underscore; `_system_prompt` contains the prompt. Tool definitions are not stored.
- A rewind or compaction moves the file to `context_1.jsonl`, `context_2.jsonl`, … and starts a new
  one. A rewind copies the remaining messages: the old file becomes a conversation with the problem
  `rewound`, in which the copied answers are repeats. A compaction copies nothing: the old file is
  the previous segment.
- `wire.jsonl` repeats everything for the screen; it is read only to find tools that failed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Event,
    Ignored,
    Message,
    Text,
    Used,
)
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.kimi_cli.rows import row_message, rows
from builder.readers.homes import Home
from builder.readers.toolkit.call_keys import with_session_keys
from builder.readers.toolkit.comparison import common_prefix
from builder.readers.toolkit.narrow import as_dict, as_str, name_or_none, unknown_code
from builder.readers.toolkit.places import ignored, span
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.unknown_records import carries_content, unknown_message
from builder.sources.listing import Listing
from builder.sources.source import Source

NAME = "kimi-cli"

_CONTROL_ROWS = frozenset({"_system_prompt", "_checkpoint", "_usage"})
_WIRE = "wire.jsonl"
_CONTEXT = re.compile(r"context(?:_([0-9]{1,9}))?\.jsonl")


def is_store(folder: Listing) -> bool:
    """Returns whether a folder is a session: a context with a wire or state file."""
    has_more = folder.is_file(_WIRE) or folder.is_file("state.json")
    return has_more and folder.is_file("context.jsonl")


def recognise(source: Source) -> str | None:
    """Claims the control rows of a context."""
    if source.peek.kind == "folder":
        own = [m for m in source.members if _CONTEXT.fullmatch(_file(m)) or _file(m) == _WIRE]
        return next((reason for member in own if (reason := recognise(member))), None)
    for value in source.peek.objects:
        role = as_str(value.get("role"))
        if role in _CONTROL_ROWS and value.keys() & {"content", "id", "token_count"}:
            return f"{role} rows"
        is_head = "protocol_version" in value and "created_at" not in value  # of Kimi Code's
        if value.get("type") == "metadata" and is_head:
            return "the head of a stream for the screen"
    return None


def read(source: Source) -> Iterator[Event]:
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
        for record in rows(member):
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


@dataclass(frozen=True, slots=True)
class _Context:
    """The content of one context file; `records` is the number of rows of its conversation."""

    where: str
    system: str
    messages: tuple[Message, ...]
    records: int


def _read_context(
    source: Source, failed: frozenset[str], file: str = ""
) -> Generator[Event, None, _Context]:
    """Returns the context in a file; yields the events of other records.

    `file` is the prefix of the records' places.
    """
    counts: Counter[str] = Counter()
    places: list[str] = []
    messages: list[Message] = []
    system = ""
    lost: int | None = None
    for record in objects(rows(source), "a row that is "):
        if isinstance(record, Problem):
            lost = len(messages) if lost is None else lost
            yield replace(record, where=file + record.where)
            continue
        where, row = record
        role = row.get("role")
        if role is None and ("protocol_version" in row or {"timestamp", "message"} <= row.keys()):
            counts["ui_event"] += 1  # a stream for the screen without its context
            continue
        if not isinstance(role, str) or (role.startswith("_") and role not in _CONTROL_ROWS):
            counts[unknown_code(role)] += 1
            if carries_content(row):
                messages.append(unknown_message(role))
            continue
        if role in ("_checkpoint", "_usage"):
            if (
                role == "_checkpoint"
                and "checkpoint" not in counts
                and row.get("id") not in (0, None)
            ):
                lost = 0  # a context begins with checkpoint 0
            counts[role[1:]] += 1
            continue
        places.append(where)
        if role == "_system_prompt":
            system = system or as_str(row.get("content"))
            continue
        message = row_message(row, failed)
        if message.parts:
            messages.append(message)
    yield from ignored(counts)
    where = file + span(places[0], places[-1]) if places else file
    return _Context(where, system, tuple(_marked(messages, lost, system)), len(places))


def _marked(messages: Iterable[Message], lost: int | None, system: str) -> Iterator[Message]:
    """Yields the messages; answers after a lost message lack `history`."""
    lacking = Context.lacking({"history", "tools", *([] if system else ["system"])})
    for at, message in enumerate(messages):
        is_after = lost is not None and at >= lost and message.role == "assistant"
        yield replace(message, context=lacking) if is_after else message


def _conversations(session: str, scope: str, contexts: Sequence[_Context]) -> Iterator[Event]:
    """Yields the conversations of consecutive contexts, the oldest first."""
    chain = 0  # number of the chain of contexts that continue one another
    for number, context in enumerate(contexts, start=1):
        following = contexts[number] if number < len(contexts) else None
        kept = common_prefix(context.messages, following.messages) if following else 0
        left = context.messages[kept:]
        if not context.messages:
            if context.records:
                yield Ignored("no_messages", context.records)
        elif kept and not any(message.role == "assistant" for message in left):
            yield Used(context.records)  # the next context contains all of its answers
        else:
            detail = f"rewound to its message {kept}"
            system = (Message("system", (Text(context.system),)),) if context.system else ()
            shared = (
                replace(message, untrained=REPEAT) if message.role == "assistant" else message
                for message in context.messages[:kept]
            )
            messages = (*system, *shared, *left)
            yield Conversation(
                id=f"{session}#{number}" if following else session,
                record=context.where,
                messages=tuple(with_session_keys(NAME, messages, f"{scope}#{chain}")),
                records=context.records,
                problems=(Problem("rewound", context.where, detail, 0),) if kept else (),
            )
        chain += not kept


READER = Reader(
    name=NAME,
    summary=(
        "Kimi CLI sessions: folders with context.jsonl, or JSONL with _checkpoint and _usage rows"
    ),
    evidence=("source", "files"),
    recognise=recognise,
    is_agent=True,
    homes=(Home("Kimi CLI", "${KIMI_SHARE_DIR:-~/.kimi}/sessions"),),
    read=read,
    is_store=is_store,
)
