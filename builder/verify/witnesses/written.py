"""Asks witnesses about the samples of a folder that `build` has written."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from builder.dataset.rows import DatasetRow, dataset_rows
from builder.parallel.pool import OpenPool, batches, imap
from builder.sample import Sample
from builder.verify.dataset import check_row
from builder.verify.options import VerifyOptions, WitnessOptions
from builder.verify.preload import preloading
from builder.verify.verifier import verifier_for
from builder.verify.witnesses.count import (
    Examination,
    Testimony,
    is_drawn,
    testimonies,
    witnesses_named,
)


def ask(
    folder: Path,
    reference: str,
    options: VerifyOptions,
    asked: WitnessOptions,
    seed: int,
    *,
    workers: int,
    open_pool: OpenPool,
) -> dict[str, Testimony]:
    """Returns what each witness makes of the samples, or of the share of them that is drawn.

    `reference` names the target against which they were proven with `options`. Raises UsageError if
    a witness is not installed.
    """
    names = tuple(witnesses_named(asked.witness))
    testimonies: dict[str, Testimony] = {name: Testimony() for name in names}
    rows = (row for row in dataset_rows(str(folder)) if _is_asked(row, asked.witness_share, seed))
    work = partial(_examined, reference, options, names)
    groups = batches(rows, lambda row: len(row.line or b""))
    for results in imap(work, groups, workers, preloading(reference), open_pool=open_pool):
        for name, item in results.items():
            testimonies[name].merge(item)
    return testimonies


def _is_asked(row: DatasetRow, share: float, seed: int) -> bool:
    written = row.written
    return isinstance(written, bytes) and is_drawn(written.rstrip(b"\n"), share, seed)


def _examined(
    reference: str, options: VerifyOptions, names: tuple[str, ...], rows: list[DatasetRow]
) -> dict[str, Testimony]:
    verifier = verifier_for(reference, options)
    examine = Examination(names)
    asked: dict[str, Testimony] = {name: Testimony() for name in names}
    for row in rows:
        sample = row.sample
        if not isinstance(sample, Sample):
            continue
        verdict = check_row(row, sample, verifier, None)
        if verdict.findings:
            continue
        results = examine(sample, verdict.text, verdict.spans, verifier.target)
        for name, item in testimonies(results, names).items():
            asked[name].merge(item)
    return asked
