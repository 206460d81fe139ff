"""Makes the report of a dataset as one HTML file.

Its bytes depend only on the dataset, its manifest except `files` and `run`, and the audit. It is
smaller than MAX_BYTES for any dataset: it shows a documented selection of the samples, every part
has a limit, and long texts are cut in the middle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from builder.audit.result import Audit
from builder.output.manifest import Manifest
from builder.qwen3.tokenizer import Target
from builder.report.chart_sections import other_charts
from builder.report.html import EMPTY, Html, filter_form, join, plain, shorten, tag, text
from builder.report.ledger_stages import ledger_counts
from builder.report.overview import findings, how_made, proof
from builder.report.page import page
from builder.report.rejects import rejects_by_code, rejects_html
from builder.report.rendered import legend
from builder.report.samples import Picked, headline, sample_html
from builder.report.survey import Survey, fetch, survey, with_contexts
from builder.report.verdict import first_screen
from builder.text import number

MAX_BYTES = 4_800_000
MAX_SAMPLES = 60
KEYS = (
    ("j or →", "next sample"),
    ("k or ←", "previous sample"),
    ("Enter", "open the sample"),
    ("/", "search the samples"),
    ("?", "show these keys"),
)
Render = Callable[[Sequence[Picked]], Iterable[Html]]
"""Samples → the body of each, in order."""
_SAMPLE_BYTES = 60_000

_SUBTITLE = "Dataset report"
_SECTIONS = (
    ("overview", "Overview"),
    ("findings", "Findings"),
    ("charts", "More about the samples"),
    ("samples", "Samples"),
    ("rejects", "Rejects"),
    ("made", "How it was made"),
)


def report_html(
    dataset: str,
    manifest: Manifest,
    audit: Audit | None,
    target: Target,
    surveyed: Survey | None = None,
    render: Render | None = None,
    *,
    name: str = "",
) -> bytes:
    """Returns the report in UTF-8.

    `manifest` is empty for a dataset that this program did not build. `audit` is None if none was
    run; the page then says so. `surveyed` is the result of `survey`, computed if None. `render` may
    do what `sample_body` does in other processes. `name` is the title of a dataset that its user
    did not name. Raises UsageError if there is no such dataset.
    """
    ledger = ledger_counts(manifest.ledger) if manifest.ledger is not None else None
    found, samples = Survey(), []
    if ledger is None or ledger.samples.used:
        found = with_contexts(surveyed or survey(dataset), manifest)
        picks = [*(audit.picks if audit is not None else ()), *found.picks]
        samples = fetch(dataset, picks, MAX_SAMPLES)
    places = {picked.where: picked.number for picked in samples}
    sections = {
        "overview": first_screen(found, ledger, manifest, audit),
        "findings": findings(audit, places),
        "charts": other_charts(found, audit),
        "rejects": rejects_html(rejects_by_code(dataset)),
        "made": join((how_made(manifest), _proven_against(manifest))),
    }
    left = MAX_BYTES - sum(len(part.encode()) for part in sections.values())
    bodies = render(samples) if render else (sample_body(item, target) for item in samples)
    sections["samples"] = _samples(samples, bodies, found, target, left)
    body = [tag("section", _heading(key, title), sections[key], id=key) for key, title in _SECTIONS]
    name = manifest.name or name
    links = [(f"#{key}", title) for key, title in _SECTIONS]
    subtitle = _SUBTITLE if name else ""
    return page(shorten(name or _SUBTITLE, 80), join(body), links, subtitle=subtitle, keys=KEYS)


def _heading(key: str, title: str) -> Html:
    """Returns the heading of a section; that of the first screen is for screen readers only."""
    style = "unseen-title" if key == "overview" else None
    return tag("h2", text(title), id=f"{key}-title", class_=style)


def sample_body(picked: Picked, target: Target) -> Html:
    """Returns the part of the report about a sample, without its heading."""
    return sample_html(picked, target, _SAMPLE_BYTES)


def _proven_against(manifest: Manifest) -> Html:
    facts = proof(manifest)
    return join((tag("h3", text("Verified against")), facts)) if facts else EMPTY


def _samples(
    samples: Sequence[Picked], bodies: Iterable[Html], surveyed: Survey, target: Target, left: int
) -> Html:
    if not samples:
        return tag("p", text("There is no sample to show."), class_="note")
    items: list[Html] = []
    size = 60_000  # for head, navigation, style sheet and script
    lost = 0
    for picked, body in zip(samples, bodies, strict=True):
        most = left - size
        if most < 2_000:
            lost += 1
            continue
        item = _item(picked, body if most >= _SAMPLE_BYTES else sample_html(picked, target, most))
        items.append(item)
        size += len(item.encode())
    message = (
        f"{number(len(items))} of {number(surveyed.samples)} samples: of typical length, the"
        " longest, the first of each kind, and what the audit picked."
        " The logs themselves are not on this page: they may contain what was removed."
    )
    if lost:
        message += f" {number(lost)} more did not fit."
    return join(
        (
            tag("p", text(message), class_="note"),
            legend(),
            _filters(samples[: len(items)]),
            tag("div", *items, id="sample-list"),
        )
    )


def _item(picked: Picked, body: Html) -> Html:
    request, about = headline(picked)
    reasons = (
        tag("span", text(shorten(reason, 60)), class_="why") for reason in picked.reasons[:6]
    )
    head = (
        tag("span", text(f"#{number(picked.number)}"), class_="count"),
        tag("span", text(request), class_="asked", dir="auto"),
        tag("span", text(about), class_="about"),
        tag("span", *reasons, class_="reasons"),
    )
    meta = picked.row.meta
    return tag(
        "details",
        tag("summary", *head),
        body,
        class_="sample",
        id=f"sample-{picked.number}",
        data_item="",
        data_format=shorten(meta.format or "", 60) or None,
        data_model=" | ".join(_models(picked)) or None,
        data_why=" | ".join(shorten(reason, 60) for reason in picked.reasons) or None,
    )


def _models(picked: Picked) -> list[str]:
    return [shorten(name, 60) for name in picked.row.meta.every_model if name]


def _filters(samples: Sequence[Picked]) -> Html:
    """Returns a search box, and a choice each of reason, format and model."""
    formats = {shorten(picked.row.meta.format or "", 60) for picked in samples}
    models = {item for picked in samples for item in _models(picked)}
    reasons = {shorten(reason, 60) for picked in samples for reason in picked.reasons}
    return filter_form(
        "sample-list",
        "Samples",
        _choice("why", "Chosen for", reasons),
        _choice("format", "Format", formats),
        _choice("model", "Model", models),
        tag("button", text("Open all"), type="button", data_open="all"),
        tag("button", text("Close all"), type="button", data_open="none"),
    )


def _choice(name: str, label: str, values: set[str]) -> Html:
    options = [tag("option", plain(value), value=value) for value in sorted(values - {""})]
    if len(options) < 2:
        return EMPTY
    every = Html('<option value="">all</option>')
    return tag("label", text(f"{label} "), tag("select", every, *options, name=name))
