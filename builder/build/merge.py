"""Implements `builder merge`: combines built datasets without their logs, without verifying again.

The rows were verified when they were built, so only the selection is repeated, over all of them.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path

from builder.audit.run import evaluation_sets
from builder.build.preferences import digested_definitions, line_digest, prefix_digests
from builder.build.publish import Phase, PublishContext, no_phase, publish
from builder.build.results import ChunkResult, ResultSummary, ResultWriter
from builder.card.result import BuildResult
from builder.codes import DUPLICATE
from builder.config import Config, read_resolved
from builder.conversation import LEVELS, Context, Json
from builder.dataset.review import read_review
from builder.dataset.rows import DatasetRow, dataset_rows, json_lines
from builder.ledger import Ledger
from builder.output.folder import changed_files, output_folder
from builder.output.manifest import MANIFEST, Manifest, MergedEntry
from builder.paths import expand_home
from builder.problem import UsageError
from builder.qwen3.flat import to_dialogue, written_style
from builder.qwen3.reference import is_here, not_here
from builder.qwen3.tokenizer import Target, target_for
from builder.sample import Sample
from builder.scrub.redact import Scrubber
from builder.select.choice import session_digest
from builder.select.table import ConversationEntry, SampleEntry

_DECIDED = ("normalize", "verify", "limits")
"""Sections of the configuration that affect the rows: they must be equal in all folders."""


@dataclass(frozen=True, slots=True)
class _BuiltFolder:
    """A dataset made by `build` or `merge`; `sha256` is that of its manifest.

    ledger  that of the manifest
    """

    path: Path
    name: str
    manifest: Manifest
    ledger: Ledger
    sha256: str


def merge(
    datasets: Sequence[str], config: Config, out: Path, *, workers: int = 1, phase: Phase = no_phase
) -> BuildResult:
    """Merges built folders into `out`.

    Name, split, mix, select, output and the audits are those of `config`; all other options are
    those of the folders, which must be equal. Raises UsageError if a folder does not match its
    manifest, if the folders' options differ, or if `out` cannot be written.
    """
    started = time.time()
    folders = [_folder(dataset) for dataset in datasets]
    if len({folder.path.resolve() for folder in folders}) < len(folders):
        raise UsageError("merge: a dataset is named twice")
    if out.resolve() in {folder.path.resolve() for folder in folders}:
        raise UsageError(f"output {str(out)!r}: is one of the datasets to merge")
    chosen = _config(folders, config)
    if not is_here(chosen.verify.target):
        raise UsageError(not_here(chosen.verify.tokenizer.written))
    target = target_for(chosen.verify.target)
    for folder in folders:
        _check(folder, target)
    evaluation_sets(chosen.audit.options.sets)
    path = chosen.select.review
    review = read_review(path.located) if path is not None else None
    with output_folder(out) as work:
        results = [
            _result(folder, number, chosen, work / f"{number:08d}")
            for number, folder in enumerate(folders)
        ]
        origin = Manifest(
            inputs=tuple(item for folder in folders for item in folder.manifest.inputs),
            merged=tuple(MergedEntry(name=item.name, sha256=item.sha256) for item in folders),
        )
        run = PublishContext(
            chosen, target, origin, str, work, out, "merge", workers, started, phase, review
        )
        built, _ = publish(results, [], run)
    return built


def _folder(dataset: str) -> _BuiltFolder:
    path = expand_home(dataset)
    manifest = Manifest.load(path, dataset)
    if not manifest.config or manifest.ledger is None or not manifest.tokenizer.template_sha256:
        raise UsageError(f"dataset {dataset!r}: {MANIFEST} was not written by build")
    digest = hashlib.sha256((path / MANIFEST).read_bytes()).hexdigest()
    return _BuiltFolder(path, path.resolve().name, manifest, manifest.ledger, digest)


def _config(folders: Sequence[_BuiltFolder], config: Config) -> Config:
    """Returns the merged configuration. Raises UsageError if the folders' options differ."""
    first = folders[0]
    for other in folders[1:]:
        for section in _DECIDED:
            one, two = (item.manifest.config.get(section) for item in (first, other))
            if one != two:
                raise UsageError(
                    f"merge: {first.name} and {other.name} were built with different options:"
                    f" {_difference(section, one, two)}"
                )
    base = read_resolved(dict(first.manifest.config), first.path)
    audit = replace(config.audit, scrub=base.audit.scrub)
    return replace(
        base,
        name=config.name,
        inputs=(),
        audit=audit,
        split=config.split,
        mix=config.mix,
        select=config.merging,
        output=config.output,
    )


def _difference(section: str, first: Json, second: Json) -> str:
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted({*first, *second}):
            if first.get(key) != second.get(key):
                return f"{section}.{key}: {first.get(key)!r}, {second.get(key)!r}"
    return section


def _check(folder: _BuiltFolder, target: Target) -> None:
    """Raises UsageError unless the files match the manifest and were proven against the target."""
    if folder.manifest.tokenizer.template_sha256 != target.template_sha256:
        raise UsageError(f"dataset {folder.name!r}: was verified against another chat template")
    for path, how in changed_files(folder.path, folder.manifest).items():
        if path.startswith(("data/", "meta/")):
            detail = f"{path}: {how}: verify it, or build it again"
            raise UsageError(f"dataset {folder.name!r}: {detail}")


def _result(folder: _BuiltFolder, number: int, config: Config, path: Path) -> ChunkResult:
    """Writes the rows of a folder as a result, like those of `build`."""
    ledger = _ledger(folder)
    left_out = dict(folder.manifest.preferences.left_out)
    summary = ResultSummary(folder.name, ledger=ledger, pairs_left_out=left_out)
    with ResultWriter(path, summary, Scrubber(config.audit.scrub, b"", ())) as writer:
        groups = groupby(dataset_rows(str(folder.path)), key=_conversation_of)
        entries = chain(
            (_entry(list(group), number, config, writer) for _, group in groups), _unused(folder)
        )
        for entry in entries:
            writer.entry(entry)
            ledger.found += 1
        for _, line in json_lines(folder.path / "rejects.jsonl"):
            writer.reject_row(line)
        return writer.keep(None)


def _conversation_of(row: DatasetRow) -> tuple[str, ...]:
    return (row.split, *map(str, row.meta.place))


def _entry(
    rows: Sequence[DatasetRow], number: int, config: Config, writer: ResultWriter
) -> ConversationEntry:
    """Writes the samples of a conversation; returns its entry."""
    samples: list[SampleEntry] = []
    longest: tuple[bytes, ...] = ()
    calls: dict[bytes, None] = {}
    for row in rows:
        sample, line = row.sample, row.written
        if not isinstance(sample, Sample) or not isinstance(line, bytes):
            raise UsageError(f"dataset {writer.summary.name!r}: {row.file}:{row.number}: no sample")
        assert isinstance(row.meta_line, bytes), "its digest is that of the manifest"
        writer.sample(line.rstrip(b"\n") + b"\n", row.meta_line.rstrip(b"\n") + b"\n")
        prefixes = _prefixes(sample, row.meta.tools_source, config)
        calls.update(dict.fromkeys(_calls(sample, prefixes)))
        longest = max(longest, prefixes, key=len)
        samples.append(_sample_entry(row, sample, prefixes, len(calls)))
    meta = rows[0].meta
    session = session_digest(meta.conversation, str(meta.format), f"{number}/{meta.source}")
    return ConversationEntry(
        None,
        tuple(samples),
        b"".join(longest),
        tuple((key, None) for key in calls),
        meta.tools_source,
        session,
        meta.license or None,
        meta.format or None,
        cut=meta.cut or None,
    )


def _sample_entry(
    row: DatasetRow, sample: Sample, prefixes: Sequence[bytes], calls: int
) -> SampleEntry:
    """Describes a sample; all its targets get the context level that its meta line names."""
    context, targets = row.meta.context or Context(""), row.meta.assistant_turns
    return SampleEntry(
        prefixes[-1],
        row.meta.tokens,
        (0, calls),
        tuple(targets if name == context.level else 0 for name in LEVELS),
        tuple((code, targets) for code in context.missing),
        is_weighted=bool(sample.weights),
        pairs=len(row.meta.preferences),
        models=row.meta.every_model,
        recorded=row.meta.compared,
        line=line_digest(sample),
    )


def _prefixes(sample: Sample, tools_source: str, config: Config) -> tuple[bytes, ...]:
    weights = sample.weights or (None,) * len(sample.messages)
    messages = (
        (role, content, weight != 0)
        for (role, content), weight in zip(sample.messages, weights, strict=True)
    )
    definitions = digested_definitions(sample.tools, tools_source, config.normalize.tools)
    return prefix_digests(messages, definitions)


def _calls(sample: Sample, prefixes: Sequence[bytes]) -> Iterator[bytes]:
    """Yields a key for each call; calls after equal messages have equal keys."""
    turns = [
        turn
        for turn in to_dialogue(sample, written_style(sample)).turns
        if turn.role == "assistant"
    ]
    for turn, prefix in zip(turns, prefixes, strict=True):
        for ordinal, _ in enumerate(turn.calls):
            text = b"%d\n" % ordinal + prefix
            yield b"\x01" + hashlib.blake2b(text, digest_size=15).digest()


def _ledger(folder: _BuiltFolder) -> Ledger:
    """Returns a ledger with what the manifest counts without naming conversations.

    That is the folder's records, dropped calls, and samples that were left out.
    """
    known = folder.ledger
    return Ledger(
        read=known.read,
        used=known.used,
        ignored=known.ignored,
        rejected=known.rejected,
        calls_logged=known.calls_dropped.total(),
        calls_dropped=known.calls_dropped,
        samples_found=known.samples_left_out.total(),
        samples_left_out=known.samples_left_out,
    )


def _unused(folder: _BuiltFolder) -> Iterator[ConversationEntry]:
    codes = {**folder.ledger.conversations_rejected, DUPLICATE: folder.ledger.duplicates}
    for code, count in codes.items():
        yield from (ConversationEntry(code) for _ in range(count))
