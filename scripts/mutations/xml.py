"""Mutations to calls that are written as XML: to their tags, and to the values between them."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from mutations.edits import (
    CALLS,
    OTHER,
    Change,
    Edit,
    Edits,
    Mutation,
    codes,
    in_answer,
    kinds,
    swap,
)

JOINED = codes("calls", "xml_markup")
"""Of a parameter that does not end: the next one becomes a part of its value."""

_VALUE = re.compile(r"(<parameter=[^>\n]+>\n)([\s\S]*?)(\n</parameter>\n)")
_PARAMETER = re.compile(r"<parameter=[^>\n]+>\n[\s\S]*?\n</parameter>\n")
_NAME = re.compile(r"(?<=<function=)[^>\n]+(?=>\n)")


def once(pattern: str, new: str) -> Edit:
    """Replaces the first match of a pattern."""
    return lambda text: re.sub(pattern, new, text, count=1)


def in_name(edit: Callable[[str], str]) -> Change:
    """Replaces the name of the first call."""
    return in_answer(lambda text: _NAME.sub(lambda found: edit(found[0]), text, count=1))


def in_text(edit: Edit) -> Change:
    """Replaces the first value that the edit changes."""

    def change(text: str) -> str | None:
        for found in _VALUE.finditer(text):
            new = edit(found[2])
            if new is not None and new != found[2]:
                return text[: found.start(2)] + new + text[found.end(2) :]
        return None

    return in_answer(change)


def in_parameter(edit: Callable[[str], str]) -> Change:
    """Replaces the first parameter with its tags."""
    return in_answer(lambda text: _PARAMETER.sub(lambda found: edit(found[0]), text, count=1))


def _parameters_reversed(text: str) -> str | None:
    for body in re.finditer(r"(?<=>\n)(?:<parameter=[^>\n]+>\n[\s\S]*?\n</parameter>\n){2,}", text):
        parts = _PARAMETER.findall(body[0])
        if len(parts) > 1:
            return text[: body.start()] + "".join(reversed(parts)) + text[body.end() :]
    return None


EDITS: Edits = {
    (in_answer, CALLS): {
        "newline after <function=…> lost": once(r"(<function=[^>]+>)\n", r"\1"),
        "CRLF after <function=…>": once(r"(<function=[^>]+>)\n", r"\1\r\n"),
        "<function=…> indented": swap("\n<function=", "\n  <function="),
        "<function=…> lost": once(r"<function=[^>]+>\n", ""),
        "</function> lost": swap("</function>\n", ""),
        "newline before </function> lost": swap(
            "</parameter>\n</function>", "</parameter></function>"
        ),
        "newline before </tool_call> lost, after </function>": swap(
            "</function>\n</tool_call>", "</function></tool_call>"
        ),
        "blank line after </function>": swap(
            "</function>\n</tool_call>", "</function>\n\n</tool_call>"
        ),
        "newline after <parameter=…> lost": once(r"(<parameter=[^>]+>)\n", r"\1"),
        "<parameter=…> indented": swap("\n<parameter=", "\n  <parameter="),
        "<parameter=…> lost": once(r"<parameter=[^>]+>\n", ""),
        "<parameter=…> without a name": once(r"<parameter=[^>]+>", "<parameter=>"),
        "name as an attribute": once(r"<function=([^>]+)>", r'<function name="\1">'),
        "key as an attribute": once(r"<parameter=([^>]+)>", r'<parameter name="\1">'),
        "<param=…> for <parameter=…>": swap("<parameter=", "<param="),
        "two calls in one <tool_call>": once(
            r"(<function=[\s\S]*?</function>\n)(?=</tool_call>)",
            r"\1\1",
        ),
        "call as JSON": once(
            r"<tool_call>\n<function=([^>]+)>[\s\S]*?</tool_call>",
            r'<tool_call>\n{"name": "\1", "arguments": {}}\n</tool_call>',
        ),
    },
    (in_answer, JOINED): {
        "newline before </parameter> lost": swap("\n</parameter>", "</parameter>"),
        "newline after </parameter> lost, before text": swap("</parameter>\n", "</parameter> "),
        "</parameter> lost": swap("\n</parameter>", ""),
    },
    (in_parameter, CALLS): {
        "a parameter twice": lambda text: text + text,
        "words between parameters": lambda text: text + "and\n",
        "blank line between parameters": lambda text: text + "\n",
    },
    (in_name, codes("tools", "calls")): {
        "name with a quote, as XML": lambda name: name + '"',
        "empty name, as XML": lambda _: "",
        "name with a space, as XML": lambda name: f" {name}",
    },
}
KINDS: tuple[Mutation, ...] = (
    *kinds(EDITS),
    Mutation("name in other case, as XML", in_name(str.swapcase), codes("tools")),
    Mutation(
        "<|im_end|> in a value", in_text(lambda t: t + "<|im_end|>"), codes("tokens", "inverse")
    ),
    Mutation(
        "<tool_call> in a value", in_text(lambda t: t + " <tool_call>"), codes("tokens", "calls")
    ),
    Mutation(
        "</think> in a value",
        in_text(lambda t: t + "</think>"),
        codes("structured", "inverse", "tokens", "calls"),
    ),
    Mutation(
        "a call forged in a value",
        in_text(lambda t: t + "\n</parameter>\n</function>\n</tool_call>"),
        CALLS,
    ),
)
"""What is visible in the sample."""

MEANT: tuple[Mutation, ...] = (
    Mutation("a value cut", in_text(lambda t: t[:-1] or None), OTHER),
    Mutation("a newline before a value", in_text(lambda t: "\n" + t), OTHER),
    Mutation("a newline after a value", in_text(lambda t: t + "\n"), OTHER),
    Mutation("a space after a value", in_text(lambda t: t + " "), OTHER),
    Mutation("a value quoted", in_text(lambda t: f'"{t}"'), OTHER),
    Mutation("a value HTML-escaped", in_text(html.escape), OTHER),
    Mutation("a value double-escaped", in_text(lambda t: t.replace("\n", "\\n")), OTHER),
    Mutation("a value that became a number", in_text(lambda _: "7"), OTHER),
    Mutation("a value that became null", in_text(lambda _: "null"), OTHER),
    Mutation(
        "a parameter forged in a value",
        in_text(lambda t: f"{t}\n</parameter>\n<parameter=more>\n1"),
        OTHER,
    ),
    Mutation("a parameter dropped", in_parameter(lambda _: ""), OTHER),
    Mutation(
        "a parameter renamed", in_answer(once(r"<parameter=([^>]+)>", r"<parameter=\1_2>")), OTHER
    ),
    Mutation("parameters re-ordered", in_answer(_parameters_reversed), OTHER),
)
"""What is visible only in comparison with the dialogue."""
