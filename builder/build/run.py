"""Runs one task, or reuses its result if an earlier run has finished it.

A result is named by a digest of everything that it depends on: input, configuration and versions.
So a worker digests the input before it reads it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.build.convert import process_source
from builder.build.results import (
    ChunkResult,
    ResultSummary,
    ResultWriter,
    find_result,
    stored_result,
)
from builder.build.spool import Spool
from builder.build.task import Job, Task
from builder.conversation import Json
from builder.jsonio import dumps
from builder.options import is_derived
from builder.problem import Problem
from builder.scrub.redact import Scrubber
from builder.sources.listing import is_remote, local_copy
from builder.sources.source import Source, file_version, related_path
from builder.sources.sqlite_file import write_ahead_log
from builder.sources.store import Changed, Gone
from builder.sources.stream import ItemChunk
from builder.verify.verifier import verifier_for

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def run_task(task: Task, index: int, job: Job) -> ChunkResult:
    """Runs a task and returns its result.

    Raises OSError if it cannot be written, UsageError if a store cannot be read.
    """
    if not is_remote(task.source):
        return _run_local(task, index, job)
    final: Path | None = None
    # The version that a store reports names the result, so that finished inputs are not fetched
    # again.
    if (version := _stored_version(task.source)) is not None:
        final = job.results / _key(task, job, version)
        if (done := _finished(final, job, task.source)) is not None:
            return done
    try:
        with local_copy(task.source) as copy:
            return _run_local(replace(task, source=copy), index, job, final)
    except Changed:
        return failed_result(task, index, job, _changed(records=1))
    except Gone:
        detail = "it was removed after it had been listed"
        return failed_result(task, index, job, Problem("unreadable", "file", detail))


def _run_local(task: Task, index: int, job: Job, final: Path | None = None) -> ChunkResult:
    """Runs a task whose files are on this machine; `final` is the path of the result if known."""
    source = task.source
    before = _status(source)
    chunk = source.chunk
    if chunk is not None and before[:1] != [(chunk.whole.bytes, chunk.whole.modified)]:
        return failed_result(task, index, job, _changed(records=1))
    size, sha256 = _digest(source)
    log_bytes, log_sha256 = _log(source)
    if final is None:
        final = job.results / _key(task, job, sha256, log_sha256)
        if (done := _finished(final, job, source)) is not None:
            return done
    scrubber = Scrubber(job.scrub, job.key, task.options.added_tokens)
    summary = ResultSummary(
        source.name, bytes=size, sha256=sha256, log_bytes=log_bytes, log_sha256=log_sha256
    )
    with ResultWriter(job.work / f"{index:08d}", summary, scrubber) as writer:
        verifier = verifier_for(job.tokenizer, job.verify)
        process_source(task, verifier, writer, _spool(task, job, sha256, log_sha256))
        summary.keyed = job.key_name if scrubber.used else ""
        siblings = {name: _sibling_digest(source, name) for name in sorted(source.siblings)}
        summary.siblings = {name: digest for name, (_, digest) in siblings.items()}
        is_same = all(siblings[name][0] == status for name, status in source.siblings.items())
        if is_same and before == _status(source):
            return writer.keep(final)
        writer.reject(_changed(records=0))
        return writer.keep(None)


def failed_result(task: Task, index: int, job: Job, problem: Problem) -> ChunkResult:
    """Writes and returns a result with one reject. The next run runs the task again."""
    summary = ResultSummary(task.source.name)
    summary.ledger.read = 1
    summary.ledger.rejected[problem.code] = 1
    scrubber = Scrubber(job.scrub, job.key, task.options.added_tokens)
    with ResultWriter(job.work / f"{index:08d}", summary, scrubber) as writer:
        writer.reject(problem)
        return writer.keep(None)


def _finished(final: Path, job: Job, source: Source) -> ChunkResult | None:
    """Returns the result, on disk or in the store, if an earlier run finished it with this key.

    The path names all that it depends on, but for the siblings, which are known only once the
    source is read: a result notes them, and counts as unfinished if one has changed.
    """
    done = find_result(final)
    if done is None and job.store is not None:
        url = f"{job.store}/{final.relative_to(job.results.parent).as_posix()}"
        done = stored_result(url, final)
    if done is None or done.summary.keyed not in ("", job.key_name):
        return None
    noted = done.summary.siblings
    is_same = all(_sibling_digest(source, name)[1] == digest for name, digest in noted.items())
    return done if is_same else None


def _sibling_digest(source: Source, name: str) -> tuple[tuple[int, int] | None, str]:
    """Returns (status, sha256) of a related file of the source's; (None, "") if there is none."""
    path = related_path(source.path, name) if source.path is not None else None
    status = file_version(path)
    if path is None or status is None:
        return None, ""
    return status, _file_digest(path, status)


@lru_cache(maxsize=256)
def _file_digest(path: Path, status: tuple[int, int]) -> str:
    """Returns the sha256 of a file; `status` is part of the cache key, since many tasks ask."""
    del status
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def _changed(records: int) -> Problem:
    detail = "the file changed while it was read; the next run reads it again"
    return Problem("changed", "file", detail, records=records)


def _stored_version(source: Source) -> str | None:
    """Returns a text that identifies the content of stored objects; None if a state is unknown."""
    states: list[Json] = []
    for item in (source, *source.members):
        remote = item.remote
        while remote is not None:
            if remote.state is None:
                return None
            states.append([item.name, remote.size, *remote.state])
            remote = remote.log
    return f"stored {_sha256(dumps(states))}"


def _key(task: Task, job: Job, sha256: str, log: str = "") -> str:
    """Returns the path of a result below the folder of results: a digest of what it depends on."""
    chunk = task.source.chunk
    identity: Json = [
        job.identity,
        list(_values(job.verify).values()),
        _values(job.scrub),
        task.origin,
        task.source.name,
        task.format,
        _values(task.mapping) if task.mapping is not None else None,
        task.license,
        _values(task.lengths),
        task.source.max_record_bytes,
        _values(task.options),
        sha256,
        [chunk.start, chunk.end, chunk.first] if chunk else None,
        hashlib.sha256(task.source.head).hexdigest() if chunk else None,
        log,
        *([_values(task.joined)] if task.joined is not None else []),
    ]
    name = _sha256(dumps(identity))
    return f"{name[:2]}/{name[2:]}"


def _values(options: DataclassInstance) -> dict[str, Any]:
    """Returns the fields of options as JSON; unlike `asdict`, without copying definitions."""
    named = (item for item in fields(options) if not is_derived(item))
    values = {item.name: getattr(options, item.name) for item in named}
    for name, value in values.items():
        if is_dataclass(value) and not isinstance(value, type):
            values[name] = _values(value)
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            values[name] = [_values(item) for item in value]
        elif isinstance(value, Mapping):
            values[name] = dict(value)
    return values


def _spool(task: Task, job: Job, *digests: str) -> Spool | None:
    """Returns the spool for a second pass, if there can be one; `digests` are of the input."""
    if job.spools is None:
        return None
    start = task.source.chunk.start if task.source.chunk else 0
    return Spool(job.spools / _sha256("\0".join((task.origin, str(start), *digests))))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _log(source: Source) -> tuple[int, str]:
    """Returns (bytes, sha256) of the write-ahead log that is read with a database, or (0, "")."""
    try:
        log = write_ahead_log(source) if source.chunk is None else None
        if log is None:
            return 0, ""
        with log.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256")
            return stream.tell(), digest.hexdigest()
    except OSError:
        return 0, ""  # reading the database reports the error


def _status(source: Source) -> list[tuple[int, int] | None]:
    paths = [item.path for item in source.members or (source,)]
    if source.path is not None and not source.members:
        paths.append(source.path.with_name(source.path.name + "-wal"))
    return [file_version(path) for path in paths]


def _digest(source: Source) -> tuple[int, str]:
    """Returns (bytes, sha256) of the file as stored; for a store, of its members in order.

    A chunk of lines is digested alone, so that its result stays valid if other chunks change.
    """
    if isinstance(source.chunk, ItemChunk):
        return source.chunk.bytes, source.chunk.whole.sha256
    size = 0
    digest = hashlib.sha256()
    for item in source.members or (source,):
        if source.members:
            digest.update(item.name.encode("utf-8", "surrogatepass") + b"\0")
        try:
            for piece in item.raw():
                digest.update(piece)
                size += len(piece)
        except OSError:
            continue  # reading the input reports the error
    return size, digest.hexdigest()
