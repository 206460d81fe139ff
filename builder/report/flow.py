"""Draws the ledger as a flow of records, conversations and calls, with every loss by name."""

from __future__ import annotations

from collections.abc import Sequence

from builder.report.charts import figure, label, rect
from builder.report.html import Html, join, plain, shorten, tag
from builder.report.ledger_stages import LedgerCounts, Loss, Stage
from builder.report.losses import losses_figure
from builder.text import number

_WIDE, _NARROW = 960.0, 340.0
_NODE, _HEIGHT, _TOP = 10.0, 140.0, 46.0
_NAMED = 2
"""Codes of a loss that the drawing names; the tables below it have all of them."""


def ledger_figure(ledger: LedgerCounts) -> Html:
    """Returns the flow from records to samples, that of the calls, and a table of each loss."""
    stages = (ledger.records, ledger.conversations)
    once = "Every record and conversation is counted once."
    flow = _drawings("flow", stages, "samples", ledger.samples.used)
    calls_once = "A call that occurs several times in a log is counted once."
    calls = _drawings("flow-calls", (ledger.calls,), "calls in samples", ledger.calls.used)
    return join(
        (
            figure("flow", "From records to samples", once, *flow),
            figure("flow-calls", "Tool calls", calls_once, *calls),
            losses_figure(ledger),
        )
    )


def description(stages: Sequence[Stage], last: str, count: int) -> str:
    """Describes the flow in sentences, for screen readers."""
    sentences = []
    for stage in stages:
        lost = "".join(f", {number(loss.count)} {loss.name}" for loss in stage.losses)
        sentences.append(
            f"{number(stage.found)} {stage.unit} found: {number(stage.used)} used{lost}."
        )
    return f"{' '.join(sentences)} {number(count)} {last}."


def _drawings(key: str, stages: Sequence[Stage], last: str, count: int) -> tuple[Html, Html]:
    return _wide(key, stages, last, count), _narrow(key, stages, last, count)


def _wide(key: str, stages: Sequence[Stage], last: str, count: int) -> Html:
    apart = (_WIDE - 150) / 2
    drawn: list[Html] = []
    bottom = _TOP + _HEIGHT
    for at, stage in enumerate(stages):
        x = at * apart
        drawn += _head(x, stage.found, f"{stage.unit} found", stage_end=False)
        drawn.append(rect("node", x, _TOP, _NODE, _HEIGHT))
        unit = _HEIGHT / (stage.found or 1)
        going = stage.used * unit
        is_last = at == len(stages) - 1
        drawn.append(
            _ribbon("kept", x + _NODE, _TOP, going, x + apart, _TOP, going if is_last else _HEIGHT)
        )
        on_ribbon = f"{number(stage.used)} used"
        middle = _TOP + min(max(going / 2 + 4, 14), 70)
        drawn.append(label(x + _NODE + 12, middle, on_ribbon, "on"))
        y, place = _TOP + going, _TOP + _HEIGHT + 26
        for loss in stage.losses:
            if not loss.count:
                continue
            thick = max(loss.count * unit, 1.5)
            drawn.append(_ribbon(loss.style, x + _NODE, y, thick, x + 120, place, thick))
            drawn.append(rect(f"exit {loss.style}", x + 120, place, 4, max(thick, 4)))
            middle = place + max(thick, 4) / 2
            drawn.append(label(x + 132, middle, f"{number(loss.count)} {loss.name}", "strong"))
            drawn.append(label(x + 132, middle + 16, _top_codes(loss), "muted"))
            y += loss.count * unit
            place += max(thick, 30) + 18
        bottom = max(bottom, place)
    x = len(stages) * apart
    share = (stages[-1].used or 0) / (stages[-1].found or 1)
    drawn += _head(x, count, last, stage_end=len(stages) > 1)
    drawn.append(rect("node", x, _TOP, _NODE, max(_HEIGHT * share, 2)))
    return _svg(key, "wide", _WIDE, bottom + 4, drawn, description(stages, last, count))


def _narrow(key: str, stages: Sequence[Stage], last: str, count: int) -> Html:
    """Returns the drawing for narrow screens: a bar for each stage above a list of its parts."""
    drawn: list[Html] = []
    y = 0.0
    for stage in stages:
        head = f"{number(stage.found)} {stage.unit} found"
        drawn.append(label(0, y + 16, head, "strong"))
        unit = _NARROW / (stage.found or 1)
        x = 0.0
        parts = [("kept", "used", stage.used, "")]
        parts += [(loss.style, loss.name, loss.count, _top_codes(loss)) for loss in stage.losses]
        line = y + 62
        for kind, name, size, codes in parts:
            if not size:
                continue
            drawn.append(rect(f"{kind} part", x, y + 24, max(size * unit, 1), 20))
            drawn.append(rect(f"{kind} part", 0, line - 9, 10, 10))
            drawn.append(label(18, line, f"{number(size)} {name}", "label"))
            if codes:
                drawn.append(label(18, line + 15, codes, "muted"))
            x += size * unit
            line += 38 if codes else 21
        y = line + 6
    drawn.append(label(0, y + 12, f"{number(count)} {last}", "strong"))
    return _svg(key, "narrow", _NARROW, y + 22, drawn, description(stages, last, count))


def _top_codes(loss: Loss) -> str:
    named = [f"{shorten(code, 20)} {number(count)}" for code, count in loss.codes[:_NAMED]]
    left = len(loss.codes) - len(named)
    return ", ".join(named) + (f", {left} more" if left else "")


def _head(x: float, count: int, what: str, *, stage_end: bool) -> list[Html]:
    anchored = "end" if stage_end else None
    place = x + _NODE if stage_end else x
    return [
        label(place, 16, number(count), "big", anchored),
        label(place, 36, what, "muted", anchored),
    ]


def _ribbon(
    kind: str, x: float, y: float, tall: float, to: float, to_y: float, to_tall: float
) -> Html:
    """Returns a curved band from one vertical edge to another."""
    half = (x + to) / 2
    curve = (
        f"M{x:.1f} {y:.1f}C{half:.1f} {y:.1f} {half:.1f} {to_y:.1f} {to:.1f} {to_y:.1f}"
        f"V{to_y + to_tall:.1f}C{half:.1f} {to_y + to_tall:.1f} {half:.1f} {y + tall:.1f}"
        f" {x:.1f} {y + tall:.1f}Z"
    )
    return tag("path", class_=kind, d=curve)


def _svg(key: str, kind: str, width: float, height: float, drawn: list[Html], desc: str) -> Html:
    name = f"{key}-{kind}"
    head = (
        tag("title", plain("Flow of the records read and their outcome"), id=f"{name}-t"),
        tag("desc", plain(desc), id=f"{name}-d"),
    )
    return tag(
        "svg", *head, *drawn, role="img", class_=f"flow {kind}",
        viewBox=f"0 0 {width:g} {height:.0f}", aria_labelledby=f"{name}-t {name}-d",
    )  # fmt: skip
