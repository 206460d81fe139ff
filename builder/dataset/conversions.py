"""Caches the converted rows of a file on disk, so that searches need not convert them again."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from builder.conversation import Json
from builder.jsonio import dumps


class Conversions:
    """The rows of one file that were converted from another form, as JSON in a scratch file.

    The index thread adds them in order while searches read them.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._ends = array("Q")
        self._stream: IO[bytes] | None = None
        self._is_finished = False
        self._changed = threading.Condition()

    def add(self, converted: Json) -> None:
        """Appends the next row of the file; None if it was not converted."""
        line = b""
        if converted is not None:
            line = dumps(converted).encode("utf-8", "surrogatepass")
            if self._stream is None:
                self._stream = NamedTemporaryFile(  # noqa: SIM115 - closed by `finish`
                    buffering=0, dir=self._scratch, delete=False
                )
            self._stream.write(line)
        with self._changed:
            self._ends.append((self._ends[-1] if self._ends else 0) + len(line))
            self._changed.notify_all()

    def finish(self) -> None:
        """Marks the end: `lines` no longer waits for more."""
        if self._stream is not None:
            self._stream.close()
        with self._changed:
            self._is_finished = True
            self._changed.notify_all()

    def lines(self) -> Iterator[bytes | None]:
        """Yields each row, None if it was not converted. Waits for rows until `finish`."""
        row, start = 0, 0
        with ExitStack() as opened:
            stream: IO[bytes] | None = None
            while True:
                with self._changed:
                    while row >= len(self._ends) and not self._is_finished:
                        self._changed.wait()
                    if row >= len(self._ends):
                        return
                    size = self._ends[row] - start
                if size and stream is None and self._stream is not None:
                    stream = opened.enter_context(Path(self._stream.name).open("rb"))
                yield stream.read(size) if size and stream is not None else None
                row, start = row + 1, start + size
