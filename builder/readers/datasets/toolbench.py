"""Reads ToolBench answers: the chain published for training, and the tree of all attempts.

Source: docs/formats/toolbench.md; OpenBMB/ToolBench toolbench/inference/ (Apache-2.0).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.jsonio import dumps, json_type
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import assistant_parts, tool_result
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.narrow import as_dict, as_list, as_str
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import logged_outcome, read_rows
from builder.sources.source import Source

_HALLUCINATED = "invalid_hallucination_function_name"
"""The name that messages give to a tool that does not exist; the tree has the called name."""

_Node: TypeAlias = tuple[str, dict[str, Json]]
"""A node of the search: its path from the root, and its fields."""


def _recognise(source: Source) -> str | None:
    for value in source.peek.objects:
        generated = isinstance(value.get("answer_generation"), dict)
        if generated and ("tree" in value or "trys" in value):
            return "answers with answer_generation and the search that led to it"
        if isinstance(value.get("query"), str) and "query_id" in value:
            return "queries with query_id"
    return None


def read(source: Source) -> Iterator[Event]:
    """Yields, for each answer, the chain for training and a conversation for every other branch."""
    return read_rows(source, _answer, "toolbench")


def _answer(where: str, answer: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
    if "answer_generation" not in answer and "query" in answer:
        yield Ignored("query")
        return
    generated = as_dict(answer.get("answer_generation"))
    chain = _chain(generated)
    content = dumps(answer).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
    branches = [steps for nodes in _branches(answer) if (steps := _steps(nodes, digest))]
    changes: Counter[str] = Counter()
    listed = generated.get("function")
    outcome = logged_outcome(
        benchmark="toolbench", exit_status=generated.get("finish_type"), resolved=answer.get("win")
    )
    conversation = partial(
        Conversation, tools=tuple(listed) if isinstance(listed, list) else None, outcome=outcome
    )
    same = next((steps for steps in branches if chain and _has_calls_of(chain, steps)), None)
    if same is not None:
        branches = [steps for steps in branches if steps is not same]
        chain = _as_tried(chain, same, changes)
    parts = [
        conversation(
            id=unique_name(f"{where}, step asked again" if number else where, names),
            record=where,
            messages=tuple(seen),
            changes={} if number else changes,
            complete=True,  # the chain ends with the call that finishes
        )
        for number, seen in enumerate(_as_seen(chain) if chain else ())
    ]
    opening = _opening(chain, generated)
    # Later attempts saw the earlier ones, in messages that the log does not contain.
    missing = () if any(message.role == "system" for message in opening) else ("system",)
    context = Context("partial", ("history", *missing))
    for number, steps in enumerate(branches):
        record = f"{where}, branch {number}"
        detail = "a branch of the search that is not the answer"
        branch = conversation(
            id=unique_name(f"{where}~{number}", names),
            record=record,
            messages=(*opening, *steps),
            problems=(Problem("rewound", record, detail, records=0),),
            context=context,
        )
        parts.append(branch)
    if not parts:
        yield Problem("no_messages", where, "neither train_messages nor a search")
        return
    yield replace(parts[0], records=1)
    yield from parts[1:]


def _chain(generated: dict[str, Json]) -> list[Message]:
    """Returns the messages of the last step, including its context."""
    contexts = as_list(generated.get("train_messages"))
    messages: list[Message] = []
    for item in as_list(contexts[-1]) if contexts else []:
        message = as_dict(item)
        role = as_str(message.get("role"))
        if role == "assistant":
            messages.append(Message("assistant", assistant_parts(message)))
        elif role in ("function", "tool"):
            result = tool_result(message)
            named = None if result.name == _HALLUCINATED else result.name
            messages.append(Message("tool", (replace(result, name=named),)))
        else:
            part: Part = unknown_part(f"content {json_type(message.get('content'))}")
            if isinstance(text := message.get("content"), str):
                part = Text(text, harness=message.get("valid") is False)
            messages.append(Message(role, (part,)))
    return messages


def _as_seen(chain: list[Message]) -> Iterator[list[Message]]:
    """Yields the chain, then its prefix up to each turn that a search message requested.

    Only the turn that answers a search message sees it. That turn is a repeat in the chain, and a
    target in the prefix that contains the search message.
    """
    asked = [at for at, message in enumerate(chain) if _asks_again(message)]
    answers = {at + 1 for at in asked}
    plain = [
        replace(message, untrained=REPEAT) if at in answers else message
        for at, message in enumerate(chain)
        if at not in asked
    ]
    yield plain
    for at in asked:
        before = [
            replace(message, untrained=REPEAT) if message.role == "assistant" else message
            for message in chain[:at]
            if not _asks_again(message)
        ]
        answer = chain[at + 1 : at + 2]
        if answer and answer[0].role == "assistant":
            yield [*before, chain[at], *answer]


def _asks_again(message: Message) -> bool:
    return any(isinstance(part, Text) and part.harness for part in message.parts)


def _opening(chain: list[Message], generated: dict[str, Json]) -> list[Message]:
    """Returns the first messages of every branch: the system and user texts, or the query."""
    opening: list[Message] = []
    for message in chain:
        if message.role not in ("system", "user"):
            break
        opening.append(message)
    query = as_str(generated.get("query"))
    return opening or ([Message("user", (Text(query),))] if query else [])


def _branches(answer: dict[str, Json]) -> Iterator[list[_Node]]:
    for number, item in enumerate(as_list(answer.get("trys"))):
        chain = as_list(item, "chain")
        nodes = [(f"{number}.{at}", as_dict(node)) for at, node in enumerate(chain)]
        if nodes:
            yield nodes
    stack = [(as_dict(answer, "tree", "tree"), "", list[_Node]())]
    while stack:
        item, path, above = stack.pop()
        nodes = [*above, (path, item)] if path else []  # the root is the task, not a step
        children = as_list(item.get("children"))
        if not children and nodes:
            yield nodes
        stack += [
            (as_dict(children[at]), f"{path}.{at}", nodes) for at in reversed(range(len(children)))
        ]


def _steps(nodes: list[_Node], digest: str) -> list[Message]:
    """Returns the turns of a branch; the key of a call is its answer's digest and its path."""
    messages: list[Message] = []
    parts: list[Part] = []
    name: str | None = None
    for path, node in nodes:
        kind, text = as_str(node.get("node_type")), as_str(node.get("description"))
        if kind == "Action":
            name = text
        elif kind == "Action Input" and name is not None:
            call = ToolCall(name, text, key=f"{digest}:{path}")
            messages.append(Message("assistant", (*parts, call)))
            if isinstance(output := node.get("observation"), str):
                messages.append(Message("tool", (ToolResult((Text(output),), name=name),)))
            parts, name = [], None
        elif text:
            parts.append(Text(text))
    if name is not None:
        parts.append(Unparsed(name, "bad_call"))
    return [*messages, Message("assistant", tuple(parts))] if parts else messages


def _calls(messages: list[Message]) -> list[ToolCall]:
    return [call for message in messages for call in calls(message)]


def _has_calls_of(chain: list[Message], steps: list[Message]) -> bool:
    called, tried = _calls(chain), _calls(steps)
    return len(called) == len(tried) and all(
        one.arguments == other.arguments and one.name in (other.name, _HALLUCINATED)
        for one, other in zip(called, tried, strict=True)
    )


def _as_tried(chain: list[Message], steps: list[Message], changes: Counter[str]) -> list[Message]:
    tried = iter(_calls(steps))
    made: list[Message] = []
    for message in chain:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                call = next(tried)
                if call.name != part.name:
                    changes["call_renamed"] += 1
                parts.append(replace(part, key=call.key, name=call.name))
            else:
                parts.append(part)
        made.append(replace(message, parts=tuple(parts)))
    return made


READER = declared("toolbench", recognise=_recognise, read=read)
