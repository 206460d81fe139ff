"""Work on one part of the input, or the finished part if an earlier run has it.

A worker digests the bytes first. What a part holds follows from them, from the configuration and
from the versions alone, so their digest names the part.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from builder.build.convert import Task, process_source
from builder.build.remote_results import stored_part
from builder.build.results import ChunkResult, ResultSummary, ResultWriter, find_part
from builder.conversation import Json
from builder.jsonio import dumps
from builder.problem import Problem
from builder.scrub.options import ScrubOptions
from builder.scrub.redact import Scrubber
from builder.sources.chunk import ItemChunk
from builder.sources.copies import is_remote, local_copy
from builder.sources.source import Source
from builder.sources.sqlite_file import write_ahead_log
from builder.sources.store import Changed, Gone
from builder.verify.options import VerifyOptions
from builder.verify.verifier import verifier_for


@dataclass(frozen=True, slots=True)
class Job:
    """What is the same for all parts of a run.

    `identity` is a digest of versions and tokenizer; `parts` is where finished parts lie, `work`
    where unfinished ones do; `store` is the address of a state folder that machines without a
    common file system share. `key` is that of the stand-ins for secrets: kept in memory only.
    """

    tokenizer: str
    verify: VerifyOptions
    identity: str
    parts: Path
    work: Path
    store: str | None = None
    scrub: ScrubOptions = field(default_factory=ScrubOptions)
    key: bytes = b""

    @property
    def key_name(self) -> str:
        """What tells one key from another, and nothing about it."""
        return hashlib.blake2b(self.key, digest_size=8, person=b"builder-key").hexdigest()


def run_task(task: Task, index: int, job: Job) -> ChunkResult:
    """The part of this task, finished.

    Raises OSError if it cannot be written, UsageError if a store cannot be read.
    """
    with contextlib.ExitStack() as stack:
        final: Path | None = None
        if is_remote(task.source):
            # What a store says of an object names the part: what is finished is not fetched again.
            if (version := _stored_version(task.source)) is not None:
                final = job.parts / _key(task, job, version)
                if (done := _finished(final, job)) is not None:
                    return done
            try:
                copy = stack.enter_context(local_copy(task.source))
            except Changed:
                return failed_result(task, index, job, _changed(records=1))
            except Gone:
                detail = "it was removed after it had been listed"
                return failed_result(task, index, job, Problem("unreadable", "file", detail))
            task = replace(task, source=copy)
        before = _status(task.source)
        window = task.source.window
        if window is not None and before[:1] != [(window.whole.bytes, window.whole.modified)]:
            return failed_result(task, index, job, _changed(records=1))
        size, sha256 = _digest(task.source)
        log_bytes, log_sha256 = _log(task.source)
        if final is None:
            final = job.parts / _key(task, job, sha256, log_sha256)
            if (done := _finished(final, job)) is not None:
                return done
        scrubber = Scrubber(job.scrub, job.key, task.options.added_tokens)
        summary = ResultSummary(
            task.source.name,
            bytes=size,
            sha256=sha256,
            log_bytes=log_bytes,
            log_sha256=log_sha256,
        )
        with ResultWriter(job.work / f"{index:08d}", summary, scrubber) as part:
            process_source(task, verifier_for(job.tokenizer, job.verify), part, scrubber)
            summary.keyed = job.key_name if scrubber.used else ""
            if before == _status(task.source):
                return part.keep(final)
            part.reject(_changed(records=0))
            return part.keep(None)


def failed_result(task: Task, index: int, job: Job, problem: Problem) -> ChunkResult:
    """The part of a source that could not be worked on: the reject alone. The next run tries it."""
    summary = ResultSummary(task.source.name)
    summary.ledger.read = 1
    summary.ledger.rejected[problem.code] = 1
    scrubber = Scrubber(job.scrub, job.key, task.options.added_tokens)
    with ResultWriter(job.work / f"{index:08d}", summary, scrubber) as part:
        part.reject(problem)
        return part.keep(None)


def _finished(final: Path, job: Job) -> ChunkResult | None:
    """The part if an earlier run has finished it with this key; its files may be in the store."""
    done = find_part(final)
    if done is None and job.store is not None:
        url = f"{job.store}/{final.relative_to(job.parts.parent).as_posix()}"
        done = stored_part(url, final)
    return done if done is not None and done.summary.keyed in ("", job.key_name) else None


def _changed(records: int) -> Problem:
    detail = "the file changed while it was read; the next run reads it again"
    return Problem("changed", "file", detail, records=records)


def _stored_version(source: Source) -> str | None:
    """What stands for the content of objects that were not fetched yet; None: nothing does."""
    versions_seen: list[Json] = []
    for item in (source, *source.members):
        remote = item.remote
        while remote is not None:
            if remote.state is None:
                return None
            versions_seen.append([item.name, remote.size, *remote.state])
            remote = remote.beside
    return (
        "stored "
        + hashlib.sha256(dumps(versions_seen).encode("utf-8", "surrogatepass")).hexdigest()
    )


def _key(task: Task, job: Job, sha256: str, log: str = "") -> str:
    """Returns the path of a result in the folder of results: a digest of what it follows from."""
    window = task.source.window
    identity: Json = [
        job.identity,
        list(asdict(job.verify).values()),
        asdict(job.scrub),
        task.origin,
        task.source.name,
        task.format,
        task.license,
        asdict(task.lengths),
        task.source.max_record_bytes,
        asdict(task.options),
        sha256,
        [window.start, window.end, window.first] if window else None,
        hashlib.sha256(task.source.head).hexdigest() if window else None,
        log,
    ]
    name = hashlib.sha256(dumps(identity).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name[:2]}/{name[2:]}"


def _log(source: Source) -> tuple[int, str]:
    """Returns bytes and sha256 of the write-ahead log that is read with a database; (0, "")."""
    try:
        log = write_ahead_log(source) if source.window is None else None
        if log is None:
            return 0, ""
        with log.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256")
            return stream.tell(), digest.hexdigest()
    except OSError:
        return 0, ""  # reading the database reports it


def _status(source: Source) -> list[tuple[int, int] | None]:
    """Size and time of change of the files of a source, to see whether one changed meanwhile."""
    paths = [item.path for item in source.members or (source,)]
    if source.path is not None and not source.members:
        paths.append(source.path.with_name(source.path.name + "-wal"))
    status: list[tuple[int, int] | None] = []
    for path in paths:
        try:
            seen = path.stat() if path is not None else None
        except OSError:
            seen = None
        status.append((seen.st_size, seen.st_mtime_ns) if seen else None)
    return status


def _digest(source: Source) -> tuple[int, str]:
    """(bytes, sha256) of the file as it lies there; of a store, over its members in order.

    Of a piece of lines that of its own bytes, so that it stays done when others change or come.
    """
    if isinstance(source.window, ItemChunk):
        return source.window.bytes, source.window.whole.sha256
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
            continue  # the reading itself reports it
    return size, digest.hexdigest()
