"""What readers of agent sessions share: keys of calls, places of records, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builder.conversation import Ignored


class CallKeys:
    """Keys for the calls of one session, equal wherever a replay shows the same call again.

    A key is the session, the call's id and, where an id comes back on another call of the same
    conversation, the number of that coming. Make a new one for each conversation of the session.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._seen: Counter[str] = Counter()

    def of(self, call_id: str | None) -> str | None:
        """The key of the next call with this id; None without an id."""
        if call_id is None:
            return None
        self._seen[call_id] += 1
        count = self._seen[call_id]
        key = f"{self._session}/{call_id}"
        return key if count == 1 else f"{key}#{count}"


def span(first: str, last: str) -> str:
    """Where a conversation stands, from the places of its first and last record.

    "line 3", "line 90" → "lines 3-90"; "[0]", "[4]" → "[0]-[4]"; equal places → that place.
    """
    if first == last:
        return first
    if first.startswith("line ") and last.startswith("line "):
        return f"lines {first[5:]}-{last[5:]}"
    return f"{first}-{last}"


def ignored(counts: Counter[str]) -> Iterator[Ignored]:
    """The counts as events, ordered by code."""
    for code, records in sorted(counts.items()):
        yield Ignored(code, records)
