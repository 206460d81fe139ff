"""Amazon Bedrock Converse."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote

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
from builder.jsonio import dumps, loads_text
from builder.problem import Problem
from builder.readers.api.codec import Api, ApiAnswer, History
from builder.readers.api.dialects import BEDROCK, is_bedrock_event, path_of
from builder.readers.api.exchanges import Exchange
from builder.readers.toolkit.chat_messages import results_apart, value_arguments
from builder.readers.toolkit.marks import finish_fault
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_int, as_list, as_str, name_or_none
from builder.readers.toolkit.thoughts import thoughts_of_keys
from builder.readers.toolkit.unknown_keys import noted


class _Block:
    """A content block that is assembled from its pieces."""

    def __init__(self, start: dict[str, Json]) -> None:
        self.use = as_dict(start.get("toolUse"))
        self.text: list[str] = []
        self.input: list[str] = []
        self.value: Json = None  # an input that came as a value instead of text
        self.thought: list[str] | None = None
        self.other: Json = None
        self.ended = False

    def add(self, delta: dict[str, Json]) -> None:
        self.text.append(as_str(delta.get("text")))
        if "toolUse" in delta:
            piece = as_dict(delta["toolUse"]).get("input")
            if isinstance(piece, str):
                self.input.append(piece)
            elif piece is not None:
                self.value = piece
        if "reasoningContent" in delta:
            thought = as_dict(delta["reasoningContent"])
            self.thought = self.thought or []
            self.thought.append(as_str(thought.get("text")))
        for key in ("image", "toolResult"):
            if key in delta:
                self.other = {key: delta[key]}

    def logged(self) -> dict[str, Json]:
        if self.use:
            text = "".join(self.input)
            given = self.value if self.value is not None and not text else loads_text(text)
            return {"toolUse": {**self.use, "input": given}}
        if self.thought is not None:
            return {"reasoningContent": {"reasoningText": {"text": "".join(self.thought)}}}
        if isinstance(self.other, dict):
            return self.other
        return {"text": "".join(self.text)}


def _whole_response(events: Iterable[Json]) -> dict[str, Json]:
    """Returns the assembled response: `output` and `stopReason`.

    It has no stopReason if the end is missing or an event is an error.
    """
    blocks: list[_Block] = []
    at: dict[int, _Block] = {}  # the current block of an index
    stop: Json = None
    broken = False
    for item in events:
        event = as_dict(item)
        if "error" in event or any(key.endswith("Exception") for key in event):
            broken = True
        body = as_dict(next(iter(event.values()), None))
        place = as_int(body.get("contentBlockIndex"))
        if "contentBlockStart" in event:
            at[place] = _Block(as_dict(body.get("start")))
            blocks.append(at[place])
        elif "contentBlockDelta" in event:
            if place not in at or at[place].ended:
                at[place] = _Block({})
                blocks.append(at[place])
            at[place].add(as_dict(body.get("delta")))
        elif "contentBlockStop" in event and place in at:
            at[place].ended = True
        elif "messageStop" in event:
            stop = body.get("stopReason")
    if not blocks and stop is None:
        return {}
    content: list[Json] = [block.logged() for block in blocks]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": None if broken else stop,
    }


_MEDIA = {"image": "image", "video": "video", "audio": "audio", "document": "file"}
_SILENT = frozenset({"cachePoint", "type"})
_CHANGES_TOOLS = frozenset({"toolAddition", "toolRemoval"})
_WITHOUT_PART = _CHANGES_TOOLS | {"text", "reasoningContent", "guardContent", "citationsContent"}
"""Kinds of blocks that may be empty, encrypted or about tools."""
_MODEL = re.compile(r"/model/(.+)/[a-z-]+$")


def history(body: dict[str, Json]) -> History:
    """Returns the history of a request."""
    messages: list[Message] = []
    system = as_dicts(body.get("system"))
    if isinstance(body.get("system"), str):  # not in the API, but some SDKs accept it
        system = [{"text": body["system"]}]
    if parts := tuple(read_blocks(system)):
        messages.append(Message("system", parts))
    blocks: list[dict[str, Json]] = []
    for message in as_dicts(body.get("messages")):
        content_blocks = _blocks(message.get("content"))
        blocks += content_blocks
        thoughts = thoughts_of_keys(message) if message.get("role") == "assistant" else []
        messages += noted(_messages(as_str(message.get("role")), content_blocks, thoughts), message)
    problems: tuple[Problem, ...] = ()
    if any(not _CHANGES_TOOLS.isdisjoint(block) for block in blocks):
        detail = "tools are added or removed in the conversation"
        problems = (Problem("tools_changed", "request", detail, records=0),)
    if "promptVariables" in body:
        detail = "the prompt is stored at the service; the request contains only its variables"
        problems = (*problems, Problem("stored_prompt", "request", detail, records=0))
    return History(tuple(messages), _tools(body), name_or_none(body.get("modelId")), problems)


def _tools(body: dict[str, Json]) -> tuple[Json, ...] | None:
    """Returns the tool definitions, without the cache points between them."""
    tools = as_dict(body.get("toolConfig")).get("tools")
    if not isinstance(tools, list):
        return None
    return tuple(tool for tool in tools if "cachePoint" not in as_dict(tool))


def _blocks(content: Json) -> list[dict[str, Json]]:
    if isinstance(content, str):
        return [{"text": content}]
    return as_dicts(content)


def _messages(
    role: str, blocks: list[dict[str, Json]], thoughts: Sequence[Part] = ()
) -> Iterator[Message]:
    """Yields the messages of a logged message: its tool results, then its other content."""
    results, rest = results_apart(read_blocks(blocks))
    if results:
        yield Message("tool", results)
    if not any(isinstance(part, Reasoning) for part in rest):
        rest = (*thoughts, *rest)
    if rest or not results:
        yield Message(role[:40], rest)


def read_blocks(blocks: Iterable[dict[str, Json]]) -> Iterator[Part]:
    """Yields the parts of blocks."""
    for logged in blocks:
        block = _set(logged)
        part = _part(block)
        if part is not None:
            yield part
        elif not _SILENT.issuperset(block) and _WITHOUT_PART.isdisjoint(block):
            yield unknown_part(next((key for key in block if key not in _SILENT), "nothing"))


def _set(block: dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in block.items() if value is not None}


def _part(block: dict[str, Json]) -> Part | None:
    for key, kind in _MEDIA.items():
        if key in block:
            return Media(kind, as_str(block[key], "format"))
    if isinstance(block.get("text"), str):
        return Text(as_str(block["text"])) if block["text"] else None
    if "toolUse" in block:
        return _call(as_dict(block["toolUse"]))
    if "toolResult" in block:
        return _result(as_dict(block["toolResult"]))
    if "reasoningContent" in block:
        visible = as_dict(block["reasoningContent"], "reasoningText")
        thought = as_str(visible.get("text"))
        return Reasoning(thought) if thought else None
    if "guardContent" in block:
        guarded = as_dict(block["guardContent"])
        if "image" in guarded:
            return Media("image")
        text = as_str(guarded, "text", "text")
        return Text(text) if text else None
    if "citationsContent" in block:
        pieces = as_list(block["citationsContent"], "content")
        text = "".join(as_str(piece, "text") for piece in pieces)
        return Text(text) if text else None
    if "searchResult" in block:
        return Data(block["searchResult"])
    return None


def _call(use: dict[str, Json]) -> Part:
    if use.get("type") not in (None, "tool_use"):  # the service runs it and adds the result itself
        return Unparsed(dumps(use), "server_tool")
    arguments = value_arguments(use.get("input"))
    return ToolCall(as_str(use.get("name")), arguments, name_or_none(use.get("toolUseId")))


def _result(result: dict[str, Json]) -> Part:
    if result.get("type") not in (None, "tool_result"):
        return Unparsed(dumps(result), "server_tool")
    content: list[Content] = []
    for block in map(_set, _blocks(result.get("content"))):
        part = _part(block)
        if isinstance(part, Content):
            content.append(part)
        elif block and "text" not in block and "cachePoint" not in block:
            content.append(Data(block.get("json", block)))
    return ToolResult(
        tuple(content),
        call_id=name_or_none(result.get("toolUseId")),
        is_error=result["status"] == "error" if "status" in result else None,
    )


# -- answers -------------------------------------------------------------------------------------


def answers(exchange: Exchange) -> Sequence[ApiAnswer]:
    """Returns the answer of a response; () for an error or a response without one."""
    body = exchange.answer_body(_whole_response)
    logged = as_dict(body.get("output")).get("message")
    if not isinstance(logged, dict):
        return ()
    parts = list(read_blocks(_blocks(logged.get("content"))))
    kept = tuple(
        unknown_part("toolResult") if isinstance(part, ToolResult) else part for part in parts
    )
    return [
        ApiAnswer(
            Message("assistant", kept),
            fault=finish_fault(body.get("stopReason"), unknown="truncated"),
            model=_model(exchange),
        )
    ]


def _model(exchange: Exchange) -> str | None:
    """Returns the model in the path, else in the recorded arguments of the SDK."""
    named = _MODEL.search(path_of(exchange.url))
    if named is not None:
        return unquote(named[1])
    return name_or_none((exchange.request or {}).get("modelId"))


def _continues(before: Json, after: Json) -> bool:
    one, other = as_dict(before), as_dict(after)
    if not (is_bedrock_event(one) and is_bedrock_event(other)) or "messageStart" in other:
        return False
    ended = "messageStop" in one or "metadata" in one
    return not ended or "messageStop" in other or "metadata" in other


CONVERSE = Api(BEDROCK, history, answers, _continues)
