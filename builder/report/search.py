"""Searches all rows for a text, in a thread; the matches so far can be read at any time."""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Callable, Iterator

import numpy as np

from builder.conversation import Json
from builder.jsonio import dumps
from builder.report.columns import Mask
from builder.report.facts import as_object, as_text

Row = tuple[bytes | None, Callable[[], Json]]
"""The bytes of a row if it is a line, and a function that decodes it."""

RowTexts = Callable[[Json], Iterator[str]]


class TextScan:
    """A search that runs through the rows once.

    A line is only decoded if its bytes may contain the text: they are compared without regard to
    case, and lines with escapes that another writer may have chosen are always decoded. So are all
    lines if the text has quotes, which are escaped in messages but not in tool definitions.
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
        """Returns a mask of those of the first `count` rows that are known to contain the text."""
        with self._lock:
            found = np.array(self._found, dtype=np.uint32)
        mask = np.zeros(count, dtype=np.bool_)
        mask[found[found < count]] = True
        return mask

    def _run(self) -> None:
        try:
            for number, (line, decode) in enumerate(self._rows):
                if self._is_stopped:
                    return
                if (line is None or self._may_hold(line)) and self._holds(decode()):
                    with self._lock:
                        self._found.append(number)
                self.searched = number + 1
        finally:
            self._done.set()

    def _may_hold(self, line: bytes) -> bool:
        return (
            self._has_quotes
            or self._needle in line.decode("utf-8", "replace").casefold()
            or b"\\u" in line
            or b"\\/" in line
        )

    def _holds(self, value: Json) -> bool:
        return any(self._pattern.search(text) for text in self._texts(value))


def sample_texts(value: Json) -> Iterator[str]:
    """Yields the messages of a sample, its tool definitions as JSON, and the text of other rows."""
    row = as_object(value)
    messages = row.get("messages")
    if not isinstance(messages, list):
        yield value if isinstance(value, str) else dumps(value)
        return
    for item in messages:
        yield as_text(as_object(item).get("content"))
    tools = row.get("tools")
    if tools:
        yield tools if isinstance(tools, str) else dumps(tools)


def reject_texts(value: Json) -> Iterator[str]:
    """Yields the values of a line of rejects.jsonl."""
    for item in as_object(value).values():
        yield as_text(item)
