"""Reads rows of published datasets that are chat messages, each dataset in its own dialect.

The last turn of a row is a target even if it calls a tool. Source: the pages in docs/formats.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Data,
    Event,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)  # fmt: skip
from builder.jsonio import JsonFault, dumps
from builder.problem import Problem
from builder.readers import Reader, declared
from builder.readers.api.codec import row_conversation
from builder.readers.api.dialects import ROLES
from builder.readers.api.openai_chat import dispreferred, history, tools_in_text
from builder.readers.toolkit import literals
from builder.readers.toolkit import tags as text_tags
from builder.readers.toolkit.chat_messages import assistant_parts, content, tool_result
from builder.readers.toolkit.comparison import calls, words
from builder.readers.toolkit.function_text import (
    function_messages,
    has_function_calls,
    with_function_calls,
)
from builder.readers.toolkit.made_up import end_at_made_up
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    json_in_text,
    name_of,
    name_or_none,
)  # fmt: skip
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import logged_outcome, read_each, read_rows, row_name, splits
from builder.readers.toolkit.thoughts import thoughts_of_keys
from builder.readers.toolkit.unknown_keys import message_keys, noted, unknown_message
from builder.sources.source import Source

Tools = tuple[Json, ...] | None


def published(
    name: str,
    where: str,
    messages: Iterable[Message],
    tools: Tools,
    changes: Counter[str],
    problems: Sequence[Problem] = (),
    *,
    complete: bool = True,
) -> Conversation:
    """Returns the conversation of a row, whose last turn is a target even if it calls a tool."""
    return Conversation(
        id=name,
        record=where,
        messages=end_at_made_up(with_function_calls(messages, tools, changes)),
        tools=tools,
        records=1,
        problems=tuple(problems),
        changes=changes,
        complete=complete,
    )


def read_chat(
    name: str, where: str, messages: list[Json], tools: Json = None
) -> Conversation | Problem:
    """Returns the conversation of chat messages; `tools` is a list of definitions or its text."""
    return row_conversation(name, where, history({"messages": messages, "tools": tools}))


def claims(
    is_row: Callable[[dict[str, Json]], bool], reason: str
) -> Callable[[Source], str | None]:
    """Returns the `recognise` hook of a dataset of which one row at the beginning is enough."""
    return lambda source: reason if any(map(is_row, source.peek.objects)) else None


def column(cell: Json, changes: Counter[str]) -> Json:
    """Returns the value of a table cell, parsed if it is text; None for blank text.

    Raises JsonFault; see `literals.values`.
    """
    if not isinstance(cell, str):
        return cell
    return literals.value(cell, changes) if cell.strip() else None


def bad_tools(where: str, fault: JsonFault, place: str = "") -> Problem:
    """Returns the problem of a row whose definitions cannot be read: the model had some."""
    return Problem("bad_tools", where, place + fault.detail, records=0)


# -- ToolMind: a row repeats the turns before its target, without their reasoning -----------------


def _is_toolmind(row: dict[str, Json]) -> bool:
    turns = as_dicts(row.get("conversations"))
    if not turns or not isinstance(row.get("tools"), list | str) or "episode" in row:
        return False
    return all(
        as_str(turn.get("role")) in ROLES
        and ("content" in turn or "tool_calls" in turn)
        and "value" not in turn
        for turn in turns
    )


def _toolmind(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    """Returns a row's conversation, with the turns before the last as repeats of other rows.

    Only if the last one alone has reasoning. In rows of other origin in this shape, either all
    turns have reasoning or none has.
    """
    name = row_name(where, row.get("id"), names)
    conversation = read_chat(name, where, as_list(row.get("conversations")), row.get("tools"))
    if isinstance(conversation, Problem):
        return conversation
    messages = list(conversation.messages)
    turns = [at for at, message in enumerate(messages) if message.role == "assistant"]
    thought = [any(isinstance(p, Reasoning) for p in messages[at].parts) for at in turns]
    if thought and thought[-1] and not any(thought[:-1]):
        for at in turns[:-1]:
            messages[at] = replace(messages[at], untrained=REPEAT)
    return replace(conversation, messages=tuple(messages))


# -- Nemotron: definitions in a column or in the JSON text of `metadata` ---------------------------

_PURPOSES = frozenset({"used_in", "category", "reasoning"})


def _is_nemotron(row: dict[str, Json]) -> bool:
    return {"uuid", "license", "messages"} <= row.keys() and not _PURPOSES.isdisjoint(row)


def _nemotron(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    changes: Counter[str] = Counter()
    problems: tuple[Problem, ...] = ()
    tools: Json = None
    try:
        tools = column(row.get("tools"), changes)
        logged = {} if tools else as_dict(column(row.get("metadata"), changes))
        if "tools" in logged:
            tools = column(logged["tools"], changes)
    except JsonFault as fault:
        problems = (bad_tools(where, fault),)
    name = row_name(where, row.get("uuid"), names)
    conversation = read_chat(name, where, as_list(row.get("messages")), tools)
    if isinstance(conversation, Problem):
        return conversation
    metadata = as_dict(json_in_text(row.get("metadata")))
    model = name_of(row, "generator", "model")
    return replace(
        conversation,
        model=model or name_of(metadata, "generation_model", "generator"),
        problems=(*problems, *conversation.problems),
        changes=changes + Counter(conversation.changes),
    )


# -- When2Call: calls in <TOOLCALL> tags, pairs of responses, and the benchmark's questions --------

_RESPONSES = ("chosen_response", "rejected_response")
_KINDS = frozenset({"direct", "tool_call", "request_for_info", "cannot_answer"})
"""The kinds of the test's answers, of which one is right."""
_TAG = "<TOOLCALL>"


def _is_when2call(row: dict[str, Json]) -> bool:
    """Returns whether a row is a question with answers, a pair, or in the dataset's dialect.

    Rows for plain fine-tuning have only messages and tools. Their definitions are JSON texts in a
    list, or have `required` next to parameters of type "dict"; calls are in <TOOLCALL> tags.
    """
    if {"question", "answers", "correct_answer"} <= row.keys():
        return not _KINDS.isdisjoint(as_dict(row["answers"]))
    if "messages" not in row or "tools" not in row:
        return False
    if all(isinstance(row.get(name), dict) for name in _RESPONSES):
        return True
    messages = [as_dict(message) for message in as_list(row["messages"])]
    if row.keys() != {"messages", "tools"} or any("tool_calls" in one for one in messages):
        return False
    return any(
        isinstance(tool, str)
        or (as_dict(tool, "parameters").get("type") == "dict" and "required" in as_dict(tool))
        for tool in as_list(row["tools"])
    ) or any(
        one.get("role") == "assistant" and _TAG in as_str(one.get("content")) for one in messages
    )


def _when2call(where: str, row: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
    """Yields a conversation for each row, and one for the rejected response of a pair."""
    name = row_name(where, row.get("uuid"), names)
    if "correct_answer" in row:
        right = as_str(row.get("correct_answer"))
        answer = as_dict(row.get("answers")).get(right)
        asked: list[Json] = [{"role": "user", "content": row.get("question")}]
        if isinstance(answer, str):
            text = f"{_TAG}{answer}" if right == "tool_call" else answer
            asked.append({"role": "assistant", "content": text})
        whole = _tagged(name, where, asked, row.get("tools"))
        if isinstance(whole, Conversation):
            whole = replace(whole, evaluation=True, outcome={"benchmark": "When2Call"})
        yield whole
        return
    asked = as_list(row.get("messages"))
    chosen, rejected = (row.get(key) for key in _RESPONSES)
    answered = [*asked, *([chosen] if isinstance(chosen, dict) else [])]
    yield _tagged(name, where, answered, row.get("tools"))
    if isinstance(rejected, dict):
        name = unique_name(f"{name} not preferred", names)
        other = _tagged(name, where, [*asked, rejected], row.get("tools"))
        yield dispreferred(other, records=0)


def _tagged(name: str, where: str, messages: list[Json], tools: Json) -> Conversation | Problem:
    conversation = read_chat(name, where, messages, tools)
    if isinstance(conversation, Problem):
        return conversation
    changes = Counter(conversation.changes)
    read: list[Message] = []
    for message in conversation.messages:
        parts: list[Part] = []
        for part in message.parts:
            if message.role == "assistant" and isinstance(part, Text):
                parts += text_tags.functioncall_parts(part.text, changes, _TAG)
            else:
                parts.append(part)
        read.append(replace(message, parts=tuple(parts)))
    return replace(conversation, messages=tuple(read), changes=changes)


# -- Toucan: messages as JSON text, a call in a message of its own, tools in the system text -------

_DECLARED = re.compile(
    r"<\|im_system\|>\s*tool_declare\s*<\|im_middle\|>(?P<tools>.*?)(?:<\|im_end\|>\s*|\Z)",
    re.DOTALL,
)
"""The declaration of tools of Kimi-K2's rows."""


def _is_toucan(row: dict[str, Json]) -> bool:
    return {"uuid", "messages"} <= row.keys() and ("subset_name" in row or "target_tools" in row)


def _toucan(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    changes: Counter[str] = Counter()
    problems: list[Problem] = []
    try:
        items = column(row.get("messages"), changes)
    except JsonFault as fault:
        return Problem("bad_json", where, f"messages: {fault.detail}")
    if not isinstance(items, list) or not items:
        return Problem("no_messages", where, "the row has no messages")
    messages: list[Message] = []
    for item in items:
        messages += noted(_toucan_message(as_dict(item), changes), item)
    tools: Tools = None
    try:
        messages, declared = _without_tools(messages, changes)
        columns = (row.get(key) for key in ("available_tools", "tools"))
        tools = _first_list((declared, *columns), changes)
    except JsonFault as fault:
        problems.append(bad_tools(where, fault))
    if not messages:
        return Problem("no_messages", where, "nothing but a declaration of tools")
    name, complete = row_name(where, row.get("uuid"), names), messages[-1].role == "assistant"
    return published(name, where, messages, tools, changes, problems, complete=complete)


def _first_list(listed: Iterable[Json], changes: Counter[str]) -> Tools:
    """Returns the first list of definitions that can be read, or None if there is none.

    Raises JsonFault if none can be read and one is broken.
    """
    faults: list[JsonFault] = []
    for candidate in listed:
        try:
            if isinstance(value := column(candidate, changes), list):
                return tuple(value)
        except JsonFault as fault:
            faults.append(fault)
    if faults:
        raise faults[0]
    return None


def _without_tools(messages: list[Message], changes: Counter[str]) -> tuple[list[Message], Json]:
    """Returns the messages without the definitions in the system text, and these or None.

    Raises JsonFault if definitions in Hermes' tags cannot be read.
    """
    first = messages[0] if messages else Message("user", ())
    match = _DECLARED.search(text := words(first)) if first.role == "system" else None
    if match is None:
        messages, listed = tools_in_text(messages, changes)
        return messages, None if listed is None else [*listed]
    changes["tools_preamble"] += 1
    own = (text[: match.start()] + text[match.end() :]).strip()
    return [*([replace(first, parts=(Text(own),))] if own else []), *messages[1:]], match["tools"]


def _toucan_message(message: dict[str, Json], changes: Counter[str]) -> list[Message]:
    role = as_str(message.get("role"))
    blocks = text_tags.responses(as_str(message.get("content"))) if role == "user" else None
    if role == "tool_call":
        return [Message("assistant", tuple(_called(message.get("content"), changes)))]
    if role == "assistant":
        parts: list[Part] = []
        for part in assistant_parts({**message, "function_call": None}):
            if isinstance(part, Text) and ("</think>" in part.text or "<tool_call>" in part.text):
                parts += text_tags.assistant_parts(part.text, changes)
            else:
                parts.append(part)
        if call := message.get("function_call"):
            parts += _called(call, changes)
        return [Message("assistant", tuple(parts))]
    if role in ("function", "tool", "tool_response"):
        return [Message("tool", (tool_result(message),))]
    if blocks:
        return [Message("tool", tuple(ToolResult((Text(block),)) for block in blocks))]
    return [Message(role[:40] or "none", content(message.get("content")))]


def _called(value: Json, changes: Counter[str]) -> Sequence[ToolCall | Unparsed]:
    """Returns the calls of a value, or of the text of JSON or of a Python dictionary."""
    if isinstance(value, str):
        return text_tags.read_calls(value.strip(), changes) or [Unparsed(value, "bad_call")]
    return text_tags.calls_of(value) or [Unparsed(dumps(value), "bad_call")]


# -- SWE-smith and SWE-Gym: <function=…> calls in the text, or the history of SWE-agent's runs -----

_OF_AGENT = frozenset({"agent", "message_type"})
_AGENT_KEYS = _OF_AGENT | {
    "thought", "action", "thinking_blocks", "tool_call_ids", "tags", "cache_control", "is_demo",
}  # fmt: skip
"""Keys of SWE-agent's history beside the message; `thought` and `action` repeat parts of it."""
_INVENTED = (
    "Since we have successfully fixed the issue and verified it works, "
    "let's submit the changes:\n\n<function=submit>\n</function>"
)
"""The turn that SWE-smith's converter, not the model, writes where a run hit its cost limit."""


def _recognise_swe_smith(source: Source) -> str | None:
    for row in source.peek.objects:
        if "response" in row or not ("instance_id" in row or "resolved" in row):
            continue
        items = as_list(json_in_text(row.get("messages")))
        if items and all(as_dict(item).keys() >= _OF_AGENT for item in items):
            return "rows with the history of SWE-agent's runs as messages"
        if has_function_calls(items):
            return "rows of messages with <function=…> calls and instance_id or resolved"
    return None


def _swe_smith(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    logged = list(map(as_dict, as_list(json_in_text(row.get("messages")))))
    items: list[Json] = [_without_agent_keys(item) for item in logged]
    if not items:
        return Problem("no_messages", where, "no list of messages")
    changes: Counter[str] = Counter()
    made_up = (at for at, item in enumerate(items) if as_dict(item).get("content") == _INVENTED)
    end = next(made_up, len(items))
    changes["invented_submit"] += end < len(items)
    messages: Sequence[Message]
    if has_function_calls(items[:end]):
        messages, tools = function_messages(items[:end], changes)
    else:
        read = history({"messages": items[:end]})
        changes.update(read.changes)
        messages, tools = read.messages, read.tools
    if tools is None and logged[0].keys() >= _OF_AGENT and not any(map(calls, messages)):
        tools = ()  # commands are text
    if not messages:
        return Problem("no_messages", where, "only an answer that no model wrote")
    name = name_of(row, "traj_id", "instance_id") or "row"
    return Conversation(
        id=unique_name(name[:200], names),
        record=where,
        messages=tuple(messages),
        tools=tools,
        model=name_of(row, "model"),
        records=1,
        changes=+changes,
        complete=bool(calls(messages[-1])),
        outcome=logged_outcome(row),
    )


def _without_agent_keys(item: dict[str, Json]) -> Json:
    if not item.keys() >= _OF_AGENT:
        return item
    ids = as_list(item.get("tool_call_ids"))
    own = {"tool_call_id": ids[0]} if ids else {}
    return {key: value for key, value in item.items() if key not in _AGENT_KEYS} | own


# -- DataClaw: sessions of several agents, calls and results in `tool_uses` ------------------------


def _is_dataclaw(row: dict[str, Json]) -> bool:
    messages = as_dicts(row.get("messages"))
    if not messages or "session_id" not in row:
        return False
    counts = as_dict(row.get("stats"))
    return {"tool_uses", "assistant_messages"} <= counts.keys() or any(
        isinstance(use.get("tool"), str)
        for message in messages
        for use in as_dicts(message.get("tool_uses"))
    )


def _dataclaw(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    if not isinstance(row.get("messages"), list):
        return Problem("not_object", where, "its messages are no list")
    read: list[Message] = []
    for item in as_list(row.get("messages")):
        if isinstance(item, dict):
            read += _dataclaw_messages(item)
        else:
            read.append(unknown_message("no object"))
    return Conversation(
        id=row_name(where, row.get("session_id"), names),
        record=where,
        messages=tuple(read),
        model=name_or_none(row.get("model")),
        records=1,
        context=Context.lacking({"system", "tools", "reminders", "history"}),
    )


def _dataclaw_messages(message: dict[str, Json]) -> Iterator[Message]:
    parts: list[Part] = [*thoughts_of_keys(message), *content(message.get("content"))]
    kinds = (as_str(part.get("type")) for part in as_dicts(message.get("content_parts")))
    parts += [Media(kind or "file") for kind in kinds]
    logged = message.get("tool_uses")
    uses = as_dicts(logged)
    results: list[Part] = []
    for use in uses:
        name, given, output = name_or_none(use.get("tool")), use.get("input"), use.get("output")
        # Free text stands in `raw`, and early versions wrote one argument without its name.
        is_text = isinstance(given, dict) and given.keys() == {"raw"}
        arguments = as_dict(given)["raw"] if is_text else given
        parts.append(ToolCall(name, arguments) if name else Unparsed(dumps(use), "bad_call"))
        if "output" in use or "status" in use:
            values = as_dict(output)
            text = output if isinstance(output, str) else values.get("text", values.get("output"))
            shown = (Text(text),) if isinstance(text, str) else (Data(output),) if output else ()
            is_error = use["status"] == "error" if "status" in use else None
            results.append(ToolResult(shown, name=name, is_error=is_error))
    if len(uses) < len(logged) if isinstance(logged, list) else logged is not None:
        parts.append(Unparsed(dumps(logged), "bad_call"))
    spoken = Message(as_str(message.get("role"))[:40], tuple(parts))
    yield noted([spoken], message, message_keys("dataclaw"))[0]
    if results:
        yield Message("tool", tuple(results))


def of_rows(
    name: str,
    recognise: Callable[[Source], str | None],
    row: Callable[[str, dict[str, Json], Counter[str]], Event],
    **hooks: Any,
) -> Reader:
    """Returns the reader of a dataset with one conversation in each row."""
    read = read_each(row, name)
    return declared(name, recognise=recognise, read=read, **{"splits": splits, **hooks})


READERS = (
    of_rows(
        "toolmind",
        claims(_is_toolmind, "conversations of role and content, with tools"),
        _toolmind,
    ),
    of_rows(
        "nemotron",
        claims(_is_nemotron, "rows of uuid, license and messages"),
        _nemotron,
    ),
    declared(
        "when2call",
        recognise=claims(
            _is_when2call, "rows of tools with questions, responses or calls of When2Call"
        ),
        read=lambda source: read_rows(source, _when2call, "when2call"),
        splits=splits,
    ),
    of_rows(
        "toucan",
        claims(_is_toucan, "rows of uuid and messages with subset_name or target_tools"),
        _toucan,
    ),
    of_rows(
        "swe-smith",
        _recognise_swe_smith,
        _swe_smith,
        splits=None,
    ),
    of_rows(
        "dataclaw",
        claims(_is_dataclaw, "rows with session_id and messages, calls in tool_uses"),
        _dataclaw,
        unsettled=lambda source: (
            f"{source.name}: DataClaw changes results, and parallel calls look like calls one"
            " after another; read the agent's own sessions"
        ),
    ),
)
