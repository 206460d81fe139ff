"""Implements the public API: the functions of `from builder import …` (docs/library.md).

They take and return plain values, print nothing and never end the process. The command line is
built on them. Heavy modules are imported by the functions that need them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from builder.given import (
    DatasetLike,
    InputsLike,
    Row,
    given_config,
    given_dataset,
    given_inputs,
    given_options,
)
from builder.problem import Problem, UsageError, nearest

if TYPE_CHECKING:
    from builder.audit.options import AuditOptions
    from builder.audit.result import Audit
    from builder.build.convert import Task
    from builder.build.results import ResultSummary
    from builder.card.built import Built
    from builder.config import Config
    from builder.conversation import Event
    from builder.export.write import Exported
    from builder.output.manifest import Manifest
    from builder.push.job import PushOptions, PushReport
    from builder.push.retry import Retries
    from builder.report.compare import DatasetDifference
    from builder.sample import Dialogue, Sample
    from builder.sources.source import Source
    from builder.verify.dataset import LineReport, Summary
    from builder.verify.options import VerifyOptions
    from builder.verify.verifier import Verdict
    from builder.view.serving import DatasetView

EngineName = Literal["local", "ray"]
"""The engines that can run a build."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a job: `done` of `total` units of a phase; `total` None: not known.

    phase    read (units: inputs or chunks of them), write, verify, audit, report (units: samples)
    bytes    those of the inputs read so far, of `total_bytes`
    samples  those made so far; `rejects` counts what could not be used
    """

    phase: str
    done: int
    total: int | None = None
    bytes: int = 0
    total_bytes: int = 0
    samples: int = 0
    rejects: int = 0


OnProgress = Callable[[Progress], object]
OnMessage = Callable[[str], object]


def _ignore(_: object) -> None:
    """Ignores progress and messages: the default."""


def find_sources(path: str | Path) -> Iterator[Source | Problem]:
    """Yields the sources at a path, glob, store URL or `hf://` dataset, in a fixed order.

    A source that cannot be opened is a Problem. Raises UsageError if nothing is there.
    """
    from builder.readers.discovery import find_sources as find

    return find(os.fspath(path))


def read(
    source: Source | str | Path | Sequence[Row],
    format: str | None = None,  # noqa: A002 - as the option
) -> Iterator[Event]:
    """Yields the conversations of a source, and the outcome of its other records.

    A path, glob or URL means all sources there; records in memory are one source. `format` names a
    reader; None chooses the reader that recognises the source. Raises UsageError if there is no
    such reader, or not exactly one that recognises the source.
    """
    from builder.jsonio import dumps
    from builder.sources.source import Source

    if isinstance(source, Source):
        return _read(source, format)
    if isinstance(source, str | os.PathLike):
        return _read_all(list(find_sources(source)), format)
    lines = "".join(f"{dumps(dict(row))}\n" for row in source)
    return _read(Source("records", data=lines.encode("utf-8", "surrogatepass")), format)


def _read_all(sources: Sequence[Source | Problem], name: str | None) -> Iterator[Event]:
    from builder.sources.copies import local_copy

    for item in sources:
        if isinstance(item, Problem):
            yield item
            continue
        with local_copy(item) as copy:
            yield from _read(copy, name)


def _read(source: Source, name: str | None) -> Iterator[Event]:
    from builder.readers import read_events, readers, recognise

    known = readers()
    named = name is not None
    if name is None:
        claims = recognise(source)
        if len(claims) != 1:
            found = f"claimed by {', '.join(claims)}" if claims else "no reader recognises it"
            raise UsageError(f"source {source.name!r}: {found}; name a format")
        name = next(iter(claims))
    elif name not in known:
        raise UsageError(f"format {name!r}: no such reader{nearest(name, known)}")
    return read_events(known[name], source, named=named)


def verify_sample(
    sample: Sample,
    dialogue: Dialogue | None = None,
    *,
    tokenizer: str | Path = "qwen3",
    options: VerifyOptions | Mapping[str, Any] | None = None,
) -> Verdict:
    """Returns the verdict of all checks on a sample, which is proven if there are no findings.

    `dialogue` is the structured form that it was flattened from; None: it is parsed from the text.
    Raises UsageError if the tokenizer (qwen3, a folder or a Hub id) cannot be loaded.
    """
    from builder.verify.options import VerifyOptions
    from builder.verify.verifier import verifier_for

    chosen = given_options(VerifyOptions, options)
    return verifier_for(os.fspath(tokenizer), chosen).check(sample, dialogue)


def verify_dataset(
    dataset: DatasetLike,
    *,
    tokenizer: str | Path = "qwen3",
    options: VerifyOptions | Mapping[str, Any] | None = None,
    unit: str | None = None,
    as_loaded: bool = False,
    masks: Sequence[str] = (),
    workers: int = 1,
    on_report: Callable[[LineReport], object] = _ignore,
) -> Summary:
    """Verifies every row of a file, a built folder, a Hub dataset or a list, and returns counts.

    `unit` None: the one in meta/, else conversation. `as_loaded` also compares the rows that
    `datasets` loads; `masks` names trainers (or "all") whose default masks are compared, for
    `summary.masks`. `on_report` is called with each row's report, in order. Raises UsageError if
    there is no such dataset or tokenizer. The options of the chat template are those of the
    dataset's manifest, unless the tokenizer's name has some.
    """
    from functools import partial

    from builder.output.manifest import Manifest
    from builder.paths import expand_home
    from builder.qwen3.reference import with_template
    from builder.trainers import mask_counts
    from builder.verify.dataset import Summary, verify_dataset
    from builder.verify.options import VerifyOptions
    from builder.verify.verifier import verifier_for

    trainers = mask_counts.trainers_named(masks)
    examine = partial(mask_counts.compared, tuple(trainers)) if trainers else None
    summary = Summary()
    chosen = given_options(VerifyOptions, options)
    with given_dataset(dataset) as path:
        stated = Manifest.of(expand_home(path)).tokenizer.template_options
        verifier = verifier_for(with_template(os.fspath(tokenizer), None, stated), chosen)
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


def build_dataset(
    inputs: InputsLike,
    out: str | Path,
    *,
    config: Config | Mapping[str, Any] | str | Path | None = None,
    workers: int = 1,
    engine: EngineName = "local",
    ray_address: str | None = None,
    fresh: bool = False,
    on_progress: OnProgress = _ignore,
    on_message: OnMessage = _ignore,
) -> Built:
    """Builds a dataset folder from logs, as `builder build` does, and returns the outcome.

    `inputs` replace those of `config`, unless there are none ([]); they keep what it says of their
    paths. `out` may be an address in a store. More than one worker starts processes; only on
    Windows a script then needs its `if __name__ == "__main__":`. An interrupted run is resumed,
    unless `fresh`. `on_message` gets warnings before the work begins. Raises UsageError (input,
    configuration, tokenizer, output folder), LedgerFault (a bug of ours).
    """
    from builder.build.job import build
    from builder.output.remote import RemoteOutput
    from builder.sources.store import is_url, local_path

    place = local_path(os.fspath(out))
    remote = RemoteOutput(place) if is_url(place) else None
    reading = _Reading(on_progress)
    with (
        given_inputs(inputs, given_config(config)) as chosen,
        _engine(engine, workers, ray_address) as running,
    ):
        if remote is not None:
            remote = replace(remote, shares=running.name == "ray")
            remote.check()
        return build(
            chosen,
            remote.local_folder if remote is not None else Path(place),
            engine=running,
            fresh=fresh,
            progress=reading.begin,
            phase=_phases(on_progress),
            warn=on_message,
            remote=remote,
        )


@contextlib.contextmanager
def _engine(name: EngineName, workers: int, ray_address: str | None) -> Iterator[Any]:
    """Yields the engine. Raises UsageError for conflicting options."""
    from builder.build.engine import local

    if name == "ray":
        from builder.build.ray_engine import RayOptions, on_ray

        with on_ray(RayOptions(ray_address, workers or None)) as running:
            yield running
    elif ray_address is not None:
        raise UsageError("--ray-address: requires --engine ray")
    else:
        yield local(workers)


class _Reading:
    """Turns finished tasks of a build into progress."""

    def __init__(self, on_progress: OnProgress) -> None:
        self.on_progress = on_progress
        self.state = Progress("read", 0)
        self.sizes: dict[int, int] = {}

    def begin(self, tasks: Sequence[Task]) -> Callable[[Task, ResultSummary], None]:
        """Begins; returns the callback for finished tasks."""
        from builder.sources.copies import stored_bytes

        self.sizes = {id(task): stored_bytes(task.source) for task in tasks}
        total = sum(self.sizes.values())
        self.state = replace(self.state, total=len(tasks), total_bytes=total)
        self.on_progress(self.state)
        return self.step

    def step(self, task: Task, summary: ResultSummary) -> None:
        """Reports a finished task."""
        state = self.state
        self.state = replace(
            state,
            done=state.done + 1,
            bytes=state.bytes + self.sizes[id(task)],
            samples=state.samples + summary.samples,
            rejects=state.rejects + summary.rejects,
        )
        self.on_progress(self.state)


def _phases(on_progress: OnProgress) -> Callable[[str, int | None], Callable[[int], object]]:
    """Returns a function that begins a phase, and returns one for samples done."""

    def phase(name: str, total: int | None = None) -> Callable[[int], object]:
        state = Progress(name, 0, total)
        on_progress(state)

        def step(done: int) -> None:
            nonlocal state
            state = replace(state, done=state.done + done)
            on_progress(state)

        return step

    return phase


def merge_datasets(
    datasets: Sequence[str | Path],
    out: str | Path,
    *,
    config: Config | Mapping[str, Any] | str | Path | None = None,
    workers: int = 1,
    on_progress: OnProgress = _ignore,
) -> Built:
    """Combines built folders into one (docs/merge.md), without reading logs again.

    Raises UsageError if a folder was not made by build, if their options differ, or if `out` cannot
    be written.
    """
    from builder.build.merge import merge

    if isinstance(datasets, str | os.PathLike):
        raise UsageError("datasets: must be a list of folders made by build")
    names = [os.fspath(item) for item in datasets]
    phase = _phases(on_progress)
    return merge(names, given_config(config), Path(out), workers=workers, phase=phase)


def diff_datasets(before: DatasetLike, after: DatasetLike) -> DatasetDifference:
    """Compares two datasets: the samples added, removed or changed, and other counts.

    Raises UsageError if there is no such dataset.
    """
    from builder.report.compare import compare

    with given_dataset(before) as first, given_dataset(after) as second:
        return compare(first, second)


def audit_dataset(
    dataset: DatasetLike,
    *,
    options: AuditOptions | Mapping[str, Any] | None = None,
    workers: int = 1,
    on_progress: OnProgress = _ignore,
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


def export_dataset(
    dataset: DatasetLike,
    to: str,
    out: str | Path,
    *,
    tokenizer: str | Path | None = None,
    fresh: bool = False,
) -> Exported:
    """Writes the dataset in a form for trainers (docs/export.md), and loads every row again.

    `tokenizer` None: that of the dataset, if it is the embedded one, and its inference mode always.
    `fresh` replaces an earlier export in `out`. Raises UsageError if there is no such dataset,
    variant or tokenizer, or if the output folder is not empty.
    """
    from builder.export.trace import TRACES, export_traces
    from builder.export.variants import VARIANTS
    from builder.export.write import export
    from builder.output.manifest import Manifest
    from builder.paths import expand_home
    from builder.verify.options import VerifyOptions, mode_named
    from builder.verify.verifier import verifier_for

    if to not in VARIANTS and to not in TRACES:
        raise UsageError(f"--to {to!r}: no such variant{nearest(to, [*VARIANTS, *TRACES])}")
    with given_dataset(dataset) as path:
        manifest = Manifest.of(expand_home(path))
        verifier = verifier_for(
            _tokenizer(manifest, tokenizer), VerifyOptions(mode=mode_named(manifest.mode))
        )
        if to in TRACES:
            return export_traces(path, to, Path(out), verifier, fresh=fresh)
        return export(path, VARIANTS[to], Path(out), verifier, fresh=fresh)


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
    from builder.output.aside import write_whole
    from builder.output.manifest import Manifest
    from builder.paths import expand_home
    from builder.qwen3.tokenizer import target_for
    from builder.report.report import report_html

    with given_dataset(dataset) as path:
        manifest = Manifest.of(expand_home(path))
        name = _tokenizer(manifest, tokenizer)
        found = audit(path, AuditOptions(tokenizer=name), workers=workers)
        page = report_html(path, manifest, found, target_for(name))
    write_whole(Path(out), page)
    return Path(out)


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
    dataset). Raises UsageError if there is no such file or folder, or if the port is taken.
    """
    from builder.output.manifest import Manifest
    from builder.paths import expand_home
    from builder.view.serving import serving

    with given_dataset(dataset) as path:
        manifest = Manifest.of(expand_home(path))
        name = _tokenizer(manifest, tokenizer)
        with serving(path, manifest, name, logs=logs, review=review, port=port) as view:
            yield view


def push_dataset(
    dataset: str | Path,
    repo_id: str,
    *,
    options: PushOptions | Mapping[str, Any] | None = None,
    on_message: OnMessage = _ignore,
    on_changes: Callable[[PushReport], None] = _ignore,
    retries: Retries | None = None,
) -> PushReport:
    """Pushes a built folder to the Hugging Face Hub and reads it back (docs/push.md).

    A closed gate or a fault raises no exception: the report names it. `on_changes` gets the report
    with the planned changes, before anything is changed; `retries` says how to wait after a fault.
    Raises UsageError if the folder or the repository cannot be used.
    """
    import time

    from builder.push.job import PushOptions, PushReport, push
    from builder.push.retry import Retries
    from builder.sources.store import hub_name

    report = PushReport(hub_name(repo_id))
    chosen = given_options(PushOptions, options)
    waits = retries or Retries(on_message, time.sleep)
    push(os.fspath(dataset), report, chosen, waits, on_changes)
    return report


def _tokenizer(manifest: Manifest, tokenizer: str | Path | None) -> str:
    """Returns the requested tokenizer, or else the embedded one.

    A manifest may come from anywhere, so no other tokenizer is loaded just because it names it.
    Raises UsageError if the dataset was proven against another one and none is requested.
    """
    from builder.qwen3.reference import EMBEDDED, with_template

    named = manifest.tokenizer.name
    if tokenizer is None and named not in ("", EMBEDDED):
        raise UsageError(f"the dataset was proven against {named!r}: name it with --tokenizer")
    name = os.fspath(tokenizer) if tokenizer is not None else EMBEDDED
    return with_template(name, None, manifest.tokenizer.template_options)
