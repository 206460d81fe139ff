"""Stores the result of one task in `OUT/.state/results` for later runs.

A result is named by a digest of everything that it depends on, and appears by one rename. A file
contains, in order:

- for each proven sample, its line and its meta line
- a line for each conversation (`ConversationEntry`)
- lines of rejects.jsonl
- the counts, as JSON (`ResultSummary`)
- the sizes of these four, a checksum over all of them (CRC-32), and a magic number
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO

from builder.conversation import Json
from builder.dataset.rejects import Reject
from builder.jsonio import JsonFault, dumps, loads
from builder.ledger import Ledger
from builder.problem import Problem
from builder.scrub.redact import Scrubber
from builder.select.table import ConversationEntry
from builder.sources.store import connect, faults

_END = struct.Struct("<4QL8s")
_MARK = b"builder9"
_BUFFER_BYTES = 1 << 20
"""Bytes of entries, and of rejects, that are buffered in memory before a file is used."""


@dataclass(slots=True)
class ResultSummary:
    """The counts of a result.

    `bytes` and `sha256` describe the file as stored, `log_bytes` and `log_sha256` the write-ahead
    log that was read with a database. `keyed` identifies the key of its replacements for secrets;
    "" if it has none. `tool_use` counts how its sessions use tools (`builder.normalize.tools`).
    `answers` are the keys of its answers (`SeenAnswers`, of agents' logs and captures alone).
    `siblings` are the other files of the folder that were read, {name: sha256}; "" for one that did
    not exist. `pairs_left_out` counts the uncertain preference pairs that no entry names, by code.
    `is_scan`: it has nothing else, since its sessions need the tools of other sessions.
    """

    name: str
    format: str | None = None
    bytes: int = 0
    sha256: str = ""
    log_bytes: int = 0
    log_sha256: str = ""
    siblings: dict[str, str] = field(default_factory=dict)
    pairs_left_out: dict[str, int] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    samples: int = 0
    rejects: int = 0
    bugs: int = 0
    keyed: str = ""
    tool_use: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    is_scan: bool = False


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """A finished result. `sizes` are those of its samples, entries and rejects, in bytes.

    `weight` is the share of its conversations to select.
    """

    path: Path
    summary: ResultSummary
    sizes: tuple[int, int, int]
    weight: float = 1.0

    def entries(self) -> Iterator[ConversationEntry]:
        """Yields the entries, in order."""
        return map(ConversationEntry.from_json, self._lines(self.sizes[0], self.sizes[1]))

    def rejects(self) -> Iterator[bytes]:
        """Yields the lines for rejects.jsonl, newlines included."""
        return self._lines(self.sizes[0] + self.sizes[1], self.sizes[2])

    def samples(self) -> Iterator[tuple[bytes, bytes]]:
        """Yields (line, meta line) of each proven sample, newlines included."""
        lines = self._lines(0, self.sizes[0])
        return zip(lines, lines, strict=True)

    def _lines(self, start: int, size: int) -> Iterator[bytes]:
        if not size:
            return
        with self.path.open("rb") as stream:
            stream.seek(start)
            while size > 0:
                line = stream.readline()
                size -= len(line)
                yield line


class ResultWriter:
    """Writes a result. Use as a context manager; `keep` completes it.

    `scrubber` removes secrets and personal data from the texts of rejects, and from others that
    are written to it.
    """

    def __init__(self, path: Path, summary: ResultSummary, scrubber: Scrubber) -> None:
        self.path = path
        self.summary = summary
        self.scrubber = scrubber
        self.first_code: str | None = None
        self._checksum = 0
        self._stack = ExitStack()

    def __enter__(self) -> ResultWriter:
        """Starts an empty result, discarding anything that an earlier attempt left."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        folder = str(self.path.parent)
        opened = self._stack.enter_context
        self._file: BinaryIO = opened(self.path.open("wb"))
        self._entries = opened(SpooledTemporaryFile(_BUFFER_BYTES, dir=folder))
        self._rejects = opened(SpooledTemporaryFile(_BUFFER_BYTES, dir=folder))
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the files."""
        self._stack.close()

    def sample(self, line: bytes, meta: bytes) -> None:
        """Adds a proven sample."""
        self._write(line)
        self._write(meta)
        self.summary.samples += 1

    def entry(self, entry: ConversationEntry) -> None:
        """Adds the entry of a conversation."""
        self._entries.write(entry.to_json() + b"\n")

    def reject(self, problem: Problem) -> None:
        """Adds a line for rejects.jsonl."""
        self.first_code = self.first_code or problem.code
        name, problem = self.scrubber.file_name(self.summary.name), self.scrubber.problem(problem)
        reject = Reject.of(problem, name, self.summary.format, problem.where)
        self._rejects.write(reject.line)
        self.summary.rejects += 1

    def reject_row(self, row: Json) -> None:
        """Adds a line of another dataset's rejects.jsonl."""
        self._rejects.write(dumps(row).encode("utf-8", "replace") + b"\n")
        self.summary.rejects += 1

    def keep(self, final: Path | None) -> ChunkResult:
        """Completes the result and moves it to `final`, or leaves it in place if that is None."""
        sizes = (self._file.tell(), self._entries.tell(), self._rejects.tell())
        for buffer in (self._entries, self._rejects):
            buffer.seek(0)
            while piece := buffer.read(_BUFFER_BYTES):
                self._write(piece)
        encoded = json.dumps(self.summary, default=_fields).encode()
        self._write(encoded)
        self._file.write(_END.pack(*sizes, len(encoded), self._checksum, _MARK))
        self._stack.close()
        if final is None:
            return ChunkResult(self.path, self.summary, sizes)
        existing = find_result(final)
        if existing is not None and existing.summary == self.summary:
            # Written by a worker that was considered lost; it may already be in use.
            self.path.unlink()
            return existing
        final.parent.mkdir(parents=True, exist_ok=True)
        self.path.replace(final)
        return ChunkResult(final, self.summary, sizes)

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._checksum = zlib.crc32(data, self._checksum)


def _fields(item: ResultSummary | Ledger) -> dict[str, Any]:
    # `asdict` cannot copy a Counter.
    return {one.name: getattr(item, one.name) for one in fields(item)}


def find_result(path: Path) -> ChunkResult | None:
    """Returns the result at a path; None unless it is complete and undamaged."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)

            def last(count: int) -> bytes:
                stream.seek(max(size - count, 0))
                return stream.read(count)

            end = _read_end(last, size)
            if end is None or not _is_sound(stream, size):
                return None
    except OSError:
        return None
    return ChunkResult(path, *end)


def _is_sound(stream: BinaryIO, size: int) -> bool:
    """Returns whether the checksum of the file is correct."""
    stream.seek(0)
    remaining = size - _END.size
    checksum = 0
    while piece := stream.read(min(remaining, _BUFFER_BYTES)):
        checksum = zlib.crc32(piece, checksum)
        remaining -= len(piece)
    *_, stored, _ = _END.unpack(stream.read(_END.size))
    return remaining == 0 and checksum == stored


def _read_end(
    last: Callable[[int], bytes], size: int
) -> tuple[ResultSummary, tuple[int, int, int]] | None:
    """Returns (counts, sizes) of a result file of `size` bytes; None if it is incomplete.

    `last(n)` returns the last n bytes of the file.
    """
    try:
        *sizes, encoded, _, mark = _END.unpack(last(_END.size))
        if mark != _MARK or sum(sizes) + encoded + _END.size != size:
            return None
        summary: Any = loads(last(encoded + _END.size)[:encoded])
        counts: dict[str, Any] = {
            key: Counter(value) if isinstance(value, dict) else value
            for key, value in summary.pop("ledger").items()
        }
        samples, entries, rejects = sizes
        counted = ResultSummary(**summary, ledger=Ledger(**counts))
    except (JsonFault, KeyError, TypeError, ValueError, AttributeError, struct.error):
        return None
    return counted, (samples, entries, rejects)


# -- keeps results in the state folder of an object store ------------------------------------------


def put_result(result: Path, url: str) -> None:
    """Uploads a result. Raises UsageError."""
    with faults(url, "written"):
        system, path = connect(url)
        system.put_file(str(result), path)


def stored_result(url: str, final: Path) -> ChunkResult | None:
    """Returns the result in the store; None if there is none or it is incomplete.

    Raises UsageError.
    """
    with faults(url, "read"):
        system, path = connect(url)
        system.invalidate_cache()
        try:
            size = system.size(path)
            end = _read_end(lambda count: bytes(system.cat_file(path, start=-count)), size)
        except FileNotFoundError:
            return None
    return ChunkResult(final, *end) if end is not None else None


def fetch_result(result: ChunkResult, url: str, scratch: Path) -> ChunkResult:
    """Returns the result with a local file, downloaded if needed. Raises UsageError."""
    local = find_result(result.path)
    if local is not None and local.summary == result.summary:
        return local
    with faults(url, "read"):
        system, path = connect(url)
        system.invalidate_cache()
        system.get_file(path, str(scratch))
    result.path.parent.mkdir(parents=True, exist_ok=True)
    scratch.replace(result.path)
    return result


def prune_results(store: str, results: Iterable[ChunkResult]) -> None:
    """Removes the results that the run did not use, and unfinished work. Raises UsageError.

    `store` is the address of the state folder (`RemoteOutput.store`).
    """
    used = {"/".join(result.path.parts[-2:]) for result in results}
    with faults(store, "written"):
        system, root = connect(f"{store}/results")
        system.invalidate_cache()
        for path in system.find(root) if system.exists(root) else ():
            if "/".join(path.split("/")[-2:]) not in used:
                system.rm_file(path)
        _, work = connect(f"{store}/work")
        if system.exists(work):
            system.rm(work, recursive=True)
