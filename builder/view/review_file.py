"""Stores the review of the viewer; every decision is written before the page shows it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

from builder.dataset.files import REVIEW_SUFFIX
from builder.dataset.review import ACCEPT, REJECT, Decision, read_review, review_lines
from builder.output.folder import write_whole
from builder.problem import UsageError

MAX_NOTE = 4_000
"""Characters of a note."""

ACCEPTED, REJECTED, _UNDECIDED, _NOTED = "accepted", "rejected", "undecided", "with a note"
STATES = (ACCEPTED, REJECTED, _UNDECIDED, _NOTED)
"""The values of the facet "review"."""


def states(decided: Decision | None) -> tuple[str, ...]:
    """Returns the STATES of a sample with this decision."""
    if decided is None:
        return (_UNDECIDED,)
    named = {ACCEPT: ACCEPTED, REJECT: REJECTED}.get(decided.decision, _UNDECIDED)
    return (named, _NOTED) if decided.note else (named,)


def review_path(dataset: Path) -> Path:
    """Returns the default path of a dataset's review: next to the dataset, safe from builds."""
    located = dataset.resolve()
    return located.with_name(located.name + REVIEW_SUFFIX)


class ReviewFile:
    """The decisions in a file that other programs and viewers may change at the same time."""

    def __init__(self, path: Path) -> None:
        """Reads the file if there is one. Raises UsageError if it is not a review."""
        self.path = path
        self._lock = threading.Lock()
        self._stamp: tuple[int, int] | None = None
        self._decisions: Mapping[str, Decision] = {}
        self.decisions  # noqa: B018 - a fault is reported before the server starts

    @property
    def decisions(self) -> Mapping[str, Decision]:
        """Returns {id of a sample: decision}, read again if the file changed.

        Raises UsageError if the file is no longer a review.
        """
        with self._lock:
            self._read()
            return self._decisions

    def _read(self) -> None:
        stamp = self._status()
        if stamp != self._stamp:
            self._decisions = read_review(self.path).decisions if stamp is not None else {}
            self._stamp = stamp

    def _status(self) -> tuple[int, int] | None:
        """Returns modification time and size of the file; None if there is no file."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            message = f"review {str(self.path)!r}: {error.strerror or error}"
            raise UsageError(message) from None
        return status.st_mtime_ns, status.st_size

    def decide(self, made: Mapping[str, Decision]) -> None:
        """Records decisions by the ids of their samples; an empty one is removed from the file.

        Raises UsageError if the file cannot be read or written.
        """
        lock = self.path.with_name(f".{self.path.name}.lock")
        with FileLock(lock, timeout=20), self._lock:
            self._read()
            decisions = {**self._decisions, **made}
            decisions = {name: item for name, item in decisions.items() if item != Decision()}
            write_whole(self.path, review_lines(decisions))
            self._stamp = self._status()
            self._decisions = decisions
