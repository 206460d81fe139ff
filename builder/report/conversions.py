"""Keeps the converted rows of a file on disk, so that no search has to convert them again."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from builder.conversation import Json
from builder.jsonio import dumps


class Conversions:
    """The rows of one file that were converted from another form, as lines of JSON.

    The index adds them in order while it reads the file; searches run at the same time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ends = array("Q")
        self._stream: BinaryIO | None = None
        self._is_finished = False
        self._changed = threading.Condition()

    def add(self, converted: Json) -> None:
        """Adds the next row of the file; None if it was not converted."""
        line = b""
        if converted is not None:
            line = dumps(converted).encode("utf-8", "surrogatepass")
            self._stream = self._stream or self._path.open("wb", buffering=0)
            self._stream.write(line)
        with self._changed:
            self._ends.append((self._ends[-1] if self._ends else 0) + len(line))
            self._changed.notify_all()

    def finish(self) -> None:
        """Marks the end, so that `lines` does not wait for more."""
        if self._stream is not None:
            self._stream.close()
        with self._changed:
            self._is_finished = True
            self._changed.notify_all()

    def lines(self) -> Iterator[bytes | None]:
        """Yields each row, None if it was not converted. Waits for rows until `finish`."""
        row, start = 0, 0
        with ExitStack() as opened:
            stream: BinaryIO | None = None
            while True:
                with self._changed:
                    while row >= len(self._ends) and not self._is_finished:
                        self._changed.wait()
                    if row >= len(self._ends):
                        return
                    size = self._ends[row] - start
                if size and stream is None:
                    stream = opened.enter_context(self._path.open("rb"))
                yield stream.read(size) if size and stream is not None else None
                row, start = row + 1, start + size
