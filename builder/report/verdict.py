"""Renders the first screen of a report: is the dataset ready, what to do first, four charts."""

from __future__ import annotations

from collections.abc import Sequence

from builder.audit.result import Audit
from builder.normalize.as_options import with_options
from builder.output.manifest import Manifest
from builder.report.advice import judge
from builder.report.chart_sections import first_charts, trained_share
from builder.report.flow import ledger_figure
from builder.report.html import EMPTY, Html, join, prose, statement, tag, text
from builder.report.judgement import GRADES, Judgement, verdict_on, worst
from builder.report.ledger_stages import LedgerCounts
from builder.report.remedy import Advice, Remedy
from builder.report.survey import Survey
from builder.text import counted, number, percent

ADVICE = 3
"""Number of recommendations shown first; the others can be opened."""

_STYLES = {"good": "verdict good", "fair": "verdict fair", "poor": "verdict open"}


def first_screen(
    surveyed: Survey, ledger: LedgerCounts | None, manifest: Manifest, audit: Audit | None
) -> Html:
    """Returns the verdict and what to do first, beside the main counts and four charts.

    Below it are the losses, and the accounting from records to samples.
    """
    judged, advised = judge(surveyed, manifest, audit)
    missing = manifest.tokenizer.missing
    words = (
        _sentence(surveyed, manifest, audit, judged),
        statement("Lengths and counts of tokens are estimates: ", missing) if missing else EMPTY,
        _converted(audit),
    )
    parts = (
        tag("div", *words, class_="in-words"),
        _shares(surveyed, ledger, manifest, audit),
        _advice(advised),
        first_charts(surveyed, audit),
    )
    flow = ledger_figure(ledger) if ledger is not None else EMPTY
    return join((tag("div", *parts, class_="first-screen"), _lost(ledger), flow))


def _samples(surveyed: Survey, manifest: Manifest, audit: Audit | None) -> int:
    """Returns the number of samples; without a manifest, some rows may not be samples."""
    return audit.samples if audit is not None and manifest.is_empty else surveyed.samples


def _sentence(
    surveyed: Survey, manifest: Manifest, audit: Audit | None, judged: Sequence[Judgement]
) -> Html:
    """Returns the verdict; its colour is that of the worst judgement."""
    if not surveyed.samples:
        return statement("No samples. ", "There is nothing to train on here.", "verdict open")
    turns = f" with {number(surveyed.turns)} trained turns" if surveyed.turns else ""
    samples = _samples(surveyed, manifest, audit)
    rows = f"{number(samples)} of {number(surveyed.samples)} rows are samples"
    head = rows if samples != surveyed.samples else f"{number(samples)} samples"
    head += f"{turns}. "
    if not manifest.tokenizer.template_sha256:
        words = (
            "There is no manifest: this dataset was not made by `builder build`. Check it with"
            " `builder verify`."
        )
        return statement(f"{head}Not verified. ", words, "verdict open")
    marks = [
        tag("li", tag("span", text(item.grade), class_="grade"), text(f" {item.text}"),
            class_=item.grade)
        for item in sorted(judged, key=lambda item: [*GRADES].index(item.grade))
    ]  # fmt: skip
    meaning = (
        "Verified: the text is what the tokenizer's own chat template renders, and it reads back as"
        " the same messages."
    )
    return tag(
        "div",
        tag("p", tag("strong", text(_overall(judged))), class_="overall"),
        tag("ul", *marks, class_="judgements"),
        tag("p", text(head if samples != surveyed.samples else ""), text(meaning), class_="note"),
        class_=_STYLES[worst(judged)],
    )


def _overall(judged: Sequence[Judgement]) -> str:
    """Returns the verdict as a sentence."""
    verdict, _ = verdict_on(judged)
    grade = worst(judged)
    count = sum(item.grade == grade for item in judged)
    points = f"{count} of {counted(len(judged), 'point')}"
    return f"{verdict[:1].upper()}{verdict[1:]}: {points} {'is' if count == 1 else 'are'} {grade}."


def _converted(audit: Audit | None) -> Html:
    """Returns how many rows were converted from which form, and the changes this made."""
    if audit is None or not audit.read_as:
        return EMPTY
    rows = audit.samples + sum(item.count for item in audit.findings if item.code == "bad_row")
    forms = ", ".join(
        f"{number(count)} of {number(rows)} rows {'was' if count == 1 else 'were'} read as {form}"
        for form, count in sorted(audit.read_as.items())
    )
    changed = ", ".join(f"{code} {number(n)}" for code, n in sorted(audit.conversion.items()))
    words = f"{forms}. Changed by the conversion: {changed}." if changed else f"{forms}."
    return statement("Converted from other forms: ", words)


def _shares(
    surveyed: Survey, ledger: LedgerCounts | None, manifest: Manifest, audit: Audit | None
) -> Html:
    """Returns the main counts and shares with their labels."""
    tiles: list[tuple[str, str]] = [("samples", number(_samples(surveyed, manifest, audit)))]
    if surveyed.has_tokens:
        label = "tokens (estimated)" if manifest.tokenizer.missing else "tokens"
        tiles.append((label, number(surveyed.tokens)))
    trained = trained_share(surveyed, audit)
    if trained is not None:
        label = "of the tokens are trained"
        if surveyed.trained_tokens:
            label += f": {number(surveyed.trained_tokens)}"
        tiles.append((label, percent(trained)))
    if surveyed.turns:
        tiles.append(("trained turns", number(surveyed.turns)))
    if surveyed.calls:
        used = ledger.calls.used if ledger is not None else surveyed.calls
        again = f", {number(surveyed.calls)} times in samples" if used != surveyed.calls else ""
        tiles.append((f"tool calls{again}", number(used)))
    drawn = [tag("div", tag("dd", text(value)), tag("dt", text(name))) for name, value in tiles]
    return tag("dl", *drawn, class_="tiles")


def _lost(ledger: LedgerCounts | None) -> Html:
    if ledger is None:
        return EMPTY
    stages = (ledger.records, ledger.conversations, ledger.samples, ledger.calls)
    lost = [
        f"{number(loss.count)} of {number(stage.found)} {stage.unit} {loss.name}"
        for stage in stages
        for loss in stage.losses
        if loss.count and not loss.by_design
    ]
    left_out = [
        f"{number(loss.count)} of {number(stage.found)} {stage.unit} {loss.name}"
        for stage in stages[1:3]
        for loss in stage.losses
        if loss.count and loss.by_design
    ]
    words = f"{'; '.join(lost) or 'nothing'}."
    if left_out:
        words += f" Left out without loss: {'; '.join(left_out)}."
    return statement("Lost: ", words)


def _advice(advised: Sequence[Advice]) -> Html:
    """Returns the first recommendations, and the others folded."""
    if not advised:
        return EMPTY
    first = tag("ol", *map(_item, advised[:ADVICE]), class_="advice")
    others = EMPTY
    if len(advised) > ADVICE:
        title = tag("summary", text(f"{number(len(advised) - ADVICE)} more"))
        more = tag("ol", *map(_item, advised[ADVICE:]), class_="advice", start=ADVICE + 1)
        others = tag("details", title, more)
    return tag("section", tag("h3", text("What to do first")), first, others, class_="to-do")


def _item(item: Advice) -> Html:
    """Returns a recommendation with its first remedy; the reason and other remedies unfold."""
    first, others = item.remedies[:1], item.remedies[1:]
    parts = [tag("strong", text(item.finding)), _remedies(first)]
    ways = counted(len(others), "other way") if others else ""
    if item.detail or others:
        head = " and ".join(filter(None, ("Why" if item.detail else "", ways)))
        detail = tag("p", text(item.detail), class_="note") if item.detail else EMPTY
        more = tag("details", tag("summary", text(head)), detail, _remedies(others))
        parts.append(more)
    return tag("li", *parts)


def _remedies(remedies: Sequence[Remedy]) -> Html:
    return tag("ul", *map(_remedy, remedies), class_="remedies") if remedies else EMPTY


def _remedy(item: Remedy) -> Html:
    price = tag("span", text(f" Price: {item.price}."), class_="price") if item.price else EMPTY
    commands = (tag("pre", text(command), class_="command") for command in item.commands)
    return tag("li", prose(with_options(item.text)), price, *commands)
