"""Names conversations and segments of a session, locates records and counts ignored records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from builder.conversation import Ignored, Used


def span(first: str, last: str) -> str:
    """Returns `Conversation.record` from the places of the first and the last record.

    "line 3", "line 90" → "lines 3-90"; "[0]", "[4]" → "[0]-[4]"; equal places → that place.
    """
    if first == last:
        return first
    if first.startswith("line ") and last.startswith("line "):
        return f"lines {first[5:]}-{last[5:]}"
    return f"{first}-{last}"


def unique_name(name: str, taken: Counter[str]) -> str:
    """Returns the name, with " #2", " #3" … appended if it is in `taken`; adds it to `taken`.

    Ids of conversations must be unique within a source.
    """
    taken[name] += 1
    if taken[name] == 1:
        return name
    return unique_name(f"{name} #{taken[name]}", taken)


def ignored(counts: Counter[str]) -> Iterator[Ignored]:
    """Yields an `Ignored` event for each code, sorted by code."""
    for code, records in sorted(counts.items()):
        yield Ignored(code, records)


@dataclass(slots=True)
class Segments:
    """The conversations of a session: a segment for each context, and branches that it left.

    Segments are called NAME, NAME#2, NAME#3, or as `unique_name` does among `taken`, the names in
    a source of several sessions; branches NAME~1, NAME~2.

    records   those that no conversation counts yet; a conversation counts all of them
    mark      what precedes the number of a segment
    segments  the number of segments so far, `branches` that of branches
    """

    name: str
    records: int = 0
    taken: Counter[str] | None = None
    mark: str = "#"
    segments: int = 0
    branches: int = 0

    def next_name(self) -> str:
        """Returns the name of the next segment."""
        self.segments += 1
        if self.taken is not None:
            return unique_name(self.name, self.taken)
        return self.name if self.segments == 1 else f"{self.name}{self.mark}{self.segments}"

    def next_branch(self) -> str:
        """Returns the name of the next branch."""
        self.branches += 1
        return f"{self.name}~{self.branches}"

    def take_records(self) -> int:
        """Returns the records that no conversation counts yet, for the one that counts them."""
        records, self.records = self.records, 0
        return records

    def rest(self, code: str) -> Iterator[Used | Ignored]:
        """Yields what becomes of records that no conversation counts.

        They were used if there is a conversation, else they are ignored with the code.
        """
        if records := self.take_records():
            yield Used(records) if self.segments or self.branches else Ignored(code, records)
