"""Finds the sources that inputs name (files, folders, globs, `-`), in a fixed order."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from builder.paths import expand_home
from builder.problem import Problem, UsageError
from builder.readers import Reader, readers
from builder.sources.source import Source
from builder.sources.store import (
    StoredObject,
    is_hub_name,
    is_url,
    list_objects,
    local_path,
    placeholder_tree,
)
from builder.sources.table import hub_table

MAX_FOLDER_DEPTH = 200

Identities = tuple[tuple[int, int], ...]
"""(device, inode) of the folders above: symbolic links may lead back into one of them."""


def find_sources(
    spec: str,
    *,
    base: Path | None = None,
    max_record_bytes: int = 256 << 20,
    stdin: BinaryIO | None = None,
    without: Path | None = None,
) -> Iterator[Source | Problem]:
    """Yields the sources that `spec` names, ordered by name; what cannot be read is a Problem.

    `spec` is a file, a folder (all files below it), a glob (`**` is any number of folders; as in a
    shell, `*` does not match a leading dot), one of these in a store (`s3://BUCKET/…`, whatever
    fsspec reads), `-` (standard input) or a dataset on the Hub (`hf://OWNER/NAME[@REVISION]`).
    Paths are relative to `base`. Nothing in the folder `without` is read. A source's name is its
    path relative to the folder that was named, or the file's own name. A folder that a reader knows
    as one store is one source. Symbolic links are followed; a folder that links lead to twice is
    read once, and a link to a folder that it is inside of is a Problem `directory_loop`. Raises
    UsageError if nothing is there.
    """
    if not spec:  # as a shell writes a variable that is not set: not the current folder
        raise UsageError("input '': names nothing")
    if spec.startswith("hf://"):
        table = hub_table(spec)
        name = f"{table.repository}@{table.commit}"
        yield Source(name, table=table, max_record_bytes=max_record_bytes)
        return
    if spec == "-":
        data = (stdin or sys.stdin.buffer).read()
        yield Source("stdin", data=data, max_record_bytes=max_record_bytes)
        return
    spec = local_path(spec)
    if is_url(spec):
        yield from _remote(spec, max_record_bytes)
        return
    pattern = expand_home(spec)
    path = (base or Path()) / pattern
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if not glob.has_magic(str(pattern)):
            if path.is_symlink():
                raise UsageError(f"input {spec!r}: a link to what is not there") from None
            known = f"; for the Hub's dataset: hf://{spec}" if is_hub_name(spec) else ""
            raise UsageError(f"input {spec!r}: no such file or folder{known}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"input {spec!r}: {_reason(error)}") from error
    else:
        root = path if stat.S_ISDIR(mode) else path.parent
        walk = _Walk(root, max_record_bytes, seen=_identity(without))
        yield from _entry(path, walk, ())
        return
    yield from _glob(spec, base or Path(), pattern, max_record_bytes, without)


def _remote(spec: str, limit: int) -> Iterator[Source | Problem]:
    """Yields what `spec` names in a store, by the rules for folders."""
    listing = list_objects(spec)
    heads = frozenset(reader.store_file for reader in readers().values() if reader.store_file)
    with placeholder_tree(listing, heads) as (folder, files, problems):
        yield from problems
        if not files:
            return
        try:
            for item in find_sources(str(folder / listing.wanted), max_record_bytes=limit):
                yield _at(item, files) if isinstance(item, Source) else item
        except UsageError:
            raise UsageError(f"input {spec!r}: nothing matches the pattern") from None


def _at(source: Source, files: dict[Path, StoredObject]) -> Source:
    """Maps a placeholder source back to its object in the store."""
    remote = files.get(source.path) if source.path is not None else None
    members = [_at(member, files) for member in source.members]
    limit = source.max_record_bytes
    return Source(source.name, remote=remote, members=members, max_record_bytes=limit)


@dataclass(frozen=True, slots=True)
class _Walk:
    """The constants of a walk, the folders that were read, and the files to skip."""

    root: Path
    limit: int
    stores: bool = True
    seen: set[tuple[int, int]] = field(default_factory=set)
    taken: frozenset[Path] = frozenset()


def _identity(folder: Path | None) -> set[tuple[int, int]]:
    """Returns (device, inode) of the folder, if there is one."""
    if folder is None or not folder.is_dir():
        return set()
    status = folder.stat()
    return {(status.st_dev, status.st_ino)}


def _glob(
    spec: str, base: Path, pattern: Path, limit: int, without: Path | None
) -> Iterator[Source | Problem]:
    """Yields what a pattern matches; below a folder that it matches, everything."""
    parts = pattern.parts
    plain = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    root = base.joinpath(*parts[:plain])
    matches: set[Path] = set()
    for item in _expand(root, parts[plain:], ()):
        if isinstance(item, Problem):
            yield item
        else:
            matches.add(item)
    if without is not None:
        left = without.resolve()
        matches = {item for item in matches if not item.resolve().is_relative_to(left)}
    if not matches:
        raise UsageError(f"input {spec!r}: nothing matches the pattern")
    walk = _Walk(root, limit, seen=_identity(without))
    taken: set[Path] = set()
    for match in sorted(matches):
        if taken.isdisjoint(match.parents):
            taken.add(match)
            yield from _entry(match, walk, ())


def _expand(folder: Path, parts: tuple[str, ...], above: Identities) -> Iterator[Path | Problem]:
    """Yields the paths below `folder` that match the pattern's parts."""
    if not parts:
        yield folder
        return
    head, rest = parts[0], parts[1:]
    if not glob.has_magic(head):
        if (folder / head).exists():
            yield from _expand(folder / head, rest, above)
        return
    try:
        status = folder.stat()
        names = [name for name in os.listdir(folder) if head[0] == "." or name[0] != "."]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield Problem("unreadable", _name(folder), _reason(error))
        return
    if head != "**":
        for name in fnmatch.filter(names, head):
            yield from _expand(folder / name, rest, above)
        return
    identity = (status.st_dev, status.st_ino)
    if identity in above or len(above) > MAX_FOLDER_DEPTH:
        return
    yield from _expand(folder, rest, above)
    for name in names:
        if (folder / name).is_dir():
            yield from _expand(folder / name, parts, (*above, identity))


def _entry(path: Path, walk: _Walk, above: Identities) -> Iterator[Source | Problem]:
    """Yields the sources at a path, whatever is there."""
    name = _name(path.relative_to(walk.root))
    if path in walk.taken:
        return
    try:
        mode = path.stat().st_mode
    except OSError as error:
        yield Problem("unreadable", name, _reason(error))
        return
    if stat.S_ISDIR(mode):
        yield from _folder(path, walk, above)
    elif stat.S_ISREG(mode):
        yield Source(name, path, max_record_bytes=walk.limit)
    else:
        yield Problem("not_a_file", name, "neither a file nor a folder")


def _folder(folder: Path, walk: _Walk, above: Identities) -> Iterator[Source | Problem]:
    name = _name(folder.relative_to(walk.root))
    try:
        status = folder.stat()
        entries = sorted(os.listdir(folder))
        store = walk.stores and bool(_stores(folder))
    except OSError as error:
        yield Problem("unreadable", name, _reason(error))
        return
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        yield Problem("directory_loop", name, "the folder is reached again from inside itself")
    elif len(above) > MAX_FOLDER_DEPTH:
        yield Problem("too_deep", name, f"more than {MAX_FOLDER_DEPTH} folders deep")
    elif identity in walk.seen:
        pass  # its files were read under another name
    elif store:
        walk.seen.add(identity)
        yield from _store(folder, folder.resolve().name if folder == walk.root else name, walk)
    else:
        walk.seen.add(identity)
        names = set(entries)
        for entry in entries:
            if entry.endswith(("-wal", "-shm")) and entry[:-4] in names:
                continue  # sqlite's own, read with the database
            yield from _entry(folder / entry, walk, (*above, identity))


def _stores(folder: Path) -> list[Reader]:
    """Returns the readers of stores that recognise the folder by the names at its top."""
    return [item for item in readers().values() if item.is_store and item.is_store(folder)]


def _store(folder: Path, name: str, walk: _Walk) -> Iterator[Source | Problem]:
    """Yields the folder as one source, a Problem for what cannot be read of it, and what is left.

    What is left are the files that a store which is not exclusive does not hold.
    """
    reader = next((reader for reader in _stores(folder) if reader.holds), None)
    holds = reader.holds if reader is not None else None
    members: list[Source] = []
    for item in _folder(folder, _Walk(folder, walk.limit, stores=False), ()):
        if isinstance(item, Problem):
            yield Problem(item.code, f"{name}/{item.where}", item.detail)
        elif holds is None or holds(item.name):
            members.append(item)
    yield Source(name, folder, members=members, max_record_bytes=walk.limit)
    if reader is None or reader.exclusive:
        return
    taken = frozenset(member.path for member in members if member.path is not None)
    rest = _Walk(walk.root, walk.limit, seen=walk.seen, taken=taken)
    for entry in sorted(os.listdir(folder)):
        yield from _entry(folder / entry, rest, ())


def _name(path: Path) -> str:
    """Returns the path as text with `/`; bytes of a name that are not UTF-8 become escapes."""
    return os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
