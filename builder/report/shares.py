"""Shows where the tokens of a sample go: the tokens of each turn, and a bar of its parts."""

from __future__ import annotations

from builder.qwen3.dialect import ParseFault
from builder.qwen3.parse import split_answer, split_responses
from builder.qwen3.written import written_style
from builder.report.charts import rect
from builder.report.html import EMPTY, Html, join, plain, tag, text
from builder.report.rendered import Rendered
from builder.sample import Sample
from builder.text import number

_NAMES = ("system", "tools", "user", "results", "thoughts", "answers and calls", "template")


def turn_tokens(
    sample: Sample, rendered: Rendered | None, tokens: int
) -> tuple[tuple[int, ...], bool]:
    """Returns the tokens of each message, and whether they are estimated from their characters.

    They are exact where all tokens of the sample are known. Returns () if neither is possible.
    """
    if rendered is None or not (tokens or rendered.count):
        return (), False
    whole = rendered.count or tokens
    begins = [
        start for start, end in rendered.control if rendered.text[start:end] == "<|im_start|>"
    ]
    roles = [role for role, _ in sample.messages]
    if len(begins) == len(roles) + 1 and roles[0] != "system":
        begins = begins[1:]  # the template wrote a system turn for the tools
    if len(begins) != len(roles):
        return (), False
    ends = [*begins[1:], len(rendered.text)]
    if len(rendered.tokens) == rendered.count:
        counts = [0] * len(roles)
        at = 0
        for _, _, (start, _) in rendered.tokens:
            while at < len(ends) - 1 and start >= ends[at]:
                at += 1
            counts[at] += start >= begins[0]
        return tuple(counts), False
    per = whole / max(len(rendered.text), 1)
    return tuple(round((end - start) * per) for start, end in zip(begins, ends, strict=True)), True


def share_bar(sample: Sample, rendered: Rendered, tokens: int) -> Html:
    """Returns a bar of the parts of a sample, and of its trained text, with their tokens.

    They are estimated from characters. `tokens` is the number of tokens of the messages.
    """
    sizes = _sizes(sample)
    whole = max(len(rendered.text), sum(sizes.values()), 1)
    sizes["template"] = whole - sum(sizes.values())
    total = rendered.count or tokens
    trained = sum(end - start for start, end in rendered.spans)
    drawn, names = [], []
    at = 0.0
    for name in _NAMES:
        wide = 100 * sizes[name] / whole
        kind = f"part-{_NAMES.index(name)}"
        if sizes[name]:
            count = number(round(total * sizes[name] / whole))
            title = tag("title", plain(f"{name}: about {count} tokens"))
            drawn.append(tag("g", title, rect(kind, at, 0, wide, 8)))
            key = tag("svg", rect(kind, 0, 0, 10, 10), viewBox="0 0 10 10", aria_hidden="true")
            names.append(tag("span", key, text(f"{name} {count}")))
        at += wide
    for start, end in rendered.spans:
        drawn.append(
            rect("is-trained", 100 * start / whole, 9, max(100 * (end - start) / whole, 0.05), 3)
        )
    if trained:
        key = tag("svg", rect("is-trained", 0, 0, 10, 10), viewBox="0 0 10 10", aria_hidden="true")
        count = number(round(total * trained / whole))
        names.append(tag("span", key, text(f"trained {count} ({100 * trained / whole:.0f} %)")))
    label = "Tokens by part, and the places of the trained text in the sample"
    bar = tag("svg", *drawn, viewBox="0 0 100 12", preserveAspectRatio="none", role="img",
              aria_label=label, class_="bar")  # fmt: skip
    return tag("div", bar, tag("p", join(names)), class_="shares") if drawn else EMPTY


def _sizes(sample: Sample) -> dict[str, int]:
    """Returns {part: characters}."""
    sizes = dict.fromkeys(_NAMES, 0)
    sizes["tools"] = sum(map(len, sample.definitions))
    style = written_style(sample)
    for role, content in sample.messages:
        if role == "assistant":
            try:
                thought = len(split_answer(content, style).thought)
            except ParseFault:
                thought = 0
            sizes["thoughts"] += thought
            sizes["answers and calls"] += len(content) - thought
        elif role == "user" and split_responses(content, style) is not None:
            sizes["results"] += len(content)
        else:
            sizes["system" if role == "system" else "user"] += len(content)
    sizes["thoughts"] += sum(map(len, sample.thoughts or ()))
    return sizes
