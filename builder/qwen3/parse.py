"""Parses renderings back into samples, and flat samples into structured dialogues."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from builder.conversation import Json
from builder.jsonio import JsonFault, dumps, loads
from builder.qwen3.constants import EMPTY_THINK
from builder.qwen3.dialect import ParseFault, Signatures, signatures
from builder.qwen3.style import SPECIFIED, Style
from builder.sample import Call, Dialogue, Sample, Turn


def parse(text: str, style: Style = SPECIFIED) -> Sample:
    """Returns the sample that renders to `text` in this style. Raises ParseFault.

    The empty think block that the template adds to a last turn without thoughts is removed; other
    think blocks stay in the content. The template's default system text is not part of the sample.
    """
    messages: list[tuple[str, str]] = []
    thoughts: list[str] = []
    tools: tuple[tuple[Json, str], ...] = ()
    begins, middle, ends = style.markers.begin, style.markers.middle, style.markers.end
    position = 0
    while position < len(text):
        start = position
        if not text.startswith(begins, position):
            raise ParseFault("inverse", f"a turn does not begin with {begins}", position)
        line = text.find(middle, position)
        end = text.find(ends, position)
        if line < 0 or end < line or not text.startswith("\n", end + len(ends)):
            raise ParseFault("inverse", f"a turn does not end with {ends} and a newline", position)
        role, content = text[position + len(begins) : line], text[line + len(middle) : end]
        position = end + len(ends) + 1
        if role not in ("system", "user", "assistant"):
            raise ParseFault("inverse", f"unknown role {role[:40]!r}", start)
        if begins in content:
            raise ParseFault("inverse", f"{begins} inside a turn", start)
        if role == "system" and start == 0:
            system, tools = split_tools(content, style)
            if system is not None and (tools or system != style.default_system):
                messages.append((role, system))
                thoughts.append("")
            continue
        thought = ""
        if role == "assistant" and style.beside:
            thought, content = _beside(content)
        elif role == "assistant" and style.thoughts.has_blocks:
            content = content.removeprefix(EMPTY_THINK)
        messages.append((role, content))
        thoughts.append(thought)
    return Sample.written(tuple(messages), tools, (), tuple(thoughts) if any(thoughts) else ())


def _beside(content: str) -> tuple[str, str]:
    """Splits an assistant turn into the thought that the template wrote before it, and the rest."""
    if not content.startswith("<think>\n"):
        return "", content
    thought, close, rest = content.removeprefix("<think>\n").partition("\n</think>\n\n")
    return (thought, rest) if close else ("", content)


def split_tools(
    content: str, style: Style = SPECIFIED
) -> tuple[str | None, tuple[tuple[Json, str], ...]]:
    """Splits the first system turn into (system text or None, definitions with their JSON texts).

    The system text may quote a tools block, so the last header counts, or the first one if the
    template writes the block before the text. A definition is one line. A block from which the
    definitions cannot be read back (`ToolsText.exact`) stays in the text.
    """
    begin_text, end_text = style.tools.begin + "\n", style.tools.end
    if style.preface:
        if content == style.preface:
            return None, ()
        content = content.removeprefix(style.preface + "\n\n")
    if style.tools.first:
        stop = content.find(end_text)
        if not content.startswith(begin_text) or stop < 0:
            return content, ()
        rest = content[stop + len(end_text) :]
        bare, begin, whole = not rest, 0, content
        system = rest.removeprefix("\n\n")
        content = content[: stop + len(end_text)]
    else:
        if not content.endswith(end_text):
            return content, ()
        begin = content.rfind(begin_text, 0, -len(end_text))
        bare, whole = content[: max(begin, 0)] == style.tools_lead, content
        if begin < 0 or not (bare or content[:begin].endswith("\n\n")):
            return content, ()
        system = content[: begin - 2]
    listing = content[begin + len(begin_text) : -len(end_text)]
    try:
        tools = tuple(map(_definition, listing.split("\n")))
    except JsonFault:
        return whole, ()
    return None if bare else system, tools


@lru_cache(maxsize=1024)
def _definition(line: str) -> tuple[Json, str]:
    """Returns (definition, its JSON text). Cached: samples share definitions. Raises JsonFault."""
    tool = loads(line)
    return tool, dumps(tool)


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An assistant content split into thought, text and calls."""

    thought: str
    text: str
    calls: tuple[Call, ...]


def split_answer(
    content: str, style: Style = SPECIFIED, known: Signatures | None = None
) -> ParsedAnswer:
    """Splits a flat assistant content into thought, text and calls.

    `flatten` joins the parts into the same content, except for an empty think block and a newline
    before a call without text, which the check `inverse` reports. Call markup that is not a call
    as the dialect finds it is a fault. `known` are the parameters of the tools, for a dialect
    without types. Raises ParseFault (`calls`, `tools`, `lossy`) with an offset into `content`.
    """
    thought, body = ("", content) if style.beside else leading_thought(content)
    if content not in (body, f"<think>\n{thought}\n</think>\n\n{body}"):
        raise ParseFault("lossy", "the think block is not in the template's form")
    end = len(content) - len(body)
    text = body
    calls: list[Call] = []
    dialect, gap = style.dialect, style.before_call
    for match in dialect.find(content, end):
        between = content[end : match.start]
        if not calls:
            text = between.removesuffix(gap)
            if between and between == text:
                what = "newline" if gap == "\n" else "empty line"
                detail = f"no {what} between the text and the first <tool_call>"
                raise ParseFault("calls", detail, match.start)
            _no_markup(text, end)
        elif between != style.between_calls:
            what = "one newline" if style.between_calls == "\n" else repr(style.between_calls)
            raise ParseFault("calls", f"calls are not joined by {what}", end)
        calls.append(dialect.read(match, content, known or {}))
        end = match.end
    if not calls:
        _no_markup(text, end)
    elif end < len(content):
        raise ParseFault("calls", "text after the last </tool_call>", end)
    return ParsedAnswer(thought, text, tuple(calls))


def _no_markup(text: str, offset: int) -> None:
    """Raises ParseFault if the text, which starts at offset `offset`, contains tags of calls."""
    if markup := re.search("</?tool_call>", text):
        raise ParseFault("calls", "<tool_call> markup without a call", offset + markup.start())


def leading_thought(content: str) -> tuple[str, str]:
    """Returns (thought, rest) of a content that starts with a think block, else ("", content).

    Strips newlines at both ends of the thought and before the rest. A closing tag elsewhere is
    text; the verifier reports how the template treats it.
    """
    begun = content.lstrip("\n")
    if not begun.startswith("<think>") or "</think>" not in begun:
        return "", content
    thought, _, rest = begun.removeprefix("<think>").partition("</think>")
    return thought.strip("\n"), rest.lstrip("\n")


def split_responses(content: str, style: Style = SPECIFIED) -> tuple[str, ...] | None:
    """Returns the texts of a turn of `<tool_response>` blocks; None if it contains anything else.

    A block ends at the first newline and closing tag. A block that contains a tag is refused.
    """
    before, after = style.response_edges
    begin, end = "<tool_response>\n", "\n</tool_response>"
    is_framed = content.startswith(before + begin) and content.endswith(end + after)
    length = len(content) - len(after)
    if not is_framed or length < len(before) + len(begin) + len(end):
        return None
    texts = content[len(before + begin) : length - len(end)].split(f"{end}\n{begin}")
    if any("<tool_response>" in text or "</tool_response>" in text for text in texts):
        return None
    return tuple(texts)


def read_turn(
    role: str,
    content: str,
    weight: int | None,
    thought: str = "",
    style: Style = SPECIFIED,
    known: Signatures | None = None,
) -> Turn:
    """Returns the turn that a message contains. Raises ParseFault.

    `thought` is the one beside the text; for `known` see `split_answer`.
    """
    if role == "assistant":
        answer = split_answer(content, style, known)
        return Turn(role, answer.text, thought or answer.thought, answer.calls, trained=weight != 0)
    responses = split_responses(content, style) if role == "user" else None
    return Turn(role, content) if responses is None else Turn("tool", responses=responses)


def to_dialogue(sample: Sample, style: Style = SPECIFIED) -> Dialogue:
    """Returns the structured form of a flat sample. Raises ParseFault."""
    known = known_tools(sample, style)
    weights = sample.weights or (None,) * len(sample.messages)
    thoughts = sample.thoughts or ("",) * len(sample.messages)
    rows = zip(sample.messages, weights, thoughts, strict=True)
    turns = (
        read_turn(role, content, weight, thought, style, known)
        for (role, content), weight, thought in rows
    )
    return Dialogue(tuple(turns), sample.tools)


def known_tools(sample: Sample, style: Style) -> Signatures:
    """Returns the parameters of the sample's tools if the dialect needs them, else nothing."""
    return {} if style.dialect.plain else signatures(sample.definitions)
