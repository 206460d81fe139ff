"""Runs a build: from the inputs to a published dataset, reusing the results of earlier runs."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from builder.audit.run import evaluation_sets
from builder.build.engine import Done, Engine
from builder.build.identity import job_identity
from builder.build.plan import plan
from builder.build.publish import (
    Phase,
    PublishContext,
    no_phase,
    publish,
    refuse_other_inputs,
    removed_if_unused,
)
from builder.build.results import ChunkResult, ResultSummary, prune_results
from builder.build.task import Job, Task
from builder.card.result import BuildResult
from builder.config.sections import Config
from builder.dataset.review import read_review
from builder.jsonio import dumps, loads
from builder.keys import OBJECT
from builder.normalize.joined import SeenAnswers, joined
from builder.normalize.tool_use import ToolUse
from builder.output.folder import RemoteOutput, output_folder
from builder.output.manifest import InputEntry, LogEntry, Manifest
from builder.parallel.pool import OpenPool, SharedPool
from builder.problem import UsageError
from builder.qwen3.tokenizer import Target, target_for
from builder.scrub.redact import Scrubber, derive_key
from builder.sources.store import StoreFailed


def build(
    config: Config,
    out: Path,
    *,
    engine: Engine,
    fresh: bool,
    progress: Callable[[list[Task]], Done],
    warn: Callable[[str], object],
    phase: Phase = no_phase,
    remote: RemoteOutput | None = None,
) -> BuildResult:
    """Builds a dataset in the folder `out` and, for a store (`remote`), uploads it.

    `progress(tasks)` returns a callback for finished tasks. `phase(name, total)` announces each
    later phase and returns a callback for the number of samples done. `warn` receives messages for
    the user before the work begins.

    Reuses results of earlier runs with the same configuration and versions, unless `fresh`. The
    bytes do not depend on the engine. Raises UsageError (input, tokenizer, output folder) and
    LedgerFault (a bug of ours).
    """
    started = time.time()
    target = _target(config)
    if target.missing:
        warn(target.missing)
    tasks, unreadable = plan(config, target, out)
    evaluation_sets(config.audit.options.sets)  # a missing one is reported before the work begins
    chosen = config.select.review
    review = read_review(chosen.located) if chosen is not None else None
    if not fresh:
        refuse_other_inputs(config, out)
        before = Manifest.of(out)
        now = Manifest(config=OBJECT.read(loads(dumps(config.resolved()))))
        if before.config and remote is None and now.options != before.options:
            model = before.tokenizer.model or before.tokenizer.template_name
            warn(f"{out} holds a dataset for {model}, made with other settings: it is replaced")
    scrub = config.audit.scrub
    first = (task.source for task in tasks if _is_first_chunk(task))
    key = derive_key(first) if scrub.needs_key else b""
    scrubber = Scrubber(scrub, key, target.added_tokens)
    unreadable = [scrubber.problem(problem) for problem in unreadable]
    with _resumable(), removed_if_unused(out), output_folder(out) as work, SharedPool() as pool:
        results_folder = work.parent / "results"
        if fresh:
            _forget(results_folder, remote)
        job = Job(
            tokenizer=config.verify.target,
            verify=config.verify.options,
            identity=job_identity(target.files, target.template_key),
            results=results_folder,
            work=work,
            store=remote.store if remote is not None else None,
            spools=work / "read",
            scrub=scrub,
            key=key,
        )
        use: dict[str, ToolUse] = {}
        counted = partial(_count_once, tasks, progress(tasks), set[int]())
        run_all = partial(_run_all, engine, pool, job)
        scanned = results = run_all(tasks, partial(counted, range(len(tasks))), use)
        again = _unfinished(tasks, results, use)
        _join(tasks, results, again)
        if again:
            results = [_set_aside(result, index, work) for index, result in enumerate(results)]
            new_results = run_all(list(again.values()), partial(counted, [*again]), {})
            for index, result in zip(again, new_results, strict=True):
                results[index] = result
        run = PublishContext(
            config,
            target,
            Manifest(inputs=tuple(_inputs(tasks, results, scrubber))),
            scrubber.text,
            work,
            out,
            engine.name,
            engine.workers,
            started,
            phase,
            review,
            pool,
        )
        weighted = [
            replace(result, weight=task.weight) for task, result in zip(tasks, results, strict=True)
        ]
        built, is_in_place = publish(weighted, unreadable, run)
        if is_in_place:
            if remote is not None:
                remote.upload(out)
                _prune_store(remote, [*scanned, *results])
            _prune(results_folder, [*scanned, *results])
    return built


@contextlib.contextmanager
def _resumable() -> Iterator[None]:
    try:
        yield
    except StoreFailed as failed:
        raise UsageError(f"{failed}; the same command resumes") from None


def _count_once(
    tasks: Sequence[Task], done: Done, counted: set[int], places: Sequence[int],
    at: int, summary: ResultSummary,
) -> None:  # fmt: skip
    """Counts a task in the first pass that converts it; `places` are those of the pass's tasks."""
    if not summary.is_scan and places[at] not in counted:
        counted.add(places[at])
        done(tasks[places[at]], summary)


def _run_all(
    engine: Engine,
    pool: OpenPool,
    job: Job,
    tasks: list[Task],
    done: Callable[[int, ResultSummary], object],
    use: dict[str, ToolUse],
) -> list[ChunkResult]:
    """Runs the tasks; returns their results in the order of the tasks.

    Adds the counts of how sessions use tools to `use`, by format.
    """
    results: dict[int, ChunkResult] = {}
    with contextlib.closing(engine.run(tasks, job, pool)) as finished:
        for index, result in finished:
            results[index] = result
            summary = result.summary
            if summary.tool_use and summary.format is not None:
                use.setdefault(summary.format, ToolUse()).add(summary.tool_use)
                summary.tool_use = ToolUse.wanted(summary.tool_use)  # drops large definitions
            done(index, summary)
    return [results[index] for index in range(len(tasks))]


def _unfinished(
    tasks: Sequence[Task], results: Sequence[ChunkResult], use: dict[str, ToolUse]
) -> dict[int, Task]:
    """Returns {index: task} for the tasks that were only scanned, with shared tools added."""
    again: dict[int, Task] = {}
    for index, (task, result) in enumerate(zip(tasks, results, strict=True)):
        summary = result.summary
        if summary.is_scan and summary.format is not None:
            shared = use.get(summary.format, ToolUse()).shared(summary.tool_use)
            again[index] = replace(task, options=replace(task.options, shared_tools=shared))
    return again


def _join(tasks: Sequence[Task], results: Sequence[ChunkResult], again: dict[int, Task]) -> None:
    """Adds tasks to `again` whose answers are in captures or in logs of other tasks as well."""
    seen = [SeenAnswers(**result.summary.answers) for result in results]
    for result in results:
        result.summary.answers = {}
    for index, answers in joined(seen).items():
        again[index] = replace(again.get(index, tasks[index]), joined=answers)


def _set_aside(result: ChunkResult, index: int, work: Path) -> ChunkResult:
    """Renames a result in the work folder, so that the second pass cannot overwrite it."""
    if work not in result.path.parents:
        return result
    path = work / "first" / f"{index:08d}"
    path.parent.mkdir(exist_ok=True)
    return replace(result, path=result.path.replace(path))


def _target(config: Config) -> Target:
    """Returns the tokenizer to verify against. Raises UsageError if it does not fit an option."""
    target = target_for(config.verify.target)
    named = config.verify.model or config.verify.tokenizer.written
    template = f"the chat template of {named!r}"
    if config.normalize.late_system == "keep" and not target.renders_late_system:
        raise UsageError(
            f"normalize.late_system: keep: {template} does not render a later system message;"
            " use user or reject"
        )
    if "no_thought" in config.normalize.mask and not target.style.thoughts.has_blocks:
        raise UsageError(
            f"normalize.mask: no_thought (--preset sft-thinking): {template} shows no thoughts;"
            " use --preset sft, or a model that thinks"
        )
    return target


def _is_first_chunk(task: Task) -> bool:
    return task.source.chunk is None or not task.source.chunk.start


def _inputs(
    tasks: Sequence[Task], results: Sequence[ChunkResult], scrubber: Scrubber
) -> Iterator[InputEntry]:
    """Yields the manifest's entries on the files that were read."""
    for task, result in zip(tasks, results, strict=True):
        if not _is_first_chunk(task):
            continue
        chunk = task.source.chunk
        file = chunk.whole if chunk is not None else result.summary
        log = LogEntry(bytes=result.summary.log_bytes, sha256=result.summary.log_sha256)
        yield InputEntry(
            path=scrubber.file_name(result.summary.name),
            bytes=file.bytes,
            sha256=file.sha256,
            log=log if log.sha256 else None,
        )


def _forget(folder: Path, remote: RemoteOutput | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if remote is not None:
        _prune_store(remote, ())


def _prune_store(remote: RemoteOutput, results: Sequence[ChunkResult]) -> None:
    if remote.store is not None:
        prune_results(remote.store, results)


def _prune(folder: Path, results: Sequence[ChunkResult]) -> None:
    """Removes the results that this run did not use: their inputs have changed or are gone."""
    used = {result.path for result in results}
    for path in folder.glob("??/*"):
        if path not in used:
            with contextlib.suppress(OSError):  # a folder left by an earlier version
                path.unlink()
