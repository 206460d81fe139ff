"""Publishes results as a dataset: selects, writes, loads, audits, describes, moves into place."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from builder.audit.result import Audit
from builder.audit.run import audit
from builder.build.engine import preloading
from builder.build.finalize import finalize
from builder.build.identity import versions
from builder.build.results import ChunkResult
from builder.card.card import card, pictures
from builder.card.result import BuildResult, why_nothing
from builder.config.sections import Config
from builder.dataset.meta import SampleMeta
from builder.dataset.review import Review
from builder.jsonio import loads
from builder.keys import OBJECT
from builder.ledger import ranked
from builder.output.folder import STATE, Writer
from builder.output.manifest import (
    MANIFEST,
    AuditEntry,
    ContextEntry,
    Manifest,
    PairsEntry,
    RunEntry,
    TokenizerEntry,
)
from builder.parallel.pool import (
    OpenPool,
    default_workers,
    imap,
    in_background,
    is_much,
    worker_pool,
)
from builder.paths import expand_home
from builder.problem import Problem, UsageError
from builder.qwen3.reference import reference
from builder.qwen3.templates import Style
from builder.qwen3.tokenizer import Target, target_for
from builder.readers.toolkit.narrow import as_dict
from builder.report.advice import judge
from builder.report.html import Html
from builder.report.report import report_html, sample_body
from builder.report.samples import Picked
from builder.text import map_strings
from builder.verify.as_loaded import as_loaded, import_loader
from builder.verify.summary import LineReport

# -- finds the samples that `datasets` does not give back, so that a build can leave them out ------

_ROUNDS = 10
"""Maximum number of times that the dataset is written without the samples found so far."""


def _changed_samples(folder: Path, reports: Sequence[LineReport]) -> dict[str, str]:
    """Returns {sample id: what the loader changes} of the reports that name a row."""
    wanted: dict[str, dict[int, str]] = {}
    for report in reports:
        if report.line and report.findings:
            name = Path(report.file).name.partition(".")[0]
            wanted.setdefault(name, {}).setdefault(report.line, report.findings[0].message)
    changed = {}
    for name, lines in wanted.items():
        for number, sample_id in _ids_of(folder / "meta" / f"{name}.jsonl"):
            if number in lines:
                changed[sample_id] = lines[number]
    return changed


def _ids_of(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            yield number, SampleMeta.read(as_dict(loads(line))).id


# -- checks an output folder for the results of an earlier build -----------------------------------


def refuse_other_inputs(config: Config, out: Path) -> None:
    """Raises UsageError if the dataset in `out` was made from inputs that this build leaves out.

    Their samples would vanish silently. Additional inputs are fine.
    """
    names = {name for item in config.inputs for name in (item.path.written, item.path.published)}
    located = {_absolute(item.path.located) for item in config.inputs}
    missing = [
        path
        for path in Manifest.of(out).input_paths
        if path not in names and _absolute(expand_home(path)) not in located
    ]
    if missing:
        raise UsageError(
            f"output {str(out)!r}: was made from other inputs ({', '.join(missing[:3])}):"
            " name another folder, or replace its content with {fresh}",
            fresh=True,
        )


def _has_dataset(out: Path) -> bool:
    return (out / MANIFEST).is_file()


@contextlib.contextmanager
def removed_if_unused(out: Path) -> Iterator[None]:
    """Removes `out` after a build without a dataset, if it contains only our own state.

    After an interruption the state is kept, so that the same command resumes.
    """
    yield
    if not _has_dataset(out):
        shutil.rmtree(out / STATE, ignore_errors=True)
        with contextlib.suppress(OSError):  # the folder existed before, with other files
            out.rmdir()


def _absolute(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - does not resolve links


Phase = Callable[[str, int | None], Callable[[int], object]]


def no_phase(name: str, total: int | None) -> Callable[[int], object]:
    """Ignores a phase: the default for callers that show no progress."""
    return lambda _: None


@dataclass(frozen=True, slots=True)
class PublishContext:
    """The facts about a run that publishing needs.

    origin   the part of the manifest on the origin of the samples
    hidden   removes secrets and personal data from a text
    work     the folder for unfinished files
    engine   the name of the engine that ran the tasks; `workers` is its number of workers
    started  seconds since the epoch
    review   the decisions in the file named by `select.review`
    pool     opens worker processes
    """

    config: Config
    target: Target
    origin: Manifest
    hidden: Callable[[str], str]
    work: Path
    out: Path
    engine: str
    workers: int
    started: float
    phase: Phase = no_phase
    review: Review | None = None
    pool: OpenPool = worker_pool


def publish(
    results: Sequence[ChunkResult], unreadable: Sequence[Problem], run: PublishContext
) -> tuple[BuildResult, bool]:
    """Makes the dataset; returns it, and whether it was published.

    It is not published if there is no sample (`BuildResult.is_in_place`). Samples that `datasets`
    does not give back are left out, and the rest is written again.
    Raises LedgerFault.
    """
    config, target = run.config, run.target
    workers = min(run.workers, default_workers())
    # As the engine decides: if it needed no workers, none are started here.
    is_worthwhile = workers > 1 and is_much(sum(result.summary.bytes for result in results))
    preload = preloading(config.verify.target)

    def render(samples: Sequence[Picked]) -> Iterator[Html]:
        body = partial(_body, config.verify.target)
        return imap(body, samples, workers if is_worthwhile else 1, preload, open_pool=run.pool)

    with in_background(preload, is_worthwhile=is_worthwhile) as start:
        style = start(partial(_style, config.verify.target))
        start(import_loader)  # while the samples are selected and written

        changed: dict[str, str] = {}
        for _ in range(_ROUNDS):
            run.phase("write", None)
            built = finalize(
                results,
                unreadable,
                config,
                Writer(run.work),
                run.review,
                changed,
                style=target.style,
            )
            folder = built.writer.folder
            if built.data_files:  # the part that loaders need does not depend on audits
                (folder / "README.md").write_bytes(_card(built, run, style(), None))
            built.reasons = [] if built.ledger.samples else why_nothing(built, config, folder)
            if not (built.ledger.samples or (built.ledger.found and not _has_dataset(run.out))):
                return replace(built, is_in_place=False), False
            about = _about(built, run)
            audited = loaded = None
            if built.data_files:
                # Needed last: while it runs, the workers render the samples of the report.
                loaded = start(partial(_loaded, folder, config.verify.target))
                step = run.phase("audit", built.ledger.samples)
                audited = built.audit = audit(
                    str(folder),
                    config.audit_options,
                    step,
                    workers=workers,
                    open_pool=run.pool,
                    without_secrets=built.without_secrets,
                )
                about = replace(about, audit=AuditEntry(findings=audited.findings))
                built.judgements, built.advice = judge(audited.counts, about, audited)
            run.phase("report", None)
            page = report_html(str(folder), about, audited, target, render)
            # Nothing is written to the folder while the loader reads it.
            built.changed_by_loader = loaded() if loaded is not None else []
            more = _changed_samples(folder, built.changed_by_loader)
            if not more:
                break
            changed |= more
        for path, picture in pictures(audited).items():
            built.writer.write(path, [picture])
        if built.ledger.samples or not built.judged:  # else the conditions are met by nothing
            built.writer.write("README.md", [_card(built, run, style(), audited)])
        built.writer.write("report.html", [page])
    built.writer.publish(run.out, _manifest(about, built, run))
    return built, True


def _card(built: BuildResult, run: PublishContext, style: Style, audited: Audit | None) -> bytes:
    made = _about(built, run).without_folders()
    text = card(run.config, built, run.target, style=style, made=made, audit=audited)
    return text.encode("utf-8", "replace")


def _about(built: BuildResult, run: PublishContext) -> Manifest:
    """Returns the part of the manifest that is known before the audits."""
    return replace(
        run.origin,
        config=OBJECT.read(map_strings(run.config.resolved(), run.hidden)),
        versions=versions(),
        tokenizer=_tokenizer(run.config, run.target),
        ledger=built.ledger,
        preferences=PairsEntry(
            pairs=built.pairs, left_out=dict(sorted(built.pairs_left_out.items()))
        ),
        context=ContextEntry(
            levels=dict(ranked(built.context_levels)), missing=dict(ranked(built.context_missing))
        ),
        review=built.review.counts(len(built.reviewed)) if built.review is not None else {},
    )


def _manifest(about: Manifest, built: BuildResult, run: PublishContext) -> Manifest:
    """Returns the manifest. Only its part `run` differs between equal runs."""
    return replace(
        about,
        files=tuple(sorted(built.writer.files, key=lambda item: item.path)),
        run=RunEntry(
            started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(run.started)),
            seconds=round(time.time() - run.started, 3),
            host=platform.node(),
            python=platform.python_version(),
            workers=run.workers,
            engine=run.engine,
        ),
    )


def _tokenizer(config: Config, target: Target) -> TokenizerEntry:
    return TokenizerEntry(
        name=config.verify.tokenizer.published,
        model=reference(target.reference).model,
        files=dict(target.files),
        template_sha256=target.template_sha256,
        template_name=target.template_name,
        template_options=dict(target.options),
        missing=target.missing,
    )


def _style(tokenizer: str) -> Style:
    return target_for(tokenizer).style


def _loaded(folder: Path, tokenizer: str) -> list[LineReport]:
    return list(as_loaded(folder, target_for(tokenizer), folder.parent))


def _body(tokenizer: str, picked: Picked) -> Html:
    return sample_body(picked, target_for(tokenizer))
