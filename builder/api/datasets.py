"""Implements the functions of the API that take a dataset."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from builder.api.checked import checked
from builder.api.progress import OnMessage, OnProgress, Progress, ignore
from builder.given import ROWS, DatasetLike, given_dataset, given_options
from builder.problem import OptionError, UsageError, nearest

if TYPE_CHECKING:
    from builder.audit.options import AuditOptions
    from builder.audit.result import Audit
    from builder.card.result import BuildResult
    from builder.export.outcome import Exported
    from builder.normalize.normalise import Normalised
    from builder.output.manifest import Manifest
    from builder.push.hub import Retries
    from builder.push.job import PushOptions, PushReport
    from builder.report.compare import DatasetDifference
    from builder.sample import Dialogue, Sample
    from builder.verify.options import VerifyOptions
    from builder.verify.summary import LineReport, Summary
    from builder.verify.verifier import Verdict
    from builder.view.server import DatasetView


_REPOSITORY = re.compile(r"(?:[\w.-]{1,96}/)?[\w.-]{1,96}", re.ASCII)


@checked
def verify_sample(
    sample: Sample,
    dialogue: Dialogue | Normalised | None = None,
    *,
    tokenizer: str | Path = "qwen3",
    options: VerifyOptions | Mapping[str, Any] | None = None,
) -> Verdict:
    """Returns the verdict of all checks on a sample, which is proven if there are no findings.

    `dialogue` is what it was flattened from; None: it is parsed from the text.
    Raises UsageError if the tokenizer (qwen3, a folder or a Hub id) cannot be loaded.
    """
    from builder.sample import Dialogue
    from builder.verify.options import VerifyOptions
    from builder.verify.verifier import verifier_for

    chosen = given_options(VerifyOptions, options)
    assert dialogue is None or isinstance(dialogue, Dialogue)
    return verifier_for(os.fspath(tokenizer), chosen).check(sample, dialogue)


@checked
def verify_dataset(
    dataset: DatasetLike,
    *,
    tokenizer: str | Path | None = None,
    chat_template: str | Path | None = None,
    options: VerifyOptions | Mapping[str, Any] | None = None,
    unit: str | None = None,
    as_loaded: bool = False,
    masks: Sequence[str] = (),
    workers: int = 1,
    on_report: Callable[[LineReport], object] = ignore,
) -> Summary:
    """Verifies every row of a file, a built folder, a Hub dataset or a list, and returns counts.

    `tokenizer` None: the one that the dataset's manifest names, else qwen3.
    `chat_template` is the file or the sha256 of another template than the tokenizer's. `unit` None:
    the one in meta/, else conversation. `as_loaded` also compares the rows that
    `datasets` loads; `masks` names trainers (or "all") whose default masks are compared, for
    `summary.masks` (docs/verify.md). `on_report` is called with each row's report, in order. The
    options of the chat template are those of the dataset's manifest, unless the tokenizer's name
    has some. Raises UsageError if there is no such dataset or tokenizer.
    """
    from functools import partial

    from builder.normalize.options import Unit
    from builder.output.manifest import Manifest
    from builder.parallel.pool import are_large
    from builder.paths import expand_home
    from builder.trainers import mask_counts
    from builder.verify.dataset import verify_dataset
    from builder.verify.options import VerifyOptions
    from builder.verify.summary import Summary
    from builder.verify.verifier import verifier_for

    if unit is not None and unit not in get_args(Unit):
        raise UsageError(f"unit: must be one of {', '.join(get_args(Unit))}, found {unit!r}")
    trainers = mask_counts.trainers_named(masks)
    examine: Any = partial(mask_counts.compared, tuple(trainers)) if trainers else None
    summary = Summary()
    chosen = given_options(VerifyOptions, options)
    with given_dataset(dataset) as path:
        manifest = Manifest.of(expand_home(path))
        verifier = verifier_for(tokenizer_of(manifest, tokenizer, chat_template), chosen)
        summary.tokenizer_missing = verifier.target.missing
        if workers == 1 and are_large([expand_home(path)]):
            verifier.target.expect_much()
        for report in verify_dataset(path, verifier, unit, workers, examine):
            summary.add(report)
            on_report(report)
        for report in _as_loaded(path, verifier.target) if as_loaded else ():
            summary.add(report, again=True)
            on_report(report)
    return summary


def _as_loaded(dataset: str, target: Any) -> Iterator[LineReport]:
    from builder.paths import expand_home
    from builder.verify.as_loaded import as_loaded, hub_as_loaded

    path = expand_home(dataset)
    return as_loaded(path, target) if path.exists() else hub_as_loaded(dataset, target)


@checked
def diff_datasets(before: DatasetLike, after: DatasetLike) -> DatasetDifference:
    """Compares two datasets: the samples added, removed or changed, and other counts.

    Raises UsageError if there is no such dataset.
    """
    from builder.report.compare import compare

    with given_dataset(before) as first, given_dataset(after) as second:
        return compare(first, second)


@checked
def audit_dataset(
    dataset: DatasetLike,
    *,
    options: AuditOptions | Mapping[str, Any] | None = None,
    workers: int = 1,
    on_progress: OnProgress = ignore,
) -> Audit:
    """Audits a dataset (docs/audit.md).

    Raises UsageError if there is no such dataset or evaluation set.
    """
    from builder.audit.options import AuditOptions
    from builder.audit.run import audit

    chosen = given_options(AuditOptions, options)
    done = 0

    def step(rows: int) -> None:
        nonlocal done
        done += rows
        on_progress(Progress("audit", done))

    with given_dataset(dataset) as path:
        return audit(path, chosen, step, workers=workers)


@checked
def export_dataset(
    dataset: DatasetLike,
    to: str,
    out: str | Path,
    *,
    tokenizer: str | Path | None = None,
    chat_template: str | Path | None = None,
    fresh: bool = False,
    max_tokens: int | None = None,
) -> Exported:
    """Writes the dataset in a form for trainers (docs/export.md), and loads every row again.

    `to` is a variant, or a trainer for the best variant that it reads.
    `tokenizer` None: that of the dataset, and its inference mode always; `chat_template` is the
    file or the sha256 of another template. `fresh` replaces an earlier export in `out`. Of samples
    with more than `max_tokens`, windows are written. Raises
    UsageError if there is no such dataset, variant or tokenizer, or if the output folder is not
    empty.
    """
    from builder.export.atif import ATIF, export_atif
    from builder.export.variants import VARIANTS
    from builder.export.write import export
    from builder.output.manifest import Manifest
    from builder.paths import expand_home
    from builder.sources.store import local_output
    from builder.trainers.table import TRAINERS
    from builder.verify.options import VerifyOptions, mode_named
    from builder.verify.verifier import verifier_for

    named = [*dict.fromkeys((*VARIANTS, ATIF, *TRAINERS))]
    if to not in named:
        raise OptionError("to", f" {to!r}: no such variant or trainer{nearest(to, named)}")
    with given_dataset(dataset) as path, local_output(out) as place:
        manifest = Manifest.of(expand_home(path))
        verifier = verifier_for(
            tokenizer_of(manifest, tokenizer, chat_template),
            VerifyOptions(mode=mode_named(manifest.mode)),
        )
        if to == ATIF:
            return export_atif(path, place, verifier, fresh=fresh)
        trainer = None if to in VARIANTS else TRAINERS[to]
        if max_tokens is not None and verifier.target.missing:
            raise UsageError(f"max_tokens: {verifier.target.missing}")
        variant = VARIANTS[to if trainer is None else trainer.best_variant(verifier.target)]
        if variant.name == "tokenized" and verifier.target.missing:
            raise UsageError(
                f"export --to {to}: its rows hold ids of tokens, and {verifier.target.missing}"
            )
        exported = export(
            path, variant, place, verifier, trainer, fresh=fresh, max_tokens=max_tokens
        )
        if trainer is not None:  # the one that was asked for stands first
            exported.runs.sort(key=lambda run: run.title != trainer.title)
        return exported


@checked
def report_dataset(
    dataset: DatasetLike,
    out: str | Path = "report.html",
    *,
    tokenizer: str | Path | None = None,
    workers: int = 1,
) -> Path:
    """Writes the report of a dataset as one HTML file (docs/report.md), and returns its path.

    Raises UsageError if there is no such dataset or tokenizer.
    """
    from builder.audit.options import AuditOptions
    from builder.audit.run import audit
    from builder.output.folder import write_whole
    from builder.output.manifest import Manifest
    from builder.paths import expand_home
    from builder.qwen3.tokenizer import target_for
    from builder.report.report import report_html
    from builder.sources.store import local_output

    with given_dataset(dataset) as path:
        manifest = Manifest.of(expand_home(path))
        name = tokenizer_of(manifest, tokenizer)
        audited = audit(path, AuditOptions(tokenizer=name), workers=workers)
        # That of a built folder is the page which the build wrote, wherever the folder is.
        is_named = manifest.is_empty and isinstance(dataset, str | Path)
        title = Path(path).name if is_named else ""
        page = report_html(path, manifest, audited, target_for(name), name=title)
    with local_output(out) as place:
        write_whole(place, page)
    return Path(out)


@checked
@contextlib.contextmanager
def view_dataset(
    dataset: DatasetLike,
    *,
    logs: str | Path | None = None,
    review: str | Path | None = None,
    port: int = 0,
    tokenizer: str | Path | None = None,
) -> Iterator[DatasetView]:
    """Serves the pages of a dataset to this machine meanwhile, and yields the view: its `url`.

    `logs` are those it was made from, `review` is the file for decisions (default: next to the
    dataset; of rows in memory, in the current folder). Raises UsageError if there is no
    such file or folder, or if the port is taken.
    """
    from builder.output.manifest import Manifest
    from builder.paths import expand_home
    from builder.view.review_file import review_path
    from builder.view.server import serving

    if review is None and not isinstance(dataset, str | os.PathLike):
        review = review_path(Path(ROWS))
    with given_dataset(dataset) as path:
        manifest = Manifest.of(expand_home(path))
        name = tokenizer_of(manifest, tokenizer)
        with serving(path, manifest, name, logs=logs, review=review, port=port) as view:
            yield view


@checked
def push_dataset(
    dataset: str | Path | BuildResult,
    repo_id: str,
    *,
    options: PushOptions | Mapping[str, Any] | None = None,
    on_message: OnMessage = ignore,
    on_changes: Callable[[PushReport], None] = ignore,
    retries: Retries | None = None,
) -> PushReport:
    """Pushes a built folder to the Hugging Face Hub and reads it back (docs/push.md).

    A closed gate or a fault raises no exception: the report names it. `on_changes` gets the report
    with the planned changes, before anything is changed; `retries` says how to wait after a fault.
    Raises UsageError if the folder or the repository cannot be used.
    """
    import time

    from builder.output.manifest import Manifest
    from builder.paths import expand_home
    from builder.push.hub import Retries
    from builder.push.job import PushOptions, PushReport, push
    from builder.sources.store import hub_name, local_copy

    name = hub_name(repo_id)
    if not _REPOSITORY.fullmatch(name):
        raise UsageError(f"repository {repo_id!r}: must be OWNER/NAME, of letters, digits, -, _, .")
    report = PushReport(name)
    chosen = given_options(PushOptions, options)
    with local_copy(os.fspath(dataset)) as path:
        tokenizer = tokenizer_of(Manifest.of(expand_home(path)), chosen.tokenizer)
        chosen = replace(chosen, tokenizer=tokenizer)
        waits = retries or Retries(on_message, time.sleep)
        push(path, report, chosen, waits, on_changes)
    return report


def tokenizer_of(
    manifest: Manifest, tokenizer: str | Path | None, chat_template: str | Path | None = None
) -> str:
    """Returns the requested tokenizer and template, or else those that the manifest names.

    The embedded tokenizer has its own template if it is requested, and stands for its equals.
    Raises UsageError if those of the manifest cannot be loaded, or only from the Hub: a dataset of
    others must not choose what is downloaded.
    """
    from builder.qwen3.models import model_named, target_of
    from builder.qwen3.reference import EMBEDDED, is_here, not_here, with_template
    from builder.qwen3.tokenizer import target_for

    entry = manifest.tokenizer
    named = entry.name or EMBEDDED
    name = named if tokenizer is None else os.fspath(tokenizer)
    template = None if chat_template is None else os.fspath(chat_template)
    if template is None and name == named and (tokenizer is None or name != EMBEDDED):
        template = manifest.chat_template
    if entry.model and tokenizer is None and (template, name) == (None, EMBEDDED):
        name = target_of(model_named(entry.model), asks_hub=False)
    target = with_template(name, template, entry.template_options, entry.model)
    if tokenizer is None and chat_template is None and target != EMBEDDED:
        if not is_here(target):
            embedded, file = target_for(EMBEDDED), "tokenizer.json"
            digests = (embedded.template_sha256, embedded.files[file])
            if digests == (entry.template_sha256, entry.files.get(file)):
                return with_template(EMBEDDED, None, entry.template_options)
            raise UsageError(not_here(name))
        try:
            target_for(target)
        except UsageError as error:
            raise UsageError(
                f"{error}; the dataset was verified against it: --tokenizer names another"
            ) from None
    return target
