"""Searches all rows for a text in a thread; the matches so far are available at any time."""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from builder.conversation import Json
from builder.dataset.store import decoded
from builder.jsonio import dumps
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.view.columns import Mask

Row: TypeAlias = "bytes | Json"
"""A line that is not decoded yet, or the value of a row."""

RowTexts = Callable[[Json], Iterator[str]]
"""Yields the texts of a row that are searched."""


class TextScan:
    """One pass over the rows that records which of them contain a text, ignoring case.

    A line is decoded only if its bytes may contain the text. Lines with escapes that only other
    writers use are always decoded. If the text contains quotes, all lines are decoded, because
    quotes are escaped in messages but not in tool definitions.
    """

    def __init__(self, text: str, rows: Iterator[Row], texts: RowTexts) -> None:
        self._pattern = re.compile(re.escape(text), re.IGNORECASE)
        self._needle = dumps(text)[1:-1].casefold()
        self._has_quotes = '"' in text
        self._rows = rows
        self._texts = texts
        self._found = array("I")
        self._lock = threading.Lock()
        self._is_stopped = False
        self.searched = 0
        self._done = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Waits for the end; returns whether it was reached."""
        return self._done.wait(seconds)

    def stop(self) -> None:
        """Stops the search."""
        self._is_stopped = True

    def mask(self, count: int) -> Mask:
        """Returns a mask of the first `count` rows: true for those found to contain the text."""
        with self._lock:
            numbers = np.array(self._found, dtype=np.uint32)
        mask = np.zeros(count, dtype=np.bool_)
        mask[numbers[numbers < count]] = True
        return mask

    def _run(self) -> None:
        try:
            for number, row in enumerate(self._rows):
                if self._is_stopped:
                    return
                if self._matches(row):
                    with self._lock:
                        self._found.append(number)
                self.searched = number + 1
        finally:
            self._done.set()

    def _matches(self, row: Row) -> bool:
        if isinstance(row, bytes):
            if not self._may_contain(row):
                return False
            row = decoded(row)
        return any(self._pattern.search(text) for text in self._texts(row))

    def _may_contain(self, line: bytes) -> bool:
        return (
            self._has_quotes
            or self._needle in line.decode("utf-8", "replace").casefold()
            or b"\\u" in line
            or b"\\/" in line
        )


def sample_texts(value: Json) -> Iterator[str]:
    """Yields the messages of a sample and its tool definitions as JSON; all JSON of other rows."""
    row = as_dict(value)
    messages = row.get("messages")
    if not isinstance(messages, list):
        yield value if isinstance(value, str) else dumps(value)
        return
    for item in messages:
        yield as_str(item, "content")
    tools = row.get("tools")
    if tools:
        yield tools if isinstance(tools, str) else dumps(tools)


def reject_texts(value: Json) -> Iterator[str]:
    """Yields the values of a line of rejects.jsonl."""
    for item in as_dict(value).values():
        yield as_str(item)
