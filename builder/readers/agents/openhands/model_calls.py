"""Reads logs of single model calls and dumps of messages that OpenHands V0 and V1 write.

Source: docs/formats/openhands-v0.md and docs/formats/openhands-v1.md, "What the model saw".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Event,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
)
from builder.problem import Problem
from builder.readers.agents.openhands.views import FAMILY, FINISH
from builder.readers.toolkit.call_keys import with_session_keys
from builder.readers.toolkit.chat_messages import assistant_parts, chat_message, content
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.sources.once import once
from builder.sources.source import Source


def is_llm_log(item: dict[str, Json]) -> bool:
    """Returns whether an object is the log of one model call of V0 or V1."""
    return (
        isinstance(item.get("messages"), list)
        and isinstance(item.get("response"), dict)
        and {"kwargs", "cost"} <= item.keys()
    )


def llm_log(where: str, log: dict[str, Json]) -> Event:
    """Returns the conversation of one logged model call: its request and its answer.

    For models without function calling, the log also contains the parsed calls: `fncall_messages`
    and `fncall_response` in V0, `raw_messages` in V1. These are not the messages that were sent, so
    the context is `logged` instead of `proven`. Each earlier answer has a log of its own.
    """
    names = ("fncall_messages", "raw_messages")  # the parsed calls
    name = next((name for name in names if isinstance(log.get(name), list)), "messages")
    messages = [
        replace(message, untrained=REPEAT) if message.role == "assistant" else message
        for message in map(chat_message, as_dicts(log[name]))
    ]
    response = as_dict(log.get("fncall_response")) or as_dict(log.get("response"))
    choices = as_list(response.get("choices"))
    problems: tuple[Problem, ...] = ()
    if choices:
        answer = as_dict(choices[0], "message")
        messages.append(Message("assistant", assistant_parts(answer)))
    else:
        problems = (Problem("no_response", where, "the model call has no answer", 0),)
    if not messages:
        return Problem("no_messages", where, "the model call contains no messages")
    tools = log.get("tools") or as_dict(log.get("kwargs")).get("tools")
    is_sent = name == "messages" and isinstance(tools, list)
    context = Context("proven" if is_sent else "logged")
    if not isinstance(tools, list):
        context = Context("partial", ("tools",))
    return Conversation(
        id=as_str(response.get("id"))[:200] or where,
        record=where,
        messages=tuple(with_session_keys(FAMILY, with_place_keys(messages), "log")),
        tools=tuple(tools) if isinstance(tools, list) else None,
        model=name_or_none(response.get("model")),
        records=1,
        problems=tuple(problems),
        complete=bool(choices),
        context=context,
    )


def with_place_keys(messages: list[Message]) -> Iterator[Message]:
    """Yields the messages with each call keyed by all messages before it.

    The next request repeats the call after the same messages, but without thoughts.
    """
    before = hashlib.blake2b(digest_size=16)
    for message in messages:
        visible = [part for part in message.parts if not isinstance(part, Reasoning)]
        before.update(repr((message.role, visible)).encode("utf-8", "surrogatepass"))
        calls = count()
        yield replace(
            message,
            parts=tuple(
                replace(part, key=f"{before.hexdigest()}/{next(calls)}")
                if isinstance(part, ToolCall)
                else part
                for part in message.parts
            ),
        )


def calls_finish(parts: Iterable[Part]) -> bool:
    """Returns whether a turn calls the tool that ends the run."""
    return any(isinstance(part, ToolCall) and part.name == FINISH for part in parts)


@once
def is_dump(source: Source) -> bool:
    """Returns whether a source is a list of chat messages that begins with OpenHands' prompt."""
    first = source.peek.objects[0] if source.peek.objects else {}
    texts = content(first.get("content")) if first.get("role") == "system" else ()
    prompt = "".join(part.text for part in texts if isinstance(part, Text))
    return source.peek.kind == "json" and prompt.startswith("You are OpenHands agent")
