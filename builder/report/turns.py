"""A sample as people read it: turns, calls with their arguments, tool definitions."""

from __future__ import annotations

import json

from builder.conversation import Json
from builder.dataset.samples import targets
from builder.jsonio import depth, dumps
from builder.qwen3.parse import ParseFault, split_answer, split_responses
from builder.qwen3.render import is_response
from builder.report.facts import as_object, as_text
from builder.report.html import EMPTY, Html, cut, join, left_out, number, shorten, tag, text
from builder.report.rendered import Limits
from builder.sample import Sample

_DEEP = 40
"""Levels of JSON that are written with indents."""


def turns_html(sample: Sample, trained: int, limits: Limits) -> Html:
    """The tool definitions and the turns; the targets are marked.

    Those are the turns whose weight is not 0, or without weights the last `trained` ones.
    """
    answers = [at for at, (role, _) in enumerate(sample.messages) if role == "assistant"]
    chosen = targets(sample, "conversation", trained) if trained else ()
    taught = {answers[at] for at in chosen}
    count = len(sample.messages)
    kept = list(range(count))
    if count > limits.turns:
        kept = kept[: limits.turns // 3] + kept[count - (limits.turns - limits.turns // 3) :]
    shown = []
    before = -1
    for at in kept:
        if at != before + 1:
            shown.append(tag("li", left_out(at - before - 1, "messages"), class_="gap"))
        role, content = sample.messages[at]
        shown.append(_turn(role, content, limits, is_taught=at in taught))
        before = at
    return join((_tools(sample.tools, limits), tag("ol", *shown, class_="turns")))


def _turn(role: str, content: str, limits: Limits, *, is_taught: bool) -> Html:
    name = shorten(role, 20)
    body: tuple[Html, ...] = (_said(content, limits),)
    if role == "assistant":
        body = _answer(content, limits)
    elif role == "user" and is_response(content):
        responses = split_responses(content)
        if responses is not None:
            name = "tool"
            shown = [_said(response, limits) for response in responses[: limits.tools]]
            if len(responses) > len(shown):
                shown.append(left_out(len(responses) - len(shown), "responses"))
            body = tuple(shown)
    badge = tag("em", text("trained")) if is_taught else EMPTY
    kind = name if name in ("system", "user", "assistant", "tool") else "other"
    role_line = tag("p", text(name), badge, class_="role")
    return tag("li", role_line, *body, class_=f"{kind} taught" if is_taught else kind)


def _answer(content: str, limits: Limits) -> tuple[Html, ...]:
    try:
        answer = split_answer(content)
    except ParseFault:
        return (_said(content, limits),)
    shown = []
    if answer.thought:
        shown.append(tag("div", _said(answer.thought, limits), class_="thought"))
    if answer.text:
        shown.append(_said(answer.text, limits))
    for call in answer.calls[: limits.tools]:
        name = tag("p", text(shorten(call.name, 120)), class_="name")
        arguments = tag("pre", cut(indented(call.arguments), limits.content), dir="auto")
        shown.append(tag("div", name, arguments, class_="call"))
    if len(answer.calls) > limits.tools:
        shown.append(left_out(len(answer.calls) - limits.tools, "calls"))
    return tuple(shown)


def _said(content: str, limits: Limits) -> Html:
    if not content:
        return tag("p", text("(empty)"), class_="note")
    return tag("pre", cut(content, limits.content), dir="auto")


def indented(value: Json) -> str:
    """JSON with indents; on one line what is nested deeply."""
    if depth(value) > _DEEP:
        return dumps(value)
    return json.dumps(value, ensure_ascii=False, indent=2)


def _tools(tools: tuple[Json, ...], limits: Limits) -> Html:
    if not tools:
        return EMPTY
    shown = []
    for tool in tools[: limits.tools]:
        function = as_object(as_object(tool).get("function"))
        about = as_text(function.get("description"))
        schema = function.get("parameters") if function else tool
        parts = [tag("dt", text(shorten(as_text(function.get("name")) or "(no name)", 120)))]
        if about:
            parts.append(tag("dd", cut(about, limits.other)))
        parts.append(tag("dd", tag("pre", cut(indented(schema), limits.other))))
        shown += parts
    left = len(tools) - limits.tools
    more = tag("p", left_out(left, "definitions")) if left > 0 else EMPTY
    names = ", ".join(
        as_text(as_object(as_object(tool).get("function")).get("name")) for tool in tools[:20]
    )
    count = f"{number(len(tools))} tool{'s' if len(tools) != 1 else ''}"
    head = tag("summary", text(f"{count}: {shorten(names, 120)}"))
    return tag("details", head, tag("dl", *shown), more, class_="tools")
