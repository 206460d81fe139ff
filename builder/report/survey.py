"""Counts a dataset in one pass, and picks the samples that the report shows.

Reads only meta/ of a built dataset, and the rows of any other. Memory is bounded: each field counts
a few hundred distinct values.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from builder.audit.lengths import doubling, token_histogram
from builder.audit.origins import SEVERAL
from builder.audit.result import AuditTable, Histogram, Pick
from builder.codes import meaning_of_change
from builder.dataset.files import dataset_files
from builder.dataset.meta import SampleMeta
from builder.dataset.rows import DatasetRow, dataset_rows, json_lines
from builder.dataset.store import Rows, characters
from builder.ledger import ranked
from builder.output.manifest import Manifest
from builder.report.html import shorten
from builder.report.samples import Picked
from builder.trainers import LONG

_NAMES = 400
"""Distinct values of a field that are counted separately."""
_OTHERS = "(others)"

FIELDS = ("format", "model", "pattern", "tools_source", "reasoning", "unit", "license", "split")
"""Fields of meta/ that are counted by value."""

SUPPLIABLE = ("tools", "system")
"""What the user can supply of a context that the log lacks."""
_ALWAYS = ("reminders", "reasoning")
"""What logs of some agents never hold."""


@dataclass(slots=True)
class Survey:
    """Counts over the samples.

    context     trained turns by the level of their context
    missing     trained turns by what their context lacks
    supplied    trained turns by what the user supplied of that (`system`, `tools`)
    completed   trained turns that lack nothing but what the user supplied
    lacking     trained turns that lack what the user can supply, and did not
    gaps        samples by what their context lacks and nobody can supply, unless it is only text
                that the agent program inserted; `gap_samples`, `gap_turns`: samples with any such
                gap, and their trained turns
    recorded    samples by the comparison with the tokens in the log
    lengths     samples by tokens, or by characters without meta/
    turn_counts samples by trained turns
    windows     samples whose context lacks earlier turns, for their length
    window_turns trained turns of these samples
    turn_tokens about the number of tokens of one sample for each trained turn (`unit: turn`)
    failed      trained turns by how a call of theirs failed: error, denied, interrupted
    untrained   turns with weight 0, by reason, in each sample that has them
    models      {format: models} of the samples that lack what the user can supply; "": not named
    versions    {format: versions} of the agent program of these samples
    long_turns  trained turns of samples that are longer than trainers take (`LONG`)
    trained_tokens  tokens that are trained, of those samples whose meta/ counts them
    """

    samples: int = 0
    tokens: int = 0
    calls: int = 0
    turns: int = 0
    parity: Counter[str] = field(default_factory=Counter)
    context: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    supplied: Counter[str] = field(default_factory=Counter)
    completed: int = 0
    lacking: int = 0
    gaps: Counter[str] = field(default_factory=Counter)
    gap_samples: int = 0
    gap_turns: int = 0
    recorded: Counter[str] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)
    turn_counts: Counter[int] = field(default_factory=Counter)
    by_field: dict[str, Counter[str]] = field(default_factory=dict)
    models: dict[str, Counter[str]] = field(default_factory=dict)
    versions: dict[str, Counter[str]] = field(default_factory=dict)
    long_turns: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    untrained: Counter[str] = field(default_factory=Counter)
    has_tokens: bool = False
    windows: int = 0
    window_turns: int = 0
    turn_tokens: int = 0
    trained_tokens: int = 0
    picks: tuple[Pick, ...] = ()

    @property
    def pseudonymised(self) -> int:
        """The places where personal data were replaced by stand-ins."""
        return self.changes["pseudonymised"]


def survey(dataset: str) -> Survey:
    """Surveys a dataset. Raises UsageError if there is no such dataset."""
    surveyed = Survey()
    counted: tuple[object, Mapping[str, int]] = (None, {})
    lengths: dict[str, dict[int, tuple[int, int]]] = {"": {}}
    first: dict[str, int] = {}
    most: dict[str, tuple[int, int]] = {}
    for number, (split, meta, length) in enumerate(_metas(dataset)):
        _add(surveyed, meta, split, length)
        counted = _count_changes(surveyed, meta, counted)
        for group in ("", meta.format) if meta.format else ("",):
            if group in lengths or len(lengths) < _NAMES:
                known = lengths.setdefault(group, {})
                count, first_row = known.get(length, (0, number))
                known[length] = (count + 1, first_row)
        for reason, count in _extremes(meta, length):
            if count > most.get(reason, (0, 0))[0]:
                most[reason] = (count, number)
        for reason in _firsts(meta):
            if len(first) < _NAMES:
                first.setdefault(reason, number)
    whole_set = lengths.pop("")
    typical = [Pick("typical", _median(whole_set))] if whole_set else []
    extremes = [Pick(reason, number) for reason, (_, number) in sorted(most.items())]
    formats = [Pick(f"typical of {name}", _median(lengths[name])) for name in sorted(lengths)]
    rare = [Pick(reason, number) for reason, number in sorted(first.items())]
    spread = [Pick("every doubling", number) for number in _doubling_numbers(surveyed.samples)]
    surveyed.picks = (*typical, *extremes, *rare, *formats, *spread)
    return surveyed


def _add(surveyed: Survey, meta: SampleMeta, split: str, length: int) -> None:
    surveyed.samples += 1
    surveyed.lengths[length] += 1
    surveyed.tokens += meta.tokens
    surveyed.has_tokens = surveyed.has_tokens or meta.tokens > 0
    surveyed.trained_tokens += meta.trained_tokens
    surveyed.calls += meta.calls
    turns = meta.assistant_turns
    surveyed.turns += turns
    surveyed.long_turns += turns if meta.tokens > LONG else 0
    if turns:
        surveyed.turn_counts[turns] += 1
    if meta.spans and meta.chars:
        surveyed.turn_tokens += sum(end for _, end in meta.spans) * meta.tokens // meta.chars
    if meta.context is not None:
        _count(surveyed.context, meta.context.level, turns)
        for code in meta.context.missing:
            _count(surveyed.missing, code, turns)
        _add_missing(surveyed, meta, meta.context.missing)
    if meta.changes.get("history_left_out"):
        surveyed.windows += 1
        surveyed.window_turns += turns
    if meta.compared:
        _count(surveyed.recorded, meta.compared, 1)
    for mode, count in meta.parity.items():
        _count(surveyed.parity, mode, count)
    for code, count in meta.failed_turns.items():
        _count(surveyed.failed, code, count)
    for code, count in meta.untrained_turns.items():
        _count(surveyed.untrained, code, count)
    for name in FIELDS:
        value = split if name == "split" else getattr(meta, name)
        if value is None and meta.id:
            value = "(not stated)"
        several = meta.models if name == "model" and meta.models else (value,)
        for one in filter(None, several):
            _count(surveyed.by_field.setdefault(name, Counter()), one, 1)


def _add_missing(surveyed: Survey, meta: SampleMeta, missing: Iterable[str]) -> None:
    """Counts what the context of a sample lacks: what the user supplied, can supply, or cannot."""
    turns = meta.assistant_turns
    supplied = {"tools"} if meta.tools_source in ("supplied", "captured") else set()
    if not {"system_supplied", "system_replaced"}.isdisjoint(meta.changes):
        supplied.add("system")
    for name in sorted(supplied):
        surveyed.supplied[name] += turns
    gaps = {*missing} - {*SUPPLIABLE, *_ALWAYS}
    for code in sorted(gaps):
        _count(surveyed.gaps, code, 1)
    surveyed.gap_samples += bool(gaps)
    surveyed.gap_turns += turns if gaps else 0
    lacking = {*missing} - supplied
    is_lacking = not lacking.isdisjoint(SUPPLIABLE)
    surveyed.lacking += turns if is_lacking else 0
    is_other = "other_version" in meta.changes
    surveyed.completed += turns if missing and not lacking and not is_other else 0
    if is_lacking or is_other:
        name = shorten(meta.format or "", 80)
        if name and (name in surveyed.models or len(surveyed.models) < _NAMES):
            for model in meta.every_model:
                _count(surveyed.models.setdefault(name, Counter()), model or "", 1)
            if meta.agent_version:
                _count(surveyed.versions.setdefault(name, Counter()), meta.agent_version, 1)


def with_contexts(surveyed: Survey, manifest: Manifest) -> Survey:
    """Returns the survey with the counts of the manifest, which knows the context of each turn.

    A line of meta/ has the context of the whole sample.
    """
    stated = manifest.context
    if not stated.levels:
        return surveyed
    return replace(surveyed, context=Counter(stated.levels), missing=Counter(stated.missing))


def _count(counter: Counter[str], value: str, count: int) -> None:
    if value in counter:
        counter[value] += count
        return
    name = shorten(value, 80)
    counter[name if name in counter or len(counter) < _NAMES else _OTHERS] += count


def _median(lengths: dict[int, tuple[int, int]]) -> int:
    """Returns the first sample of the median length, from {length: (samples, first sample)}."""
    half = (sum(count for count, _ in lengths.values()) + 1) // 2
    for _, (count, number) in sorted(lengths.items()):
        half -= count
        if half <= 0:
            return number
    raise AssertionError("the median is one of the lengths")


def _doubling_numbers(samples: int) -> Iterator[int]:
    """Yields 0, 1, 2, 4, 8 and so on, and the last number."""
    number = 0
    while number < samples:
        yield number
        number = 2 * number or 1
    if samples:
        yield samples - 1


def _count_changes(
    surveyed: Survey, meta: SampleMeta, counted: tuple[object, Mapping[str, int]]
) -> tuple[object, Mapping[str, int]]:
    """Counts the changes of a sample, except those that an earlier sample of its conversation has.

    `counted` are the conversation of the sample before it and the changes counted for it; returns
    these of the sample. The samples of a conversation repeat the changes of the whole.
    """
    key = (meta.source, meta.conversation) if meta.conversation else object()
    before = counted[1] if counted[0] == key else {}
    for code, count in meta.changes.items():
        if count > before.get(code, 0):
            _count(surveyed.changes, code, count - before.get(code, 0))
    return key, {code: max(meta.changes.get(code, 0), before.get(code, 0))
                 for code in {**before, **meta.changes}}  # fmt: skip


def _extremes(meta: SampleMeta, length: int) -> Iterator[tuple[str, int]]:
    yield "longest", length
    yield "most calls", meta.calls
    yield "most turns", meta.assistant_turns
    yield "most schema violations", meta.schema_violations


def _firsts(meta: SampleMeta) -> Iterator[str]:
    """Yields the kinds of a sample; the first sample of each kind is shown."""
    if meta.pattern:
        yield shorten(meta.pattern, 40)
    if meta.tools_source in ("inferred", "supplied", "captured", "shared", "mixed"):
        yield f"tools {meta.tools_source}"
    if meta.reasoning in ("kept", "dropped"):
        yield f"reasoning {meta.reasoning}"
    for code in sorted(meta.changes):
        yield f"changed: {shorten(code, 40)}"


def _metas(dataset: str) -> Iterator[tuple[str, SampleMeta, int]]:
    """Yields (split, meta, length) of each row, in order."""
    files = dataset_files(dataset)
    if files and all(item.meta is not None for item in files):
        for item in files:
            assert item.meta is not None
            for _, value in json_lines(item.meta):
                meta = SampleMeta.read(value)
                yield item.split, meta, meta.tokens
        return
    for row in dataset_rows(dataset):
        yield row.split, row.meta, characters(row)


def fetch(dataset: str, picks: Iterable[Pick], most: int) -> list[Picked]:
    """Returns the rows of the first `most` distinct picks, each with all its reasons.

    Raises UsageError if there is no such dataset.
    """
    reasons: dict[int, list[str]] = {}
    for pick in picks:
        known = reasons.setdefault(pick.row, []) if len(reasons) < most else reasons.get(pick.row)
        if known is not None and pick.reason not in known:
            known.append(pick.reason)
    rows = _rows_of(dataset, set(reasons))
    return [
        Picked(number, rows[number], tuple(reasons[number])) for number in reasons if number in rows
    ]


def _rows_of(dataset: str, numbers: set[int]) -> dict[int, DatasetRow]:
    """Returns {number: row} for the numbers that exist; does not decode other rows of files."""
    files = dataset_files(dataset)
    if not files:  # a dataset on the Hub can only be read sequentially
        first = islice(enumerate(dataset_rows(dataset)), max(numbers, default=-1) + 1)
        return {number: row for number, row in first if number in numbers}
    by_number: dict[int, DatasetRow] = {}
    with tempfile.TemporaryDirectory(prefix="builder-report-") as scratch:
        rows = Rows(files, Path(scratch))
        for number in sorted(numbers):
            address = rows.locate(number)
            if address is not None:
                by_number[number] = next(rows.rows(address))
    return by_number


# -- charts --------------------------------------------------------------------------------------


def charts(surveyed: Survey) -> tuple[tuple[Histogram, ...], tuple[AuditTable, ...]]:
    """Returns histograms and tables; those that an audit also makes have the same keys."""
    histograms = []
    lengths = surveyed.lengths.elements()
    if surveyed.lengths and surveyed.has_tokens:
        histograms.append(token_histogram(lengths))
    elif surveyed.lengths:
        histograms.append(doubling("characters", "Characters of a sample", "characters", lengths))
    if surveyed.turn_counts:
        histograms.append(
            doubling("turns", "Trained turns of a sample", "turns", surveyed.turn_counts.elements())
        )
    tables = []
    if surveyed.turns and surveyed.parity:
        rows = tuple(
            (mode, count, round(count / surveyed.turns, 4))
            for mode, count in sorted(surveyed.parity.items())
        )
        note = (
            f"Of {surveyed.turns:,} trained turns, those whose preceding bytes equal what a server"
            " renders from the same messages in that mode of inference."
        )
        columns = ("mode", "turns", "share")
        table = AuditTable(
            "parity", "Trained turns that match inference", columns, rows, note, "share"
        )
        tables.append(table)

    def add(key: str, title: str, heads: tuple[str, str], counts: Counter[str], note: str) -> None:
        tables.append(AuditTable(key, title, heads, ranked(counts), note, bars=heads[1]))

    note = "docs/context.md explains the levels and codes."
    if surveyed.context:
        title = "Trained turns by level of context"
        add("context", title, ("level", "turns"), surveyed.context, note)
    if surveyed.missing:
        title = "Trained turns by what their context lacks"
        add("missing", title, ("missing", "turns"), surveyed.missing, note)
    if surveyed.recorded:
        note = "Samples with token ids in the log; docs/parity.md explains the causes."
        title = "Samples compared with the tokens in the log"
        add("tokens_recorded", title, ("tokens", "samples"), surveyed.recorded, note)
    for name in FIELDS:
        counter = surveyed.by_field.get(name, Counter())
        if len(counter) > (name in ("split", "unit", "reasoning")):
            words = name.replace("_", " ")
            key = name if name in ("tools_source", "reasoning") else f"{name}s"
            note = SEVERAL if counter.total() > surveyed.samples else ""
            add(key, f"Samples by {words}", (words, "samples"), counter, note)
    if surveyed.changes:
        note = "Every alteration of logged text, by code."
        explained = tuple(
            (code, count, meaning_of_change(code)) for code, count in ranked(surveyed.changes)
        )
        columns = ("code", "places", "meaning")
        title = "Changes to logged text"
        tables.append(AuditTable("changes", title, columns, explained, note, bars="places"))
    return tuple(histograms), tuple(tables)
