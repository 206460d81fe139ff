"""Implements the dialect of Qwen3: calls as JSON inside `<tool_call>`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from builder.conversation import Json
from builder.jsonio import JsonFault, loads
from builder.qwen3.constants import ADDED_TOKENS
from builder.qwen3.dialect import CallText, Dialect, ParseFault, Signatures
from builder.sample import Call

_HEAD = re.compile(r'\{"name": "([^"\\\x00-\x1f]*)", "arguments": ')
_OPENS = re.compile(r"<tool_call>\s*(?=\{)")
_CLOSES = re.compile(r"\}\s*</tool_call>")
_BREAKS_JSON = re.compile(r'["\\\x00-\x1f\x7f-\x9f]')

UNFIT_NAME = "a name that contains a quote, a backslash or a control character"


def call_text(call: Call) -> str:
    """Writes a call as the template does."""
    return f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.text}}}\n</tool_call>'


def find_calls(text: str, start: int = 0) -> Iterator[CallText]:
    r"""Yields the calls from `start` on, in linear time.

    They are the matches of the pattern with which clients read calls,
    `<tool_call>\s*(\{[\s\S]*?\})\s*</tool_call>`. The pattern itself would scan to the end of the
    text for every opening tag that is never closed.
    """
    while opens := _OPENS.search(text, start):
        closes = _CLOSES.search(text, opens.end() + 1)
        if closes is None:
            return
        inner = text[opens.end() : closes.start() + 1]
        yield CallText(opens.start(), closes.end(), inner, opens.end())
        start = closes.end()


def breaks_json(name: str) -> bool:
    """Returns whether a tool's name breaks the JSON of a call: the template does not escape it."""
    return _BREAKS_JSON.search(name) is not None


def read_call(match: CallText, content: str, _: Signatures | None = None) -> Call:
    """Returns the call at a match of `find_calls`. Raises ParseFault (`calls`, `tools`)."""
    inner, start = match.inner, match.inner_at
    if content[match.start : match.end] != f"<tool_call>\n{inner}\n</tool_call>":
        detail = "no newline after <tool_call> or before </tool_call>"
        raise ParseFault("calls", detail, match.start)
    try:
        value = loads(inner)
    except JsonFault as fault:
        raise ParseFault("calls", f"the call is not JSON: {fault.detail}", start) from None
    if not isinstance(value, dict) or set(value) != {"name", "arguments"}:
        raise ParseFault("calls", "a call has only name and arguments", start)
    name, arguments = value["name"], value["arguments"]
    if isinstance(name, str) and breaks_json(name):
        raise ParseFault("tools", f"{name[:80]!r}: {UNFIT_NAME}", start)
    head = _HEAD.match(inner)
    if head is None or not isinstance(name, str) or head[1] != name:
        detail = 'a call begins with {"name": "…", "arguments": and a name without escapes'
        raise ParseFault("calls", detail, start)
    if not isinstance(arguments, dict):
        raise ParseFault("calls", "the arguments are not a JSON object", start + head.end())
    return Call(name, arguments, inner[head.end() : -1])


def is_canonical(call: Call) -> bool:
    """Returns whether the arguments are written as by `tojson`, except for escaped tokens."""
    return call.text == call.plain or _unescaped_tokens(call.text) == call.plain


_SPELLINGS = {
    "<": r"(?:<|\\u003[cC])",
    ">": r"(?:>|\\u003[eE])",
    "|": r"(?:\||\\u007[cC])",
    "/": r"(?:/|\\/|\\u002[fF])",
}
_ESCAPED_TOKEN = re.compile(
    r"(?<!\\)((?:\\\\)*)("
    + "|".join("".join(_SPELLINGS.get(char, char) for char in token) for token in ADDED_TOKENS)
    + ")"
)
"""Matches a control token in JSON text, plain or with escaped characters."""


def _unescaped_tokens(text: str) -> str:
    return _ESCAPED_TOKEN.sub(lambda match: match[1] + str(loads('"' + match[2] + '"')), text)


def _served(call: Call) -> Json:
    """Returns the object, or its JSON text if `tojson` would write it differently.

    The template inserts a text verbatim.
    """
    return call.arguments if call.text == call.plain else call.text


def _loss(name: str, arguments: Mapping[str, Json], _: Signatures) -> None:
    """Returns None: JSON gives back every value."""


def _stray(_: str) -> None:
    """Returns None: a call begins with a control token, which no trained text contains."""


JSON = Dialect("JSON", call_text, find_calls, read_call, _loss, _stray, _served)
