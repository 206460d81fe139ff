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
    Mutation,
    codes,
    in_answer,
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


KINDS: tuple[Mutation, ...] = (
    Mutation(
        "newline after <function=…> lost", in_answer(once(r"(<function=[^>]+>)\n", r"\1")), CALLS
    ),
    Mutation("CRLF after <function=…>", in_answer(once(r"(<function=[^>]+>)\n", r"\1\r\n")), CALLS),
    Mutation("<function=…> indented", in_answer(swap("\n<function=", "\n  <function=")), CALLS),
    Mutation("<function=…> lost", in_answer(once(r"<function=[^>]+>\n", "")), CALLS),
    Mutation("</function> lost", in_answer(swap("</function>\n", "")), CALLS),
    Mutation(
        "newline before </function> lost",
        in_answer(swap("</parameter>\n</function>", "</parameter></function>")),
        CALLS,
    ),
    Mutation(
        "newline before </tool_call> lost, after </function>",
        in_answer(swap("</function>\n</tool_call>", "</function></tool_call>")),
        CALLS,
    ),
    Mutation(
        "blank line after </function>",
        in_answer(swap("</function>\n</tool_call>", "</function>\n\n</tool_call>")),
        CALLS,
    ),
    Mutation(
        "newline after <parameter=…> lost", in_answer(once(r"(<parameter=[^>]+>)\n", r"\1")), CALLS
    ),
    Mutation(
        "newline before </parameter> lost",
        in_answer(swap("\n</parameter>", "</parameter>")),
        JOINED,
    ),
    Mutation(
        "newline after </parameter> lost, before text",
        in_answer(swap("</parameter>\n", "</parameter> ")),
        JOINED,
    ),
    Mutation("<parameter=…> indented", in_answer(swap("\n<parameter=", "\n  <parameter=")), CALLS),
    Mutation("<parameter=…> lost", in_answer(once(r"<parameter=[^>]+>\n", "")), CALLS),
    Mutation("</parameter> lost", in_answer(swap("\n</parameter>", "")), JOINED),
    Mutation(
        "<parameter=…> without a name", in_answer(once(r"<parameter=[^>]+>", "<parameter=>")), CALLS
    ),
    Mutation(
        "name as an attribute",
        in_answer(once(r"<function=([^>]+)>", r'<function name="\1">')),
        CALLS,
    ),
    Mutation(
        "key as an attribute",
        in_answer(once(r"<parameter=([^>]+)>", r'<parameter name="\1">')),
        CALLS,
    ),
    Mutation("<param=…> for <parameter=…>", in_answer(swap("<parameter=", "<param=")), CALLS),
    Mutation("a parameter twice", in_parameter(lambda text: text + text), CALLS),
    Mutation("words between parameters", in_parameter(lambda text: text + "and\n"), CALLS),
    Mutation("blank line between parameters", in_parameter(lambda text: text + "\n"), CALLS),
    Mutation(
        "two calls in one <tool_call>",
        in_answer(
            once(
                r"(<function=[\s\S]*?</function>\n)(?=</tool_call>)",
                r"\1\1",
            )
        ),
        CALLS,
    ),
    Mutation(
        "call as JSON",
        in_answer(
            once(
                r"<tool_call>\n<function=([^>]+)>[\s\S]*?</tool_call>",
                r'<tool_call>\n{"name": "\1", "arguments": {}}\n</tool_call>',
            )
        ),
        CALLS,
    ),
    Mutation(
        "name with a quote, as XML", in_name(lambda name: name + '"'), codes("tools", "calls")
    ),
    Mutation("name in other case, as XML", in_name(str.swapcase), codes("tools")),
    Mutation("empty name, as XML", in_name(lambda _: ""), codes("tools", "calls")),
    Mutation(
        "name with a space, as XML", in_name(lambda name: f" {name}"), codes("tools", "calls")
    ),
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
