"""Converts requests of four APIs to one shape, so that they can be compared with samples.

Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini generateContent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a message: kind is text, thought, call, result or media.

    text   the text, the thought or the result's text
    name   the called tool
    value  the arguments of a call, decoded
    id     the id of a call or of the call that a result answers
    """

    kind: str
    text: str = ""
    name: str = ""
    value: Any = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a request: its role as sent (Gemini's `model` is assistant) and its parts."""

    role: str
    parts: tuple[Part, ...]

    def texts(self) -> str:
        """The texts of the message, joined with newlines."""
        return "\n".join(part.text for part in self.parts if part.kind == "text")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool definition; `kind` is the API's type of it, `deferred` tools are not visible yet."""

    name: str
    description: str
    schema: Any
    kind: str = ""
    deferred: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A request: system texts, tools and messages in the order sent."""

    api: str
    system: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    turns: tuple[Turn, ...] = field(default=())


def api_of(path: str) -> str:
    """Returns the API of a path: anthropic, count, chat, responses, gemini or other."""
    bare = path.split("?", maxsplit=1)[0].rstrip("/")
    if "generateContent" in bare or "streamGenerateContent" in bare:
        return "gemini"
    if "count_tokens" in bare or "countTokens" in bare:
        return "count"
    if bare.endswith("/messages"):
        return "anthropic"
    if bare.endswith("chat/completions"):
        return "chat"
    return "responses" if bare.endswith("/responses") else "other"


def read_request(path: str, body: Body) -> Request:
    """Returns the request posted to `path`; an empty one for paths that are not model requests."""
    api = api_of(path)
    reader = _READERS.get(api)
    if reader is None:
        return Request(api)
    system, tools, turns = reader(body)
    return Request(api, tuple(system), tuple(tools), tuple(turns))


_Read = tuple[list[str], list[Tool], list[Turn]]


def _compact(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _decoded(text: Any) -> Any:
    try:
        return json.loads(text or "{}") if isinstance(text, str) else text
    except ValueError:
        return text


def _text_blocks(content: Any) -> list[Body]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


_LOADED = re.compile(r'"type": "tool_reference", "tool_name": "([^"]*)"')


def _anthropic(body: Body) -> _Read:
    system = [block["text"] for block in _text_blocks(body.get("system"))]
    loaded = set(_LOADED.findall(json.dumps(body.get("messages"))))
    tools = [
        Tool(
            tool.get("name", ""),
            tool.get("description", ""),
            tool.get("input_schema"),
            tool.get("type", ""),
            bool(tool.get("defer_loading")) and tool.get("name") not in loaded,
        )
        for tool in body.get("tools") or []
    ]
    turns = [
        Turn(message["role"], tuple(_anthropic_parts(_text_blocks(message.get("content")))))
        for message in body.get("messages") or []
    ]
    return system, tools, turns


def _anthropic_parts(blocks: list[Body]) -> Iterator[Part]:
    for block in blocks:
        match block.get("type"):
            case "text":
                yield Part("text", block["text"])
            case "tool_use":
                yield Part("call", name=block["name"], value=block["input"], id=block["id"])
            case "tool_result":
                yield Part("result", _result_text(block.get("content")), id=block["tool_use_id"])
            case "thinking" | "redacted_thinking":
                yield Part("thought", block.get("thinking", ""))
            case _:
                yield Part("media")


def _result_text(content: Any) -> str:
    """Returns the text of a tool result; images as `[image]`, blocks of other types as JSON."""
    return "\n".join(map(_block_text, _text_blocks(content)))


def _block_text(block: Body) -> str:
    match block.get("type"):
        case "text":
            return str(block["text"])
        case "image":
            return "[image]"
        case "document":
            return "[file]"
    return json.dumps(block, ensure_ascii=False)


def _chat(body: Body) -> _Read:
    system: list[str] = []
    turns: list[Turn] = []
    for message in body.get("messages") or []:
        content = _text_blocks(message.get("content"))
        texts = [block.get("text") for block in content if block.get("type") == "text"]
        if message["role"] in ("system", "developer") and not turns:
            system += [text for text in texts if text]
            continue
        if message["role"] == "tool":
            result = Part("result", "\n".join(map(str, texts)), id=message.get("tool_call_id", ""))
            turns.append(Turn("tool", (result,)))
            continue
        parts: list[Part] = []
        if thought := message.get("reasoning_content") or message.get("reasoning"):
            parts.append(Part("thought", _compact(thought)))
        for block in content:
            is_text = block.get("type") == "text"
            parts.append(Part("text", block["text"]) if is_text else Part("media"))
        for call in message.get("tool_calls") or []:
            function = call.get("function") or {}
            arguments = _decoded(function.get("arguments"))
            parts.append(Part("call", "", function.get("name", ""), arguments, call.get("id", "")))
        turns.append(Turn(message["role"], tuple(parts)))
    tools = []
    for tool in body.get("tools") or []:
        function = tool.get("function") or tool
        schema = function.get("parameters")
        tools.append(Tool(function.get("name", ""), function.get("description", ""), schema))
    return system, tools, turns


_RESPONSES_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")


def _responses(body: Body) -> _Read:
    turns: list[Turn] = []

    def add(role: str, *parts: Part) -> None:
        if role == "assistant" and turns and turns[-1].role == role:
            turns[-1] = Turn(role, (*turns[-1].parts, *parts))
        else:
            turns.append(Turn(role, parts))

    items = body.get("input")
    if isinstance(items, str):
        items = [{"type": "message", "role": "user", "content": items}]
    for item in items or []:
        kind = item.get("type") or "message"
        if kind == "message":
            blocks = _text_blocks(item.get("content"))
            parts = [Part("text", b["text"]) if "text" in b else Part("media") for b in blocks]
            add(item["role"], *parts)
        elif kind in _RESPONSES_CALLS:
            arguments = item.get("arguments", item.get("input", item.get("action")))
            value = arguments if kind == "custom_tool_call" else _decoded(arguments)
            name = item.get("name") or kind
            add("assistant", Part("call", name=name, value=value, id=item.get("call_id", "")))
        elif kind.endswith("_output"):
            output = item.get("output", item.get("tools"))
            if isinstance(output, list):
                output = "\n".join(block.get("text", _compact(block)) for block in output)
            add("tool", Part("result", _compact(output), id=item.get("call_id", "")))
        elif kind == "reasoning":
            thought = item.get("summary") or item.get("content") or ""
            add("assistant", Part("thought", _compact(thought)))
        else:
            add(f"other:{kind}", Part("text", _compact(item)))
    tools = []
    for tool in body.get("tools") or []:
        if tool.get("type") == "namespace":
            for inner in tool.get("tools") or []:
                name = f"{tool.get('name')}.{inner.get('name')}"
                schema = inner.get("parameters")
                tools.append(Tool(name, inner.get("description", ""), schema, "namespace"))
            continue
        name = tool.get("name") or tool.get("type", "")
        schema = tool.get("parameters", tool.get("format"))
        tools.append(Tool(name, tool.get("description", ""), schema, tool.get("type", "")))
    system = [body["instructions"]] if body.get("instructions") else []
    return system, tools, turns


def _gemini(body: Body) -> _Read:
    instruction = body.get("systemInstruction") or body.get("system_instruction") or {}
    parts = instruction.get("parts", []) if isinstance(instruction, dict) else []
    system = [instruction] if isinstance(instruction, str) else [p.get("text", "") for p in parts]
    tools = [
        Tool(
            declared.get("name", ""),
            declared.get("description", ""),
            declared.get("parametersJsonSchema") or declared.get("parameters"),
        )
        for tool in body.get("tools") or []
        for declared in tool.get("functionDeclarations") or tool.get("function_declarations") or []
    ]
    turns = []
    for content in body.get("contents") or []:
        role = "assistant" if content.get("role") == "model" else content.get("role", "user")
        turns.append(Turn(role, tuple(map(_gemini_part, content.get("parts") or []))))
    return system, tools, turns


def _gemini_part(part: Body) -> Part:
    if call := part.get("functionCall"):
        return Part("call", name=call["name"], value=call.get("args"), id=call.get("id", ""))
    if response := part.get("functionResponse"):
        value = response.get("response")
        values = list(value.values()) if isinstance(value, dict) else [value]
        text = "\n".join(map(_compact, values))
        return Part("result", text, response.get("name", ""), id=response.get("id", ""))
    if "text" in part:
        return Part("thought" if part.get("thought") else "text", part["text"])
    return Part("media")


_READERS = {
    "anthropic": _anthropic,
    "count": _anthropic,
    "chat": _chat,
    "responses": _responses,
    "gemini": _gemini,
}


def read_answer(api: str, response: Body) -> Turn:
    """Returns the response as the assistant message that it would be in a later request."""
    if api == "anthropic":
        blocks = _text_blocks(response.get("content"))
        return Turn("assistant", tuple(_anthropic_parts(blocks)))
    if api == "chat":
        turns = _chat({"messages": [response["choices"][0]["message"]]})[2]
    elif api == "responses":
        turns = _responses({"input": response["output"]})[2]
    else:
        turns = _gemini({"contents": [response["candidates"][0]["content"]]})[2]
    return Turn("assistant", tuple(part for turn in turns for part in turn.parts))
