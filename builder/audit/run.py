"""Runs all audits in one pass over a dataset, on the cores of this machine."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from builder.audit import calls, contamination, duplicates, leaks, turns
from builder.audit.calls import CallAudit
from builder.audit.contamination import ContaminationAudit, EvaluationSets
from builder.audit.counts import Counts
from builder.audit.duplicates import DuplicateAudit, compared_text, word_numbers
from builder.audit.failures import PATTERNS, pattern
from builder.audit.leaks import note_leaks, note_reject
from builder.audit.notes import (
    EVALUATION_RUN,
    EXAMPLES,
    UNMAPPED,
    UNREAD,
    AuditRow,
    FindingNotes,
    benchmark_of,
)
from builder.audit.options import AuditOptions
from builder.audit.result import Audit, Pick
from builder.audit.tables import histograms, picks, tables
from builder.audit.turns import count_turns, note_turns
from builder.dataset.meta import SampleMeta
from builder.dataset.rejects import read_rejects
from builder.dataset.rows import DatasetRow, dataset_rows
from builder.finding import AuditFinding, FindingExample
from builder.parallel.pool import OpenPool, batches, imap, worker_pool
from builder.paths import expand_home
from builder.qwen3.flat import dialogue_of
from builder.qwen3.render import counts, in_parity, render_sample, spans, tokens_by_part
from builder.qwen3.tokenizer import Target, target_for
from builder.sample import Dialogue, Sample
from builder.sources.source import file_version
from builder.verify.dataset import check_row
from builder.verify.preload import preloading
from builder.verify.verifier import Verdict, verifier_for

UNVERIFIED, _BROKEN_CALL, _BAD_ROW = "unverified", "broken_call", "bad_row"
_MESSAGES: dict[str, Mapping[str, str]] = {
    "format": {
        _BAD_ROW: "rows without a sample (builder verify says why)",
        UNVERIFIED: "rows that `builder verify` refuses",
    },
    "secrets": leaks.SECRETS,
    "personal_data": leaks.PERSONAL,
    "duplicates": duplicates.MESSAGES,
    "contamination": contamination.MESSAGES,
    "benchmarks": {EVALUATION_RUN: "runs of public benchmarks"},
    "calls": {
        **calls.MESSAGES,
        _BROKEN_CALL: "text in the place of a tool call that cannot be read as one",
    },
    "turns": turns.MESSAGES,
    "unread": {
        UNREAD: "unknown text in the log",
        UNMAPPED: "the log has text, or results without a call, that the mapping does not read",
    },
}
"""{audit: {code: message}}, in the order of the report"""
_CHANGES = {
    UNREAD: ("unknown_key:", "unknown_column:"),
    UNMAPPED: ("unmapped_key:", "unmapped_call", "unmapped_skip"),
}
"""{code: beginnings of the changes in meta/ that it counts}"""

CODES = {name: tuple(sorted(messages)) for name, messages in _MESSAGES.items()}
"""{audit: its codes}; both are valid arguments of `--fail-on`."""

Step = Callable[[int], object]


def evaluation_sets(names: tuple[str, ...]) -> EvaluationSets | None:
    """Returns the evaluation sets, read once per process and state; None if none are named.

    Raises UsageError if one cannot be read.
    """
    return _sets(names, tuple(file_version(expand_home(name)) for name in names)) if names else None


@lru_cache(maxsize=1)
def _sets(names: tuple[str, ...], _: tuple[tuple[int, int] | None, ...]) -> EvaluationSets:
    return EvaluationSets(names)


class Audits:
    """The state of all audits over consecutive rows.

    `places` maps the number of a sample to the number of its row; `bad_rows` have none.
    """

    def __init__(self, options: AuditOptions) -> None:
        self.options = options
        self.near = options.near_duplicates != "off"
        self.sets = options.sets
        self.rows = 0
        self.forms: Counter[str] = Counter()
        self.changes: Counter[str] = Counter()
        self.bad_rows = array("Q")
        self.places = array("Q")
        self.counts, self.notes, self.calls = Counts(), FindingNotes(), CallAudit()
        self.duplicates, self.contamination = DuplicateAudit(), ContaminationAudit()

    def add(self, item: DatasetRow, *, without_secrets: bool = False) -> None:
        """Examines the next row; for `without_secrets` see `AuditRow`."""
        verdict = _verdict(item, self.options.tokenizer)
        row = _row(item, len(self.places), self.options.tokenizer, verdict, without_secrets)
        self.rows += 1
        if item.reading.form:
            self.forms[item.reading.form] += 1
            self.changes.update(item.reading.changes)
        if isinstance(row, FindingExample):
            self.bad_rows.append(self.rows - 1)
            self.notes.add_elsewhere(_BAD_ROW, row)
            return
        self.places.append(self.rows - 1)
        self.counts.add(row.meta, row.split, row.meta.tokens)
        count_turns(row, self.counts)
        note_turns(row, self.notes)
        if verdict is not None:
            _note_faults(row, verdict, self.notes)
        _note_meta(row, self.notes)
        note_leaks(row, self.notes)
        self.calls.add(row, self.notes)
        sets = evaluation_sets(self.sets)
        if self.near or sets is not None:
            weights = row.sample.weights or [None] * len(row.sample.messages)
            trained = [
                role == "assistant" and weight != 0
                for (role, _), weight in zip(row.sample.messages, weights, strict=True)
            ]
            text = compared_text(row.sample.messages, row.meta.unit, trained)
            words = word_numbers(text)
            if self.near:
                self.duplicates.add(row, words)
            if sets is not None:
                self.contamination.add(row, words, sets, self.notes)

    def merge(self, later: Audits) -> None:
        """Adds the results of the rows that follow."""
        self.places.extend(self.rows + place for place in later.places)
        self.forms.update(later.forms)
        self.changes.update(later.changes)
        self.bad_rows.extend(self.rows + row for row in later.bad_rows)
        self.rows += later.rows
        self.counts.merge(later.counts)
        self.notes.merge(later.notes)
        self.calls.merge(later.calls)
        self.duplicates.merge(later.duplicates)
        self.contamination.merge(later.contamination)

    def result(self) -> Audit:
        """Returns the results of all audits."""
        found = [*tables(self.counts, self.options.mix), *self.calls.tables()]
        chosen = [*picks(self.counts)]
        repeated: Iterable[AuditFinding] = ()
        if self.near and self.places:
            repeats = self.duplicates.finish()
            repeated = repeats.findings()
            found += repeats.tables()
            chosen += repeats.picks()
        if self.sets:
            found += self.contamination.tables()
        findings: list[AuditFinding] = []
        for name, messages in _MESSAGES.items():
            findings += repeated if name == "duplicates" else self.notes.findings(name, messages)
        return Audit(
            len(self.places),
            tuple(findings),
            tuple(found),
            histograms(self.counts),
            (
                *(Pick(pick.reason, self.places[pick.row]) for pick in chosen),
                *(Pick("not a sample", row) for row in self.bad_rows[:EXAMPLES]),
            ),
            self.counts,
            self.calls.inferred,
            self.rows,
            dict(sorted(self.forms.items())),
            dict(sorted(self.changes.items())),
        )


def _note_faults(row: AuditRow, verdict: Verdict, notes: FindingNotes) -> None:
    """Notes what the checks of `builder verify` refuse in a row that `build` did not make."""
    by_code = {finding.code: finding for finding in reversed(verdict.findings)}
    for code, fault in (
        (UNVERIFIED, verdict.findings[0] if verdict.findings else None),
        (_BROKEN_CALL, by_code.get("calls")),
    ):
        if fault is not None:
            part = "" if fault.turn is None else f"messages[{fault.turn}]"
            is_whole = code == UNVERIFIED
            detail = f"{fault.code}: {fault.message}" if is_whole else fault.message
            names = dict.fromkeys(by_code, 1) if is_whole else {}
            notes.add(code, row, part, detail, names=names)


def _note_meta(row: AuditRow, notes: FindingNotes) -> None:
    """Notes what the line of meta/ says: a public benchmark, text of the log that was not read."""
    if benchmark := benchmark_of(row.meta):
        notes.add(EVALUATION_RUN, row, "", benchmark, names={benchmark: 1})
    for code, prefixes in _CHANGES.items():
        names = {name: n for name, n in row.meta.changes.items() if name.startswith(prefixes)}
        if names:
            notes.add(code, row, "", ", ".join(names), names=names)


def audit(
    dataset: str,
    options: AuditOptions,
    step: Step = lambda _: None,
    *,
    workers: int = 1,
    open_pool: OpenPool = worker_pool,
    without_secrets: Mapping[str, Sequence[int]] | None = None,
) -> Audit:
    """Audits a file, a folder or a Hub dataset; calls `step` with the size of each finished batch.

    Batches do not depend on the number of workers. `without_secrets` has for each split and each
    sample in it whether its texts were searched for secrets before, and there was none; by default
    all are searched. Raises UsageError if there is no such dataset, evaluation set or tokenizer.
    """
    evaluation_sets(options.sets)
    whole = Audits(options)
    searched = _searched(dataset_rows(dataset), without_secrets or {})
    rows = batches(searched, lambda item: len(item[0].line or b""))
    has_meta = (expand_home(dataset) / "meta").is_dir()  # meta/ has the token counts
    loaded = None if has_meta else preloading(options.tokenizer)
    for audited in imap(partial(_audited, options), rows, workers, loaded, open_pool=open_pool):
        whole.merge(audited)
        step(audited.rows)
    for number, reject in enumerate(read_rejects(expand_home(dataset)), start=1):
        note_reject(number, reject, whole.notes)
    return whole.result()


def _searched(
    rows: Iterable[DatasetRow], without_secrets: Mapping[str, Sequence[int]]
) -> Iterator[tuple[DatasetRow, bool]]:
    following = {split: iter(flags) for split, flags in without_secrets.items()}
    for row in rows:
        yield row, bool(next(following.get(row.split, iter(())), False))


def _audited(options: AuditOptions, rows: list[tuple[DatasetRow, bool]]) -> Audits:
    audits = Audits(options)
    for row, without_secrets in rows:
        audits.add(row, without_secrets=without_secrets)
    return audits


def _verdict(item: DatasetRow, tokenizer: str) -> Verdict | None:
    """Returns the verdict on a row that `build` did not make; None if it has no sample."""
    if not item.foreign or not isinstance(item.sample, Sample):
        return None
    return check_row(item, item.sample, verifier_for(tokenizer), None)


def _row(
    item: DatasetRow, number: int, tokenizer: str, verdict: Verdict | None, without_secrets: bool
) -> AuditRow | FindingExample:
    """Returns the input of the audits for a row; for a bad row, its location and fault."""
    where = f"{item.file}:{item.number}"
    sample = item.sample
    if not isinstance(sample, Sample):
        return FindingExample(where, detail=sample[0].message)
    dialogue = dialogue_of(sample)
    meta = item.meta
    if verdict is not None and verdict.tokens and verdict.tokens_by_part:
        meta = replace(
            meta,
            tokens=verdict.tokens,
            spans=verdict.spans,
            trained_tokens=verdict.trained_tokens,
            tokens_by_part=verdict.tokens_by_part,
            chars=len(verdict.text),
            calls=verdict.calls,
            assistant_turns=len(verdict.spans),
            parity=counts(verdict.parity),
        )
    elif not (meta.tokens and meta.chars and meta.tokens_by_part):
        meta = _measured(meta, sample, dialogue, item.targets(sample), target_for(tokenizer))
    if dialogue is None:
        meta = replace(meta, pattern="unread")
    elif meta.pattern not in PATTERNS:
        meta = replace(meta, pattern=pattern(dialogue, item.failed_calls))
    return AuditRow(
        number, item.split, where, sample, dialogue, meta, item.failed_calls, without_secrets
    )


def _measured(
    meta: SampleMeta,
    sample: Sample,
    dialogue: Dialogue | None,
    targets: Sequence[int],
    target: Target,
) -> SampleMeta:
    """Returns the line of meta/ with the numbers that the audits need, for a row without them."""
    rendering = render_sample(sample, target.style)
    prompts = target.parity_prompts
    parity = in_parity(sample.messages, rendering, prompts, target.style, sample.thoughts)
    tokens = target.encode(rendering.text)
    every = spans(rendering, target.generation_prompts["non-thinking"], target.style.assistant)
    trained = tuple(every[at] for at in targets)
    return replace(
        meta,
        tokens=len(tokens),
        spans=trained,
        trained_tokens=tokens.inside(trained),
        tokens_by_part=tokens_by_part(rendering, tokens),
        chars=len(rendering.text),
        calls=sum(len(turn.calls) for turn in dialogue.turns) if dialogue is not None else 0,
        assistant_turns=len(trained),
        parity=counts([parity[at] for at in targets]),
    )
