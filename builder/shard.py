"""One source from bytes to verified samples: the whole path, pure, knowing no engine.

The samples go to a spool file, what is known of them comes back: memory is bounded by the longest
conversation, not by the source.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from builder.conversation import Conversation, Ignored, Json, Used
from builder.jsonio import dumps
from builder.ledger import Ledger, call_keys
from builder.normalize import Normalised, NormalizeOptions, normalise
from builder.problem import Problem
from builder.qwen3.flatten import flatten
from builder.readers import Reader, readers, recognise
from builder.sample import Sample
from builder.source import STREAM_ERRORS, Source, stream_problem
from builder.verify import Finding, Verdict, Verifier


@dataclass(frozen=True, slots=True)
class Task:
    """A source to build, and what its input says of it. `origin` is unique in the run."""

    source: Source
    options: NormalizeOptions
    origin: str
    format: str = "auto"
    license: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of one conversation.

    size     bytes of the sample's line and of its meta line in the spool, newlines included;
             None: rejected
    prefixes digests of the sample's messages up to each assistant turn; the last is all of it
    calls    (call key, drop code or None) of each call
    """

    code: str | None
    size: tuple[int, int] | None = None
    prefixes: tuple[bytes, ...] = ()
    calls: tuple[tuple[bytes, str | None], ...] = ()
    tools_source: str = "none"
    model: str | None = None
    tokens: int = 0


@dataclass(slots=True)
class SourceResult:
    """What became of a source. `rejects` are the lines of rejects.jsonl."""

    name: str
    format: str | None = None
    license: str | None = None
    bytes: int = 0
    sha256: str = ""
    ledger: Ledger = field(default_factory=Ledger)
    entries: list[Entry] = field(default_factory=list)
    rejects: list[dict[str, Json]] = field(default_factory=list)
    bugs: int = 0

    def reject(self, problem: Problem) -> None:
        """Note a fault for rejects.jsonl."""
        self.rejects.append(
            {
                "source": self.name,
                "format": self.format,
                "record": problem.where,
                "code": problem.code,
                "message": printable(problem.detail),
            }
        )


def printable(text: str) -> str:
    """Text that can be written as UTF-8 whatever the log held."""
    return text.encode("utf-8", "replace").decode("utf-8")


def process_source(task: Task, verifier: Verifier, spool: BinaryIO) -> SourceResult:
    """Read, normalise, flatten, verify; sample and meta lines go to `spool`, one after the other.

    Raises OSError only if the spool cannot be written.
    """
    source = task.source
    result = SourceResult(source.name, license=task.license)
    before = _status(source)
    reader = _reader(task, result)
    if reader is not None:
        result.format = reader.NAME
        for conversation in _conversations(reader, source, result):
            _conversation(conversation, task, verifier, spool, result)
    if not source.records_read:
        # A file that holds no record counts as one, so that it cannot vanish from the ledger.
        source.count_records()
        if not result.rejects:
            result.ledger.ignored["empty_file"] += 1
        else:
            result.ledger.rejected[str(result.rejects[0]["code"])] += 1
    result.ledger.read = source.records_read
    missing = result.ledger.read - (
        result.ledger.used + result.ledger.ignored.total() + result.ledger.rejected.total()
    )
    if result.bugs and missing > 0:
        result.ledger.rejected["internal"] += missing
    result.bytes, result.sha256 = _digest(source)
    if before != _status(source):
        detail = "the file changed while it was read; the next run reads it again"
        result.reject(Problem("changed", "file", detail, records=0))
    return result


def _reader(task: Task, result: SourceResult) -> Reader | None:
    """The reader for the source; if there is none, the reason is noted."""
    source = task.source
    if not source.members:
        try:
            with source.open() as stream:
                stream.read(1)
        except STREAM_ERRORS as error:
            result.reject(stream_problem(error, "file"))
            return None
    if source.peek.kind == "empty":
        return None
    if task.format != "auto":
        return readers()[task.format]
    claims = recognise(source)
    if len(claims) == 1:
        return readers()[next(iter(claims))]
    if claims:
        detail = f"claimed by {', '.join(claims)}: name one with --format"
        result.reject(Problem("ambiguous", "file", detail))
    else:
        detail = f"no reader knows it ({source.peek.kind}): see `builder formats`"
        result.reject(source.peek.problem or Problem("unrecognised", "file", detail))
    return None


def _conversations(reader: Reader, source: Source, result: SourceResult) -> Iterator[Conversation]:
    """The source's conversations; its other events are counted on the way."""
    ledger = result.ledger
    try:
        for event in reader.read(source):
            match event:
                case Conversation():
                    ledger.used += event.records
                    ledger.found += 1
                    yield event
                case Used(records=records):
                    ledger.used += records
                case Ignored(code=code, records=records):
                    ledger.ignored[code] += records
                case Problem():
                    ledger.rejected[event.code] += event.records
                    result.reject(event)
    except Exception as error:  # a reader must not raise: a bug, and the other sources go on
        result.bugs += 1
        detail = f"bug in the reader: {type(error).__name__}: {error}"[:300]
        result.reject(Problem("internal", "file", detail))


def _conversation(
    conversation: Conversation,
    task: Task,
    verifier: Verifier,
    spool: BinaryIO,
    result: SourceResult,
) -> None:
    """One conversation to one entry, and its sample to the spool."""
    assert result.format is not None, "set with the reader"
    keys = call_keys(conversation, format=result.format, source=task.origin)
    problem: Problem | None
    try:
        normalised, sample, verdict, problem = prove(conversation, task.options, verifier)
    except Exception as error:  # a bug of ours on one conversation; the others go on
        result.bugs += 1
        detail = f"bug: {type(error).__name__}: {error}"[:300]
        problem = Problem("internal", conversation.record, detail)
        result.reject(problem)
        result.entries.append(Entry("internal", calls=tuple((key, "internal") for key in keys)))
        return
    if problem is not None or sample is None or verdict is None:
        assert problem is not None, "what is no sample has a reason"
        where = conversation.record
        result.reject(Problem(problem.code, where, f"{problem.detail} ({problem.where})"))
        if problem.code in ("spec", "structured", "inverse"):
            result.bugs += 1
        fates = tuple(
            (key, normalised.dropped.get(ordinal, problem.code)) for ordinal, key in enumerate(keys)
        )
        result.entries.append(Entry(problem.code, calls=fates))
        return
    meta = _meta(conversation, task, result, normalised, sample, verdict)
    line = sample.line + b"\n"
    about = dumps(meta).encode("utf-8", "replace") + b"\n"
    spool.write(line)
    spool.write(about)
    result.entries.append(
        Entry(
            None,
            size=(len(line), len(about)),
            prefixes=_prefixes(sample, normalised.tools_source),
            calls=tuple((key, normalised.dropped.get(n)) for n, key in enumerate(keys)),
            tools_source=normalised.tools_source,
            model=conversation.model,
            tokens=verdict.tokens,
        )
    )


def prove(
    conversation: Conversation, options: NormalizeOptions, verifier: Verifier
) -> tuple[Normalised, Sample | None, Verdict | None, Problem | None]:
    """Normalise, flatten and verify: the sample and its verdict, or the problem."""
    normalised = normalise(conversation, options)
    if normalised.dialogue is None:
        return normalised, None, None, normalised.problem
    sample = flatten(normalised.dialogue)
    verdict = verifier.check(sample, normalised.dialogue, normalised.unit)
    if verdict.findings:
        return normalised, sample, verdict, finding_problem(verdict.findings[0])
    return normalised, sample, verdict, None


def finding_problem(finding: Finding) -> Problem:
    """A finding of the verifier as the reason of a reject, with offset and both contexts."""
    detail = finding.message
    if finding.expected is not None:
        detail += f"; expected {finding.expected!r}"
    if finding.found is not None:
        detail += f"; found {finding.found!r}"
    where = f"message {finding.turn}" if finding.turn is not None else "rendering"
    if finding.offset is not None:
        where += f", offset {finding.offset}"
    return Problem(finding.code, where, detail, records=0)


def _meta(
    conversation: Conversation,
    task: Task,
    result: SourceResult,
    normalised: Normalised,
    sample: Sample,
    verdict: Verdict,
) -> dict[str, Json]:
    """The sample's line in meta/ (contract.md, "Output folder")."""
    return {
        "id": sample.id,
        "source": result.name,
        "format": result.format,
        "record": conversation.record,
        "conversation": conversation.id,
        "model": conversation.model,
        "license": task.license,
        "unit": normalised.unit,
        "tools_source": normalised.tools_source,
        "reasoning": normalised.reasoning,
        "changes": dict(normalised.changes),
        "schema_violations": sum(item.code == "schema" for item in verdict.warnings),
        "calls": verdict.calls,
        "assistant_turns": len(verdict.spans),
        "chars": len(verdict.text),
        "tokens": verdict.tokens,
        "render_sha256": verdict.render_sha256,
        "spans": [list(span) for span in verdict.spans],
    }


def _prefixes(sample: Sample, tools_source: str) -> tuple[bytes, ...]:
    """Digests of the messages up to each assistant turn.

    Logged and supplied definitions are part of what is compared; inferred ones follow from the
    calls and differ between a conversation and its continuation.
    """
    seed = dumps(list(sample.tools)) if tools_source in ("logged", "supplied") else ""
    digest = hashlib.blake2b(seed.encode("utf-8"), digest_size=16).digest()
    prefixes = []
    for role, content in sample.messages:
        text = f"{role}\n{content}".encode()
        digest = hashlib.blake2b(digest + text, digest_size=16).digest()
        if role == "assistant":
            prefixes.append(digest)
    return tuple(prefixes)


def _status(source: Source) -> list[tuple[int, int] | None]:
    """Size and time of change of the files of a source, to see whether one changed meanwhile."""
    status: list[tuple[int, int] | None] = []
    for item in source.members or (source,):
        path: Path | None = item.path
        try:
            seen = path.stat() if path is not None else None
        except OSError:
            seen = None
        status.append((seen.st_size, seen.st_mtime_ns) if seen else None)
    return status


def _digest(source: Source) -> tuple[int, str]:
    """(bytes, sha256) of the file as it lies there; of a store, over its members in order."""
    size = 0
    digest = hashlib.sha256()
    for item in source.members or (source,):
        try:
            for piece in item.raw():
                digest.update(piece)
                size += len(piece)
        except OSError:
            continue  # the reading itself has reported it
    return size, digest.hexdigest()
