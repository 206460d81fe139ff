"""Parses calls written as `<function=name><parameter=key>value</parameter></function>`.

Source: docs/formats/swe-smith.md, docs/formats/openhands-v0.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_

from builder.conversation import Json, Message, Part, Text, ToolCall, ToolResult, Unparsed
from builder.jsonio import JsonFault
from builder.readers.toolkit.chat_messages import content, reasoning
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.literals import past_space
from builder.readers.toolkit.literals import value as literal
from builder.readers.toolkit.narrow import as_dict, as_list, as_str
from builder.readers.toolkit.thoughts import read_thoughts
from builder.readers.toolkit.unknown_keys import noted

_HEADING = "You have access to the following functions:"
"""The beginning of the section on functions in a system text."""
_CALL_FORMAT = "If you choose to call a function ONLY reply in the following format"
_REMINDER_END = "</IMPORTANT>"
_FUNCTION = re.compile(r"^---- BEGIN FUNCTION #\d+: (?P<name>.+?) ----\n", re.MULTILINE)
_FUNCTION_END = re.compile(r"^---- END FUNCTION #\d+ ----", re.MULTILINE)
_PARAMETER = re.compile(
    r"^  \(\d+\) (?P<name>\S+) \((?P<type>[^(),\n]+), (?P<need>required|optional)\): ?",
    re.MULTILINE,
)
_ALLOWED = re.compile(r"\s*Allowed values: \[(?P<values>`[^\n]*`)\]\s*$")
_NO_PARAMETERS = "No parameters are required for this function."

_STRING = frozenset({"string"})
_NAMES = {
    "integer": "number", "int": "number", "float": "number", "str": "string", "bool": "boolean",
    "list": "array", "dict": "object",
}  # fmt: skip
"""Names of types in definitions, by JSON's own, among which integers are numbers."""

_CALL = re.compile(r"^<function=(?P<name>[^<>\n]+)>", re.MULTILINE)
_CALL_END = re.compile(r"\s*</function>")
_ARGUMENT = re.compile(r"\s*<parameter=(?P<name>[^<>\n]+)>")
_ARGUMENT_END = re.compile(r"</parameter>(?=\s*(?:<parameter=|</function>))")


def take_definitions(text: str, changes: Counter[str]) -> tuple[str, tuple[Json, ...] | None]:
    """Splits a system text into the text without its section on functions, and the definitions.

    The definitions are None if there is no such section. The explanation of the call format at the
    end of the section is removed too, since the chat template has its own. `changes` counts
    `tools_preamble`.
    """
    start = text.find(_HEADING)
    first = _FUNCTION.search(text, start) if start >= 0 else None
    if first is None:
        return text, None
    definitions: list[Json] = []
    at = first.start()
    while opening := _FUNCTION.match(text, at):
        closing = _FUNCTION_END.search(text, opening.end())
        if closing is None:
            return text, None
        definitions.append(_definition(opening["name"], text[opening.end() : closing.start()]))
        at = past_space(text, closing.end())
    if text.startswith(_CALL_FORMAT, at):
        reminder = text.find(_REMINDER_END, at)
        at = reminder + len(_REMINDER_END) if reminder >= 0 else len(text)
    changes["tools_preamble"] += 1
    rest = (text[:start].rstrip(), text[at:].strip())
    return "\n\n".join(piece for piece in rest if piece), tuple(definitions)


def _definition(name: str, body: str) -> Json:
    """Returns the definition of one function, whose last list of parameters is used."""
    description, _, parameters = body.rpartition("\nParameters:\n")
    matches = list(_PARAMETER.finditer(parameters))
    if not matches:
        description = body.rpartition(_NO_PARAMETERS)[0] or body
    properties: dict[str, Json] = {}
    for index, match in enumerate(matches):
        end = matches[index + 1].start() if index + 1 < len(matches) else len(parameters)
        text = parameters[match.end() : end].strip()
        schema: dict[str, Json] = {"type": match["type"].strip()}
        if allowed := _ALLOWED.search(text):
            schema["enum"] = [*re.findall(r"`([^`]*)`", allowed["values"])]
            text = text[: allowed.start()]
        properties[match["name"]] = {"description": text, **schema}
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description.strip().removeprefix("Description:").strip(),
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": [match["name"] for match in matches if match["need"] == "required"],
            },
        },
    }


_Types = Mapping[tuple[str, str], frozenset[str]]
"""The JSON types of (function, parameter); empty if the definition states none."""


def parameter_types(definitions: tuple[Json, ...] | None) -> _Types:
    """Returns the types of the parameters in the definitions, which may lack OpenAI's wrapper."""
    types: dict[tuple[str, str], frozenset[str]] = {}
    for definition in definitions or ():
        function = as_dict(definition, "function") or as_dict(definition)
        properties = as_dict(function, "parameters", "properties")
        for name, schema in properties.items():
            types[as_str(function.get("name")), name] = _types(schema)
    return types


def _types(schema: Json) -> frozenset[str]:
    """Returns the types that a schema allows; empty if it states none."""
    stated = as_dict(schema).get("type")
    listed = stated if isinstance(stated, list) else [stated]
    options = [_types(one) for key in ("anyOf", "oneOf") for one in as_list(schema, key)]
    named = (_NAMES.get(one.lower(), one.lower()) for one in listed if isinstance(one, str))
    return frozenset(named).union(*options) if all(options) else frozenset()


def assistant_parts(
    text: str,
    types: _Types,
    wrapped: frozenset[str] | None,
    changes: Counter[str],
) -> tuple[Part, ...]:
    """Returns the text and calls of an assistant message, in order.

    A call begins on a new line. `wrapped` names the parameters whose values have a newline before
    and after them; None: all multi-line values. A call that cannot be parsed becomes `bad_call`,
    with all text after it.
    """
    parts: list[Part] = []
    at = 0
    while opening := _CALL.search(text, at):
        if words := text[at : opening.start()].removesuffix("\n").removesuffix("\n"):
            parts.append(Text(words))
        arguments: dict[str, Json] = {}
        at = opening.end()
        while argument := _ARGUMENT.match(text, at):
            end = _ARGUMENT_END.search(text, argument.end())
            if end is None:
                break
            value = text[argument.end() : end.start()]
            in_lines = value.startswith("\n") and value.endswith("\n") and len(value) > 1
            if in_lines and (wrapped is None or argument["name"] in wrapped):
                value = value[1:-1]
            allowed = types.get((opening["name"], argument["name"]), _STRING)
            arguments[argument["name"]] = _typed(value, allowed, changes)
            at = end.end()
        closing = _CALL_END.match(text, at)
        if closing is None:
            return (*parts, Unparsed(text[opening.start() :], "bad_call"))
        parts.append(ToolCall(opening["name"], arguments))
        at = closing.end()
    if rest := text[at:] if at == 0 else text[at:].strip("\n"):
        parts.append(Text(rest))
    return tuple(parts)


def _typed(text: str, types: frozenset[str], changes: Counter[str]) -> Json:
    """Returns the value in the text of a parameter.

    It is the text where only text is allowed, where it is no other value, or where text is allowed
    beside other types than that of the value.
    """
    if types == _STRING:
        return text
    trial: Counter[str] = Counter()
    try:
        value = literal(text, trial)
    except JsonFault:
        return text
    if "string" in types and _type_of(value) not in types:
        return text
    changes.update(trial)
    return value


def _type_of(value: Json) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, int | float):
        return "number"
    return {str: "string", list: "array"}.get(type(value), "object")


# -- chat messages with such calls ----------------------------------------------------------------

_BARE = re.compile(r"(?<!<tool_call>)(?<!<tool_call>\n)^<function=[\w.-]+>", re.MULTILINE)
_OPENHANDS_RESULT = "EXECUTION RESULT of ["
_ROLES = frozenset({"system", "user", "assistant"})
_WRAPPED = frozenset({"old_str", "new_str", "file_text"})
"""Parameters whose values SWE-smith writes on separate lines."""


def has_function_calls(items: Iterable[Json]) -> bool:
    """Returns whether messages have calls or definitions in OpenHands' dialect, none in another."""
    messages = [as_dict(item) for item in items]
    if not all(as_str(item, "role") in _ROLES for item in messages):
        return False
    if any(item.get("tool_calls") or item.get("function_call") for item in messages):
        return False
    if messages and _HEADING in (text := _text_of(messages[0].get("content"))):
        return take_definitions(text, Counter())[1] is not None
    return any(
        item["role"] == "assistant" and _BARE.search(_text_of(item.get("content")))
        for item in messages
    )


def _text_of(value: Json) -> str:
    if isinstance(value, list):
        return "".join(as_str(part, "text") for part in value)
    return as_str(value)


def function_messages(
    items: Sequence[Json], changes: Counter[str]
) -> tuple[list[Message], tuple[Json, ...] | None]:
    """Returns the messages of OpenHands' dialect, and the definitions in the system text or None.

    `changes` counts `tools_preamble`.
    """
    rows = [as_dict(item) for item in items]
    openhands = any(_text_of(row.get("content")).startswith(_OPENHANDS_RESULT) for row in rows)
    tools: tuple[Json, ...] | None = None
    messages: list[Message] = []
    for row in rows:
        role, value = as_str(row.get("role")), row.get("content")
        if role == "assistant":
            types = parameter_types(tools)
            wrapped = None if openhands else _WRAPPED
            parts: list[Part] = []
            for part in read_thoughts((*reasoning(row), *content(value)), changes):
                if isinstance(part, Text):
                    parts += assistant_parts(part.text, types, wrapped, changes)
                else:
                    parts.append(part)
            message = Message(role, tuple(parts))
        elif role == "user" and messages and calls(messages[-1]):
            message = Message("tool", (ToolResult(content(value)),))
        else:
            if role == "system" and tools is None and value:
                value, tools = take_definitions(_text_of(value), changes)
            message = Message(role[:40], content(value))
        messages += noted([message], row)
    return messages, tools


def with_function_calls(
    messages: Iterable[Message], tools: tuple[Json, ...] | None, changes: Counter[str]
) -> tuple[Message, ...]:
    """Returns the messages with the calls in Qwen3-Coder's tags, which the tags' parser left over.

    Their values are text; the definitions say which are of another type.
    """
    messages = tuple(messages)
    types: _Types | None = None
    completed: list[Message] = []
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            read: tuple[Part, ...] = (part,)
            if isinstance(part, Unparsed) and part.text.startswith("<function="):
                types = parameter_types(tools) if types is None else types
                trial: Counter[str] = Counter()
                one = assistant_parts(part.text, types, None, trial)
                if all(isinstance(item, ToolCall) for item in one):
                    changes.update(trial)
                    read = one
            parts += read
        same = len(parts) == len(message.parts) and all(map(is_, parts, message.parts))
        completed.append(message if same else replace(message, parts=tuple(parts)))
    return tuple(completed)
