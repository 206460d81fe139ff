"""Parses calls and tool definitions that ToolACE writes as text.

Source: docs/formats/toolace.md. A turn with calls is
`[Market Trends API(type="INDEX", country="us"), other.f(a=1)]`: names contain spaces, dots, slashes
and hyphens, so this is not Python. Values are literals of Python or JSON, or words without quotes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from builder.conversation import Json, Part, Text, ToolCall, Unparsed
from builder.jsonio import JsonFault
from builder.readers.toolkit.literals import past_space, scan, value

_LIST = re.compile(
    r"(?:Here is|Below is) a list of functions in JSON format that you can (?:invoke|use)[:.]?\s*"
    r"(?=\[)",
    re.IGNORECASE,
)
_FORMAT = re.compile(
    r"Should you decide to return the function call\(s\)\W*"
    r"|Put it in the format of \[[^\]]*\]\W*"
    r"|NO other text MUST be included\W*"
)
_EMPTY = re.compile(r"\(\s*\)")
_NAME = re.compile(r"[^()\[\]{}=\"',]+(?=\()")
_KEY = re.compile(r"\s*(?P<key>[^\s()\[\]{}=\"',]+)\s*=\s*")
_WORD = re.compile(r"[^\s()\[\]{}=\"',][^()\[\]{}=\"',]*")
_NEXT = re.compile(r"\s*(?P<mark>[,)\]])\s*")


def lists_tools(system: str) -> bool:
    """Returns whether a system text introduces its tools in ToolACE's words."""
    return _LIST.search(system) is not None


def take_tools(system: str, changes: Counter[str]) -> tuple[str, tuple[Json, ...] | None]:
    """Returns the author's own words in a system text, and its definitions or None.

    Also removes the explanation of ToolACE's call format. `changes` counts `tools_preamble`.
    Raises JsonFault if the list cannot be read.
    """
    match = _LIST.search(system)
    if match is None:
        return system, None
    _, end = scan(system, match.end())
    definitions = value(system[match.end() : end], changes)
    changes["tools_preamble"] += 1
    rest = _FORMAT.sub("", system[end:].removeprefix("."))
    words = "\n".join(text.strip() for text in (system[: match.start()], rest) if text.strip())
    return words, tuple(definitions) if isinstance(definitions, list) else (definitions,)


def assistant_parts(text: str, names: Iterable[str]) -> list[Part]:
    """Returns the calls in a turn, or its text.

    A text in brackets that cannot be read as calls is a broken call if it begins with one of the
    defined `names`, otherwise prose.
    """
    body = text.strip()
    if not body.startswith("["):
        return [Text(text)] if text else []
    longest_first = sorted(names, key=len, reverse=True)
    try:
        return [*_calls(body, longest_first)]
    except JsonFault:
        begin = past_space(body, 1)
        if any(body.startswith(f"{name}(", begin) for name in longest_first):
            return [Unparsed(text, "bad_call")]
        return [Text(text)]


def _calls(body: str, names: list[str]) -> list[ToolCall]:
    """Returns the calls between brackets. Raises JsonFault if the text is anything else."""
    calls: list[ToolCall] = []
    at = 1
    mark = ","
    while mark == ",":
        name, at = _name(body, at, names)
        arguments, at = _arguments(body, at)
        calls.append(ToolCall(name, arguments))
        mark, at = _mark(body, at)
    if mark != "]" or at != len(body):
        raise JsonFault("bad_json", f"text after the calls at character {at}")
    return calls


def calls_in_lines(text: str, names: Iterable[str]) -> list[ToolCall]:
    """Returns the calls in a text, `f(a=1)` in each line. Raises JsonFault for any other text.

    Only the defined `names` may contain white space.
    """
    longest_first = sorted(names, key=len, reverse=True)
    calls: list[ToolCall] = []
    at = past_space(text, 0)
    while at < len(text):
        begin = at
        name, at = _name(text, at, longest_first)
        if name not in longest_first and len(name.split()) > 1:
            raise JsonFault("bad_json", f"no name of a function at character {begin}")
        arguments, at = _arguments(text, at)
        calls.append(ToolCall(name, arguments))
        at = past_space(text, at)
    return calls


def _name(body: str, at: int, names: list[str]) -> tuple[str, int]:
    at = past_space(body, at)
    for name in names:
        if body.startswith(f"{name}(", at):
            return name, at + len(name)
    match = _NAME.match(body, at)
    if match is None:
        raise JsonFault("bad_json", f"no name of a function at character {at}")
    return match[0].strip(), match.end()


def _arguments(body: str, at: int) -> tuple[dict[str, Json], int]:
    """Returns the arguments from the opening parenthesis at `at`, and the position after them."""
    arguments: dict[str, Json] = {}
    if empty := _EMPTY.match(body, at):
        return arguments, empty.end()
    mark = ","
    at += 1
    while mark == ",":
        key = _KEY.match(body, at)
        if key is None:
            raise JsonFault("bad_json", f"no name of an argument at character {at}")
        arguments[key["key"]], at = _value(body, key.end())
        mark, at = _mark(body, at, keep_space=True)
    if mark != ")":
        raise JsonFault("bad_json", f"arguments that do not end at character {at}")
    return arguments, at


def _value(body: str, at: int) -> tuple[Json, int]:
    """Returns a literal, or the unquoted text (such as a date) up to the next mark."""
    fault = JsonFault("bad_json", f"no value at character {at}")
    try:
        value, end = scan(body, at)
    except JsonFault as broken:
        fault = broken
    else:
        if _NEXT.match(body, end):
            return value, end
    word = _WORD.match(body, at)
    if word is None or fault.code != "bad_json":
        raise fault
    return word[0].strip(), word.end()


def _mark(body: str, at: int, *, keep_space: bool = False) -> tuple[str, int]:
    """Returns the next comma or closing bracket, and the position after it."""
    match = _NEXT.match(body, at)
    if match is None:
        raise JsonFault("bad_json", f"neither a comma nor a bracket at character {at}")
    return match["mark"], match.end("mark") if keep_space else match.end()
