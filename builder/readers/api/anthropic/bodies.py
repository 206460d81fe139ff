"""Parses bodies of Anthropic's Messages API (docs/formats/anthropic-messages.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from builder.conversation import Json, Message
from builder.problem import Problem
from builder.readers.api.anthropic.blocks import read_message, read_parts, system_messages
from builder.readers.api.anthropic.stream import whole_message
from builder.readers.api.capture.api import Api, ApiAnswer, History
from builder.readers.api.capture.dialect import ANTHROPIC
from builder.readers.api.capture.envelope import Exchange
from builder.readers.toolkit.deferred import loaded_names
from builder.readers.toolkit.marks import finish_fault
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    name_or_none,
    tuple_or_none,
)


def history(body: dict[str, Json]) -> History:
    """Returns the history of a request.

    A last message of the assistant is the beginning of the answer: a paused turn, or text of the
    client (prefill). It is not an answer itself, unless it calls a tool whose result is lost.
    """
    read = read_body(body)
    if _begins_answer(as_list(body.get("messages"))):
        begun = replace(read.messages[-1], untrained="prefilled")
        return replace(read, messages=(*read.messages[:-1], begun))
    return read


def _begins_answer(sent: Sequence[Json]) -> bool:
    last = as_dict(sent[-1]) if sent else {}
    calls = (block for block in as_dicts(last.get("content")) if block.get("type") == "tool_use")
    return last.get("role") == "assistant" and not any(calls)


def read_body(body: dict[str, Json]) -> History:
    """Returns the history in a request or a row."""
    messages = list(system_messages(body.get("system")))
    for item in as_dicts(body.get("messages")):
        messages += read_message(item)
    tools = tuple_or_none(body.get("tools"))
    read = History(tuple(messages), tools, name_or_none(body.get("model")))
    loaded = (loaded_names(item.get("content")) for item in as_dicts(body.get("messages")))
    return read.without_deferred(frozenset(chain.from_iterable(loaded)))


def answers(exchange: Exchange) -> Sequence[ApiAnswer]:
    """Returns the answer, or () if the response is an error or contains nothing."""
    body = exchange.answer_body(whole_message)
    parts = read_parts(body.get("content"))
    if not parts:
        return ()
    stop = body.get("stop_reason")
    problems: tuple[Problem, ...] = ()
    edits = as_list(body, "context_management", "applied_edits")
    if edits:
        kinds = ", ".join(as_str(edit, "type")[:40] for edit in edits)
        detail = f"the server removed parts of the history: {kinds}"
        problems = (Problem("context_edited", "response", detail, records=0),)
    return (
        ApiAnswer(
            Message("assistant", tuple(parts)),
            fault="truncated" if stop is None else finish_fault(stop),
            model=name_or_none(body.get("model")),
            prefill=_begins_answer(as_list(exchange.request, "messages")),
            problems=problems,
        ),
    )


def continues(before: Json, after: Json) -> bool:
    """Returns whether an event belongs to the same message as the previous one."""
    kinds = (as_dict(before).get("type"), as_dict(after).get("type"))
    return "message" not in kinds and kinds[1] != "message_start"


MESSAGES = Api(ANTHROPIC, history, answers, continues)
