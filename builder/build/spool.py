"""Saves the events that a scan has read from a source, for the second pass."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from builder.conversation import Event
from builder.sources.source import Source

_UNWRITABLE = (OSError, pickle.PicklingError, AttributeError, RecursionError, TypeError)
"""Exceptions for a full disk, very deep events, and objects of a third-party reader."""


@dataclass(frozen=True, slots=True)
class _End:
    """The end of the events: the records of the source, and its siblings (`Source.siblings`)."""

    records: int
    siblings: dict[str, tuple[int, int] | None]


@dataclass(frozen=True, slots=True)
class Spool:
    """The events of one source in a file, which exists only once it is complete."""

    path: Path

    def record(self, format_name: str, source: Source, events: Iterator[Event]) -> Iterator[Event]:
        """Yields the events and saves them; if that fails, no file remains."""
        unfinished = self.path.with_suffix(f".{os.getpid()}")
        stream: BinaryIO | None = None
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            stream = unfinished.open("wb")
        is_complete = False
        try:
            is_saved = _dump(format_name, stream)
            for event in events:
                is_saved = is_saved and _dump(event, stream)
                yield event
            is_complete = is_saved and _dump(_End(source.records_read, source.siblings), stream)
        finally:
            if stream is not None:
                with contextlib.suppress(OSError):  # such as a full disk
                    stream.close()
                    if is_complete:
                        unfinished.replace(self.path)
                    else:
                        unfinished.unlink()

    def format_name(self) -> str | None:
        """Returns the name of the source's format; None if no scan has saved its events."""
        try:
            with self.path.open("rb") as stream:
                name = _load(stream)
        except OSError:
            return None
        assert isinstance(name, str), "it is written first"
        return name

    def replay(self, source: Source) -> Iterator[Event]:
        """Yields the saved events; then the source has the records and siblings that were read."""
        with self.path.open("rb") as stream:
            _load(stream)
            while not isinstance(event := _load(stream), _End | str):
                yield event
        assert isinstance(event, _End), "it is written last"
        source.count_records(event.records)
        source.siblings.update(event.siblings)

    def discard(self) -> None:
        """Removes the file."""
        self.path.unlink(missing_ok=True)


def _dump(value: Event | str | _End, stream: BinaryIO | None) -> bool:
    """Writes a value; returns whether that succeeded."""
    if stream is None:
        return False
    try:
        pickle.dump(value, stream, pickle.HIGHEST_PROTOCOL)
    except _UNWRITABLE:
        return False
    return True


def _load(stream: BinaryIO) -> Event | str | _End:
    loaded: Event | str | _End = pickle.load(stream)  # noqa: S301 - written by this run
    return loaded
