"""Renders every loss of a ledger by its code, with its meaning and remedy."""

from __future__ import annotations

from collections.abc import Sequence

from builder.codes import explain, meaning
from builder.normalize.as_options import with_options
from builder.report.charts import figure
from builder.report.html import EMPTY, Html, join, prose, tag, text
from builder.report.ledger_stages import IGNORED, LedgerCounts, Loss
from builder.text import number

_HEADS = (("code", None), ("count", "num"), ("meaning, and what to do", None))


def losses_figure(ledger: LedgerCounts) -> Html:
    """Returns a table of the losses; those by design come last, records without a use folded."""
    stages = (ledger.records, ledger.conversations, ledger.samples, ledger.calls)
    losses = [(stage.unit, loss) for stage in stages for loss in stage.losses]
    losses.append((ledger.conversations.unit, ledger.cut))
    there = [(unit, loss) for unit, loss in losses if loss.count]
    there.sort(key=lambda pair: pair[1].by_design)
    kinds = [pair for pair in there if _is_kinds(*pair, ledger)]
    shown = [pair for pair in there if pair not in kinds]
    parts = [_table(shown)] if shown else [tag("p", text("None."))]
    for pair in kinds:
        words = f"{_title(*pair)}: program state, copies, measurements; no action is needed"
        parts.append(tag("details", tag("summary", text(words)), _table([pair])))
    return figure("losses", "Every loss by its code", "", *parts)


def _is_kinds(unit: str, loss: Loss, ledger: LedgerCounts) -> bool:
    """Returns whether the codes are kinds of records: no part of a conversation is lost."""
    return unit == ledger.records.unit and loss.name == IGNORED


def _title(unit: str, loss: Loss) -> str:
    return f"{number(loss.count)} {unit} {loss.name}"


def _table(losses: Sequence[tuple[str, Loss]]) -> Html:
    head = tag("tr", *(tag("th", text(name), scope="col", class_=kind) for name, kind in _HEADS))
    bodies = [_group(_title(unit, loss), loss) for unit, loss in losses]
    table = tag("table", tag("thead", head), *bodies, class_="losses")
    return tag("div", table, class_="scroll")


def _group(title: str, loss: Loss) -> Html:
    rows = [
        tag(
            "tr",
            tag("th", tag("code", text(code)), scope="row"),
            tag("td", text(number(count)), class_="num"),
            tag("td", _words(code)),
        )
        for code, count in loss.codes or ((loss.name, loss.count),)
    ]
    head = tag("tr", tag("th", text(title), scope="rowgroup", colspan=3))
    return tag("tbody", head, *rows, class_=loss.style)


def _words(code: str) -> Html:
    explanation = explain(code)
    if explanation is None:
        return text(meaning(code))
    remedy = tag("span", prose(f" → {with_options(explanation.remedy)}"), class_="price")
    return join((text(explanation.meaning), remedy if explanation.remedy else EMPTY))
