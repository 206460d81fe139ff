"""Converts dialogues to the flat form, which is text only, and flat or rendered text to dialogues.

`sent_back` states how an earlier turn is rendered once a server has parsed it and a client has sent
it back (docs/parity.md). `written_style` tells how a sample is written where no target is at hand.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from builder.conversation import Json
from builder.jsonio import JsonFault, dumps, loads
from builder.qwen3.calls import EMPTY_THINK, XML_JSON, ParseFault, Signatures, signatures
from builder.qwen3.render import RESPONSE_CLOSE, RESPONSE_OPEN
from builder.qwen3.templates import SPECIFIED, Style
from builder.sample import Call, Dialogue, Sample, Turn, Weights


def flatten(dialogue: Dialogue, style: Style = SPECIFIED) -> Sample:
    """Makes the training record: calls as `<tool_call>` text, results as `<tool_response>` turns.

    If a turn is not trained, every assistant message has a weight, 0 or 1. Thoughts are part of the
    text, unless the template reads them only beside it (`Style.beside`).
    """
    weights: Weights = ()
    if any(turn.role == "assistant" and not turn.trained for turn in dialogue.turns):
        weights = tuple(
            int(turn.trained) if turn.role == "assistant" else None for turn in dialogue.turns
        )
    thoughts: tuple[str, ...] = ()
    if style.beside and any(turn.reasoning for turn in dialogue.turns):
        thoughts = tuple(turn.reasoning for turn in dialogue.turns)
    messages = tuple(flat_turn(turn, style) for turn in dialogue.turns)
    return Sample(messages, dialogue.tools, weights, thoughts)


def flat_turn(turn: Turn, style: Style = SPECIFIED) -> tuple[str, str]:
    """Returns the role and the content of the turn as one message."""
    if turn.role == "tool":
        before, after = style.response_edges
        blocks = (f"<tool_response>\n{text}\n</tool_response>" for text in turn.responses)
        return "user", before + "\n".join(blocks) + after
    if turn.role != "assistant":
        return turn.role, turn.content
    write = style.dialect.write
    body = style.between_calls.join(write(call) for call in turn.calls)
    if turn.content:
        body = turn.content + style.before_call + body if body else turn.content
    is_inside = turn.reasoning and not style.beside
    return "assistant", f"<think>\n{turn.reasoning}\n</think>\n\n{body}" if is_inside else body


def structured(dialogue: Dialogue, style: Style = SPECIFIED) -> list[dict[str, Any]]:
    """Makes the messages in the structured form that an inference server renders."""
    messages: list[dict[str, Any]] = []
    for turn in dialogue.turns:
        if turn.role == "tool":
            messages += [{"role": "tool", "content": text} for text in turn.responses]
            continue
        message: dict[str, Any] = {"role": turn.role, "content": turn.content}
        if turn.role == "assistant":
            if turn.reasoning or "</think>" in turn.content:
                # Defined even if empty: otherwise the template looks for thoughts in the text.
                message["reasoning_content"] = turn.reasoning
            if turn.calls:
                message["tool_calls"] = [
                    {
                        "type": "function",
                        "function": {"name": call.name, "arguments": style.dialect.served(call)},
                    }
                    for call in turn.calls
                ]
        messages.append(message)
    return messages


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
            if content.startswith("<think>\n"):
                inner, close, rest = content[len("<think>\n") :].partition("\n</think>\n\n")
                thought, content = (inner, rest) if close else ("", content)
        elif role == "assistant" and style.thoughts.has_blocks:
            content = content.removeprefix(EMPTY_THINK)
        messages.append((role, content))
        thoughts.append(thought)
    return Sample.written(tuple(messages), tools, (), tuple(thoughts) if any(thoughts) else ())


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


def split_answer(
    content: str,
    style: Style = SPECIFIED,
    known: Signatures | None = None,
    beside: str = "",
    *,
    trained: bool = True,
) -> Turn:
    """Splits a flat assistant content, with a thought `beside` it, into a turn.

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
    return Turn("assistant", text, beside or thought, tuple(calls), trained=trained)


def _no_markup(text: str, offset: int) -> None:
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
        return split_answer(content, style, known, thought, trained=weight != 0)
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


def sent_back(server: str, turn: Turn, style: Style) -> Turn:
    """Returns a turn with the text that the template renders once it has been sent back.

    vLLM's parser `qwen3_coder` and SGLang's `qwen25` strip the text before a call. vLLM's `hermes`
    and SGLang's `qwen3_coder` keep all that precedes the first tag.
    """
    if not turn.calls:
        return turn
    content = turn.content and turn.content + style.before_call
    if style.trims != "none" or style.dialect.plain == (server == "sglang"):
        content = turn.content.strip()
    return turn if content == turn.content else replace(turn, content=content)


_XML = "<tool_call>\n<function="


def dialogue_of(sample: Sample) -> Dialogue | None:
    """Returns the structured form of a sample, however it is written; None if it has none."""
    try:
        return to_dialogue(sample, written_style(sample))
    except ParseFault:
        return None


def written_style(sample: Sample) -> Style:
    """Returns a style in which the sample can be read."""
    is_xml, between, edges = False, "\n", ("", "")
    for role, content in sample.messages:
        if role == "assistant" and not is_xml and _XML in content:
            is_xml = True
        if role == "assistant" and "</tool_call>\n\n<tool_call>" in content:
            between = "\n\n"
        if role == "user" and (content[:1] == "\n" or content[-1:] == "\n"):
            body = content.strip("\n")
            if body.startswith(RESPONSE_OPEN) and body.endswith(RESPONSE_CLOSE):
                before, _, after = content.partition(body)
                edges = (before[:1], after[:1])
    if not is_xml and between == "\n" and edges == ("", ""):
        return SPECIFIED
    return _style(edges, between, is_xml=is_xml)


@lru_cache(maxsize=32)
def _style(edges: tuple[str, str], between: str, *, is_xml: bool) -> Style:
    if not is_xml:
        return Style(response_edges=edges, between_calls=between)
    return Style(dialect=XML_JSON, before_call="\n\n", between_calls=between, response_edges=edges)
