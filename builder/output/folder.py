"""Manages the output folder: locks it, and moves finished files to their final names."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

from builder.distribution import DISTRIBUTION
from builder.output.manifest import MANIFEST, FileEntry, Manifest
from builder.output.rows import Feature, ParquetFile, row_file
from builder.paths import expand_home, file_inside
from builder.problem import UsageError
from builder.sources.store import connect, faults

SHARD_BYTES = 256 << 20
"""A file of data/ is closed once its samples reach this size."""

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


def changed_files(folder: Path, manifest: Manifest, *parts: str) -> dict[str, str]:
    """Returns {path: how it differs from the manifest} of listed files, and others below `parts`.

    The state of a build is none of them. The manifest may be hostile.
    """
    listed = {item.path: item.sha256 for item in manifest.files}
    found = (path for part in parts for path in (folder / part).rglob("*") if not path.is_dir())
    present = {path.relative_to(folder).as_posix() for path in found}
    changed: dict[str, str] = {}
    for name in sorted(present | listed.keys()):
        path = file_inside(folder, name)
        if name in listed and path is None:
            changed[name] = "listed in the manifest but missing"
        elif name in listed and path is not None and _sha256(path) != listed[name]:
            changed[name] = "differs from the manifest"
        elif name not in listed and name != MANIFEST and not name.startswith(f"{STATE}/"):
            changed[name] = "not listed in the manifest"
    return changed


def _sha256(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def _listed(out: Path) -> set[str]:
    state = out.resolve() / STATE
    files = {item.path: file_inside(out, item.path) for item in Manifest.of(out).files}
    return {path for path, file in files.items() if file and not file.is_relative_to(state)}


class SplitWriter:
    """Writes the samples of one split: data/ in every requested kind, and meta/.

    The shards are named at the end, since their names contain their number.
    """

    def __init__(
        self, writer: Writer, split: str, kinds: Sequence[str], features: Sequence[Feature]
    ) -> None:
        self._features = features
        self.writer = writer
        self.split = split
        self.kinds = kinds
        self._shards = 0
        self._size = 0
        self._open: dict[str, BinaryIO | ParquetFile] = {}

    def add(self, line: bytes, meta: bytes) -> None:
        """Writes one sample; both lines end with a newline."""
        if not self._open or self._size >= SHARD_BYTES:
            self._next()
        for key, stream in self._open.items():
            stream.write(meta if key == "meta" else line)
        self._size += len(line)

    def close(self) -> list[str]:
        """Names the files; returns the paths of those in data/, in the order of the kinds."""
        self._end()
        paths = [
            self._name("data", number, kind)
            for kind in self.kinds
            for number in range(self._shards)
        ]
        for number in range(self._shards):
            self._name("meta", number, "jsonl")
        return paths

    def _next(self) -> None:
        self._end()
        for kind in self.kinds:
            self._open[kind] = row_file(self._path("data", self._shards, kind), self._features)
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


# -- makes files and folders appear complete or not at all -----------------------------------------

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG})


@contextlib.contextmanager
def folder_aside(
    out: Path,
    *,
    replaceable: Callable[[Path], bool] = lambda _: False,
    hint: Callable[[Path], str] = lambda _: "",
) -> Iterator[Path]:
    """Yields a scratch folder on the file system of `out`; `put_in_place` moves a result from it.

    It is next to `out` and its name depends only on `out`, so that the next run removes the remains
    of a killed one. It is removed at the end. `replaceable` says whether a folder with content may
    be replaced, `hint` what to do about one that is not empty. Raises UsageError if `out` is
    another folder that is not empty, cannot be written, or is being written by another process.
    """
    scratch = out.absolute().parent / f".{out.name}.partial"
    with _write_faults(out):
        is_free = not (out.exists() or out.is_symlink()) or (
            out.is_dir() and (not any(out.iterdir()) or replaceable(out))
        )
        if not is_free:
            raise UsageError(f"output {str(out)!r}: is not an empty folder{hint(out)}", fresh=True)
        scratch.mkdir(parents=True, exist_ok=True)
        lock = FileLock(scratch / "lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise UsageError(f"output {str(out)!r}: another run is writing to it") from None
        for left in scratch.iterdir():
            if left.name != "lock":
                _remove(left)
    try:
        with _write_faults(out, scratch):
            yield scratch
    finally:
        lock.release()
        shutil.rmtree(scratch, ignore_errors=True)


def put_in_place(finished: Path, out: Path) -> None:
    """Moves a complete folder to its final path; what is there goes to the scratch folder."""
    if out.is_dir() and any(out.iterdir()):
        out.replace(finished.with_name("replaced"))
    elif out.is_dir():
        out.rmdir()
    finished.replace(out)


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file into a folder that exists; an earlier one stays until it is complete.

    Raises UsageError if it cannot be written.
    """
    with _write_faults(path):
        if path.exists() and not path.is_file():
            path.write_bytes(data)  # a pipe or a device, such as /dev/stdout
            return
        target = path.resolve()  # for a link, the file it points to is replaced, not the link
        partial = target.with_name(f".{target.name}.partial")
        try:
            with partial.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)


@contextlib.contextmanager
def _write_faults(out: Path, scratch: Path | None = None) -> Iterator[None]:
    """Turns errors of the system into usage errors.

    If there is a scratch folder, errors about other paths are passed on, unless they concern the
    space on the disk: they come from reading, or are bugs.
    """
    try:
        yield
    except OSError as error:
        named = str(error.filename or "")
        if scratch and error.errno not in _FULL and not named.startswith((str(scratch), str(out))):
            raise
        raise UsageError(f"output {str(out)!r}: {error.strerror or error}") from error


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


# -- writes an output folder to an object store through fsspec -------------------------------------

MARK = "made-by-builder"


@dataclass(frozen=True, slots=True)
class RemoteOutput:
    """The folder at `url`; `shares`: workers on other machines store their results there too."""

    url: str
    shares: bool = False

    @property
    def local_folder(self) -> Path:
        """Returns the local folder in which the dataset is made.

        Raises UsageError if there is no home folder.
        """
        cache = expand_home(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
        if cache.parts[:1] == ("~",):
            raise UsageError(f"output {self.url!r}: no home folder for a cache: set XDG_CACHE_HOME")
        name = hashlib.sha256(self.url.rstrip("/").encode()).hexdigest()[:16]
        return cache / DISTRIBUTION / name

    @property
    def store(self) -> str | None:
        """Returns the address at which workers store their results."""
        return self._at(STATE) if self.shares else None

    def check(self) -> None:
        """Raises UsageError if the folder cannot be written or was not made by this program."""
        with faults(self.url, "written"):
            system, path = connect(self.url)
            system.invalidate_cache()
            ours = any(system.exists(self._path(name)) for name in (MANIFEST, f"{STATE}/{MARK}"))
            if not ours and system.exists(path) and system.ls(path):
                raise UsageError(
                    f"output {self.url!r}: the folder is not empty and was not made by build"
                )
            with tempfile.NamedTemporaryFile() as empty:
                system.put_file(empty.name, self._path(f"{STATE}/{MARK}"))

    def upload(self, folder: Path) -> None:
        """Uploads the finished dataset, then removes the local copy. Raises UsageError."""
        files = [item.path for item in Manifest.of(folder).files]
        old = self._listed()
        with faults(self.url, "written"):
            system, _ = connect(self.url)
            if system.exists(self._path(MANIFEST)):
                system.rm_file(self._path(MANIFEST))
            for name in (*files, MANIFEST):
                if name == MANIFEST:
                    self._remove(old - set(files))
                system.put_file(str(folder / name), self._path(name))
        for item in folder.iterdir():
            if item.name != STATE:
                shutil.rmtree(item) if item.is_dir() else item.unlink()

    def _at(self, name: str) -> str:
        return f"{self.url.rstrip('/')}/{name}"

    def _path(self, name: str) -> str:
        return connect(self._at(name))[1]

    def _listed(self) -> set[str]:
        """Returns the paths in the store's manifest that are below the folder."""
        with faults(self.url, "read"):
            system, _ = connect(self.url)
            path = self._path(MANIFEST)
            manifest = system.cat_file(path) if system.exists(path) else b""
        return {item.path for item in Manifest.decode(manifest).files if _is_below(item.path)}

    def _remove(self, names: set[str]) -> None:
        system, _ = connect(self.url)
        for name in sorted(names):
            if system.exists(self._path(name)):
                system.rm_file(self._path(name))


def _is_below(name: str) -> bool:
    parts = name.split("/")
    return parts[0] != STATE and not any(part in ("", ".", "..") for part in parts)
