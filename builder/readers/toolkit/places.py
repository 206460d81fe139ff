"""Names conversations, locates records and counts ignored records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builder.conversation import Ignored


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
