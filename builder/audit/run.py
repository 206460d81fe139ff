"""Runs all audits in one pass over a dataset, on the cores of this machine."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from builder.audit import calls, duplicates, turns
from builder.audit.benchmarks import EVALUATION_RUN, BenchmarkAudit
from builder.audit.calls import CallAudit
from builder.audit.contamination import ContaminationAudit, EvaluationSets
from builder.audit.duplicates import DuplicateAudit, compared_text
from builder.audit.leaks import Leaks
from builder.audit.lengths import LengthAudit
from builder.audit.notes import EXAMPLES, AuditRow
from builder.audit.options import AuditOptions
from builder.audit.origins import OriginAudit
from builder.audit.pattern import PATTERNS
from builder.audit.result import Audit, AuditFacts, AuditFinding, FindingExample, Pick
from builder.audit.shingles import word_numbers
from builder.audit.turns import TurnAudit
from builder.audit.unread import UNMAPPED, UNREAD, UnreadAudit
from builder.audit.unverified import BROKEN_CALL, UNVERIFIED_ROW, UnverifiedAudit
from builder.dataset.meta import SampleMeta
from builder.dataset.rejects import read_rejects
from builder.dataset.rows import DatasetRow, dataset_rows
from builder.parallel.pool import OpenPool, batches, imap, worker_pool
from builder.paths import expand_home
from builder.qwen3.dialect import ParseFault
from builder.qwen3.parity import counts, in_parity, spans
from builder.qwen3.parse import to_dialogue
from builder.qwen3.parts import tokens_by_part
from builder.qwen3.render import render_sample
from builder.qwen3.tokenizer import Target, target_for
from builder.qwen3.written import written_style
from builder.sample import Dialogue, Sample
from builder.scrub.personal import KINDS as PERSONAL_KINDS
from builder.secrets.secrets import KINDS as SECRET_KINDS
from builder.sources.source import file_version
from builder.verify.dataset import check_row
from builder.verify.preload import preloading
from builder.verify.verifier import Verdict, verifier_for

CODES: dict[str, tuple[str, ...]] = {
    "format": ("bad_row", UNVERIFIED_ROW),
    "secrets": (*SECRET_KINDS, "redacted", "scanned_secret"),
    "personal_data": PERSONAL_KINDS,
    "duplicates": duplicates.CODES,
    "contamination": ("contaminated",),
    "benchmarks": (EVALUATION_RUN,),
    "calls": (*calls.CODES, BROKEN_CALL),
    "turns": turns.CODES,
    "unread": (UNMAPPED, UNREAD),
}
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

    `places` maps the number of a sample to the number of its row.
    """

    def __init__(self, options: AuditOptions) -> None:
        self.options = options
        self.near = options.near_duplicates != "off"
        self.sets = options.sets
        self.rows = 0
        self.forms: Counter[str] = Counter()
        self.changes: Counter[str] = Counter()
        self.bad: list[FindingExample] = []
        self.bad_rows = 0
        self.places = array("Q")
        self.first_of: dict[str, int] = {}
        self.leaks, self.lengths, self.origins = Leaks(), LengthAudit(), OriginAudit()
        self.benchmarks, self.unread = BenchmarkAudit(), UnreadAudit()
        self.calls, self.turns = CallAudit(), TurnAudit()
        self.unverified = UnverifiedAudit()
        self.duplicates, self.contamination = DuplicateAudit(), ContaminationAudit()

    def add(self, item: DatasetRow, *, without_secrets: bool = False) -> None:
        """Examines the next row; for `without_secrets` see `AuditRow`."""
        verdict = _verdict(item, self.options.tokenizer)
        row = _row(
            item,
            len(self.places),
            self.options.tokenizer,
            verdict,
            without_secrets=without_secrets,
        )
        self.rows += 1
        if item.reading.form:
            self.forms[item.reading.form] += 1
            self.changes.update(item.reading.changes)
        if isinstance(row, FindingExample):
            self.bad_rows += 1
            self.bad += [row][: EXAMPLES - len(self.bad)]
            return
        self.places.append(self.rows - 1)
        if verdict is not None:
            self.unverified.add(row, verdict)
        self.leaks.add(row)
        self.lengths.add(row)
        self.origins.add(row)
        self.benchmarks.add(row)
        self.unread.add(row)
        self.calls.add(row)
        self.first_of.setdefault(self.turns.add(row), row.number)
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
                self.contamination.add(row, words, sets)

    def merge(self, later: Audits) -> None:
        """Adds the results of the rows that follow."""
        for name, number in later.first_of.items():
            self.first_of.setdefault(name, len(self.places) + number)
        self.places.extend(self.rows + place for place in later.places)
        self.rows += later.rows
        self.forms.update(later.forms)
        self.changes.update(later.changes)
        self.bad_rows += later.bad_rows
        self.bad += later.bad[: EXAMPLES - len(self.bad)]
        self.unverified.merge(later.unverified)
        self.leaks.merge(later.leaks)
        self.lengths.merge(later.lengths)
        self.origins.merge(later.origins)
        self.benchmarks.merge(later.benchmarks)
        self.unread.merge(later.unread)
        self.calls.merge(later.calls)
        self.turns.merge(later.turns)
        self.duplicates.merge(later.duplicates)
        self.contamination.merge(later.contamination)

    def result(self) -> Audit:
        """Returns the results of all audits."""
        findings: list[AuditFinding] = []
        if self.bad_rows:
            message, bad = "rows without a sample (builder verify says why)", tuple(self.bad)
            findings.append(
                AuditFinding("format", "bad_row", message, self.bad_rows, 0, examples=bad)
            )
        findings += self.unverified.findings()
        findings += self.leaks.findings()
        picks = [
            *self.lengths.picks(),
            *(Pick(name, self.first_of[name]) for name in PATTERNS if name in self.first_of),
        ]
        tables = [*self.lengths.tables(), *self.turns.tables(self.options.mix)]
        tables += [*self.calls.tables(), *self.origins.tables(), *self.benchmarks.tables()]
        if self.near and self.places:
            found = self.duplicates.finish()
            findings += found.findings()
            tables += found.tables()
            picks += found.picks()
        if self.sets:
            findings += self.contamination.findings()
            tables += self.contamination.tables()
        findings += [*self.benchmarks.findings(), *self.unread.findings()]
        findings += [*self.calls.findings(), *self.turns.findings()]
        return Audit(
            len(self.places),
            tuple(findings),
            tuple(tables),
            (self.lengths.histogram(), *self.turns.histograms()),
            tuple(Pick(pick.reason, self.places[pick.row]) for pick in picks),
            AuditFacts(
                self.turns.with_edges(self.lengths.lengths()),
                self.turns.parity,
                self.turns.languages,
                self.turns.trained_share,
                self.turns.trained_tokens,
                self.turns.query_tokens,
                self.turns.windowed_tokens,
                self.turns.thinking_turns,
                self.calls.inferred,
            ),
            self.rows,
            dict(sorted(self.forms.items())),
            dict(sorted(self.changes.items())),
        )


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
        whole.leaks.add_reject(number, reject)
        whole.origins.add_reject(reject)
    return whole.result()


def _searched(
    rows: Iterable[DatasetRow], without_secrets: Mapping[str, Sequence[int]]
) -> Iterator[tuple[DatasetRow, bool]]:
    """Yields each row, and whether its texts were searched before and have no secret."""
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
    item: DatasetRow,
    number: int,
    tokenizer: str,
    verdict: Verdict | None,
    *,
    without_secrets: bool,
) -> AuditRow | FindingExample:
    """Returns the input of the audits for a row; for a bad row, its location and fault."""
    where = f"{item.file}:{item.number}"
    sample = item.sample
    if not isinstance(sample, Sample):
        return FindingExample(where, detail=sample[0].message)
    dialogue = _dialogue(sample)
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
    return AuditRow(
        number, item.split, where, sample, dialogue, meta, item.failed_calls, without_secrets
    )


def _dialogue(sample: Sample) -> Dialogue | None:
    try:
        return to_dialogue(sample, written_style(sample))
    except ParseFault:
        return None


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
