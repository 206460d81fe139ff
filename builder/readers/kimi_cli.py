"""Kimi CLI sessions: the folder of a session (context.jsonl beside wire.jsonl), or one old file.

Source: kimi-copilot-cursor-hermes.md "Kimi CLI".

- `context.jsonl` is what the model sees, in OpenAI's shape, with control rows whose role begins
  with an underscore; `_system_prompt` holds the prompt. Tool definitions are not stored.
- A rewind or a compaction moves the file to `context_1.jsonl`, `context_2.jsonl`, … and begins it
  anew. A rewind copies what stays: what the old file holds beyond that was left, and the file is a
  conversation with the problem `rewound`. After a compaction nothing is copied: the old file is
  the segment before.
- `wire.jsonl` repeats everything for the screen; only it says whether a tool failed.
- Text in `<system>…</system>` in a user's message is the program's (checkpoints, notices).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from builder.conversation import (
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
    Used,
)
from builder.jsonio import JsonFault, loads
from builder.problem import Problem
from builder.readers._narrow import as_dict, as_list, as_str, name_or_none, unknown
from builder.readers._replays import with_keys
from builder.readers._session import ignored
from builder.source import Record, Source

NAME = "kimi-cli"
SUMMARY = "Kimi CLI sessions: folders with context.jsonl, or JSONL with _checkpoint and _usage rows"

_CONTROL_ROWS = frozenset({"_system_prompt", "_checkpoint", "_usage"})
_CONTEXT = re.compile(r"(?:.*/)?context(?:_(\d{1,9}))?\.jsonl")
_NOTICE = re.compile(r"\s*<(system|system-reminder)>.*</\1>\s*", re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f]")


def is_store(folder: Path) -> bool:
    """A session's folder: its context, and beside it the stream for the screen or its state."""
    context = (folder / "context.jsonl").is_file()
    return context and ((folder / "wire.jsonl").is_file() or (folder / "state.json").is_file())


def recognise(source: Source) -> str | None:
    """By the control rows of a context."""
    if source.peek.kind == "folder":
        contexts = [member for member in source.members if _CONTEXT.fullmatch(member.name)]
        return next((reason for member in contexts if (reason := recognise(member))), None)
    if source.peek.kind not in ("jsonl", "json"):
        return None
    for value in source.peek.objects:
        role = as_str(value.get("role"))
        if role in _CONTROL_ROWS and value.keys() & {"content", "id", "token_count"}:
            return f"{role} rows"
    return None


def read(source: Source) -> Iterator[Event]:
    """One conversation for each context that is not a beginning of the next one."""
    session = source.name.rpartition("/")[2].partition(".")[0] or "session"
    if not source.members:
        context = yield from _read_context(source, frozenset())
        yield from _tell(session, "", [context])
        return
    failed: frozenset[str] = frozenset()
    chains: dict[str, list[tuple[float, Source]]] = {}
    for member in source.members:
        folder, _, file = member.name.rpartition("/")
        context_name = _CONTEXT.fullmatch(member.name)
        if context_name:
            # The current file comes after all that were moved away.
            order = float(context_name[1] or "inf")
            chains.setdefault(folder, []).append((order, member))
        elif file == "wire.jsonl":
            failed |= yield from _read_wire(member)
        else:
            member.count_records()
            yield Ignored("other_file")
    for folder, chain in sorted(chains.items()):
        contexts = []
        for _, member in sorted(chain, key=lambda item: item[0]):
            contexts.append((yield from _read_context(member, failed)))
        yield from _tell(session, folder, contexts)


@dataclass(frozen=True, slots=True)
class _Context:
    """What one context file holds. `records`: its rows that belong to the conversation."""

    name: str
    system: str
    messages: tuple[Message, ...]
    problems: tuple[Problem, ...]
    records: int
    last: str


def _tell(session: str, folder: str, contexts: Sequence[_Context]) -> Iterator[Event]:
    """The conversations of one chain of contexts, oldest first."""
    for number, context in enumerate(contexts, start=1):
        following = contexts[number] if number < len(contexts) else None
        kept = _in_common(context.messages, following.messages) if following else 0
        problems = context.problems
        if following and kept:
            if not any(message.role == "assistant" for message in context.messages[kept:]):
                yield Ignored("rewound", context.records)
                continue
            detail = f"rewound to its message {kept}"
            problems = (Problem("rewound", context.last, detail, records=0), *problems)
        if not context.messages:
            if context.records:
                yield Ignored("no_messages", context.records)
            continue
        system = (Message("system", (Text(context.system),)),) if context.system else ()
        yield Conversation(
            id="/".join(filter(None, (session, folder))) + (f"#{number}" if following else ""),
            record=context.name,
            messages=tuple(with_keys(NAME, (*system, *context.messages))),
            records=context.records,
            problems=problems,
        )


def _in_common(first: Sequence[Message], second: Sequence[Message]) -> int:
    """How many messages both begin with."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def _read_context(source: Source, failed: frozenset[str]) -> Iterator[Event]: ...
