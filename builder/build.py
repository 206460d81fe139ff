"""The main job: inputs to an output folder, every sample proven, everything accounted for."""

from __future__ import annotations

import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from builder.as_loaded import as_loaded
from builder.card import card
from builder.config import Config, InputConfig
from builder.conversation import Json
from builder.engine import run, spool_path, verifier_for
from builder.inputs import find_sources
from builder.jsonio import JsonFault, loads
from builder.ledger import CallFates, Ledger
from builder.normalize import NormalizeOptions
from builder.output import Piece, Writer, json_lines, output_folder, write_samples
from builder.problem import Problem, UsageError
from builder.qwen3.tokenizer import Target
from builder.readers import readers
from builder.shard import Entry, SourceResult, Spooled, Task
from builder.splits import SPLITS, SplitOptions, assign
from builder.verify_files import LineReport

PACKAGES = ("toolcall-dataset-builder", "transformers", "tokenizers", "jinja2", "orjson")


@dataclass(slots=True)
class Built:
    """What a run has made: the ledger, its bugs, and the numbers that the card shows."""

    ledger: Ledger
    bugs: int = 0
    rejects: int = 0
    tokens: int = 0
    duplicate_samples: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    licenses: Counter[str] = field(default_factory=Counter)
    tools_sources: Counter[str] = field(default_factory=Counter)
    data_files: dict[str, list[str]] = field(default_factory=dict)
    changed_by_loader: list[LineReport] = field(default_factory=list)


def build(
    config: Config,
    out: Path,
    *,
    workers: int,
    progress: Callable[[int], Callable[[SourceResult], None]],
) -> Built:
    """Run the job. `progress(sources)` gives what to call after each source.

    Raises UsageError (input, tokenizer, output folder), LedgerFault (a bug of ours).
    """
    started = time.time()
    target = verifier_for(config.verify.target, config.verify.options).target
    tasks, unreadable = plan(config, target.added_tokens)
    with output_folder(out) as work:
        results = list(
            run(
                tasks,
                work,
                tokenizer=config.verify.target,
                verify=config.verify.options,
                workers=workers,
                done=progress(len(tasks)),
            )
        )
        built, pieces = settle(results, unreadable, work, config.split.options)
        writer = Writer(work)
        for split, listed in pieces.items():
            built.data_files[split] = write_samples(
                writer,
                listed,
                split=split,
                formats=config.output.formats,
                shard_bytes=config.output.shard_mb << 20,
            )
        rejects = [row for result in (*unreadable, *results) for row in result.rejects]
        built.rejects = len(rejects)
        writer.write("rejects.jsonl", json_lines(rejects))
        writer.write("README.md", [_card(config, built, target)])
        if built.data_files:
            built.changed_by_loader = list(as_loaded(writer.folder, target, work))
            if built.changed_by_loader:
                return built  # nothing of it goes to a final name
        manifest: dict[str, Json] = {
            "inputs": [
                {"path": result.name, "bytes": result.bytes, "sha256": result.sha256}
                for result in results
            ],
            "config": config.resolved(),
            "versions": _versions(),
            "tokenizer": {
                "name": config.verify.tokenizer.shown,
                "files": dict(target.files),
                "template_sha256": target.template_sha256,
                "template_name": target.template_name,
            },
            "ledger": built.ledger.to_json(),
            "files": [
                {"path": item.path, "bytes": item.bytes, "sha256": item.sha256}
                for item in sorted(writer.files, key=lambda item: item.path)
            ],
            "run": {
                "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
                "seconds": round(time.time() - started, 3),
                "host": platform.node(),
                "python": platform.python_version(),
                "workers": workers,
                "engine": "local",
            },
        }
        writer.publish(out, manifest)
    return built


def _card(config: Config, built: Built, target: Target) -> bytes:
    return card(config, built, normalize_options(config), target).encode("utf-8", "replace")


def plan(config: Config, added_tokens: tuple[str, ...]) -> tuple[list[Task], list[SourceResult]]:
    """(a task for each source, what could not be read), in order. Raises UsageError."""
    tasks: list[Task] = []
    unreadable: list[SourceResult] = []
    if not config.output.formats:
        raise UsageError("output.formats: names no format; there are jsonl, parquet")
    if config.split.validation + config.split.test > 1:
        raise UsageError("split: validation and test together are more than 1")
    if not config.inputs:
        raise UsageError("no inputs: name files or folders, or a configuration with inputs")
    limit = config.limits.max_record_mb << 20
    for number, item in enumerate(config.inputs):
        if item.format != "auto" and item.format not in readers():
            known = ", ".join(readers())
            raise UsageError(f"format {item.format!r}: no such reader; there are: {known}")
        options = _options(config, item, added_tokens)
        for source in find_sources(item.path.written, base=item.path.base, max_record_bytes=limit):
            if isinstance(source, Problem):
                result = SourceResult(source.where)
                result.reject(Problem(source.code, "file", source.detail))
                result.ledger.read = 1
                result.ledger.rejected[source.code] = 1
                unreadable.append(result)
                continue
            origin = f"{number}/{source.name}"
            limits = config.limits.max_tokens
            tasks.append(Task(source, options, origin, item.format, item.license, limits))
    return tasks, unreadable


def _options(config: Config, item: InputConfig, added_tokens: tuple[str, ...]) -> NormalizeOptions:
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
    if item.system is not None:
        path = item.system.located
        try:
            system = path.read_text(encoding="utf-8").rstrip("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"system {str(path)!r}: {error}") from error
    if config.normalize.system == "replace" and system is None:
        raise UsageError("normalize.system: replace needs inputs[].system or --system")
    options = normalize_options(config)
    return replace(options, supplied_tools=tools, supplied_system=system, added_tokens=added_tokens)


def normalize_options(config: Config) -> NormalizeOptions:
    """The normaliser's options that the configuration's `normalize:` says."""
    chosen = config.normalize
    return NormalizeOptions(**{item.name: getattr(chosen, item.name) for item in fields(chosen)})


def settle(
    results: Sequence[SourceResult],
    unreadable: Sequence[SourceResult],
    work: Path,
    split: SplitOptions,
) -> tuple[Built, dict[str, list[Piece]]]:
    """Over all sources: duplicates, the ledger, the samples of each split in order.

    A conversation whose messages are those of another, or the beginning of another's, is a
    duplicate: the longest is kept, of equal ones the first. Of two conversations with a common
    beginning each turn is taught once, where a sample is less than a conversation.
    Raises LedgerFault.
    """
    ledger = Ledger()
    built = Built(ledger)
    fates = CallFates()
    beginnings = {prefix for _, entry, _ in _entries(results) for prefix in entry.prefixes[:-1]}
    whole: set[bytes] = set()
    taught: set[bytes] = set()
    chosen: list[tuple[bytes, bytes]] = []
    kept: list[list[Piece]] = []
    offset = 0
    last = -1
    for index, entry, result in _entries(results):
        if index != last:
            offset, last = 0, index
        if not entry.samples:
            ledger.conversations_rejected[str(entry.code)] += 1
            fates.add(entry.calls)
            continue
        full = entry.prefixes[-1]
        known = full in whole or full in beginnings
        whole.add(full)
        written: list[Piece] = []
        for sample in entry.samples:
            if not known and sample.prefix not in taught:
                taught.add(sample.prefix)
                written.append(Piece(spool_path(work, index), offset, sample.size))
                _count(built, entry, sample, result)
            offset += sum(sample.size)
        if written:
            ledger.built += 1
            built.duplicate_samples += len(entry.samples) - len(written)
            chosen.append((entry.session, entry.prefixes[0]))
            kept.append(written)
            fates.add(entry.calls)
        else:
            ledger.duplicates += 1
            fates.add((key, code or "duplicate") for key, code in entry.calls)
    for result in (*unreadable, *results):
        ledger.add_records(result.ledger)
        ledger.found += result.ledger.found
        built.bugs += result.bugs
    fates.count(ledger)
    pieces: dict[str, list[Piece]] = {}
    for name, listed in zip(assign(chosen, split), kept, strict=True):
        pieces.setdefault(name, []).extend(listed)
    ledger.samples = sum(map(len, pieces.values()))
    ledger.check()
    return built, {name: pieces[name] for name in SPLITS if name in pieces}


def _entries(results: Sequence[SourceResult]) -> Iterator[tuple[int, Entry, SourceResult]]:
    for index, result in enumerate(results):
        for entry in result.entries:
            yield index, entry, result


def _count(built: Built, entry: Entry, sample: Spooled, result: SourceResult) -> None:
    built.tokens += sample.tokens
    built.formats[result.format or "unknown"] += 1
    built.models[entry.model or "unknown"] += 1
    built.licenses[result.license or "unknown"] += 1
    built.tools_sources[entry.tools_source] += 1


def _versions() -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def default_workers() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
