"""Visits and changes all texts of a dialogue that are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from builder.conversation import Json
from builder.jsonio import dumps
from builder.sample import Call, Dialogue, Turn
from builder.text import escape_tokens


def dialogue_strings(dialogue: Dialogue) -> Iterator[tuple[str, str]]:
    """Yields (name of the member or "", text) for all texts of a dialogue that are written."""
    for turn in dialogue.turns:
        if turn.content:
            yield "", turn.content
        if turn.reasoning:
            yield "", turn.reasoning
        for call in turn.calls:
            yield "", call.name
            yield from value_strings(call.arguments)
        for response in turn.responses:
            yield "", response
    for tool in dialogue.tools:
        yield from value_strings(tool)


def value_strings(value: Json, name: str = "") -> list[tuple[str, str]]:
    """Returns (name of the member or "", text) of the strings and keys of a JSON value."""
    strings: list[tuple[str, str]] = []
    _collect(value, name, strings)
    return strings


def _collect(value: Json, name: str, strings: list[tuple[str, str]]) -> None:
    if isinstance(value, str):
        strings.append((name, value))
    elif isinstance(value, list):
        for before, item in pairwise((None, *value)):
            _collect(item, _name_in_list(before, name), strings)
    elif isinstance(value, dict):
        for key, item in value.items():
            strings.append(("", key))
            _collect(item, _name_of(key, value, name), strings)


_TYPED = ("text", "value", "input", "input_text", "content", "keys", "query", "string")
_FIELDS = (
    "element", "selector", "ref", "field", "label", "locator", "placeholder", "target", "name",
    "id", "css", "xpath", "description", "role",
)  # fmt: skip
"""Members of a browser tool's arguments: what is typed, and where."""
_FOR_PASSWORDS = re.compile(
    r"passw(?:or[dt]|d)|passphrase|passcode|kennwort|contrase.a|mot de passe|senha"
    r"|wachtwoord|\bpin\b",
    re.IGNORECASE,
)
_SCHEMA_VALUES = ("default", "const", "example", "examples", "enum")
_OF_COOKIES = ("domain", "httpOnly", "sameSite", "path", "url", "expires", "expirationDate")
"""Members of an object that is a cookie."""
_IS_SESSION = re.compile(r"sess|sid|auth|token|jwt|login|remember|ticket|cred", re.IGNORECASE)
_SESSION = "session_token"
"""The name of the value of a cookie that logs someone in."""
_OPTION = re.compile(r"--?[A-Za-z][\w.-]{2,60}")


def _name_of(key: str, owner: dict[str, Json], outer: str) -> str:
    """Returns the name that describes a member; `outer` is the name of its object.

    In {"name": "API_KEY", "value": …} the `value` takes the name from `name`, what a browser types
    into a field described as one for passwords is named `password`, and in a schema the possible
    values of a property take the property's name. Cookies that log someone in have one name.
    """
    if outer.lower().endswith(("cookie", "cookies")) and _IS_SESSION.search(key):
        return _SESSION
    if key in _TYPED:
        for naming in _FIELDS:
            if isinstance(given := owner.get(naming), str) and _FOR_PASSWORDS.search(given[:400]):
                return "password"
    if key in ("value", "Value"):
        for naming in ("name", "key", "Name", "Key"):
            if isinstance(given := owner.get(naming), str):
                is_cookie = not owner.keys().isdisjoint(_OF_COOKIES) and _IS_SESSION.search(given)
                return _SESSION if is_cookie else given
    return outer if key in _SCHEMA_VALUES and outer else key


def _name_in_list(before: Json, outer: str) -> str:
    """Returns the name that describes an item of a list: the option before it, or the list's."""
    return before if isinstance(before, str) and _OPTION.fullmatch(before) else outer


Change = Callable[[str, str], str]
"""(text, name of the member or "") → text."""


def map_dialogue(dialogue: Dialogue, change: Change, tokens: re.Pattern[str]) -> Dialogue:
    """Returns the dialogue with all texts changed. Raises KeyError as `map_value` does."""
    return Dialogue(
        tuple(_map_turn(turn, change, tokens) for turn in dialogue.turns),
        tuple(map_value(tool, change) for tool in dialogue.tools),
    )


def _map_turn(turn: Turn, change: Change, tokens: re.Pattern[str]) -> Turn:
    return replace(
        turn,
        content=change(turn.content, ""),
        reasoning=change(turn.reasoning, ""),
        calls=tuple(_map_call(call, change, tokens) for call in turn.calls),
        responses=tuple(change(text, "") for text in turn.responses),
    )


def _map_call(call: Call, change: Change, tokens: re.Pattern[str]) -> Call:
    arguments = map_value(call.arguments, change)
    assert isinstance(arguments, dict), "a mapped object is an object"
    if arguments == call.arguments:
        return replace(call, name=change(call.name, ""))
    text, _ = escape_tokens(dumps(arguments), tokens)
    return Call(change(call.name, ""), arguments, text)


def map_value(value: Json, change: Change, name: str = "") -> Json:
    """Returns the value with `change` applied to its strings and keys.

    Raises KeyError if two keys of one object become equal.
    """
    if isinstance(value, str):
        return change(value, name)
    if isinstance(value, list):
        return [
            map_value(item, change, _name_in_list(before, name))
            for before, item in pairwise((None, *value))
        ]
    if isinstance(value, dict):
        mapped = {
            change(key, ""): map_value(item, change, _name_of(key, value, name))
            for key, item in value.items()
        }
        if len(mapped) != len(value):
            raise KeyError("two keys become equal")
        return mapped
    return value
