"""Copies what is new in agents' logs into a folder, and keeps what agents later delete."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

from builder.conversation import Json
from builder.jsonio import JsonFault, dumps, loads
from builder.paths import COLLECT_STATE, expand_home
from builder.problem import Problem, UsageError
from builder.readers import installed_logs
from builder.sources.sniff import SQLITE_MAGIC
from builder.sources.sqlite_file import is_plain_sqlite
from builder.sources.stream import pieces

# -- decides whether the newer state of a log still holds everything of the older one --------------

_MAX_DOCUMENT_BYTES = 64 << 20
"""A larger file that is not an extension of its older state counts as rewritten."""

_PIECE = 1 << 20
_LABEL_CHARS = 40
"""Values up to this length without a space are labels, ids and times, which programs update."""


def holds_all(newer: Path, older: Path) -> bool:
    """Returns whether a log grew, so that its older state holds nothing that the newer one lacks.

    True if the older file is the beginning of the newer one; if each line of the older JSONL file
    is in the newer one; or if two JSON documents, or two SQLite databases, differ only by what the
    newer one added and by short labels such as times. Raises OSError.
    """
    if _begins_with(newer, older):
        return True
    if max(newer.stat().st_size, older.stat().st_size) > _MAX_DOCUMENT_BYTES:
        return False
    if is_plain_sqlite(older):
        if not is_plain_sqlite(newer):
            return False
        try:
            with _opened(newer) as one, _opened(older) as other:
                return all(_table_grew(one, other, table) for table in _tables(other))
        except sqlite3.Error:
            return False
    try:
        return document_grew(loads(newer.read_bytes()), loads(older.read_bytes()))
    except JsonFault:
        before, after = _lines(older), _lines(newer)
        return bool(before) and before <= after


def document_grew(newer: Json, older: Json) -> bool:
    """Returns whether a JSON value holds all of an older one, apart from short labels.

    Lists and texts may be longer, and objects may have more keys.
    """
    if isinstance(older, dict):
        return isinstance(newer, dict) and all(
            key in newer and document_grew(newer[key], value) for key, value in older.items()
        )
    if isinstance(older, list):
        if not isinstance(newer, list) or len(newer) < len(older):
            return False
        return all(map(document_grew, newer, older))
    if isinstance(older, str):
        is_label = len(older) <= _LABEL_CHARS and not any(map(str.isspace, older))
        return is_label or (isinstance(newer, str) and newer.startswith(older))
    return True


def _begins_with(newer: Path, older: Path) -> bool:
    if newer.stat().st_size < older.stat().st_size:
        return False
    with newer.open("rb") as after, older.open("rb") as before:
        while piece := before.read(_PIECE):
            if after.read(len(piece)) != piece:
                return False
    return True


def _lines(path: Path) -> Counter[bytes]:
    """Returns how often each line of JSON occurs; nothing if a line is not JSON."""
    lines: Counter[bytes] = Counter()
    for line in path.read_bytes().splitlines():
        if line.strip():
            try:
                loads(line)
            except JsonFault:
                return Counter()
            lines[line] += 1
    return lines


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)) as opened:
        opened.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        yield opened


def _tables(connection: sqlite3.Connection) -> list[str]:
    """Returns the ordinary tables, without derived ones (search indexes).

    Raises sqlite3.Error, also if SQLite is older than 3.37.
    """
    query = "SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main'"
    names = [name for (name,) in connection.execute(f"{query} ORDER BY name")]
    return [name for name in names if not name.startswith("sqlite_")]


def _table_grew(after: sqlite3.Connection, before: sqlite3.Connection, table: str) -> bool:
    """Returns whether each older row is still there, by its primary key, or else its row id.

    Raises sqlite3.Error.
    """
    columns = "SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk"
    keys = [_quoted(name) for (name,) in before.execute(columns, (table,))] or ["rowid"]
    condition = " AND ".join(f"{key} IS ?" for key in keys)
    query = f"SELECT {', '.join(keys)}, * FROM {_quoted(table)}"  # noqa: S608 - names are quoted
    for older in before.execute(query):
        newer = after.execute(f"{query} WHERE {condition}", older[: len(keys)]).fetchone()
        if newer is None or len(newer) < len(older):
            return False
        if not all(map(document_grew, map(_decoded, newer), map(_decoded, older))):
            return False
    return True


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _decoded(cell: object) -> Json:
    """Returns the value of a cell; text that is JSON is decoded, bytes are compared as text."""
    if isinstance(cell, bytes):
        return sha256(cell).hexdigest() + " "
    if isinstance(cell, str) and cell[:1] in ("{", "["):
        try:
            return loads(cell)
        except JsonFault:
            return cell
    return cell if isinstance(cell, str | int | float) else None


EARLIER = "earlier"
"""The folder of states that an agent rewrote."""

_SKIPPED = frozenset({".git", "node_modules"})
"""Folders that agents keep next to their logs: snapshots of the user's files, not logs."""

_ATTEMPTS = 3
_TAIL_PIECE = 1 << 20


@dataclass(slots=True)
class Collected:
    """What a run did, in files.

    new, grown, rewritten  files copied: for the first time; with more than before; with other
                           contents than before, so that both states are kept
    unchanged              files that had not changed since the last run
    bytes                  bytes copied
    problems               files and folders that could not be read
    """

    new: int = 0
    grown: int = 0
    rewritten: int = 0
    unchanged: int = 0
    bytes: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """Returns the counts by name."""
        names = ("new", "grown", "rewritten", "unchanged", "bytes")
        return {name: getattr(self, name) for name in names} | {"unreadable": len(self.problems)}


@dataclass(slots=True)
class _Original:
    """A file of a log: where it is copied to, relative to the folder, and its state on disk."""

    path: Path
    name: str
    state: tuple[int, ...]


def collect_logs(
    out: Path,
    inputs: Sequence[str] = (),
    *,
    dry_run: bool = False,
    on_file: Callable[[str, str], None] = lambda kind, name: None,
) -> Collected:
    """Copies new and changed log files to `out`; no inputs: those of all agents on this machine.

    The originals are only read. Each copy is complete or absent, whenever the run is killed, and
    its digest is that of what was read. A file whose earlier contents are not all in its new state
    is kept in both: the earlier one below `earlier/`. `on_file` is called with (new, grown or
    rewritten, name) for each file. Raises UsageError if an input does not exist, `out` cannot be
    written, or another run is writing to it.
    """
    if (out / "manifest.json").is_file() and (out / "data").is_dir():
        raise UsageError(f"collect: {str(out)!r} is a dataset: name a folder for logs")
    places = [*_places(inputs)]
    for place, _ in places:
        if _is_inside(out, place) or _is_inside(place, out):
            raise UsageError(f"collect: {str(out)!r} and the logs in {str(place)!r} overlap")
    result = Collected()
    if dry_run:
        return _run(out, places, result, on_file, dry_run=True)
    state = out / COLLECT_STATE
    try:
        _make_private(state)
        lock = FileLock(state / "lock")
        lock.acquire(blocking=False)
    except Timeout:
        raise UsageError(f"collect: another run is writing to {str(out)!r}") from None
    except OSError as error:
        raise UsageError(f"collect: {str(out)!r}: {error.strerror}") from error
    with lock:
        shutil.rmtree(state / "partial", ignore_errors=True)
        _make_private(state / "partial")
        return _run(out, places, result, on_file, dry_run=False)


def _make_private(folder: Path) -> None:
    for missing in [*takewhile(lambda path: not path.exists(), (folder, *folder.parents))][::-1]:
        missing.mkdir(mode=0o700, exist_ok=True)


def _places(inputs: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Yields (file or folder, its name in the output folder)."""
    home = expand_home("~")
    if not inputs:
        for agent, place in installed_logs():
            inside = place.relative_to(home) if place.is_relative_to(home) else Path(place.name)
            plain = [part.lstrip(".") for part in inside.parts]
            yield place, "/".join([agent.lower().replace(" ", "-"), *plain])
    names: dict[str, str] = {}
    for written in inputs:
        place = expand_home(written)
        if not place.exists():
            raise UsageError(f"input {written!r}: no such file or folder")
        name = place.resolve().name or "root"
        if names.setdefault(name, written) != written:
            raise UsageError(f"inputs {names[name]!r} and {written!r}: have the same name")
        yield place, name


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _run(
    out: Path,
    places: Sequence[tuple[Path, str]],
    result: Collected,
    on_file: Callable[[str, str], None],
    *,
    dry_run: bool,
) -> Collected:
    known = _load(out / COLLECT_STATE / "files.jsonl")
    try:
        for place, name in places:
            for item in _walk(place, name):
                if isinstance(item, Problem):
                    result.problems.append(item)
                    continue
                if known.get(item.name) == item.state and (out / item.name).exists():
                    result.unchanged += 1
                    continue
                problem = _copy(out, item, result, on_file, dry_run=dry_run)
                if problem is None:
                    known[item.name] = item.state
                else:
                    result.problems.append(problem)
    finally:
        if not dry_run:
            _save(out / COLLECT_STATE, known)
    return result


def _walk(place: Path, name: str) -> Iterator[_Original | Problem]:
    """Yields the files at and below a path, in order; links to folders are not followed."""
    try:
        status = place.stat()
        if stat.S_ISREG(status.st_mode):
            yield _Original(place, name, _state(place, status))
            return
        if not stat.S_ISDIR(status.st_mode):
            return
        with os.scandir(place) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
    except OSError as error:
        yield Problem("unreadable", str(place), error.strerror or str(error))
        return
    names = {entry.name for entry in entries}
    for entry in entries:
        is_index = entry.name.endswith(("-wal", "-shm")) and entry.name[:-4] in names
        is_link = entry.is_symlink() and entry.is_dir()
        if not is_index and not is_link and entry.name not in _SKIPPED:
            yield from _walk(Path(entry.path), f"{name}/{entry.name}")


def _state(path: Path, status: os.stat_result) -> tuple[int, ...]:
    """Returns sizes and times of a file, and of the write-ahead log next to it."""
    state: tuple[int, ...] = (status.st_size, status.st_mtime_ns)
    with suppress(OSError, ValueError):
        log = path.with_name(f"{path.name}-wal").stat()
        state += (log.st_size, log.st_mtime_ns)
    return state


def _copy(
    out: Path,
    item: _Original,
    result: Collected,
    on_file: Callable[[str, str], None],
    *,
    dry_run: bool,
) -> Problem | None:
    """Copies a file; moves its earlier state to `earlier/` if that held anything else."""
    target = out / item.name
    try:
        partial = item.path if dry_run else _partial(out, item)
        size = partial.stat().st_size
        if not target.exists():
            kind = "new"
        elif _digest(target) == _digest(partial):
            result.unchanged += 1
            if not dry_run:
                partial.unlink()
            return None
        else:
            kind = "grown" if holds_all(partial, target) else "rewritten"
        if not dry_run:
            _make_private(target.parent)
            if kind == "rewritten":
                _keep(out, item.name)
            partial.replace(target)
    except OSError as error:
        return Problem("unreadable", str(item.path), error.strerror or str(error))
    setattr(result, kind, getattr(result, kind) + 1)
    result.bytes += size
    on_file(kind, item.name)
    return None


def _keep(out: Path, name: str) -> None:
    """Links the present copy of a file to a name below `earlier/` with its digest."""
    target = out / name
    digest = _digest(target)[:12]
    kept = out / EARLIER / Path(name).parent / f"{target.stem}.{digest}{target.suffix}"
    _make_private(kept.parent)
    if not kept.exists():
        target.rename(kept)


def _partial(out: Path, item: _Original) -> Path:
    """Returns a whole copy of a file as it was at one moment. Raises OSError."""
    name = sha256(os.fsencode(item.name)).hexdigest()
    partial = out / COLLECT_STATE / "partial" / name
    for _ in range(_ATTEMPTS):
        with item.path.open("rb") as source:
            size = os.fstat(source.fileno()).st_size
            is_database = source.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
            source.seek(0)
            digest = _written(source, size, partial)
            source.seek(0)
            is_same = not is_database and _digest_of(source, size) == digest
        if is_database:
            is_same = _is_whole_database(item, partial)
        elif _digest(partial) != digest:
            raise OSError(0, "the copy differs from what was read: is the disk faulty?")
        if is_same:
            shutil.copystat(item.path, partial)
            partial.chmod(0o600)
            return partial
    raise OSError(0, "it is rewritten all the time: it will be tried again in the next run")


def _is_whole_database(item: _Original, partial: Path) -> bool:
    """Moves the write-ahead log into the copy of a database; False if it changed meanwhile."""
    log = partial.with_name(f"{partial.name}-wal")
    try:
        with suppress(FileNotFoundError):
            shutil.copyfile(item.path.with_name(f"{item.path.name}-wal"), log)
        if _state(item.path, item.path.stat()) != item.state:
            item.state = _state(item.path, item.path.stat())
            return False
        with closing(sqlite3.connect(partial)) as opened:
            opened.execute("PRAGMA journal_mode = DELETE")
            return bool(opened.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.Error:
        return False
    finally:
        for ending in ("-wal", "-shm", "-journal"):
            partial.with_name(partial.name + ending).unlink(missing_ok=True)


def _written(source: BinaryIO, size: int, path: Path) -> str:
    """Writes the next `size` bytes to a file of its user only; returns their digest."""
    digest = sha256()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:  # noqa: PTH123 - a descriptor
        for piece in pieces(source, size, _TAIL_PIECE):
            digest.update(piece)
            out.write(piece)
    return digest.hexdigest()


def _digest_of(source: BinaryIO, size: int) -> str:
    digest = sha256()
    for piece in pieces(source, size, _TAIL_PIECE):
        digest.update(piece)
    return digest.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def _load(path: Path) -> dict[str, tuple[int, ...]]:
    """Returns the states of the originals at the end of the last whole run, by name of the copy."""
    known: dict[str, tuple[int, ...]] = {}
    with suppress(OSError, JsonFault, ValueError):
        for line in path.read_bytes().splitlines():
            match loads(line):
                case [str(name), *state] if all(isinstance(number, int) for number in state):
                    known[name] = tuple(number for number in state if isinstance(number, int))
    return known


def _save(state: Path, known: Mapping[str, tuple[int, ...]]) -> None:
    """Writes the states, after the copies are on the disk: otherwise a crash could lose one."""
    with suppress(AttributeError):  # there is none on Windows
        os.sync()
    lines = (dumps([name, *numbers]) + "\n" for name, numbers in sorted(known.items()))
    partial = state / "files.partial"
    partial.write_text("".join(lines), encoding="utf-8", errors="surrogatepass")
    partial.replace(state / "files.jsonl")
