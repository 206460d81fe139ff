"""Manages the output folder: locks it, and moves finished files to their final names."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

from builder.output.manifest import MANIFEST, FileEntry, Manifest
from builder.output.parquet import ParquetFile
from builder.paths import file_inside
from builder.problem import UsageError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZSTD_LEVEL = 3
"""Writes 225 MB/s on one core; a higher level saves little."""

STATE = ".state"


@contextlib.contextmanager
def output_folder(out: Path) -> Iterator[Path]:
    """Locks `out` and yields a folder inside it for unfinished work, which is removed at the end.

    Finished results (`builder.build.results`) are stored next to that folder and are kept.

    Raises UsageError if `out` is a file, contains files that are not ours, is used by another run,
    or cannot be written.
    """
    try:
        if out.is_symlink() and not out.exists():
            raise UsageError(f"output {str(out)!r}: is a broken link")
        if out.exists() and not out.is_dir():
            raise UsageError(f"output {str(out)!r}: is a file, not a folder")
        ours = (out / MANIFEST).is_file() or (out / STATE).is_dir()
        if out.is_dir() and any(out.iterdir()) and not ours:
            raise UsageError(
                f"output {str(out)!r}: the folder is not empty and was not made by build"
            )
        (out / STATE).mkdir(parents=True, exist_ok=True)
        with FileLock(out / STATE / "lock", timeout=0):
            work = out / STATE / "work"
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            try:
                yield work
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except Timeout:
        raise UsageError(f"output {str(out)!r}: another run is writing to it") from None
    except OSError as error:
        raise UsageError(f"output {str(out)!r}: {error.strerror or error}") from error


class Writer:
    """Writes files into the work folder; `publish` moves them to their names."""

    def __init__(self, work: Path) -> None:
        self.folder = work / "new"
        shutil.rmtree(self.folder, ignore_errors=True)  # what an earlier writer left
        self.folder.mkdir(parents=True)
        self.files: list[FileEntry] = []

    def write(self, path: str, pieces: Iterable[bytes]) -> None:
        """Writes one file, flushed to the disk."""
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
        self.files.append(FileEntry(path=path, bytes=size, sha256=digest.hexdigest()))

    def take(self, path: str) -> None:
        """Flushes a file that other code has written into the folder, and records it."""
        with (self.folder / path).open("rb+") as stream:
            os.fsync(stream.fileno())
            digest = hashlib.file_digest(stream, "sha256")
            size = stream.tell()
        self.files.append(FileEntry(path=path, bytes=size, sha256=digest.hexdigest()))

    def publish(self, out: Path, manifest: Manifest) -> None:
        """Moves all files to their final names, the manifest last.

        Removes the files of an earlier run, but only those that its own manifest lists.
        """
        old = _listed(out)
        self.write(MANIFEST, [manifest.content])
        (out / MANIFEST).unlink(missing_ok=True)
        for item in self.files:
            final = out / item.path
            final.parent.mkdir(parents=True, exist_ok=True)
            (self.folder / item.path).replace(final)
        for path in sorted(old - {item.path for item in self.files}):
            (out / path).unlink(missing_ok=True)


def _listed(out: Path) -> set[str]:
    """Returns the files of an earlier run's manifest that are in `out`, outside of its state."""
    state = out.resolve() / STATE
    files = {item.path: file_inside(out, item.path) for item in Manifest.of(out).files}
    return {path for path, file in files.items() if file and not file.is_relative_to(state)}


def _create(path: Path, *, weighted: bool, beside: bool) -> BinaryIO | ParquetFile | zstd.ZstdFile:
    """Creates a file of the kind that its suffix names."""
    if path.suffix == ".parquet":
        return ParquetFile(path, weighted=weighted, beside=beside)
    if path.suffix == ".zst":
        return zstd.ZstdFile(path, "wb", level=ZSTD_LEVEL)
    return path.open("wb")


class SplitWriter:
    """Writes the samples of one split: data/ in every requested kind, and meta/.

    A shard is closed once its lines reach `shard_bytes`. The shards are named at the end, since
    their names contain their number.
    """

    def __init__(
        self,
        writer: Writer,
        split: str,
        suffixes: Sequence[str],
        shard_bytes: int,
        *,
        weighted: bool = False,
        beside: bool = False,
    ) -> None:
        self._weighted = weighted
        self._beside = beside
        self.writer = writer
        self.split = split
        self.suffixes = suffixes
        self.shard_bytes = shard_bytes
        self._shards = 0
        self._size = 0
        self._open: dict[str, BinaryIO | ParquetFile | zstd.ZstdFile] = {}

    def add(self, line: bytes, meta: bytes) -> None:
        """Writes one sample; both lines end with a newline."""
        if not self._open or self._size >= self.shard_bytes:
            self._next()
        for key, stream in self._open.items():
            stream.write(meta if key == "meta" else line)
        self._size += len(line)

    def close(self) -> list[str]:
        """Names the files; returns the paths of those in data/, in the order of the kinds."""
        self._end()
        paths = [
            self._name("data", number, kind)
            for kind in self.suffixes
            for number in range(self._shards)
        ]
        for number in range(self._shards):
            self._name("meta", number, "jsonl")
        return paths

    def _next(self) -> None:
        self._end()
        for kind in self.suffixes:
            self._open[kind] = _create(
                self._path("data", self._shards, kind), weighted=self._weighted, beside=self._beside
            )
        self._open["meta"] = self._path("meta", self._shards, "jsonl").open("wb")
        self._shards += 1
        self._size = 0

    def _end(self) -> None:
        for stream in self._open.values():
            stream.close()
        self._open.clear()

    def _path(self, part: str, number: int, kind: str) -> Path:
        folder = self.writer.folder / part
        folder.mkdir(exist_ok=True)
        return folder / f"{self.split}-{number:05d}.{kind}"

    def _name(self, part: str, number: int, kind: str) -> str:
        name = f"{part}/{self.split}-{number:05d}-of-{self._shards:05d}.{kind}"
        self._path(part, number, kind).replace(self.writer.folder / name)
        self.writer.take(name)
        return name
