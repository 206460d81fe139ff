"""Names the conversations of a session, and counts its records once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from builder.conversation import Ignored, Used
from builder.readers.toolkit.places import unique_name


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
