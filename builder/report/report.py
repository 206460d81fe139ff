"""Makes the report of a dataset as one HTML file.

Its bytes depend only on the dataset, its manifest except `files` and `run`, and the audit. It is
smaller than MAX_BYTES for any dataset: it shows a documented selection of the samples, every part
has a limit, and long texts are cut in the middle.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from builder.audit.counts import Counts, count_dataset
from builder.audit.result import Audit, Pick
from builder.audit.tables import picks
from builder.codes import explain, is_loss, meaning
from builder.conversation import Json
from builder.dataset.files import dataset_files
from builder.dataset.rejects import Reject, read_rejects
from builder.dataset.rows import DatasetRow, dataset_rows
from builder.dataset.store import Rows
from builder.finding import AuditFinding, GateAction
from builder.ledger import Ledger, ranked
from builder.normalize.remedies import recovery
from builder.output.manifest import Manifest
from builder.paths import expand_home
from builder.qwen3.tokenizer import Target
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.report.advice import SHOWN, judge, unshowable
from builder.report.charts import first_charts, other_charts
from builder.report.html import EMPTY, Html, fit, join, macro, page, tag, text
from builder.report.samples import LEGEND, Picked, headline, sample_html
from builder.text import counted, number, percent, shorten

MAX_BYTES = 4_800_000
_MAX_SAMPLES = 30
KEYS = (
    ("j or →", "next sample"),
    ("k or ←", "previous sample"),
    ("Enter", "open the sample"),
    ("/", "search the samples"),
    ("?", "show these keys"),
)
_Render = Callable[[Sequence[Picked]], Iterable[Html]]
"""Samples → the body of each, in order."""

_SAMPLE_BYTES = 60_000
_SUBTITLE = "Dataset report"
_SECTIONS = (
    ("overview", "Overview"),
    ("findings", "Findings"),
    ("samples", "Samples"),
    ("charts", "More about the samples"),
    ("rejects", "Rejects"),
    ("made", "How it was made"),
)
_FOLDED = ("charts", "rejects", "made")
_EXAMPLES = 8
_PART_BYTES = 600_000
_CODES = 200
_REJECTS = 5
_GATES = {
    GateAction.report: "reported",
    GateAction.change: "changed",
    GateAction.reject: "rejected",
    GateAction.drop: "dropped",
}


def report_html(
    dataset: str,
    manifest: Manifest,
    audit: Audit | None,
    target: Target,
    render: _Render | None = None,
    *,
    name: str = "",
) -> bytes:
    """Returns the report in UTF-8.

    `manifest` is empty for a dataset that this program did not build. `audit` is None if none was
    run; the page then says so. `render` may do what `sample_body` does in other processes. `name`
    is the title of a dataset that its user did not name. Raises UsageError if there is no such
    dataset.
    """
    manifest = manifest.without_folders()  # the page may be published
    counts, samples = Counts(), []
    if manifest.ledger is None or manifest.ledger.samples:
        chosen = [*audit.picks] if audit is not None else []
        if audit is not None and audit.counts.samples:
            counts = audit.counts
        else:
            counts = count_dataset(dataset)
            chosen += picks(counts)
        samples = fetch(dataset, chosen, _MAX_SAMPLES)
    places = {picked.where: picked.number for picked in samples}
    sections = {
        "overview": join((first_screen(counts, manifest, audit), accounting(manifest.ledger))),
        "findings": _findings(audit, places),
        "charts": other_charts(counts, audit),
        "rejects": _rejects(dataset),
        "made": how_made(manifest),
    }
    left = MAX_BYTES - sum(len(part.encode()) for part in sections.values())
    bodies = render(samples) if render else (sample_body(item, target) for item in samples)
    sections["samples"] = _samples(samples, bodies, counts.samples, target, left)
    body = []
    for key, title in _SECTIONS:
        style = "unseen-title" if key == "overview" else None
        heading = tag("h2", text(title), id=f"{key}-title", class_=style)
        content = join((heading, sections[key]))
        if key in _FOLDED:
            content = tag("details", tag("summary", heading), sections[key])
        body.append(tag("section", content, id=key))
    name = manifest.name or name
    links = [(f"#{key}", title) for key, title in _SECTIONS]
    subtitle = _SUBTITLE if name else ""
    return page(shorten(name or _SUBTITLE, 80), join(body), links, KEYS, subtitle=subtitle)


def sample_body(picked: Picked, target: Target) -> Html:
    """Returns the part of the report about a sample, without its heading."""
    return sample_html(picked, target, _SAMPLE_BYTES)


# -- the first screen ------------------------------------------------------------------------------


def first_screen(counts: Counts, manifest: Manifest, audit: Audit | None) -> Html:
    """Returns the four lines and what to do first, beside the main counts and four charts."""
    lines, advised = judge(counts, manifest, audit)
    counts = counts.with_contexts(manifest)
    rows = audit.rows if audit is not None and manifest.is_empty else 0
    samples = audit.samples if rows and audit is not None else counts.samples
    head = f"{number(samples)} of {counted(rows, 'row')} are samples. " if rows > samples else ""
    unverified = ""
    if not counts.samples:
        unverified = "There is nothing to train on here."
        head = head or "No samples. "
    elif not manifest.tokenizer.template_sha256:
        head += "Not verified. "
        unverified = (
            "There is no manifest: this dataset was not made by `builder build`. Check it with"
            " `builder verify`."
        )
    return macro(
        "report", "first_screen", head=head, unverified=unverified,
        lines=() if unverified else lines, tiles=_tiles(counts, manifest),
        advice=advised, charts=first_charts(counts, audit), converted=_converted(audit),
        estimated=manifest.tokenizer.missing, most=SHOWN,
        unshowable=", ".join(f"{words} {number(n)}" for words, n in unshowable(counts)),
    )  # fmt: skip


def _tiles(counts: Counts, manifest: Manifest) -> list[tuple[str, str]]:
    """Returns the main counts and shares with their labels."""
    tiles = [("samples", number(counts.samples))]
    if counts.has_tokens:
        label = "tokens (estimated)" if manifest.tokenizer.missing else "tokens"
        tiles.append((label, number(counts.tokens)))
    if counts.trained_share is not None:
        label = f"trained tokens ({percent(counts.trained_share)})"
        tiles.append((label, number(counts.trained_tokens)))
    if counts.turns:
        tiles.append(("trained turns", number(counts.turns)))
    if counts.calls:
        ledger = manifest.ledger
        used = ledger.calls_kept if ledger is not None else counts.calls
        again = f", {number(counts.calls)} times in samples" if used != counts.calls else ""
        tiles.append((f"tool calls{again}", number(used)))
    return tiles


def _converted(audit: Audit | None) -> str:
    """Returns how many rows were converted from which form, and the changes this made."""
    if audit is None or not audit.read_as:
        return ""
    forms = ", ".join(
        f"{number(n)} of {number(audit.rows)} rows {'was' if n == 1 else 'were'} read as {form}"
        for form, n in sorted(audit.read_as.items())
    )
    changed = ", ".join(f"{code} {number(n)}" for code, n in sorted(audit.conversion.items()))
    return f"{forms}. Changed by the conversion: {changed}." if changed else f"{forms}."


def accounting(ledger: Ledger | None) -> Html:
    """Returns the table of what was found and used, and every loss by its code, if known."""
    if ledger is None:
        return EMPTY
    rows, groups, named = [], [], set[str]()

    def explained(codes: Mapping[str, int]) -> list[tuple[str, int, str, str]]:
        """Returns (code, count, meaning, remedy) of each code; a remedy stands once."""
        found = []
        for code, count in ranked({code: n for code, n in codes.items() if n}):
            kept, option = recovery(ledger, code)
            known = explain(code)
            remedy = f"`{option}`" if kept else known.advice if known and is_loss(code) else ""
            found.append(
                (shorten(code, 60), count, meaning(code), "" if remedy in named else remedy)
            )
            named.add(remedy)
        return found

    for one in ledger.accounts:
        ignored, rejected = sum(one.ignored.values()), sum(one.rejected.values())
        rows.append((one.unit, one.found, one.used, one.duplicates, ignored, rejected))
        for name, codes in (("rejected", one.rejected), ("ignored", one.ignored)):
            if total := sum(codes.values()):
                title = f"{counted(total, one.unit.removesuffix('s'))} {name}"
                groups.append((title, name == "rejected", explained(codes)))
    if ledger.cut:
        title = f"{counted(ledger.cut.total(), 'conversation')} shortened: the end is left out"
        groups.append((title, True, explained(ledger.cut)))
    groups.sort(key=lambda group: not group[1])
    return macro("report", "accounting", accounts=rows, groups=groups)


# -- findings, rejects, how it was made ------------------------------------------------------------


def _findings(audit: Audit | None, places: Mapping[str, int]) -> Html:
    """Returns every finding with its gate and examples.

    `places` is {location: number} of the samples on the page, to which examples link.
    """
    if audit is None:
        message = (
            "No audit was run for this page, so it says nothing about the contents of the texts."
        )
        return tag("p", text(message), class_="note")
    if not audit.findings:
        return tag("p", text("The audit found nothing."), class_="note")

    def drawn(item: AuditFinding) -> Html:
        where = number(item.count)
        where += f" in {counted(item.samples, 'sample')}" if item.samples else ""
        examples = [
            (
                shorten(one.where, 120),
                places.get(one.where),
                _joined((one.source, one.record, one.part)),
                shorten(one.detail, 240),
            )
            for one in item.examples[:_EXAMPLES]
        ]
        gate = _GATES[item.gate]
        return macro("report", "finding", item=item, gate=gate, where=where, examples=examples)

    rows = fit(drawn, audit.findings, _PART_BYTES, "findings")
    return tag("ul", rows, class_="findings")


@dataclass(slots=True)
class _RejectsOfCode:
    """The lines of one code: their number, and examples from different formats."""

    count: int = 0
    examples: list[Reject] = field(default_factory=list)
    formats: set[str] = field(default_factory=set)


def _rejects(dataset: str) -> Html:
    """Returns a list of codes that unfold into an explanation and examples."""
    by_code: dict[str, _RejectsOfCode] = {}
    for line in read_rejects(expand_home(dataset)):
        code = shorten(line.code or "(no code)", 60)
        if code not in by_code and len(by_code) >= _CODES:
            code = "(others)"
        known = by_code.setdefault(code, _RejectsOfCode())
        known.count += 1
        kind = shorten(line.format or "", 60)
        is_new = kind not in known.formats or known.count > _REJECTS or len(known.examples) < 2
        if len(known.examples) < _REJECTS and is_new:
            known.formats.add(kind)
            known.examples.append(line)
    if not by_code:
        return tag("p", text("Nothing was rejected."), class_="note")

    def drawn(item: tuple[str, _RejectsOfCode]) -> Html:
        code, found = item
        lines = [(_joined(line.place), shorten(line.message, 400)) for line in found.examples]
        known = explain(code)
        return macro("report", "reject", code=code, count=found.count, known=known, lines=lines)

    ordered = sorted(by_code.items(), key=lambda item: (-item[1].count, item[0]))
    groups = fit(drawn, ordered, _PART_BYTES, "codes")
    filters = macro(
        "report", "filters", list="reject-list", label="Rejects", selects=(), open=False
    )
    return join((filters, tag("div", groups, id="reject-list")))


def _joined(parts: Iterable[str]) -> str:
    return " · ".join(shorten(part, 160) for part in parts if part)


def how_made(manifest: Manifest) -> Html:
    """Returns what the samples were verified against, inputs, versions and options."""
    listed, versions, tokenizer = manifest.inputs, manifest.versions, manifest.tokenizer
    if not listed and not versions:
        return tag("p", text("There is no manifest that says how it was made."), class_="note")
    size = sum(item.bytes for item in listed)
    pairs = [
        ("inputs", f"{number(len(listed))} files, {number(size)} bytes"),
        ("tokenizer", tokenizer.name),
        ("template", tokenizer.template_name),
        ("template sha256", tokenizer.template_sha256),
        *((name, as_str(digest)) for name, digest in list(tokenizer.files.items())[:9]),
        *((name, as_str(version)) for name, version in list(versions.items())[:20]),
        *_settings(manifest.options, "")[:80],
    ]
    filled = [pair for pair in pairs if pair[1]]
    return macro("charts", "facts", pairs=filled, style="facts")


def _settings(section: Mapping[str, Json], above: str) -> list[tuple[str, str]]:
    pairs = []
    for key, value in section.items():
        name = f"{above}{key}"
        if isinstance(value, dict) and above.count(".") < 3:
            pairs += _settings(value, f"{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for at, item in enumerate(value[:10]):
                pairs += _settings(as_dict(item), f"{name}[{at}].")
        elif value is not None and value != []:
            written = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            pairs.append((name, written))
    return pairs


# -- samples ---------------------------------------------------------------------------------------


def fetch(dataset: str, chosen: Iterable[Pick], most: int) -> list[Picked]:
    """Returns the rows of the first `most` distinct picks, each with all its reasons.

    Raises UsageError if there is no such dataset.
    """
    reasons: dict[int, list[str]] = {}
    for pick in chosen:
        known = reasons.setdefault(pick.row, []) if len(reasons) < most else reasons.get(pick.row)
        if known is not None and pick.reason not in known:
            known.append(pick.reason)
    rows = dict(_rows_of(dataset, set(reasons)))
    return [Picked(at, rows[at], tuple(reasons[at])) for at in reasons if at in rows]


def _rows_of(dataset: str, numbers: set[int]) -> Iterator[tuple[int, DatasetRow]]:
    """Yields (number, row) for the numbers that exist; does not decode other rows of files."""
    files = dataset_files(dataset)
    if not files:  # a dataset on the Hub can only be read sequentially
        first = islice(enumerate(dataset_rows(dataset)), max(numbers, default=-1) + 1)
        yield from ((at, row) for at, row in first if at in numbers)
        return
    with tempfile.TemporaryDirectory(prefix="builder-report-") as scratch:
        rows = Rows(files, Path(scratch))
        for at in sorted(numbers):
            if (address := rows.locate(at)) is not None:
                yield at, next(rows.rows(address))


def _samples(
    samples: Sequence[Picked], bodies: Iterable[Html], whole: int, target: Target, left: int
) -> Html:
    if not samples:
        return tag("p", text("There is no sample to show."), class_="note")
    items: list[Html] = []
    size = 60_000  # for head, navigation, style sheet and script
    for picked, body in zip(samples, bodies, strict=True):
        most = left - size
        if most < 2_000:
            continue
        shown = body if most >= _SAMPLE_BYTES else sample_html(picked, target, most)
        title, about = headline(picked)
        name = shorten(picked.row.meta.format or "", 60)
        items.append(macro("report", "sample", picked=picked, format=name, title=title,
                           about=about, body=shown))  # fmt: skip
        size += len(items[-1].encode())
    lost = len(samples) - len(items)
    message = (
        f"{number(len(items))} of {number(whole)} samples: of typical length, the longest, the"
        " first of each kind, and what the audit picked. The logs themselves are not on this page:"
        " they may contain what was removed."
    )
    message += f" {number(lost)} more did not fit." if lost else ""
    shown_samples = samples[: len(items)]
    formats = {shorten(one.row.meta.format or "", 60) for one in shown_samples} - {""}
    reasons = {reason for one in shown_samples for reason in one.reasons}
    selects = [("why", "Chosen for", sorted(reasons)), ("format", "Format", sorted(formats))]
    filters = macro("report", "filters", list="sample-list", label="Samples", open=True,
                    selects=[one for one in selects if len(one[2]) > 1])  # fmt: skip
    note = tag("p", text(message), class_="note")
    return join((note, LEGEND, filters, tag("div", *items, id="sample-list")))
