"""Renders the lines of rejects.jsonl by code, with examples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from builder.dataset.rejects import Reject, read_rejects
from builder.paths import expand_home
from builder.report.codes import explained
from builder.report.html import Html, filter_form, join, shorten, tag, text
from builder.report.page import fit
from builder.text import number

_CODES = 200
_EXAMPLES = 5
_MAX_BYTES = 600_000


@dataclass(slots=True)
class RejectsOfCode:
    """The lines of one code: their number, and examples from different formats."""

    count: int = 0
    examples: list[Reject] = field(default_factory=list)


def rejects_by_code(dataset: str) -> dict[str, RejectsOfCode]:
    """Returns the rejects of a built folder by code, most frequent first; {} for other datasets."""
    by_code: dict[str, RejectsOfCode] = {}
    formats: dict[str, set[str]] = {}
    for line in read_rejects(expand_home(dataset)):
        code = shorten(line.code or "(no code)", 60)
        if code not in by_code and len(by_code) >= _CODES:
            code = "(others)"
        known = by_code.setdefault(code, RejectsOfCode())
        known.count += 1
        kinds = formats.setdefault(code, set())
        kind = shorten(line.format or "", 60)
        if len(known.examples) < _EXAMPLES and (kind not in kinds or known.count > _EXAMPLES):
            kinds.add(kind)
            known.examples.append(line)
        elif len(known.examples) < 2:
            known.examples.append(line)
    return dict(sorted(by_code.items(), key=lambda item: (-item[1].count, item[0])))


def rejects_html(by_code: dict[str, RejectsOfCode]) -> Html:
    """Returns a list of codes that unfold into an explanation and examples."""
    if not by_code:
        return tag("p", text("Nothing was rejected."), class_="note")
    groups = fit(_group, tuple(by_code.items()), _MAX_BYTES, "codes")
    return join((filter_form("reject-list", "Rejects"), tag("div", groups, id="reject-list")))


def _group(item: tuple[str, RejectsOfCode]) -> Html:
    code, rejects = item
    counted = tag("span", text(number(rejects.count)), class_="count")
    head = tag("summary", tag("code", text(code)), counted)
    table = _table(rejects.examples)
    return tag("details", head, explained(code), table, class_="reject", data_item="")


def _table(lines: Iterable[Reject]) -> Html:
    head = tag("tr", *(tag("th", text(name), scope="col") for name in ("where", "why")))
    body = []
    for line in lines:
        place = " · ".join(shorten(value, 160) for value in line.place)
        why = shorten(line.message, 400)
        body.append(tag("tr", tag("td", text(place)), tag("td", text(why))))
    table = tag("table", tag("thead", head), tag("tbody", *body), class_="halves")
    return tag("div", table, class_="scroll")
