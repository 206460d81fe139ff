"""Renders a sample for people: turns, calls with their arguments, tool definitions, an outline."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from re import Pattern
from types import MappingProxyType

from builder.audit.failures import ERROR, is_error, placed
from builder.conversation import Json
from builder.dataset.samples import targets as trained_answers
from builder.jsonio import depth, dumps
from builder.qwen3.dialect import ParseFault
from builder.qwen3.parse import split_answer, split_responses
from builder.qwen3.style import Style
from builder.qwen3.written import written_style
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.report.edits import edit_html, edits
from builder.report.html import EMPTY, Html, cut, join, omission, shorten, tag, text
from builder.report.inserted import pieces, pieces_of_result, words_of_person
from builder.report.rendered import Limits
from builder.sample import Sample
from builder.text import number

_DEEP = 40
"""Maximum depth of JSON that is indented."""
_FOLD_CHARACTERS = 1_200
_FOLD_LINES = 20
_ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class DisplayOptions:
    """Options for displaying a sample.

    hits       matches to mark in the turns
    outline    whether turns have ids (`turn-0`, …), and an outline links to them
    records    {turn: (element id, name)} of the raw record that contains its text
    alongside  shown next to the conversation instead of the rendered text
    above      shown above the rendered text or its replacement
    rendered   whether the rendered text is shown if nothing else is alongside
    """

    hits: Pattern[str] | None = None
    outline: bool = False
    records: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    alongside: Html | None = None
    above: Html = EMPTY
    rendered: bool = True


IN_A_LIST = DisplayOptions()
"""Options for a page with many samples."""


def turns_html(
    sample: Sample,
    trained: int,
    limits: Limits,
    reading: DisplayOptions = IN_A_LIST,
    failures: Mapping[int, str] = MappingProxyType({}),
) -> Html:
    """Returns the tool definitions and the turns, with the trained turns and `failures` marked.

    The trained turns are those of a weight other than 0; without weights, the last `trained` ones.
    """
    targets = _trained_turns(sample, trained)
    items = []
    before = -1
    for at in _shown_turns(sample, limits):
        if at != before + 1:
            items.append(tag("li", omission(at - before - 1, "messages"), class_="gap"))
        failure = failures.get(at, "")
        items.append(_turn(sample, at, limits, reading, failure, is_trained=at in targets))
        before = at
    definitions = _tools(sample.tools, limits, reading.hits)
    return join((definitions, tag("ol", *items, class_="turns")))


def outline_html(
    sample: Sample,
    trained: int,
    limits: Limits,
    failures: Mapping[int, str],
    tokens: Sequence[int] = (),
    estimated: bool = False,
) -> Html:
    """Returns links to the turns, each with its role, its beginning or its calls, and its tokens.

    `tokens` are those of each message, if known.
    """
    targets = _trained_turns(sample, trained)
    style = written_style(sample)
    items = []
    for at in _shown_turns(sample, limits):
        role, content = sample.messages[at]
        name = tag("b", text(_role_name(role, content, style)))
        about = tag("span", text(_summary(role, content, style)), dir="auto", class_="begins")
        parts = [name, text(" "), about]
        if failure := failures.get(at):
            parts.append(tag("em", text(failure), class_="error"))
        if tokens:
            sign = "~" if estimated else ""
            parts.append(tag("span", text(f"{sign}{number(tokens[at])}"), class_="count"))
        link = tag("a", *parts, href=f"#turn-{at}")
        items.append(tag("li", link, class_="trained" if at in targets else None))
    unit = " and their tokens" if tokens else ""
    head = tag("summary", text(f"Outline: {number(len(sample.messages))} turns{unit}"))
    listed = tag("nav", tag("ol", *items), aria_label="Outline of turns", class_="turn-list")
    return tag("details", head, listed, class_="outline", open="")


def _trained_turns(sample: Sample, trained: int) -> set[int]:
    answers = [at for at, (role, _) in enumerate(sample.messages) if role == "assistant"]
    chosen = trained_answers(sample, "conversation", trained) if trained else ()
    return {answers[at] for at in chosen}


def _shown_turns(sample: Sample, limits: Limits) -> list[int]:
    count = len(sample.messages)
    kept = list(range(count))
    if count > limits.turns:
        return kept[: limits.turns // 3] + kept[count - (limits.turns - limits.turns // 3) :]
    return kept


def _role_name(role: str, content: str, style: Style) -> str:
    is_tool = role == "user" and split_responses(content, style) is not None
    return "tool" if is_tool else shorten(role, 20)


def failures_of(sample: Sample, logged: Mapping[str, str] | None) -> dict[int, str]:
    """Returns {number of a message with results: how one of their calls failed}.

    `logged` are the failures that the log states; None: the wording of the results decides.
    """
    if logged is not None:
        return {place.turn + 1: shorten(failure, 20) for place, failure in placed(logged).items()}
    style = written_style(sample)
    return {
        at: ERROR
        for at, (role, content) in enumerate(sample.messages)
        if role == "user" and any(map(is_error, split_responses(content, style) or ()))
    }


def _summary(role: str, content: str, style: Style) -> str:
    """Returns the names of an assistant turn's calls, or the beginning of a message."""
    if role == "assistant":
        try:
            answer = split_answer(content, style)
        except ParseFault:
            return shorten(content, 60)
        if answer.calls:
            return shorten(", ".join(call.name for call in answer.calls[:20]), 60)
        return shorten(answer.text or answer.thought, 60)
    if _role_name(role, content, style) == "tool":
        return shorten("; ".join((split_responses(content, style) or [])[:5]), 60)
    return shorten(words_of_person([content]) if role == "user" else content, 60)


def _turn(
    sample: Sample,
    at: int,
    limits: Limits,
    reading: DisplayOptions,
    failure: str,
    *,
    is_trained: bool,
) -> Html:
    role, content = sample.messages[at]
    style = written_style(sample)
    name = _role_name(role, content, style)
    body = list(_body(role, content, name, limits, reading.hits, style))
    if sample.thoughts and sample.thoughts[at]:
        thought = _content(sample.thoughts[at], limits, reading.hits)
        body.insert(0, tag("div", thought, class_="thought"))
    badge = tag("em", text("trained")) if is_trained else EMPTY
    if failure:
        badge = tag("em", text(failure), class_="error")
    record = EMPTY
    if at in reading.records:
        anchor, where = reading.records[at]
        record = tag("a", text(where), href=f"#{anchor}", class_="to-record")
    kind = name if name in _ROLES else "other"
    role_line = tag("p", text(name), badge, record, class_="role")
    return tag(
        "li",
        role_line,
        *body,
        class_=f"{kind} trained" if is_trained else kind,
        id=f"turn-{at}" if reading.outline else None,
    )


def _body(
    role: str, content: str, name: str, limits: Limits, hits: Pattern[str] | None, style: Style
) -> Iterator[Html]:
    if role == "assistant":
        yield from _answer(content, limits, hits, style)
    elif name == "tool":
        responses = tuple(split_responses(content, style) or ())
        for response in responses[: limits.tools]:
            yield from _result(response, limits, hits)
        if len(responses) > limits.tools:
            yield omission(len(responses) - limits.tools, "responses")
    elif role == "system":
        yield _folded(content, limits, hits)
    elif role == "user":
        found = list(pieces(content))
        for named, piece in found:
            own = piece.strip("\n") if len(found) > 1 else piece
            yield _inserted(named, piece, limits, hits) if named else _content(own, limits, hits)
    else:
        yield _content(content, limits, hits)


def _result(content: str, limits: Limits, hits: Pattern[str] | None) -> Iterator[Html]:
    found = list(pieces_of_result(content))
    for named, piece in found:
        own = piece.strip("\n") if len(found) > 1 else piece
        yield _inserted(named, piece, limits, hits) if named else _folded(own, limits, hits)


def _answer(
    content: str, limits: Limits, hits: Pattern[str] | None, style: Style
) -> Iterator[Html]:
    try:
        answer = split_answer(content, style)
    except ParseFault:
        yield _content(content, limits, hits)
        return
    if answer.thought:
        yield tag("div", _content(answer.thought, limits, hits), class_="thought")
    if answer.text:
        yield _content(answer.text, limits, hits)
    for call in answer.calls[: limits.tools]:
        name = tag("p", cut(shorten(call.name, 120), 120, hits), class_="name")
        changed, others = edits(call.arguments) if hits is None else ([], dict(call.arguments))
        texts = {key: value for key, value in others.items() if _has_lines(value)}
        others = {key: value for key, value in others.items() if key not in texts}
        parts = [_text_argument(*item, limits, hits) for item in texts.items()]
        if others or not (changed or texts):
            written = tag("pre", cut(indented(others), limits.content, hits), dir="auto")
            parts.insert(0, written)
        diffs = [edit_html(edit, limits.content) for edit in changed[: limits.tools]]
        left = len(changed) - len(diffs)
        more = omission(left, "edits") if left else EMPTY
        yield tag("div", name, *parts, *diffs, more, class_="call")
    if len(answer.calls) > limits.tools:
        yield omission(len(answer.calls) - limits.tools, "calls")


def _has_lines(value: Json) -> bool:
    return isinstance(value, str) and "\n" in value


def _text_argument(key: str, value: Json, limits: Limits, hits: Pattern[str] | None) -> Html:
    """Returns an argument of several lines as text, which JSON would show as one line."""
    assert isinstance(value, str), "chosen for this"
    title = tag("p", cut(shorten(key, 120), 120, hits), class_="argument")
    return join((title, tag("pre", cut(value, limits.content, hits), dir="auto")))


def _folded(content: str, limits: Limits, hits: Pattern[str] | None) -> Html:
    """Returns the text; a long one is folded under its beginning, and open if it has a match."""
    lines = content.count("\n") + 1
    body = _content(content, limits, hits)
    if len(content) <= _FOLD_CHARACTERS and lines <= _FOLD_LINES:
        return body
    size = f"{number(len(content))} characters, {number(lines)} lines"
    head = tag(
        "summary",
        tag("span", text(shorten(content, 90)), dir="auto"),
        text(" "),
        tag("span", text(size), class_="count"),
    )
    is_open = hits is not None and hits.search(content) is not None
    return tag("details", head, body, class_="fold", open="" if is_open else None)


def _inserted(name: str, content: str, limits: Limits, hits: Pattern[str] | None) -> Html:
    """Returns text that an agent program inserted, folded under its name."""
    size = f"{number(len(content))} characters"
    head = tag(
        "summary", text(shorten(name, 60)), text(" "), tag("span", text(size), class_="count")
    )
    is_open = hits is not None and hits.search(content) is not None
    return tag("details", head, _content(content, limits, hits), class_="fold inserted",
               open="" if is_open else None)  # fmt: skip


def _content(content: str, limits: Limits, hits: Pattern[str] | None) -> Html:
    if not content:
        return tag("p", text("(empty)"), class_="note")
    return tag("pre", cut(content, limits.content, hits), dir="auto")


def as_written(value: Json) -> str:
    """Returns text unchanged, and other values as indented JSON."""
    return value if isinstance(value, str) else indented(value)


def indented(value: Json) -> str:
    """Returns indented JSON, or one line for deeply nested values."""
    if depth(value) > _DEEP:
        return dumps(value)
    return json.dumps(value, ensure_ascii=False, indent=2)


def _tools(tools: tuple[Json, ...], limits: Limits, hits: Pattern[str] | None) -> Html:
    if not tools:
        return EMPTY
    items = []
    for tool in tools[: limits.tools]:
        function = as_dict(tool, "function")
        about = as_str(function.get("description"))
        schema = function.get("parameters") if function else tool
        name = shorten(as_str(function.get("name")) or "(no name)", 120)
        parts = [tag("dt", cut(name, 120, hits))]
        if about:
            parts.append(tag("dd", cut(about, limits.other, hits)))
        parts.append(tag("dd", tag("pre", cut(indented(schema), limits.other, hits))))
        items += parts
    left = len(tools) - limits.tools
    more = tag("p", omission(left, "definitions")) if left > 0 else EMPTY
    names = ", ".join(as_str(tool, "function", "name") for tool in tools[:20])
    count = f"{number(len(tools))} tool{'s' if len(tools) != 1 else ''}"
    head = tag("summary", text(f"{count}: {shorten(names, 120)}"))
    is_open = hits is not None and hits.search(dumps(list(tools))) is not None
    listed = tag("dl", *items)
    return tag("details", head, listed, more, class_="tools", open="" if is_open else None)
