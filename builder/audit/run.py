"""One pass over a dataset of any origin with all audits."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from builder.audit import calls, duplicates, turns
from builder.audit.calls import CallAudit
from builder.audit.contamination import ContaminationAudit, EvaluationSets
from builder.audit.duplicates import DuplicateAudit, compared_text
from builder.audit.leaks import PERSONAL_CODES, SECRET_CODES, Leaks
from builder.audit.lengths import LengthAudit
from builder.audit.notes import EXAMPLES, Row
from builder.audit.options import AuditOptions
from builder.audit.origins import OriginAudit
from builder.audit.pattern import PATTERNS
from builder.audit.result import Audit, Example, Finding, Pick
from builder.audit.shingles import word_numbers
from builder.audit.turns import TurnAudit
from builder.conversation import Json
from builder.dataset import DatasetRow, dataset_rows
from builder.parity import counts, in_parity
from builder.qwen3.parse import ParseFault, to_dialogue
from builder.qwen3.render import render_sample
from builder.qwen3.tokenizer import Target, load
from builder.rows import read_sample
from builder.sample import Dialogue, Sample

CODES: dict[str, tuple[str, ...]] = {
    "format": ("bad_row",),
    "secrets": (*SECRET_CODES, "redacted"),
    "personal_data": PERSONAL_CODES,
    "duplicates": duplicates.CODES,
    "contamination": ("contaminated",),
    "calls": calls.CODES,
    "turns": turns.CODES,
}
"""{audit: its codes}: what `--fail-on` takes."""

Step = Callable[[], object]


def evaluation_sets(options: AuditOptions) -> EvaluationSets | None:
    """The sets to look for, read; None: there are none. Raises UsageError: one cannot be read."""
    return EvaluationSets(options.contamination) if options.contamination else None


def audit(
    dataset: str,
    options: AuditOptions,
    step: Step = lambda: None,
    *,
    sets: EvaluationSets | None = None,
) -> Audit:
    """Audit a file, a folder or a Hub dataset; `step` is called after each row.

    `sets`: those of the options, where they were read before. Raises UsageError: there is no such
    dataset or evaluation set, or no such tokenizer.
    """
    sets = sets or evaluation_sets(options)
    contaminated = ContaminationAudit(sets) if sets is not None else None
    leaks, lengths, origins = Leaks(), LengthAudit(), OriginAudit()
    tools, behaviour = CallAudit(), TurnAudit(options.mix)
    repeated = DuplicateAudit() if options.near else None
    first_of: dict[str, int] = {}
    bad: list[Example] = []
    bad_rows = number = 0
    places = array("Q")  # of each sample among all rows, the bad ones too
    for item in rows(dataset, options.tokenizer):
        if isinstance(item, Example):
            bad_rows += 1
            bad += [item] if len(bad) < EXAMPLES else []
            continue
        places.append(number + bad_rows)
        number += 1
        leaks.add(item)
        lengths.add(item)
        origins.add(item)
        tools.add(item)
        first_of.setdefault(behaviour.add(item), item.number)
        if repeated is not None or contaminated is not None:
            words = word_numbers(compared_text(item.sample.messages, item.told("unit")))
            if repeated is not None:
                repeated.add(item, words)
            if contaminated is not None:
                contaminated.add(item, words)
        step()
    rejects = Path(dataset).expanduser() / "rejects.jsonl"
    leaks.add_rejects(rejects)
    origins.add_rejects(rejects)
    found = repeated.finish() if repeated is not None and number else None
    findings = list(leaks.findings())
    if bad_rows:
        message = "rows that hold no sample (builder verify says why)"
        findings.insert(0, Finding("format", "bad_row", message, bad_rows, 0, examples=tuple(bad)))
    picks = [Pick(name, first_of[name]) for name in PATTERNS if name in first_of]
    tables = [*lengths.tables(), *behaviour.tables(), *tools.tables(), *origins.tables()]
    if found is not None:
        findings += found.findings()
        tables += found.tables()
        picks += found.picks()
    if contaminated is not None:
        findings += contaminated.findings()
        tables += contaminated.tables()
    findings += [*tools.findings(), *behaviour.findings()]
    return Audit(
        number,
        tuple(findings),
        tuple(tables),
        (lengths.histogram(), *behaviour.histograms()),
        tuple(Pick(pick.reason, places[pick.row]) for pick in (*lengths.picks(), *picks)),
    )


def rows(dataset: str, tokenizer: str) -> Iterator[Row | Example]:
    """The samples of a dataset, numbered over all files; in place of a bad row, where it is."""
    number = 0
    for item in dataset_rows(dataset):
        where = f"{item.file}:{item.line}"
        sample = read_sample(item.value)
        if not isinstance(sample, Sample):
            yield Example(where, detail=sample[0].message)
            continue
        dialogue = _dialogue(sample)
        meta = item.meta
        if not _is_measured(item):
            try:
                sample.line  # noqa: B018 - cached: can it be written at all?
            except UnicodeEncodeError:
                yield Example(where, detail="a lone surrogate cannot be written as UTF-8")
                continue
            meta = {**meta, **_measured(sample, dialogue, _target(tokenizer))}
        tokens, chars = meta["tokens"], meta["chars"]
        assert isinstance(tokens, int), "measured"
        assert isinstance(chars, int), "measured"
        yield Row(number, item.split, where, sample, dialogue, meta, tokens, chars)
        number += 1


@lru_cache(maxsize=1)
def _target(tokenizer: str) -> Target:
    return load(tokenizer)


def _dialogue(sample: Sample) -> Dialogue | None:
    try:
        return to_dialogue(sample)
    except ParseFault:
        return None


def _is_measured(item: DatasetRow) -> bool:
    return all(isinstance(item.meta.get(key), int) for key in ("tokens", "chars"))


def _measured(sample: Sample, dialogue: Dialogue | None, target: Target) -> dict[str, Json]:
    """What meta/ would say of a sample that has none."""
    rendering = render_sample(sample, target.style)
    prompts = target.generation_prompts
    parity = in_parity(sample.messages, rendering, prompts, target.style)
    return {
        "tokens": len(target.encode(rendering.text)),
        "chars": len(rendering.text),
        "calls": sum(len(turn.calls) for turn in dialogue.turns) if dialogue is not None else 0,
        "assistant_turns": len(rendering.answers),
        "parity": counts(parity),
    }
