"""Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from builder.conversation import (
    Content,
    Data,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.jsonio import JsonFault, dumps, loads
from builder.problem import Problem
from builder.readers.api.codec import Api, ApiAnswer, History
from builder.readers.api.dialects import ANTHROPIC, request_dialect
from builder.readers.api.exchanges import Exchange
from builder.readers.toolkit.chat_messages import results_apart, value_arguments
from builder.readers.toolkit.marks import finish_fault
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_int,
    as_list,
    as_str,
    flag_or_none,
    name_or_none,
    tuple_or_none,
)
from builder.readers.toolkit.thoughts import with_thoughts
from builder.readers.toolkit.tool_forms import loaded_names
from builder.readers.toolkit.unknown_keys import noted

Block = dict[str, Json]

_HALF_CALL = "tool_use without its end"
"""The type that `whole_message` gives to a call with incomplete arguments."""

_SILENT = frozenset({"redacted_thinking", "tool_addition", "tool_removal"})
"""Encrypted thoughts, and notes that a listed tool may or may not be used from here on."""


def blocks(content: Json) -> list[Block]:
    """Returns the blocks of a message's or result's content; a string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [
        {"type": "text", "text": item} if isinstance(item, str) else as_dict(item)
        for item in as_list(content)
    ]


def read_message(item: Block) -> list[Message]:
    """Returns the messages of a logged message: its tool results, then its other content."""
    return noted(_messages(item), item)


def _messages(item: Block) -> Iterator[Message]:
    role = as_str(item.get("role"))[:40]
    results, rest = results_apart(read_parts(item.get("content")))
    parts = with_thoughts(rest, item) if role == "assistant" else rest
    if results:
        yield Message("tool", results)
    if parts or role == "assistant":
        yield Message(role, tuple(parts))


def read_parts(content: Json) -> list[Part]:
    """Returns the parts of blocks.

    Joins texts next to texts with citations: the API splits one text where its sources change.
    """
    parts: list[Part | list[str]] = []  # texts as lists of pieces
    cited = False
    for block in blocks(content):
        part = read_part(block)
        cites = bool(block.get("citations"))
        last = parts[-1] if parts else None
        if isinstance(part, Text) and isinstance(last, list) and (cited or cites):
            last.append(part.text)
        elif part is not None:
            parts.append([part.text] if isinstance(part, Text) else part)
        cited = cites
    return [Text("".join(part)) if isinstance(part, list) else part for part in parts]


def read_part(block: Block) -> Part | None:
    """Returns a block as a part; None if it holds nothing that a template renders."""
    kind = as_str(block.get("type"))
    match kind:
        case "text":
            text = as_str(block.get("text"))
            return Text(text) if text else None
        case "thinking":
            thought = as_str(block.get("thinking"))
            return Reasoning(thought) if thought else None
        case "tool_use":
            return _call(block)
        case "tool_result":
            return _result(block)
        case "image":
            return Media("image", _media_type(block))
        case "document" | "container_upload" | "file":
            return Media("file", _media_type(block))
        case "search_result":
            return Data(block)
        case "compaction":
            return Unparsed(kind, "compacted")
        case _ if kind == _HALF_CALL:
            return Unparsed(as_str(block.get("text")), "truncated")
        case _ if kind.endswith(("_tool_use", "_tool_result")):
            # Only the type, since clients do not send the whole block back.
            return Unparsed(kind, "server_tool")
        case _:
            return None if kind in _SILENT else unknown_part(kind or "block")


def _call(block: Block) -> ToolCall | Unparsed:
    name = name_or_none(block.get("name"))
    if name is None:
        return Unparsed(dumps(block), "bad_call")
    if as_str(block, "caller", "type") not in ("", "direct"):
        return Unparsed(name, "programmatic_call")
    return ToolCall(name, value_arguments(block.get("input")), name_or_none(block.get("id")))


_RESULT_KEYS = frozenset({"type", "tool_use_id", "content", "is_error", "cache_control", "id"})


def _result(block: Block) -> ToolResult:
    content: list[Content] = []
    value = block.get("content")
    for inner in blocks(value):
        match inner.get("type"):
            case "text":
                content.append(Text(as_str(inner.get("text"))))
            case "image":
                content.append(Media("image", _media_type(inner)))
            case "document" | "file":
                content.append(Media("file", _media_type(inner)))
            case _:
                content.append(Data(inner))
    if not isinstance(value, str | list | None):
        content.append(Data(value))
    if value is None:  # a program's own block of this name, whose result is under another key
        unread = sorted(key for key in block.keys() - _RESULT_KEYS if block[key])
        content += [unknown_part(f"tool_result.{key}") for key in unread]
    return ToolResult(
        tuple(content),
        name_or_none(block.get("tool_use_id")),
        is_error=flag_or_none(block.get("is_error")),
    )


def _media_type(block: Block) -> str:
    return as_str(block, "source", "media_type")[:80]


def _has_blocks(messages: Iterable[Block]) -> bool:
    return any(
        block.get("type") in ("tool_use", "tool_result")
        for message in messages
        for block in blocks(message.get("content"))
    )


def whole_message(events: Iterable[Json]) -> dict[str, Json]:
    """Returns the message of the events, in the form of a response that is not streamed.

    It has no `stop_reason` if the end is missing or an event is an error. A call with incomplete
    arguments has the type _HALF_CALL.
    """
    message: dict[str, Json] = {}
    open_blocks: dict[int, _Block] = {}
    broken = False
    for value in events:
        event = as_dict(value)
        kind = event.get("type")
        at = as_int(event.get("index"))
        if kind == "message_start":
            message = {**as_dict(event.get("message"))}
        elif kind == "content_block_start":
            open_blocks[at] = _Block(as_dict(event.get("content_block")))
        elif kind == "content_block_delta":
            open_blocks.setdefault(at, _Block({"type": "text"})).add(as_dict(event.get("delta")))
        elif kind == "content_block_stop" and at in open_blocks:
            open_blocks[at].ended = True
        elif kind == "message_delta":
            message.update(as_dict(event.get("delta")))
            if "context_management" in event:
                message["context_management"] = event["context_management"]
        elif kind == "error":
            broken = True
    if broken:
        message["stop_reason"] = None
    ended = bool(message.get("stop_reason"))
    whole = message.get("stop_reason") in ("end_turn", "tool_use", "stop_sequence")
    content: list[Json] = [
        open_blocks[at].logged(ended=ended, whole=whole) for at in sorted(open_blocks)
    ]
    return {**message, "content": content or as_list(message.get("content"))}


class _Block:
    """A block that is assembled from its pieces."""

    def __init__(self, start: dict[str, Json]) -> None:
        self.start = start
        self.texts = {name: [as_str(start.get(name))] for name in ("text", "thinking")}
        self.citations = list(as_list(start.get("citations")))
        self.json: list[str] = []
        self.ended = False

    def add(self, delta: dict[str, Json]) -> None:
        for name, pieces in self.texts.items():
            pieces.append(as_str(delta.get(name)))
        self.json.append(as_str(delta.get("partial_json")))
        if delta.get("citation") is not None:
            self.citations.append(delta["citation"])

    def logged(self, *, ended: bool, whole: bool) -> dict[str, Json]:
        """Returns the block. `ended`: the message has ended; `whole`: not by a limit or filter."""
        texts = {name: "".join(pieces) for name, pieces in self.texts.items()}
        block = {**self.start, **{name: text for name, text in texts.items() if text}}
        if self.citations:
            block["citations"] = self.citations
        if block.get("type") != "tool_use":
            return block
        if given := "".join(self.json):
            try:
                block["input"] = loads(given)
            except JsonFault:
                if not whole:
                    return {"type": _HALF_CALL, "text": given}
                block["input"] = given  # the model's own mistake
        elif not (self.ended or ended):
            return {"type": _HALF_CALL, "text": ""}
        return block


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
    system = tuple(read_parts(body.get("system")))
    messages = [Message("system", system)] if system else []
    loaded: set[str] = set()
    loaded_at = 0
    for item in as_dicts(body.get("messages")):
        messages += read_message(item)
        if names := set(loaded_names(item.get("content"))):
            loaded |= names
            loaded_at = len(messages)
    tools = tuple_or_none(body.get("tools"))
    read = History(tuple(messages), tools, name_or_none(body.get("model")))
    return read.without_deferred(loaded, loaded_at)


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


_NESTED = frozenset({
    "messages", "tools", "system", "metadata", "thinking", "tool_choice", "stop_sequences",
    "context_management", "mcp_servers", "container", "betas", "output_config", "output_format",
    "cache_control",
})  # fmt: skip
"""Keys of a request or row whose values are lists or objects."""
_KEYS = frozenset({"role", "content", "id", "timestamp"})
"""Keys of a message, including those added by programs that keep lists of messages."""
_ROLES = frozenset({"user", "assistant", "system"})


def is_body(value: dict[str, Json]) -> bool:
    """Returns whether an object's `messages` are in Anthropic's form."""
    if "messages" not in value or request_dialect(value) != ANTHROPIC:
        return False
    messages = as_dicts(value.get("messages"))
    if not messages or not all(map(_is_message, messages)):
        return False
    nested = {key for key, item in value.items() if isinstance(item, list | dict)}
    return nested <= _NESTED or _has_blocks(messages)


def _is_message(message: dict[str, Json]) -> bool:
    if as_str(message.get("role")) not in _ROLES or "tool_calls" in message:
        return False
    content = message.get("content")
    typed = all(isinstance(block.get("type"), str) for block in blocks(content))
    return isinstance(content, str | list) and typed


def is_list(values: Sequence[Json]) -> bool:
    """Returns whether values are all messages, at least one with a call or a result."""
    messages = [as_dict(value) for value in values]
    if not all(_is_message(message) and message.keys() <= _KEYS for message in messages):
        return False
    return _has_blocks(messages)


def is_row(value: Json) -> bool:
    """Returns whether a record is a row: without a model, or with an answer but without a limit.

    The API requires both; a request with both may end with the beginning of its answer.
    """
    if not isinstance(value, dict) or not is_body(value):
        return False
    last = as_dict(as_list(value.get("messages"))[-1])
    return "model" not in value or ("max_tokens" not in value and last.get("role") == "assistant")
