"""Finds samples that contain items of evaluation sets, by common runs of eight words.

An item is a row of a set that the user names. A sample contains it if half of the eight-word runs
of one of the item's texts occur in the sample's turns. Tool definitions are not searched, because
evaluations share them with other programs.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from builder.audit.duplicates import shingles, word_numbers
from builder.audit.notes import AuditRow, FindingNotes
from builder.audit.result import AuditTable
from builder.conversation import Json
from builder.dataset.rows import dataset_rows
from builder.paths import expand_home
from builder.problem import UsageError
from builder.scrub.redact import value_strings

_SIZE = 8
_OVERLAP = 0.5
SHOWN = 50
MESSAGES = {"contaminated": "samples that contain items of an evaluation set"}


@dataclass(frozen=True, slots=True)
class _EvaluationItem:
    """A text of an evaluation set: name of the set, row, and number of distinct runs."""

    name: str
    row: int
    runs: int


class EvaluationSets:
    """The runs of all items, sorted for binary search."""

    def __init__(self, names: Sequence[str]) -> None:
        """Reads the sets. Raises UsageError if one cannot be read or has no text of eight words."""
        self.items: list[_EvaluationItem] = []
        runs: list[NDArray[np.uint64]] = []
        for name in names:
            before = len(self.items)
            for number, row in enumerate(_rows(name), start=1):
                texts = {text for _, text in value_strings(row)}
                for text in sorted(texts, key=lambda text: (-len(text), text)):
                    numbers = word_numbers(text)
                    if len(numbers) >= _SIZE:
                        unique = np.unique(shingles(numbers, _SIZE))
                        runs.append(unique)
                        self.items.append(_EvaluationItem(name, number, len(unique)))
            if len(self.items) == before:
                raise UsageError(
                    f"audit.contamination: {name!r} contains no text of {_SIZE} or more words"
                )
        owners = array("I")
        for at, found in enumerate(runs):
            owners.extend([at] * len(found))
        joined = np.concatenate(runs) if runs else np.zeros(0, dtype=np.uint64)
        order = np.argsort(joined, kind="stable")
        self._runs = joined[order]
        self._owners = np.frombuffer(owners, dtype=np.uint32)[order]

    def found(self, numbers: NDArray[np.uint64]) -> list[tuple[_EvaluationItem, float]]:
        """Returns each item of which at least half the runs occur here, with the share."""
        if len(numbers) < _SIZE:
            return []
        unique = np.unique(shingles(numbers, _SIZE))
        left = np.searchsorted(self._runs, unique, side="left")
        right = np.searchsorted(self._runs, unique, side="right")
        owners: Counter[int] = Counter()
        for at in np.flatnonzero(right > left):
            owners.update(self._owners[left[at] : right[at]].tolist())
        return [
            (self.items[owner], count / self.items[owner].runs)
            for owner, count in sorted(owners.items())
            if count >= _OVERLAP * self.items[owner].runs
        ]


class ContaminationAudit:
    """Records the samples that contain items."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, int, float]] = []
        self._by_set: Counter[str] = Counter()

    def add(
        self, row: AuditRow, numbers: NDArray[np.uint64], sets: EvaluationSets, notes: FindingNotes
    ) -> None:
        """Searches a sample for the items; `numbers` are those of its words (`word_numbers`)."""
        best: dict[tuple[str, int], float] = {}
        for item, share in sets.found(numbers):
            best[item.name, item.row] = max(best.get((item.name, item.row), 0.0), share)
        for (name, number), share in best.items():
            notes.add("contaminated", row, "", f"{name} row {number}, {share:.0%} of it")
            self._by_set[name] += 1
            if len(self._rows) < SHOWN:
                self._rows.append((row.where, name, number, round(share, 3)))

    def merge(self, later: ContaminationAudit) -> None:
        """Adds the matches of the samples that follow."""
        self._by_set += later._by_set
        self._rows += later._rows[: SHOWN - len(self._rows)]

    def tables(self) -> list[AuditTable]:
        """Returns the matches by set, and the first samples."""
        by_set = tuple(sorted(self._by_set.items()))
        heads = ("sample", "set", "row", "share found")
        return [
            AuditTable(
                "contamination", "Items of evaluation sets found", ("set", "places"), by_set
            ),
            AuditTable("contaminated", "Samples that contain them", heads, tuple(self._rows)),
        ]


def _rows(name: str) -> Iterator[Json]:
    """Yields the rows of a JSON file, a text file, or any dataset that `builder verify` reads."""
    path = expand_home(name)
    try:
        if path.suffix in (".txt", ".md") and path.is_file():
            yield from path.read_text(encoding="utf-8", errors="replace").split("\n")
        else:
            yield from (row.value for row in dataset_rows(name, as_is=True))
    except UsageError as error:
        raise UsageError(f"audit.contamination: {error}") from error
    except OSError as error:
        raise UsageError(f"audit.contamination: {name!r}: {error.strerror or error}") from error
