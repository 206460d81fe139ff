"""Lists the contents of a folder, on this machine or in an object store, by one protocol.

Discovery walks listings and readers recognise stores by them, so the same code handles both.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from builder.problem import Problem
from builder.sources.source import Source
from builder.sources.store import StoredObject

# -- copies objects of a store to this machine so that they can be read ----------------------------

_AT_ONCE = 16
"""Objects whose beginnings are requested at the same time."""


@contextlib.contextmanager
def local_copy(source: Source) -> Iterator[Source]:
    """Yields a copy of the source in a temporary folder, or the source itself if it is local.

    Raises Changed, Gone, UsageError (`builder.sources.store.StoredObject.copy`).
    """
    if not is_remote(source):
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="builder-copy-") as scratch:
        folder = Path(scratch)
        members = [
            _copy(member, folder / f"{number:08d}") for number, member in enumerate(source.members)
        ]
        yield _copy(source, folder / "file", members)


def is_remote(source: Source) -> bool:
    """Returns whether the source is an object in a store, or a folder of objects."""
    return any(item.remote is not None for item in (source, *source.members))


def beginnings(sources: Iterable[Source], size: int) -> Iterator[bytes]:
    """Yields the first `size` bytes of each source, decompressed; reads objects concurrently.

    Raises UsageError if a store cannot be read.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        waiting: deque[Future[bytes]] = deque()
        for source in sources:
            if source.remote is None and not waiting:
                yield source.first(size)
                continue
            waiting.append(pool.submit(source.first, size))
            if len(waiting) >= 2 * _AT_ONCE:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _copy(source: Source, path: Path, members: list[Source] | None = None) -> Source:
    if source.remote is not None:
        source.remote.copy(path)
    limit = source.max_record_bytes
    return Source(source.name, path, members=members or (), max_record_bytes=limit)


def stored_bytes(source: Source) -> int:
    """Returns the stored (compressed) bytes of a source."""
    if source.chunk is not None:
        return source.chunk.bytes
    sizes = 0
    for item in source.members or (source,):
        if item.remote is not None:
            sizes += item.remote.size
        with contextlib.suppress(OSError):
            sizes += item.path.stat().st_size if item.path is not None else 0
    return sizes


_Kind = Literal["file", "folder", "other"]


class Listing(Protocol):
    """A folder. Paths are relative to it, with `/`; "" is the folder itself."""

    @property
    def name(self) -> str:
        """The folder's name, with symbolic links resolved."""

    @property
    def identity(self) -> Hashable:
        """A value that is equal for a folder and for links to it. Raises OSError."""

    def names(self) -> Sequence[str]:
        """Returns the names of the folder's entries, sorted. Raises OSError."""

    def kind(self, path: str) -> _Kind:
        """Returns the kind of the entry at a path. Raises OSError, e.g. FileNotFoundError."""

    def is_file(self, path: str) -> bool:
        """Returns whether a file is at the path; False if that cannot be determined."""
        try:
            return self.kind(path) == "file"
        except OSError:
            return False

    def is_dir(self, path: str) -> bool:
        """Returns whether a folder is at the path; False if that cannot be determined."""
        try:
            return self.kind(path) == "folder"
        except OSError:
            return False

    def first(self, path: str, size: int) -> bytes:
        """Returns the first bytes of a file as stored; b"" if it cannot be read.

        Raises UsageError if the object store cannot be read.
        """

    def folder(self, path: str) -> Listing:
        """Returns the listing of the folder at a path."""

    def is_within(self, path: str, folder: Path) -> bool:
        """Returns whether a path, with links resolved, is inside a folder of this machine."""

    def source(self, path: str, name: str, members: Sequence[Source] = ()) -> Source:
        """Returns the file at a path, or the folder as one store, as a source called `name`."""


@dataclass(frozen=True, slots=True)
class _LocalFolder(Listing):
    path: Path

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def identity(self) -> tuple[int, int]:
        status = self.path.stat()
        return status.st_dev, status.st_ino

    def names(self) -> list[str]:
        return sorted(os.listdir(self.path))

    def kind(self, path: str) -> _Kind:
        mode = (self.path / path).stat().st_mode
        return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"

    def first(self, path: str, size: int) -> bytes:
        if not self.is_file(path):  # opening a pipe would wait for a writer
            return b""
        try:
            with (self.path / path).open("rb") as stream:
                return stream.read(size)
        except OSError:
            return b""

    def folder(self, path: str) -> _LocalFolder:
        return _LocalFolder(self.path / path)

    def is_within(self, path: str, folder: Path) -> bool:
        return (self.path / path).resolve().is_relative_to(folder.resolve())

    def source(self, path: str, name: str, members: Sequence[Source] = ()) -> Source:
        return Source(name, self.path / path, members=members)


@dataclass(frozen=True, slots=True)
class _StoreFolder(Listing):
    """The folder `at` below `root`: `objects` by path, `folders` with the names in each."""

    root: str
    objects: Mapping[str, StoredObject]
    folders: Mapping[str, Sequence[str]]
    at: str = ""

    @property
    def name(self) -> str:
        return (self.at or self.root).rpartition("/")[2] or "store"

    @property
    def identity(self) -> str:
        return self.at

    def names(self) -> Sequence[str]:
        if self.at not in self.folders:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self.at)
        return self.folders[self.at]

    def kind(self, path: str) -> _Kind:
        full = self._full(path)
        if full in self.objects:
            return "file"
        if full in self.folders:
            return "folder"
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), full)

    def first(self, path: str, size: int) -> bytes:
        item = self.objects.get(self._full(path))
        if item is None:
            return b""
        with item.open() as stream:
            return stream.read(size)

    def folder(self, path: str) -> _StoreFolder:
        return _StoreFolder(self.root, self.objects, self.folders, self._full(path))

    def is_within(self, path: str, folder: Path) -> bool:
        return False

    def source(self, path: str, name: str, members: Sequence[Source] = ()) -> Source:
        item = self.objects.get(self._full(path))
        return Source(name, remote=item, members=members)

    def _full(self, path: str) -> str:
        return f"{self.at}/{path}" if self.at and path else self.at or path


def local_listing(folder: Path) -> Listing:
    """Returns the listing of a folder of this machine."""
    return _LocalFolder(folder)


def store_listing(root: str, objects: Mapping[str, StoredObject]) -> tuple[Listing, list[Problem]]:
    """Returns a listing of the objects below `root`, and a Problem for each impossible name.

    Impossible names have an empty part, `.` or `..`, or have the name of another object as their
    folder.
    """
    files: dict[str, StoredObject] = {}
    folders: dict[str, set[str]] = {"": set()}
    problems: list[Problem] = []
    for name, item in sorted(objects.items()):  # a name comes before longer ones
        parts = name.split("/")
        above = ["/".join(parts[:depth]) for depth in range(len(parts))]
        if {"", ".", ".."}.isdisjoint(parts) and files.keys().isdisjoint(above):
            files[name] = item
            for folder, part in zip(above, parts, strict=True):
                folders.setdefault(folder, set()).add(part)
        else:
            detail = "no file can have this name, or not together with the others"
            problems.append(Problem("unreadable", name, detail))
    below = {folder: sorted(names) for folder, names in folders.items()}
    return _StoreFolder(root, files, below), problems
