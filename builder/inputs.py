"""From what the user names (files, folders, globs, `-`) to sources, in a fixed order."""

from __future__ import annotations

import glob
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from builder.problem import Problem, UsageError
from builder.readers import readers
from builder.source import Source

MAX_FOLDER_DEPTH = 64


def find_sources(
    spec: str, *, max_record_bytes: int = 256 << 20, stdin: BinaryIO | None = None
) -> Iterator[Source | Problem]:
    """The sources that `spec` names, ordered by name; what cannot be read is a Problem.

    `spec` is a file, a folder (all files below it), a glob or `-` (standard input). A source's
    name is its path relative to the folder that was named, or the file's own name. A folder that
    a reader knows as one store is one source. Symbolic links are followed; a link to a folder
    that it is inside of is a Problem `directory_loop`. Raises UsageError if nothing is there.
    """
    if spec == "-":
        data = (stdin or sys.stdin.buffer).read()
        yield Source("stdin", data=data, max_record_bytes=max_record_bytes)
        return
    path = Path(spec).expanduser()
    if path.is_dir():
        yield from _folder(path, path, (), max_record_bytes)
    elif path.exists():
        yield from _file(path, path.name, max_record_bytes)
    else:
        matches = sorted(glob.glob(str(path), recursive=True)) if glob.has_magic(spec) else []
        if not matches:
            raise UsageError(f"input {spec!r}: no such file or folder")
        root = _glob_root(path)
        for match in map(Path, matches):
            if match.is_file():
                yield from _file(match, match.relative_to(root).as_posix(), max_record_bytes)
            elif not glob.has_magic(path.name) or "**" not in spec:
                yield from _folder(match, root, (), max_record_bytes)


def _glob_root(pattern: Path) -> Path:
    parts = []
    for part in pattern.parts[:-1]:
        if glob.has_magic(part):
            break
        parts.append(part)
    return Path(*parts) if parts else Path()


def _file(path: Path, name: str, limit: int) -> Iterator[Source | Problem]:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        yield Problem("unreadable", name, error.strerror or str(error))
        return
    if not stat.S_ISREG(mode):
        yield Problem("not_a_file", name, "neither a file nor a folder")
        return
    yield Source(name, path, max_record_bytes=limit)


def _folder(
    folder: Path, root: Path, above: tuple[tuple[int, int], ...], limit: int
) -> Iterator[Source | Problem]:
    name = folder.relative_to(root).as_posix()
    try:
        status = folder.stat()
        entries = sorted(os.listdir(folder))
    except OSError as error:
        yield Problem("unreadable", name, error.strerror or str(error))
        return
    identity = (status.st_dev, status.st_ino)
    if identity in above or len(above) > MAX_FOLDER_DEPTH:
        yield Problem("directory_loop", name, "the folder is reached again from inside itself")
        return
    store = _store(folder, name, limit)
    if store is not None:
        yield store
        return
    for entry in entries:
        path = folder / entry
        if path.is_dir():
            yield from _folder(path, root, (*above, identity), limit)
        elif entry.endswith(("-wal", "-shm")) and (folder / entry[:-4]).exists():
            continue  # sqlite's own, read with the database
        else:
            yield from _file(path, path.relative_to(root).as_posix(), limit)


def _store(folder: Path, name: str, limit: int) -> Source | None:
    """The folder as one source if a reader of stores knows it by the names at its top."""
    for reader in readers().values():
        is_store = getattr(reader, "is_store", None)
        if is_store is None or not is_store(folder):
            continue
        members = [
            Source(path.relative_to(folder).as_posix(), path, max_record_bytes=limit)
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        ]
        return Source(name, folder, members=members, max_record_bytes=limit)
    return None
