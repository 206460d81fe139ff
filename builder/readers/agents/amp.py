"""Reads Amp threads: the files of older versions, and what `amp threads export` writes.

Source: docs/formats/amp.md. Messages have Anthropic's blocks; results are the program's objects,
which it renders for the model, so answers after them lack `history`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

from builder.conversation import (
    Content,
    Context,
    Data,
    Event,
    Json,
    Message,
    Part,
    Text,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.jsonio import json_type
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api.anthropic import read_part
from builder.readers.toolkit import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    finish_fault,
    name_or_none,
    read_rows,
)
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import first_of, name_of
from builder.readers.toolkit.unknown_keys import message_keys, noted
from builder.sources.source import Source

NAME = "amp"

_ENDED = frozenset({"done", "error", "cancelled", "rejected-by-user"})
_DENIED = frozenset({"rejected-by-user", "rejected"})


def _recognise(source: Source) -> str | None:
    """Claims threads: an id that begins with T-, and messages with messageId, or env and v."""
    return "threads (T-…)" if any(map(_is_thread, source.peek.objects)) else None


def _is_thread(value: dict[str, Json]) -> bool:
    first = as_dict(next(iter(as_list(value.get("messages"))), None))
    if not isinstance(first.get("content"), list):
        return False
    named = as_str(value.get("id")).startswith("T-")
    return (named and {"v", "env"} <= value.keys()) or (
        "messageId" in first and (named or "nextMessageId" in value)
    )


def _thread(
    source: Source, where: str, value: dict[str, Json], names: Counter[str]
) -> Iterator[Event]:
    """Yields the conversations of a thread; a summary replaces the messages before it."""
    name = as_str(value.get("id")) or where
    history = SessionHistory(NAME, name, f"{source.name}/{name}")
    missing = {"system", "tools"}
    for one in as_list(value.get("messages")):
        item = as_dict(one)
        blocks = as_dicts(item.get("content"))
        if item.get("role") == "info" and (summary := "\n\n".join(_summaries(blocks))):
            missing.add("history")  # how the summary is worded for the model is not logged
            history.replace()
            history.put(where, "user", [Text(summary, harness=True)])
        elif item.get("role") != "info" or blocks:
            for message in _messages(one, missing):
                head = RequestHead(model=message.model) if message.role == "assistant" else None
                history.append(message, where, head)
    if history.entries:
        yield from history.conversations(1, names=names)
    else:
        yield Problem("no_messages", where, "the thread has no messages")


def _summaries(blocks: Iterable[dict[str, Json]]) -> Iterator[str]:
    for block in blocks:
        text = block.get("summary")
        if block.get("type") == "summary":
            yield as_str(as_dict(text), "summary") or as_str(text)


def _messages(value: Json, missing: set[str]) -> Iterator[Message]:
    """Yields the messages of one; what later answers lack, being only rendered, joins `missing`."""
    item = as_dict(value)
    role = as_str(item.get("role")) or json_type(value)
    if role == "assistant":
        messages = [_answer(item, Context.lacking(missing))]
    else:
        parts, results = _split(item.get("content"))
        messages = [Message("tool", results)] if results else []
        messages += [Message(role[:40], parts)] if parts else []
        if not all(map(_is_exact, results)):
            missing.add("history")
        if any(as_dict(item.get("userState")).values()) or item.get("fileMentions"):
            missing.add("reminders")
    for message in noted(messages, item, message_keys(NAME)):
        if message.parts:
            yield message


def _answer(item: dict[str, Json], context: Context) -> Message:
    """Returns an answer; one that was stopped, or a call that is not complete, ends the sample."""
    parts: list[Part] = []
    state = as_dict(item.get("state"))
    fault = finish_fault(state.get("stopReason")) or cut_code(item)
    for value in as_list(item.get("content")):
        block = as_dict(value)
        part = read_part(block)
        if part is None or (isinstance(part, Text) and not part.text.strip()):
            continue
        parts.append(unknown_part("hidden") if block.get("hidden") is True else part)
        if block.get("complete") is False:
            fault = fault or "aborted"
    if state and state.get("type") != "complete":
        fault = fault or "aborted"
    if fault and parts:
        parts.append(Unparsed("", fault))
    model = name_or_none(as_dict(item.get("usage")).get("model"))
    turn = str(number) if isinstance(number := item.get("messageId"), int | str) else None
    return Message("assistant", tuple(parts), turn=turn, context=context, model=model)


def _split(blocks: Json) -> tuple[tuple[Part, ...], tuple[ToolResult, ...]]:
    parts: list[Part] = []
    results: list[ToolResult] = []
    for value in as_list(blocks):
        block = as_dict(value)
        if block.get("type") != "tool_result":
            part = read_part(block)
            if isinstance(part, Text) and block.get("hidden") is True:
                part = Text(part.text, harness=True)
            parts += [part] if part is not None else []
        elif (result := _result(block)) is not None:
            results.append(result)
    if isinstance(blocks, str) and blocks:
        parts.append(Text(blocks))
    return tuple(parts), tuple(results)


def _result(block: dict[str, Json]) -> ToolResult | None:
    """Returns a result; None if the tool did not end, so that its call stays unanswered."""
    run = as_dict(block.get("run")) or block
    status, error = as_str(run.get("status")), run.get("error")
    output = first_of(run, "result", "output", "content")
    content: list[Content] = [] if output is None else list(_shown(output))
    if error:
        content += _shown(as_dict(error).get("message") or error)
    if not content and status not in _ENDED:
        return None
    return ToolResult(
        tuple(content),
        name_of(block, "toolUseID", "tool_use_id"),
        is_error=status == "error" or bool(error),
        is_denied=status in _DENIED,
        is_interrupted=status in ("cancelled", "in-progress"),
    )


def _is_exact(result: ToolResult) -> bool:
    return bool(result.content) and all(isinstance(one, Text) for one in result.content)


def _shown(value: Json) -> tuple[Content, ...]:
    return (Text(value),) if isinstance(value, str) else (Data(value, compact=True),)


READER = declared(
    NAME,
    recognise=_recognise,
    read=lambda source: read_rows(source, partial(_thread, source), NAME),
)
