"""Defines a kind of mutation, and helpers that say where it applies and what it changes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Change = Callable[[Row], Row | None]
"""Changes a deep copy of a row, or returns None if the mutation does not fit."""
Edit = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One kind of mutation, and its codes: a report must contain at least one of them."""

    name: str
    change: Change
    codes: frozenset[str]


Edits = dict[tuple[Callable[[Any], Change], frozenset[str]], dict[str, Any]]
"""Edits by the name of their kind, by the place that they change and the codes of their kinds."""


def kinds(edits: Edits) -> tuple[Mutation, ...]:
    return tuple(
        Mutation(name, place(edit), found)
        for (place, found), named in edits.items()
        for name, edit in named.items()
    )


CALL = re.compile(r'<tool_call>\n\{"name": "([^"]*)", "arguments": (.*)\}\n</tool_call>')
CALL_XML = re.compile(r"<tool_call>\n<function=([^>\n]+)>\n[\s\S]*?</function>\n</tool_call>")
BLOCK = re.compile(r"<tool_response>\n([\s\S]*?)\n</tool_response>")


def is_response(message: Row) -> bool:
    content: str = message["content"]
    return (
        message["role"] == "user"
        and content.startswith("<tool_response>")
        and content.endswith(
            ("</tool_response>", "</tool_response>\n")
        )  # Coder ends with a newline
    )


def in_message(fits: Callable[[Row], bool], edit: Edit, *, last: bool = False) -> Change:
    """Edits the content of the first (or last) message that fits and that the edit changes."""

    def change(row: Row) -> Row | None:
        for message in reversed(row["messages"]) if last else row["messages"]:
            if fits(message):
                edited = edit(message["content"])
                if edited is not None and edited != message["content"]:
                    message["content"] = edited
                    return row
        return None

    return change


def in_role(role: str, edit: Edit) -> Change:
    return in_message(lambda message: message["role"] == role, edit)


def in_answer(edit: Edit) -> Change:
    return in_role("assistant", edit)


def in_query(edit: Edit) -> Change:
    return in_message(lambda m: m["role"] == "user" and not is_response(m), edit)


def in_response(edit: Edit) -> Change:
    return in_message(is_response, edit)


def inside(edit: Callable[[str], str]) -> Edit:
    """Edits the text of the first tool response in a turn that the edit changes."""

    def change(content: str) -> str | None:
        for found in BLOCK.finditer(content):
            if edit(found[1]) != found[1]:
                return content[: found.start(1)] + edit(found[1]) + content[found.end(1) :]
        return None

    return change


def in_prose(edit: Edit) -> Change:
    """Edits the last assistant turn if it is plain text without calls and thoughts."""
    return in_message(
        lambda m: m["role"] == "assistant" and "<" not in m["content"], edit, last=True
    )


def swap(old: str, new: str) -> Edit:
    return lambda text: text.replace(old, new, 1) if old in text else None


def in_call(edit: Callable[[str, str], str | None]) -> Change:
    """Replaces the first call, given its name and the JSON text of its arguments."""

    def change(content: str) -> str | None:
        for found in CALL.finditer(content):
            new = edit(found[1], found[2])
            if new is not None and new != found[0]:
                return content[: found.start()] + new + content[found.end() :]
        return None

    return in_answer(change)


def call(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def in_arguments(edit: Edit) -> Change:
    """Replaces the JSON text of the arguments of the first call that the edit changes."""

    def change(name: str, text: str) -> str | None:
        edited = edit(text)
        return None if edited is None else call(name, edited)

    return in_call(change)


def in_value(edit: Callable[[Any], Any]) -> Change:
    """Changes the first scalar of the arguments that the edit changes; writes canonical JSON."""

    def change(text: str) -> str | None:
        value, done = first_changed(json.loads(text), edit)
        return json.dumps(value, ensure_ascii=False) if done else None

    return in_arguments(change)


def first_changed(value: Any, edit: Callable[[Any], Any]) -> tuple[Any, bool]:
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in list(items):
            new, done = first_changed(item, edit)
            if done:
                value[key] = new
                return value, True
        return value, False
    new = edit(value)
    return new, json.dumps(new) != json.dumps(value)


def string_edit(edit: Edit) -> Callable[[Any], Any]:
    def change(value: Any) -> Any:
        edited = edit(value) if isinstance(value, str) else None
        return value if edited is None else edited

    return change


def in_messages(edit: Callable[[list[Any]], list[Any] | None]) -> Change:
    """Replaces the list of messages."""

    def change(row: Row) -> Row | None:
        edited = edit(row["messages"])
        return None if edited is None else {**row, "messages": edited}

    return change


def in_tools(edit: Callable[[list[Any]], Any]) -> Change:
    """Replaces the list of tools of a sample that has tools."""

    def change(row: Row) -> Row | None:
        if not row["tools"]:
            return None
        edited = edit(row["tools"])
        return None if edited is None else {**row, "tools": edited}

    return change


def in_message_row(edit: Callable[[Row], Any]) -> Change:
    """Replaces the last user message as a whole."""

    def change(row: Row) -> Row | None:
        for at in range(len(row["messages"]) - 1, -1, -1):
            if row["messages"][at]["role"] == "user":
                row["messages"][at] = edit(row["messages"][at])
                return row
        return None

    return change


def place(messages: list[Any], fits: Callable[[Row], bool]) -> int | None:
    return next((at for at, message in enumerate(messages) if fits(message)), None)


def found_calls(text: str) -> list[re.Match[str]]:
    """Returns the calls in a text, whose first group is the name."""
    return list(CALL.finditer(text)) or list(CALL_XML.finditer(text))


def asks(message: Row) -> bool:
    return message["role"] == "assistant" and bool(found_calls(message["content"]))


def split_response_turn(messages: list[Any]) -> list[Any] | None:
    at = place(messages, lambda m: is_response(m) and len(BLOCK.findall(m["content"])) > 1)
    if at is None:
        return None
    turns = [
        {"role": "user", "content": found[0]} for found in BLOCK.finditer(messages[at]["content"])
    ]
    return [*messages[:at], *turns, *messages[at + 1 :]]


def without(fits: Callable[[Row], bool]) -> Callable[[list[Any]], list[Any] | None]:
    def edit(messages: list[Any]) -> list[Any] | None:
        at = place(messages, fits)
        return None if at is None else [*messages[:at], *messages[at + 1 :]]

    return edit


def role_of_responses(role: str) -> Change:
    def change(row: Row) -> Row | None:
        at = place(row["messages"], is_response)
        if at is None:
            return None
        row["messages"][at]["role"] = role
        return row

    return change


def call_twice(messages: list[Any]) -> list[Any] | None:
    """Repeats the first answered call."""
    for at, message in enumerate(messages[:-1]):
        if asks(message):
            message["content"] += f"\n{found_calls(message['content'])[0][0]}"
            return [*messages[:at], message, *messages[at + 1 :]]
    return None


def swapped_responses(content: str) -> str | None:
    blocks = [found[0] for found in BLOCK.finditer(content)]
    if "\n".join(blocks) != content or blocks == blocks[::-1]:
        return None
    return "\n".join(reversed(blocks))


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered(item) for key, item in reversed(value.items())}
    return value


def first_exchange(messages: list[Any]) -> list[Any] | None:
    """Keeps the messages up to the first answer without calls, unless it is the last."""
    at = place(messages, lambda m: m["role"] == "assistant" and not asks(m))
    return None if at is None or at + 1 == len(messages) else messages[: at + 1]


def swapped_turns(messages: list[Any]) -> list[Any] | None:
    at = place(messages, asks)
    if at is None or at + 1 >= len(messages):
        return None
    return [*messages[:at], messages[at + 1], messages[at], *messages[at + 2 :]]


def late_system(messages: list[Any]) -> list[Any]:
    return [*messages[:-1], {"role": "system", "content": "Be brief."}, messages[-1]]


def defined_elsewhere(tools: list[Any]) -> list[Any]:
    function = {**tools[0]["function"], "name": tools[0]["function"]["name"] + "_v2"}
    return [{**tools[0], "function": function}, *tools[1:]]


def in_function(edit: Callable[[Row], Any]) -> Change:
    """Changes the first tool definition that the edit changes."""

    def change(tools: list[Any]) -> list[Any] | None:
        for at, tool in enumerate(tools):
            function = edit(dict(tool["function"]))
            if function is not None and json.dumps(function) != json.dumps(tool["function"]):
                return [*tools[:at], {**tool, "function": function}, *tools[at + 1 :]]
        return None

    return in_tools(change)


def nulls(function: Row) -> Row | None:
    """Fills structs as Arrow does: every property gets the keys of the others."""
    parameters = function.get("parameters")
    if not isinstance(parameters, dict):
        return None
    properties = parameters.get("properties")
    if not isinstance(properties, dict) or not properties:
        return None
    return {**function, "parameters": {**parameters, "properties": {**properties, "n": None}}}


def escaped_non_ascii(text: str) -> str:
    return json.dumps(json.loads(text))


def compact(text: str) -> str:
    return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))


def indented(text: str) -> str | None:
    value = json.loads(text)
    return json.dumps(value, ensure_ascii=False, indent=2) if value else None


def exponent(text: str) -> str | None:
    """Writes a number of the arguments in another spelling of the same value."""
    found = re.search(r"(?<=: )(-?\d+)(?=[,}\]])", text)
    return None if found is None else f"{text[: found.start()]}{found[1]}e0{text[found.end() :]}"


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def codes(*names: str) -> frozenset[str]:
    return frozenset(names)


CALLS = codes("calls")
PAIRS = codes("pairing")
ORDER = codes("order")
FORMAT = codes("format")
OTHER_FORM = codes("format", "converted")
"""`verify` reports rows that it had to convert: they are not proven as stored."""
TOKENS = codes("tokens", "inverse")
OTHER = codes("inverse", "calls", "structured", "order")
"""Codes of a well-formed but different sample, found in comparison with the dialogue."""


def call_of(row: Row, tool: Row) -> bool:
    name = tool["function"]["name"]
    return any(
        found[1] == name
        for m in row["messages"]
        if m["role"] == "assistant"
        for found in found_calls(m["content"])
    )
