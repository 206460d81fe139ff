"""Databases of sqlite, opened so that nothing is written to them or beside them."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

SQLITE_MAGIC = b"SQLite format 3\x00"

Open = Callable[[], AbstractContextManager[BinaryIO]]


@contextlib.contextmanager
def open_database(
    path: Path | None, unpacked: Open, wal: Path | None
) -> Iterator[sqlite3.Connection]:
    """A read-only connection. Raises sqlite3.Error, OSError, what `unpacked` raises.

    `path` None: the database has no file of its own here. `unpacked` opens its bytes, `wal` is the
    write-ahead log beside it. Without one it is opened as immutable; with one (another process may
    be writing) the log is read as well.
    Text that is not UTF-8 comes with lone surrogates, which the normaliser counts.
    """
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "store.db"
        if path is None or not _is_plain(path):
            with unpacked() as stream, copy.open("wb") as out:
                shutil.copyfileobj(stream, out)
            opened = sqlite3.connect(f"{copy.as_uri()}?immutable=1", uri=True)
        elif wal is None:
            opened = sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)
        else:
            opened = _with_log(path, wal, copy)
        opened.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        try:
            yield opened
        finally:
            opened.close()


def _with_log(path: Path, wal: Path, copy: Path) -> sqlite3.Connection:
    opened = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        opened.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:  # a log beside it that cannot be shared (read-only folder)
        opened.close()
        shutil.copyfile(path, copy)
        shutil.copyfile(wal, copy.with_name(copy.name + "-wal"))
        return sqlite3.connect(copy)
    return opened


def _is_plain(path: Path) -> bool:
    """Is it neither compressed nor anything else?"""
    with path.open("rb") as raw:
        return raw.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
