"""The output folder: written beside its final place, moved there whole, locked while written."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from builder.conversation import Json
from builder.jsonio import dumps
from builder.parquet import write_parquet
from builder.problem import UsageError

STATE = ".state"
MANIFEST = "manifest.json"


@contextlib.contextmanager
def output_folder(out: Path) -> Iterator[Path]:
    """Lock `out` and give a folder inside it for unfinished work, removed at the end.

    Raises UsageError: `out` is a file, holds files that are not ours, is used by another run, or
    cannot be written.
    """
    try:
        if out.exists() and not out.is_dir():
            raise UsageError(f"output {str(out)!r}: is a file, not a folder")
        ours = (out / MANIFEST).is_file() or (out / STATE).is_dir()
        if out.is_dir() and any(out.iterdir()) and not ours:
            raise UsageError(
                f"output {str(out)!r}: the folder is not empty and was not made by build"
            )
        (out / STATE).mkdir(parents=True, exist_ok=True)
        with (out / STATE / "lock").open("w") as handle:
            if not _lock(handle.fileno()):
                raise UsageError(f"output {str(out)!r}: another run is writing to it")
            work = out / STATE / "work"
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            try:
                yield work
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise UsageError(f"output {str(out)!r}: {error.strerror or error}") from error


def _lock(descriptor: int) -> bool:
    """Take the lock for as long as the file stays open; False: another process has it."""
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 - there is no such module elsewhere

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415 - there is no such module on Windows

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Written:
    """A file of the output: path relative to it, bytes, sha256."""

    path: str
    bytes: int
    sha256: str


class Writer:
    """Writes files into the work folder; `publish` moves them to their names."""

    def __init__(self, work: Path) -> None:
        self.folder = work / "new"
        self.folder.mkdir()
        self.files: list[Written] = []

    def write(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write one file, to the disk and not only to its cache."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        size = 0
        with target.open("wb") as stream:
            for piece in pieces:
                stream.write(piece)
                digest.update(piece)
                size += len(piece)
            stream.flush()
            os.fsync(stream.fileno())
        self.files.append(Written(path, size, digest.hexdigest()))

    def parquet(self, path: str, lines: Iterable[bytes]) -> None:
        """Write lines of data/ as one Parquet file."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        write_parquet(target, lines)
        with target.open("rb+") as stream:
            os.fsync(stream.fileno())
            digest = hashlib.file_digest(stream, "sha256")
        self.files.append(Written(path, target.stat().st_size, digest.hexdigest()))

    def publish(self, out: Path, manifest: dict[str, Json]) -> None:
        """Move all files to their final names, the manifest last; remove what it replaces.

        Of an earlier run only files that its own manifest lists are removed.
        """
        old = _listed(out)
        text = json.dumps(manifest, ensure_ascii=False, indent=1) + "\n"
        self.write(MANIFEST, [text.encode("utf-8", "replace")])
        (out / MANIFEST).unlink(missing_ok=True)
        for item in self.files:
            final = out / item.path
            final.parent.mkdir(parents=True, exist_ok=True)
            (self.folder / item.path).replace(final)
        for path in sorted(old - {item.path for item in self.files}):
            (out / path).unlink(missing_ok=True)


def _listed(out: Path) -> set[str]:
    """Paths that the manifest of an earlier run lists, those only that stay inside `out`."""
    try:
        manifest = json.loads((out / MANIFEST).read_bytes())
        paths = {item["path"] for item in manifest["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    inside = out.resolve()
    return {
        path
        for path in paths
        if isinstance(path, str) and (out / path).resolve().is_relative_to(inside)
    }


@dataclass(frozen=True, slots=True)
class Piece:
    """Where a sample waits: its spool, offset of its line there, sizes of line and meta line."""

    spool: Path
    offset: int
    size: tuple[int, int]


def write_samples(
    writer: Writer,
    pieces: Sequence[Piece],
    *,
    split: str,
    formats: Sequence[str],
    shard_bytes: int,
) -> list[str]:
    """Write data/ and meta/ in the order of `pieces`; returns the paths of the data files."""
    shards = _shards(pieces, shard_bytes)
    paths = []
    for number, shard in enumerate(shards):
        name = f"{split}-{number:05d}-of-{len(shards):05d}"
        for kind in formats:
            path = f"data/{name}.{kind}"
            if kind == "parquet":
                writer.parquet(path, _read(shard, meta=False))
            else:
                writer.write(path, _read(shard, meta=False))
            paths.append(path)
        writer.write(f"meta/{name}.jsonl", _read(shard, meta=True))
    return paths


def _shards(pieces: Sequence[Piece], shard_bytes: int) -> list[list[Piece]]:
    """A file of data/ is closed once it holds `shard_bytes`."""
    shards: list[list[Piece]] = []
    size = shard_bytes
    for piece in pieces:
        if size >= shard_bytes:
            shards.append([])
            size = 0
        shards[-1].append(piece)
        size += piece.size[0]
    return shards


def _read(pieces: Iterable[Piece], *, meta: bool) -> Iterator[bytes]:
    spool: Path | None = None
    stream: BinaryIO | None = None
    try:
        for piece in pieces:
            if piece.spool != spool or stream is None:
                if stream is not None:
                    stream.close()
                spool, stream = piece.spool, piece.spool.open("rb")
            stream.seek(piece.offset + (piece.size[0] if meta else 0))
            yield stream.read(piece.size[1] if meta else piece.size[0])
    finally:
        if stream is not None:
            stream.close()


def json_lines(rows: Iterable[dict[str, Json]]) -> Iterator[bytes]:
    """The rows as lines of JSON."""
    for row in rows:
        yield dumps(row).encode("utf-8", "replace") + b"\n"
