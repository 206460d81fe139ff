"""Reads requests of model calls of any API, as platforms log them.

A platform logs what its instrumentation saw: the whole body of a request, only its messages, a
prompt, or the arguments of the function that sent it.
Sources: docs/formats/langfuse.md, docs/formats/langsmith.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from builder.conversation import Json, Message, Text
from builder.readers.toolkit.narrow import as_dict, as_list, name_of
from builder.readers.traces.any_vendor.messages import read_messages
from builder.readers.traces.any_vendor.parts import PartNotes, decoded, read_parts
from builder.readers.traces.langchain.messages import is_message

_LISTS = ("messages", "contents", "input", "prompt", "prompts")
_SYSTEMS = ("system", "instructions", "system_instruction", "systemInstruction", "system_prompt")
_TOOLS = ("tools", "functions", "function_declarations", "functionDeclarations")
_DEFINES = (*_TOOLS, "function", "toolSpec", "json_schema")
"""Fields that mark an object as a definition or a group of definitions, not a map of them."""
_PARAMETERS = (
    "config", "model_parameters", "optional_params", "invocation_params", "kwargs", "toolConfig",
)  # fmt: skip
"""Fields of a body in which tools may be nested: Gemini, LiteLLM, LangChain, Bedrock."""
_MAX_WRAPPERS = 4


@dataclass(frozen=True, slots=True)
class Request:
    """The content of a request; `tools` and `model` are None if it names none."""

    messages: tuple[Message, ...]
    tools: tuple[Json, ...] | None = None
    model: str | None = None


def read_request(value: Json, notes: PartNotes) -> Request:
    """Returns the request in a logged input; it has no messages if the input is not a request."""
    value = decoded(value)
    body = _unwrapped(value)
    if not isinstance(body, dict):
        return Request(tuple(read_messages(body, notes)))
    config = as_dict(body.get("config"))
    model = name_of(body, "model") or name_of(config, "model")
    tools = tools_of(body)
    for place in _PARAMETERS:
        tools = tools_of(as_dict(decoded(body.get(place)))) if tools is None else tools
    system = next(
        (text for one in (body, config) for key in _SYSTEMS if (text := system_text(one.get(key)))),
        "",
    )
    key = next((key for key in _LISTS if body.get(key) not in (None, "", [])), None)
    if "role" in body or is_message(body) or isinstance(body.get("parts"), list):
        listed: Json = [body]
    elif key is None:
        return Request((), tools, model)
    else:
        listed = decoded(body[key])
    if isinstance(listed, dict) and "role" not in listed and not is_message(listed):
        inner = read_request(listed, notes)  # {"input": {"messages": …}}
        messages, tools = list(inner.messages), inner.tools if tools is None else tools
    else:
        messages = read_messages(listed, notes)
    return Request(with_system(messages, system), tools, model)


def _unwrapped(value: Json) -> Json:
    """Returns the body in the logged arguments of a function: `{"args": […], "kwargs": {…}}`."""
    for _ in range(_MAX_WRAPPERS):
        body = as_dict(value)
        named, positional = as_dict(body.get("kwargs")), as_list(body.get("args"))
        if not (named or positional) or any(key in body for key in _LISTS) or "lc" in body:
            break
        value = positional[0] if positional and not any(key in named for key in _LISTS) else named
    return value


def with_system(messages: Sequence[Message], text: str) -> tuple[Message, ...]:
    """Prepends a system text that is logged separately, unless a message has it already."""
    parts = (message for message in messages if message.role in ("system", "developer"))
    if not text or not messages or any(message.parts == (Text(text),) for message in parts):
        return tuple(messages)
    return (Message("system", (Text(text),)), *messages)


def system_text(value: Json) -> str:
    """Returns the system text in a field: a text, parts, a content, or the JSON text of these."""
    value = decoded(value)
    if isinstance(value, dict) and isinstance(value.get("parts"), list):
        value = value["parts"]
    elif isinstance(value, dict) and "content" in value:
        value = value["content"]
    if isinstance(value, str):
        return value
    texts = [
        part.text
        for item in (value if isinstance(value, list) else [value])
        for part in read_parts(_content_of(item))
        if isinstance(part, Text)
    ]
    return "\n\n".join(text for text in texts if text)


def _content_of(item: Json) -> Json:
    part = as_dict(item)
    return part["content"] if "role" in part and "content" in part else item


def tools_of(body: dict[str, Json]) -> tuple[Json, ...] | None:
    """Returns the tool definitions of a body; None if it has no such field."""
    tools: list[Json] = []
    known = False
    for key in _TOOLS:
        if body.get(key) is not None:
            known = True
            tools += definitions(body[key])
    return tuple(tools) if known else None


def definitions(value: Json) -> list[Json]:
    """Returns the definitions in a list of any form: JSON texts, {name: definition}, groups."""
    value = decoded(value)
    if isinstance(value, dict):
        if not isinstance(value.get("name"), str) and not any(key in value for key in _DEFINES):
            # {name: definition}: the AI SDK's tools, Langfuse's column of JSON texts without a name
            listed = ((name, decoded(one)) for name, one in value.items())
            return [{"name": name, **one} for name, one in listed if isinstance(one, dict)]
        value = [value]
    tools: list[Json] = []
    for item in as_list(value):
        tool = decoded(item)
        fields = as_dict(tool)
        grouped = next((fields[key] for key in _TOOLS if isinstance(fields.get(key), list)), None)
        if grouped is not None:
            tools += [decoded(one) for one in as_list(grouped)]
        elif "json_schema" in fields:  # OpenInference: {"json_schema": "<definition>"}
            tools.append(decoded(fields["json_schema"]))
        elif "parameters_json_schema" in fields:  # pydantic-ai
            named = {key: item for key, item in fields.items() if key in ("name", "description")}
            tools.append({**named, "parameters": fields["parameters_json_schema"]})
        elif fields:
            tools.append(tool)
    return tools
