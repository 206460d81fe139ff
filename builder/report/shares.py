"""Shows where the tokens of a sample go: the tokens of each turn, and a bar of its parts."""

from __future__ import annotations

from collections.abc import Mapping

from builder.audit.result import AuditTable
from builder.qwen3.parts import PARTS
from builder.report.charts import anchor, figure, folded_numbers, rect, table_html
from builder.report.html import Html, join, plain, tag, text
from builder.report.rendered import Rendered
from builder.sample import Sample
from builder.text import number, percent


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
        reached = 0
        for _, _, (start, _) in rendered.tokens:
            while reached < len(ends) - 1 and start >= ends[reached]:
                reached += 1
            counts[reached] += start >= begins[0]
        return tuple(counts), False
    per = whole / max(len(rendered.text), 1)
    return tuple(round((end - start) * per) for start, end in zip(begins, ends, strict=True)), True


def share_bar(rendered: Rendered) -> Html:
    """Returns a bar of the parts of a sample, and of its trained text, with their tokens."""
    drawn, names = _parts(rendered.parts)
    whole = max(len(rendered.text), 1)
    for start, end in rendered.spans:
        drawn.append(
            rect("is-trained", 100 * start / whole, 9, max(100 * (end - start) / whole, 0.05), 3)
        )
    if trained := rendered.trained:
        share = percent(trained / max(sum(rendered.parts.values()), 1))
        caption = text(f"trained {number(trained)} ({share})")
        names.append(tag("span", _key("is-trained"), caption))
    label = "Tokens by part, and the places of the trained text in the sample"
    return tag("div", _bar(drawn, label), tag("p", join(names), class_="scroll"), class_="shares")


def dataset_shares(table: AuditTable, trained: float | None) -> Html:
    """Returns a bar of the parts of a whole dataset, from the audit's `lengths`, with its numbers.

    `trained` is the share of the text that is trained, drawn below; None if it is not known.
    """
    counts = {str(row[0]): int(_number(row[1])) for row in table.rows}
    parts = {name: count for name in PARTS if (count := counts.get(name, 0))}
    numbers = folded_numbers(table.note, table_html(table))
    if not parts:
        return figure(anchor("table", table.key), table.title, table.note, table_html(table))
    drawn, names = _parts(parts)
    if trained:
        drawn.append(rect("is-trained", 0, 9, 100 * trained, 3))
        names.append(tag("span", _key("is-trained"), text(f"trained {percent(trained)}")))
    label = "Tokens of the dataset by part, and the share of the trained text below"
    bar = _bar(drawn, label)
    shown = tag("div", bar, tag("p", join(names), class_="scroll"), class_="shares")
    return figure(anchor("table", table.key), table.title, "", shown, numbers)


def _parts(parts: Mapping[str, int]) -> tuple[list[Html], list[Html]]:
    """Returns the pieces of the bar, and their names with counts and shares."""
    drawn, names, at = [], [], 0.0
    for name, count in parts.items():
        kind, wide = f"part-{PARTS.index(name)}", 100 * count / sum(parts.values())
        caption = f"{name} {number(count)} ({percent(wide / 100)})"
        drawn.append(tag("g", tag("title", plain(caption)), rect(kind, at, 0, wide, 8)))
        names.append(tag("span", _key(kind), text(caption)))
        at += wide
    return drawn, names


def _number(value: str | float | None) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _key(kind: str) -> Html:
    """Returns a square in the colour of a part."""
    return tag("svg", rect(kind, 0, 0, 10, 10), viewBox="0 0 10 10", aria_hidden="true")


def _bar(drawn: list[Html], label: str) -> Html:
    return tag("svg", *drawn, viewBox="0 0 100 12", preserveAspectRatio="none", role="img",
               aria_label=label, class_="bar")  # fmt: skip
