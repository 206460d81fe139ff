"""Copies objects of a store to this machine so that they can be read."""

from __future__ import annotations

import contextlib
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from builder.sources.source import Source

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
    if source.window is not None:
        return source.window.bytes
    sizes = 0
    for item in source.members or (source,):
        if item.remote is not None:
            sizes += item.remote.size
        with contextlib.suppress(OSError):
            sizes += item.path.stat().st_size if item.path is not None else 0
    return sizes
