"""Finds the sources that inputs name (files, folders, globs, `-`), in a fixed order."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
import sys
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from builder.jsonio import dumps
from builder.paths import COLLECT_STATE, expand_home
from builder.problem import Problem, UsageError
from builder.readers import Reader, readers, recognise
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.readers.toolkit.places import unique_name
from builder.sources.listing import Listing, local_listing, store_listing
from builder.sources.source import Source
from builder.sources.store import is_hub_name, is_url, list_objects, local_path
from builder.sources.table import hub_table

MAX_FOLDER_DEPTH = 200

Identities = tuple[Hashable, ...]
"""Identities of the parent folders: symbolic links may lead back into one of them."""


def find_sources(
    spec: str, *, base: Path | None = None, without: Path | None = None
) -> Iterator[Source | Problem]:
    """Yields the sources that `spec` names, ordered by name, and a Problem for each unreadable one.

    `spec` is a file, a folder (all files below it), a glob (`**` matches any number of folders; as
    in a shell, `*` does not match a leading dot), one of these in an object store (any URL that
    fsspec reads, such as `s3://BUCKET/…`), `-` (standard input) or a dataset on the Hub
    (`hf://OWNER/NAME[@REVISION]`). Paths are relative to `base`. The folder `without` is skipped. A
    source's name is its path relative to the named folder, or the file's own name. A folder that a
    reader recognises as a store is one source. Symbolic links are followed: a folder that is
    reached twice is read once, and a link to a parent folder is a Problem `directory_loop`. Raises
    UsageError if nothing is there or the named folder cannot be listed. A table whose rows hold
    whole sessions of agents (the Hub's traces) is a source for each row.
    """
    for source in _found(spec, base, without):
        column = None if isinstance(source, Problem) else _session_column(source)
        if column is None or isinstance(source, Problem):
            yield source
        else:
            yield from _sessions(source, column)


def _found(spec: str, base: Path | None, without: Path | None) -> Iterator[Source | Problem]:
    if not spec:  # probably an unset variable of the shell; it must not mean the current folder
        raise UsageError("input '': names nothing")
    if spec.startswith("hf://"):
        table = hub_table(spec)
        name = f"{table.repository}@{table.commit}"
        if table.is_raw:
            yield from _stored(f"hf://datasets/{name}")
        else:
            yield Source(name, table=table)
        return
    if spec == "-":
        yield Source("stdin", data=sys.stdin.buffer.read())
        return
    spec = local_path(spec)
    if is_url(spec):
        yield from _stored(spec)
    else:
        yield from _local(spec, base or Path(), without)


_LINES = rb"\n{\""
"""Where a line of JSON ends inside a text of JSON, and the next one begins."""
_PEEKED_ROWS = 5


def _session_column(source: Source) -> str | None:
    """Returns the column of a table that holds whole sessions: lines that an agent's reader knows.

    Rows of JSON are looked at only if their beginning has such lines in a text.
    """
    if source.members or source.remote is not None:
        return None
    if source.table is None and _LINES not in source.head:
        return None
    columns = (item for row in source.peek.records[:_PEEKED_ROWS] for item in as_dict(row).items())
    for name, text in columns:
        if isinstance(text, str) and text.startswith("{") and "\n{" in text.rstrip():
            claims = recognise(Source(source.name, data=text.encode("utf-8", "surrogatepass")))
            if len(claims) == 1 and all(readers()[claim].is_agent for claim in claims):
                return name
    return None


def _sessions(source: Source, column: str) -> Iterator[Source | Problem]:
    """Yields a source for each row: the text in the column, or a row without one as it is."""
    names: Counter[str] = Counter()
    for record in source.unread_copy().records():
        if isinstance(record, Problem):
            yield replace(record, where=f"{source.name}: {record.where}")
            continue
        row = as_dict(record.value)
        place = as_str(row, "file_path").lstrip("/") or record.where
        name = unique_name(f"{source.name}/{place}", names)
        text = as_str(row, column) or dumps(record.value)
        data = text.encode("utf-8", "surrogatepass")
        yield Source(name, data=data)


def _local(spec: str, base: Path, without: Path | None) -> Iterator[Source | Problem]:
    pattern = expand_home(spec)
    path = base / pattern
    seen: set[Hashable] = set()
    if without is not None and without.is_dir():
        seen.add(local_listing(without).identity)
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
        if is_folder:
            os.scandir(path).close()  # raises if the folder cannot be listed
    except (FileNotFoundError, NotADirectoryError):
        if not glob.has_magic(str(pattern)):
            if path.is_symlink():
                raise UsageError(f"input {spec!r}: a broken link") from None
            known = f"; for the Hub's dataset: hf://{spec}" if is_hub_name(spec) else ""
            if spec.startswith("~"):  # the place where an agent keeps its logs
                known = "; `builder build` alone lists the logs of agents on this machine"
            raise UsageError(f"input {spec!r}: no such file or folder{known}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"input {spec!r}: {_reason(error)}") from error
    else:
        root, name = (path, "") if is_folder else (path.parent, path.name)
        yield from _entry(name, _Walk(local_listing(root), seen), ())
        return
    plain = next(at for at, part in enumerate(pattern.parts) if glob.has_magic(part))
    walk = _Walk(local_listing(base.joinpath(*pattern.parts[:plain])), seen)
    yield from _glob(spec, pattern.parts[plain:], walk, without)


def _stored(spec: str) -> Iterator[Source | Problem]:
    root, wanted, objects = list_objects(spec)
    listing, problems = store_listing(root, objects)
    yield from problems
    walk = _Walk(listing)
    if not wanted or listing.is_file(wanted):
        yield from _entry(wanted, walk, ())
    elif wanted not in objects:
        yield from _glob(spec, PurePosixPath(wanted).parts, walk)


@dataclass(frozen=True, slots=True)
class _Walk:
    """The parameters of a walk.

    seen    identities of the folders that were read
    stores  whether folders may be stores
    taken   names of files to skip
    """

    root: Listing
    seen: set[Hashable] = field(default_factory=set)
    stores: bool = True
    taken: frozenset[str] = frozenset()


def _glob(
    spec: str, parts: Sequence[str], walk: _Walk, without: Path | None = None
) -> Iterator[Source | Problem]:
    """Yields what a pattern matches, and everything below the folders that it matches."""
    matches: set[str] = set()
    for item in _expand("", parts, walk.root, ()):
        if isinstance(item, Problem):
            yield item
        elif without is None or not walk.root.is_within(item, without):
            matches.add(item)
    if not matches:
        raise UsageError(f"input {spec!r}: nothing matches the pattern")
    last: str | None = None
    for match in sorted(matches, key=lambda match: match.split("/")):
        if last is None or not f"{match}/".startswith(_join(last, "")):  # else read with `last`
            yield from _entry(match, walk, ())
            last = match


def _expand(
    place: str, parts: Sequence[str], root: Listing, above: Identities
) -> Iterator[str | Problem]:
    if not parts:
        yield place
        return
    head, rest = parts[0], parts[1:]
    if not glob.has_magic(head):
        path = _join(place, head)
        try:
            root.kind(path)
        except OSError:
            return
        yield from _expand(path, rest, root, above)
        return
    folder = root.folder(place)
    try:
        identity = folder.identity
        names = [name for name in folder.names() if head[0] == "." or name[0] != "."]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield Problem("unreadable", _name(place), _reason(error))
        return
    if head != "**":
        for name in fnmatch.filter(names, head):
            yield from _expand(_join(place, name), rest, root, above)
        return
    if identity in above or len(above) > MAX_FOLDER_DEPTH:
        return
    yield from _expand(place, rest, root, above)
    for name in names:
        if folder.is_dir(name):
            yield from _expand(_join(place, name), parts, root, (*above, identity))


def _entry(place: str, walk: _Walk, above: Identities) -> Iterator[Source | Problem]:
    name = _name(place)
    if name in walk.taken:
        return
    try:
        kind = walk.root.kind(place)
    except OSError as error:
        yield Problem("unreadable", name, _reason(error))
        return
    if kind == "folder":
        yield from _folder(place, walk, above)
    elif kind == "file":
        yield walk.root.source(place, name)
    else:
        yield Problem("not_a_file", name, "neither a file nor a folder")


def _folder(place: str, walk: _Walk, above: Identities) -> Iterator[Source | Problem]:
    name = _name(place)
    folder = walk.root.folder(place)
    try:
        identity = folder.identity
        entries = folder.names()
        stores = _stores(folder) if walk.stores else []
    except OSError as error:
        yield Problem("unreadable", name, _reason(error))
        return
    if identity in above:
        yield Problem("directory_loop", name, "the folder is reached again from inside itself")
    elif len(above) > MAX_FOLDER_DEPTH:
        yield Problem("too_deep", name, f"more than {MAX_FOLDER_DEPTH} folders deep")
    elif identity in walk.seen:
        pass  # its files were read under another name
    elif stores:
        walk.seen.add(identity)
        yield from _store(place, folder, stores, walk)
    else:
        walk.seen.add(identity)
        names = set(entries)
        for entry in entries:
            if entry.endswith(("-wal", "-shm")) and entry[:-4] in names:
                continue  # SQLite's own files, read with the database
            if entry == COLLECT_STATE:
                continue
            yield from _entry(_join(place, entry), walk, (*above, identity))


def _stores(folder: Listing) -> list[Reader]:
    hooks = {reader.is_store for reader in readers().values()}
    hits = {is_store for is_store in hooks if is_store is not None and is_store(folder)}
    return [reader for reader in readers().values() if reader.is_store in hits]


def _store(
    place: str, folder: Listing, stores: Sequence[Reader], walk: _Walk
) -> Iterator[Source | Problem]:
    """Yields the folder as one source, and a Problem for each unreadable file in it.

    If the store is not exclusive, files that are not members are yielded as sources of their own.
    """
    name = _name(place) if place else folder.name
    reader = next((reader for reader in stores if reader.holds), None)
    holds = reader.holds if reader is not None else None
    members: list[Source] = []
    for item in _folder("", _Walk(folder, stores=False), ()):
        if isinstance(item, Problem):
            yield Problem(item.code, f"{name}/{item.where}", item.detail)
        elif holds is None or holds(item.name):
            members.append(item)
    yield walk.root.source(place, name, members)
    if reader is None or reader.exclusive:
        return
    prefix = f"{_name(place)}/" if place else ""
    rest = replace(walk, taken=walk.taken | {prefix + member.name for member in members})
    for entry in folder.names():
        yield from _entry(_join(place, entry), rest, ())


def _join(place: str, name: str) -> str:
    return f"{place}/{name}" if place else name


def _name(place: str) -> str:
    """Returns a path for display: bytes that are not UTF-8 become escapes."""
    return os.fsencode(place or ".").decode("utf-8", "backslashreplace")


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
