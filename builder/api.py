"""Implements the public API: the functions of `from builder import …` (docs/library.md).

They take and return plain values, print nothing and never end the process. The command line is
built on them. Heavy modules are imported by the functions that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from builder.problem import Problem, UsageError, nearest

if TYPE_CHECKING:
    from builder.audit.options import AuditOptions
    from builder.audit.result import Audit
    from builder.card.built import Built
    from builder.config import Config
    from builder.conversation import Event
    from builder.export.write import Exported
    from builder.push.job import PushOptions, PushReport
    from builder.sample import Dialogue, Sample
    from builder.sources.source import Source
    from builder.verify.dataset import LineReport, Summary
    from builder.verify.options import VerifyOptions
    from builder.verify.verifier import Verdict


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a job: `done` of `total` units of a phase; `total` None: not known.

    phase  read (units: inputs or chunks of them), verify or audit (units: rows)
    """

    phase: str
    done: int
    total: int | None = None


OnProgress = Callable[[Progress], None]


def find_sources(path: str | Path) -> Iterator[Source | Problem]:
    """Yields the sources at a path, glob, store URL or `hf://` dataset, in a fixed order.

    A source that cannot be opened is a Problem. Raises UsageError if nothing is there.
    """
    from builder.readers.discovery import find_sources as find

    return find(str(path))


def read(source: Source, format: str | None = None) -> Iterator[Event]:  # noqa: A002 - as the option
    """Yields the conversations of a source, and the outcome of its other records.

    `format` names a reader; None chooses the reader that recognises the source. Raises UsageError
    if there is no such reader, or not exactly one that recognises the source.
    """
    from builder.readers import read_events, readers, recognise

    known = readers()
    if format is None:
        claims = recognise(source)
        if len(claims) != 1:
            found = f"claimed by {', '.join(claims)}" if claims else "no reader recognises it"
            raise UsageError(f"source {source.name!r}: {found}; name a format")
        format = next(iter(claims))  # noqa: A001 - as above
    elif format not in known:
        raise UsageError(f"format {format!r}: no such reader{nearest(format, known)}")
    return read_events(known[format], source)


def verify_sample(
    sample: Sample,
    dialogue: Dialogue | None = None,
    *,
    tokenizer: str = "qwen3",
    options: VerifyOptions | None = None,
) -> Verdict:
    """Returns the verdict of all checks on a sample, which is proven if there are no findings.

    `dialogue` is the structured form that it was flattened from; None: it is parsed from the text.
    Raises UsageError if the tokenizer (qwen3, a folder or a Hub id) cannot be loaded.
    """
    from builder.verify.verifier import verifier_for

    return verifier_for(tokenizer, options).check(sample, dialogue)


def verify_dataset(
    dataset: str | Path,
    *,
    tokenizer: str = "qwen3",
    options: VerifyOptions | None = None,
    workers: int = 1,
    on_report: Callable[[LineReport], None] | None = None,
) -> Summary:
    """Verifies every row of a file, a built folder or a Hub dataset, and returns the counts.

    `on_report` is called with each row's report, in order. Raises UsageError if there is no such
    dataset or tokenizer.
    """
    from builder.verify.dataset import Summary, verify_dataset
    from builder.verify.verifier import verifier_for

    summary = Summary()
    for report in verify_dataset(str(dataset), verifier_for(tokenizer, options), None, workers):
        summary.add(report)
        if on_report is not None:
            on_report(report)
    return summary


def build_dataset(
    inputs: Sequence[str | Path],
    out: str | Path,
    *,
    config: Config | None = None,
    workers: int = 1,
    fresh: bool = False,
    on_progress: OnProgress | None = None,
) -> Built:
    """Builds a dataset folder from logs, as `builder build` does, and returns the outcome.

    `inputs` replace those of `config`, unless there are none. More than one worker starts
    processes; only on Windows a script then needs its `if __name__ == "__main__":`. An interrupted
    run is resumed, unless `fresh`. Raises UsageError (input, configuration, tokenizer, output
    folder), LedgerFault (a bug of ours).
    """
    from builder.build.engine import Done, local
    from builder.build.job import build
    from builder.config import Config, override

    chosen = override(config or Config(), inputs=[str(item) for item in inputs])

    def progress(tasks: Sequence[object]) -> Done:
        done = 0

        def step(*_: object) -> None:
            nonlocal done
            done += 1
            if on_progress is not None:
                on_progress(Progress("read", done, len(tasks)))

        return step

    return build(chosen, Path(out), engine=local(workers), fresh=fresh, progress=progress)


def audit_dataset(
    dataset: str | Path,
    *,
    options: AuditOptions | None = None,
    workers: int = 1,
    on_progress: OnProgress | None = None,
) -> Audit:
    """Audits a dataset (docs/audit.md).

    Raises UsageError if there is no such dataset or evaluation set.
    """
    from builder.audit.options import AuditOptions
    from builder.audit.run import audit

    done = 0

    def step(rows: int) -> None:
        nonlocal done
        done += rows
        if on_progress is not None:
            on_progress(Progress("audit", done))

    return audit(str(dataset), options or AuditOptions(), step, workers=workers)


def export_dataset(
    dataset: str | Path, to: str, out: str | Path, *, tokenizer: str = "qwen3"
) -> Exported:
    """Writes the dataset in a form for trainers (docs/export.md), and loads every row again.

    Raises UsageError if there is no such dataset, variant or tokenizer, or if the output folder is
    not empty.
    """
    from builder.export.trace import TRACES, export_traces
    from builder.export.variants import VARIANTS
    from builder.export.write import export
    from builder.verify.verifier import verifier_for

    verifier = verifier_for(tokenizer)
    if to in TRACES:
        return export_traces(str(dataset), to, Path(out), verifier)
    if to not in VARIANTS:
        raise UsageError(f"variant {to!r}: no such variant{nearest(to, [*VARIANTS, *TRACES])}")
    return export(str(dataset), VARIANTS[to], Path(out), verifier)


def push_dataset(
    dataset: str | Path,
    repo_id: str,
    *,
    options: PushOptions | None = None,
    on_message: Callable[[str], None] | None = None,
) -> PushReport:
    """Pushes a built folder to the Hugging Face Hub and reads it back (docs/push.md).

    A closed gate or a fault raises no exception: the report names it. Raises UsageError if the
    folder or the repository cannot be used.
    """
    import time

    from builder.push.job import PushOptions, PushReport, push
    from builder.push.retry import Retries

    report = PushReport(repo_id)
    retries = Retries(on_message or (lambda _: None), time.sleep)
    push(str(dataset), report, options or PushOptions(), retries, lambda _: None)
    return report
