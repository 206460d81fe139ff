"""ShareGPT rows and their dialects: LLaMA-Factory, its typed parts, Hermes, plain human/gpt.

Reference: function-calling-datasets.md. Nothing has ids: calls and results pair by order. A row is
published to be learnt as it stands, so one that ends with a call is complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builder.conversation import (
    Conversation,
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
)
from builder.jsonio import JsonFault, dumps, loads
from builder.problem import Problem
from builder.readers import _tags
from builder.readers._messages import unique, unknown_parts
from builder.readers._narrow import as_dict, as_list, as_str, name_or_none
from builder.source import Source

NAME = "sharegpt"
SUMMARY = "ShareGPT rows: conversations of from and value (LLaMA-Factory, Hermes), or typed parts"

_ROLES = {
    "human": "user", "user": "user",
    "gpt": "assistant", "assistant": "assistant", "bard": "assistant", "chatgpt": "assistant",
    "gpt-4": "assistant", "model": "assistant",
    "system": "system",
    "function_call": "call", "function-call": "call",
    "observation": "result", "function-response": "result", "function_response": "result",
    "tool": "result", "ipython": "result",
}  # fmt: skip


def recognise(source: Source) -> str | None:
    """Rows of from and value, or of typed parts."""
    for value in source.peek.objects:
        if {"timestamp", "completed"} <= set(value):
            continue  # a trajectory of Hermes Agent
        turns = [as_dict(item) for item in as_list(value.get("conversations"))]
        if isinstance(value.get("completed"), bool) and "timestamp" in value:
            return None  # trajectories of Hermes Agent
        if turns and all(turn.get("from") in _ROLES and "value" in turn for turn in turns):
            return "conversations of from and value"
        parts = [
            as_dict(part)
            for item in as_list(value.get("messages"))
            for part in as_list(as_dict(item).get("content"))
        ]
        if parts and all("type" in part and "value" in part for part in parts):
            return "messages of typed parts (type, value)"
    return None


def read(source: Source) -> Iterator[Event]:
    """A conversation for each row."""
    names: Counter[str] = Counter()
    for item in source.records():
        if isinstance(item, Problem):
            yield item
        elif not isinstance(item.value, dict):
            yield Problem("not_object", item.where, "the row is no JSON object")
        else:
            yield _row(item.where, item.value, names)


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    changes: Counter[str] = Counter()
    unknown: list[str] = []
    turns = as_list(row.get("conversations"))
    try:
        if turns:
            messages = list(_turns(turns, changes))
        elif isinstance(row.get("messages"), list):
            messages = list(_typed(as_list(row.get("messages")), unknown))
        else:
            return Problem("unknown_shape", where, "neither conversations nor messages")
        tools = _tools(row.get("tools"))
        system = as_str(row.get("system"))
        if system:
            messages.insert(0, Message("system", (Text(system),)))
        messages, embedded = _system(messages, changes)
    except JsonFault as fault:
        return fault.at(where)
    if not messages:
        return Problem("no_messages", where, "the row has no messages")
    name = row.get("id")
    shown = str(name) if isinstance(name, str | int) and str(name) else where
    return Conversation(
        id=unique(shown, names),
        record=where,
        messages=tuple(messages),
        tools=tools if tools else embedded if embedded is not None else tools,
        model=name_or_none(row.get("model")),
        records=1,
        problems=unknown_parts(unknown, where),
        changes=changes,
        complete=True,
    )


def _tools(value: Json) -> tuple[Json, ...] | None:
    """The tools column: a list, or one as JSON text. Raises JsonFault."""
    if isinstance(value, str):
        value = loads(value) if value.strip() else []
    if value is None:
        return None
    return tuple(value) if isinstance(value, list) else (value,)


def _system(
    messages: list[Message], changes: Counter[str]
) -> tuple[list[Message], tuple[Json, ...] | None]:
    """The messages with the definitions of the system text taken out, and these or None."""
    tools: tuple[Json, ...] | None = None
    made: list[Message] = []
    for message in messages:
        if message.role == "system" and tools is None and len(message.parts) == 1:
            part = message.parts[0]
            if isinstance(part, Text):
                words, tools = _tags.take_tools(part.text, changes)
                if tools is not None:
                    if words.strip():
                        made.append(Message("system", (Text(words),)))
                    continue
        made.append(message)
    return made, tools


def _turns(turns: list[Json], changes: Counter[str]) -> Iterator[Message]:
    """Turns of from and value; without ids, prose and the calls after it are one turn."""
    for item in turns:
        turn = as_dict(item)
        source = as_str(turn.get("from"))
        text = as_str(turn.get("value"))
        match _ROLES.get(source):
            case "assistant":
                thoughts = ("think", "scratch_pad")
                parts = _tags.assistant_parts(text, changes, thoughts=thoughts)
                yield Message("assistant", tuple(parts), trained=turn.get("loss") is not False)
            case "call":
                yield Message("assistant", tuple(_calls(text, changes)))
            case "result":
                for result in _results(text):
                    yield Message("tool", (result,))
            case None:
                yield Message(source[:40] or "none", (Text(text),))
            case role:
                yield Message(role, (Text(text),))


def _calls(text: str, changes: Counter[str]) -> list[Part]:
    """The value of a function_call turn: an object or a list of them, a thought before it."""
    parts: list[Part] = []
    rest = text
    if text.lstrip().startswith("<think>") and "</think>" in text:
        head, _, rest = text.partition("</think>")
        thought = head.partition("<think>")[2].strip("\n")
        parts += [Reasoning(thought)] if thought.strip() else []
    calls = _tags.read_calls(rest, changes)
    if calls is None:
        return [*parts, Unparsed(text, "bad_call")]
    return [*parts, *calls]


def _results(text: str) -> list[ToolResult]:
    """The results of a turn: blocks, or texts joined by closing and opening tags."""
    blocks = _tags.responses(text)
    if blocks is None:
        return [ToolResult((Text(part),)) for part in _tags.split_responses(text)]
    return [_named(block) for block in blocks]


def _named(block: str) -> ToolResult:
    """Hermes puts {"name", "content"} into a block; what the tool said is the content."""
    try:
        value = loads(block)
    except JsonFault:
        return ToolResult((Text(block),))
    item = as_dict(value)
    if not {"name", "content"} <= set(item):
        return ToolResult((Text(block),))
    content = item["content"]
    text = content if isinstance(content, str) else dumps(content)
    return ToolResult((Text(text),), name=name_or_none(item["name"]))


def _typed(messages: list[Json], unknown: list[str]) -> Iterator[Message]:
    """LLaMA-Factory's messages of parts {type, value}. Raises JsonFault."""
    for item in messages:
        message = as_dict(item)
        role = as_str(message.get("role"))
        parts: list[Part] = []
        for block in as_list(message.get("content")):
            part = as_dict(block)
            value = part.get("value")
            match part.get("type"):
                case "text":
                    parts.append(Text(as_str(value)))
                case "reasoning":
                    parts.append(Reasoning(as_str(value)))
                case "tool_call":
                    call = _tags.call_of(loads(value) if isinstance(value, str) else value)
                    parts.append(call if call is not None else Unparsed(dumps(value), "bad_call"))
                case "tools":
                    pass  # definitions repeated inside the messages
                case "image" | "image_url" | "audio" | "video" as kind:
                    parts.append(Media(str(kind).removesuffix("_url")))
                case kind:
                    unknown.append(str(kind))
        trained = message.get("loss_weight") not in (0, 0.0)
        if role in ("tool", "observation"):
            texts = tuple(part for part in parts if isinstance(part, Text | Media))
            for text in texts:
                yield Message("tool", (ToolResult((text,)),))
        elif any(isinstance(part, ToolCall) for part in parts) or role == "assistant":
            yield Message("assistant", tuple(parts), trained=trained)
        else:
            yield Message(role, tuple(parts))
