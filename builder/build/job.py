"""The main job: inputs to an output folder, every sample proven, everything accounted for."""

from __future__ import annotations

import contextlib
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from builder.audit.result import Audit, AuditFinding
from builder.audit.run import audit, evaluation_sets
from builder.build.chunks import cut
from builder.build.convert import Task
from builder.build.earlier import has_dataset, refuse_other_inputs, removed_if_unused
from builder.build.engine import Done, Engine
from builder.build.finalize import finalize
from builder.build.identity import job_identity, versions
from builder.build.remote_results import prune_parts
from builder.build.results import ChunkResult
from builder.build.task import Job
from builder.card.built import Built
from builder.card.card import card, pictures
from builder.config import Config, InputSection
from builder.conversation import Json
from builder.jsonio import JsonFault, loads
from builder.normalize import NormalizeOptions
from builder.output.folder import Writer, output_folder
from builder.output.remote import RemoteOutput
from builder.parallel.pool import default_workers, in_background, is_much
from builder.problem import Problem, UsageError, nearest
from builder.qwen3.tokenizer import Target, target_for
from builder.readers import readers
from builder.readers.discovery import find_sources
from builder.report.report import report_html
from builder.report.survey import Survey, survey
from builder.scrub.redact import Scrubber, derive_key
from builder.sources.source import Source
from builder.text import map_strings, without_folders
from builder.verify.as_loaded import as_loaded, import_loader
from builder.verify.dataset import LineReport
from builder.verify.preload import preloading

REASONS = 20
"""Reasons that are kept of a build that puts nothing in place."""

Phase = Callable[[str, int | None], Callable[[int], object]]


def no_phase(name: str, total: int | None) -> Callable[[int], object]:
    """Announces nothing."""
    return lambda _: None


def build(
    config: Config,
    out: Path,
    *,
    engine: Engine,
    fresh: bool,
    progress: Callable[[list[Task]], Done],
    phase: Phase = no_phase,
    remote: RemoteOutput | None = None,
) -> Built:
    """Runs the job.

    `progress(tasks)` gives what to call after each of them; `phase(name, total)` announces each
    later phase and gives what to call with the number of samples done.

    What an earlier run has finished under the same configuration and versions is taken as it is,
    unless `fresh`. The bytes do not depend on the engine. A dataset for a store (`remote`) is made
    in `out`, then uploaded. Raises UsageError (input, tokenizer, output folder), LedgerFault (our
    bug).
    """
    started = time.time()
    target = _target(config)
    tasks, unreadable = plan(config, target.added_tokens, out)
    evaluation_sets(config.audit.options.sets)  # a missing one is reported before the work begins
    if not fresh:
        refuse_other_inputs(config, out)
    scrub = config.audit.scrub
    key = derive_key(_whole(tasks)) if scrub.needs_key else b""
    scrubber = Scrubber(scrub, key, target.added_tokens)
    unreadable = [scrubber.problem(problem) for problem in unreadable]
    with removed_if_unused(out), output_folder(out) as work:
        parts_folder = work.parent / "parts"
        if fresh:
            _forget(parts_folder, remote)
        job = Job(
            tokenizer=config.verify.target,
            verify=config.verify.options,
            identity=job_identity(target.files, target.template_sha256),
            parts=parts_folder,
            work=work,
            store=remote.store if remote is not None else None,
            scrub=scrub,
            key=key,
        )
        parts = _run(engine, tasks, job, progress(tasks))
        workers = min(engine.workers, default_workers())
        is_worth = workers > 1 and is_much(sum(part.sizes[0] for part in parts))  # the samples
        with in_background(preloading(config.verify.target), is_worth=is_worth) as start:
            start(import_loader)  # while the samples are chosen and written
            phase("write", None)
            weights = [task.weight for task in tasks]
            built = finalize(parts, weights, unreadable, config, Writer(work))
            if _is_nothing(built, out):
                built.reasons = _reasons(built.writer.folder / "rejects.jsonl")
                return built
            told = map_strings(config.resolved(), scrubber.text)
            made: dict[str, Json] = {"config": without_folders(told), "versions": versions()}
            about_it = partial(card, config, built, config.normalize, target, made=made)
            about: dict[str, Json] = {
                "inputs": _inputs(tasks, parts, scrubber),
                "config": told,
                "versions": made["versions"],
                "tokenizer": _tokenizer(config, target),
                "ledger": built.ledger.to_json(),
            }
            folder = built.writer.folder
            found = surveyed = None
            if built.data_files:
                # What a loader needs of the card does not depend on what the audits find.
                (folder / "README.md").write_bytes(about_it(found=None).encode("utf-8", "replace"))
                loaded = start(partial(_loaded, folder, config.verify.target))
                counted = start(partial(survey, str(folder)))
                step = phase("audit", built.ledger.samples)
                found = built.audit = audit(
                    str(folder), config.audit_options, step, workers=workers
                )
                built.changed_by_loader = loaded()
                if built.changed_by_loader:
                    return built  # nothing of it goes to a final name
                surveyed = counted()
                about["audit"] = {"findings": [_shown(finding) for finding in found.findings]}
            phase("report", None)
            page = start(partial(_page, folder, about, found, config.verify.target, surveyed))
            _describe(built, found, about_it(found=found), page)
        built.writer.publish(out, _manifest(about, built, engine, started))
        if remote is not None:
            remote.upload(out)
            _prune_store(remote, parts)
        _prune(parts_folder, parts)
    return built


def _manifest(
    about: dict[str, Json], built: Built, engine: Engine, started: float
) -> dict[str, Json]:
    """Returns the manifest: the dataset, its files, and the run, which alone may differ."""
    return {
        **about,
        "files": [
            {"path": item.path, "bytes": item.bytes, "sha256": item.sha256}
            for item in sorted(built.writer.files, key=lambda item: item.path)
        ],
        "run": {
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "seconds": round(time.time() - started, 3),
            "host": platform.node(),
            "python": platform.python_version(),
            "workers": engine.workers,
            "engine": engine.name,
        },
    }


def _tokenizer(config: Config, target: Target) -> dict[str, Json]:
    return {
        "name": config.verify.tokenizer.published,
        "files": dict(target.files),
        "template_sha256": target.template_sha256,
        "template_name": target.template_name,
    }


def _describe(built: Built, found: Audit | None, text: str, page: Callable[[], bytes]) -> None:
    """Writes the card, its pictures and the report."""
    for path, picture in pictures(found).items():
        built.writer.write(path, [picture])
    built.writer.write("README.md", [text.encode("utf-8", "replace")])
    built.writer.write("report.html", [page()])


def _is_nothing(built: Built, out: Path) -> bool:
    """Returns whether nothing is put in place: no conversation, or no sample where some were."""
    return not built.ledger.samples and (not built.ledger.found or has_dataset(out))


def _reasons(rejects: Path) -> list[str]:
    """Returns the first lines of rejects.jsonl in words."""
    found = []
    for line in rejects.read_bytes().splitlines()[:REASONS]:
        item = loads(line)
        assert isinstance(item, dict)
        found.append(f"{item['source']}: {item['code']}: {item['message']}")
    return found


def _run(engine: Engine, tasks: list[Task], job: Job, done: Done) -> list[ChunkResult]:
    """Runs all tasks; returns their results in the order of the tasks."""
    results: dict[int, ChunkResult] = {}
    with contextlib.closing(engine.run(tasks, job)) as ended:
        for index, result in ended:
            results[index] = result
            done(tasks[index], result.summary)
    return [results[index] for index in range(len(tasks))]


def _target(config: Config) -> Target:
    """The tokenizer to verify against. Raises UsageError: it does not fit an option."""
    target = target_for(config.verify.target)
    if config.normalize.late_system == "keep" and not target.renders_late_system:
        raise UsageError(
            f"normalize.late_system: keep: the chat template of {config.verify.tokenizer.written!r}"
            " does not render a later system message; use user or reject"
        )
    return target


def _loaded(folder: Path, tokenizer: str) -> list[LineReport]:
    return list(as_loaded(folder, target_for(tokenizer), folder.parent))


def _page(
    folder: Path,
    about: dict[str, Json],
    found: Audit | None,
    tokenizer: str,
    surveyed: Survey | None,
) -> bytes:
    return report_html(str(folder), about, found, target_for(tokenizer), surveyed)


def _shown(finding: AuditFinding) -> dict[str, Json]:
    """A finding in the manifest: what the gates of `push` need."""
    return {
        "audit": finding.audit,
        "code": finding.code,
        "message": finding.message,
        "count": finding.count,
        "samples": finding.samples,
        "gate": finding.gate.value,
    }


def _whole(tasks: Sequence[Task]) -> Iterator[Source]:
    """The sources of the tasks, each once."""
    for task in tasks:
        if task.source.window is None or not task.source.window.start:
            yield task.source


def _inputs(tasks: Sequence[Task], parts: Sequence[ChunkResult], scrubber: Scrubber) -> list[Json]:
    """The files that were read, each once."""
    found: list[Json] = []
    for task, part in zip(tasks, parts, strict=True):
        window = task.source.window
        if window is not None and window.start:
            continue
        file = window.whole if window is not None else part.summary
        item: dict[str, Json] = {
            "path": scrubber.text(part.summary.name),
            "bytes": file.bytes,
            "sha256": file.sha256,
        }
        if part.summary.log_sha256:
            item["log"] = {"bytes": part.summary.log_bytes, "sha256": part.summary.log_sha256}
        found.append(item)
    return found


def _forget(folder: Path, remote: RemoteOutput | None) -> None:
    """Removes the results of earlier runs."""
    shutil.rmtree(folder, ignore_errors=True)
    if remote is not None:
        _prune_store(remote, ())


def _prune_store(remote: RemoteOutput, parts: Sequence[ChunkResult]) -> None:
    if remote.store is not None:
        prune_parts(remote.store, parts)


def _prune(folder: Path, parts: Sequence[ChunkResult]) -> None:
    """Remove the parts that this run did not use: of inputs that changed or are gone."""
    used = {part.path for part in parts}
    for path in folder.glob("??/*"):
        if path not in used:
            with contextlib.suppress(OSError):  # a folder, of an earlier version
                path.unlink()


def plan(
    config: Config, added_tokens: tuple[str, ...], out: Path | None = None
) -> tuple[list[Task], list[Problem]]:
    """(a task for each part, what could not be read), in order; nothing of the output `out`.

    Raises UsageError.
    """
    tasks: list[Task] = []
    unreadable: list[Problem] = []
    if not config.inputs:
        raise UsageError("no inputs: name files or folders, or a configuration with inputs")
    limit = config.limits.max_record_mb << 20
    for number, item in enumerate(config.inputs):
        if item.format != "auto" and item.format not in readers():
            known = nearest(item.format, readers())
            raise UsageError(f"format {item.format!r}: no such reader{known}")
        options = _options(config, item, added_tokens)
        found = find_sources(
            item.path.written, base=item.path.base, max_record_bytes=limit, without=out
        )
        for source in found:
            if isinstance(source, Problem):
                unreadable.append(source)
                continue
            origin = f"{number}/{source.name}"
            lengths = config.limits.lengths
            task = Task(source, options, origin, item.format, item.license, lengths, item.weight)
            tasks.extend(cut(task))
    return tasks, unreadable


def _options(config: Config, item: InputSection, added_tokens: tuple[str, ...]) -> NormalizeOptions:
    tools = None
    system = None
    if item.tools is not None:
        path = item.tools.located
        try:
            value = loads(path.read_bytes())
        except OSError as error:
            raise UsageError(f"tools {str(path)!r}: {error.strerror or error}") from error
        except JsonFault as fault:
            raise UsageError(f"tools {str(path)!r}: {fault.detail}") from fault
        tools = tuple(value) if isinstance(value, list) else (value,)
        if odd := [at for at, tool in enumerate(tools) if not isinstance(tool, dict)]:
            raise UsageError(
                f"tools {str(path)!r}: [{odd[0]}] is no definition, which is an object"
            )
    if item.system is not None:
        path = item.system.located
        try:
            system = path.read_text(encoding="utf-8").rstrip("\n")
        except OSError as error:
            raise UsageError(f"system {str(path)!r}: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"system {str(path)!r}: not UTF-8 at byte {error.start}") from error
    if config.normalize.system == "replace" and system is None:
        raise UsageError("normalize.system: replace needs inputs[].system or --system")
    return replace(
        config.normalize,
        train=config.train,
        supplied_tools=tools,
        supplied_system=system,
        added_tokens=added_tokens,
    )
