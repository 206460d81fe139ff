"""Finds turns that drift: sent back by a client, they are not the text that was trained.

`builder.qwen3.sent_back` has the rules of the servers, docs/parity.md the measured figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from builder.problem import known_names
from builder.qwen3.flatten import flat_turn
from builder.qwen3.sent_back import SERVERS, sent_back
from builder.qwen3.style import Style
from builder.sample import Call, Turn
from builder.verify.witnesses.case import Case


@dataclass(slots=True)
class Drift:
    """Counts trained turns with calls: all, those that also have text, and those that drift."""

    turns: int = 0
    with_text: int = 0
    drifting: int = 0

    def merge(self, other: Drift) -> None:
        """Adds the counts of other samples."""
        self.turns += other.turns
        self.with_text += other.with_text
        self.drifting += other.drifting


def servers_named(names: Sequence[str]) -> list[str]:
    """Returns the servers of a list of names, which may be joined by commas. Raises UsageError."""
    return known_names(names, SERVERS, "replay", "server")


def replayed(server: str, turn: Turn, style: Style) -> Turn:
    """Returns a turn as the template renders it after it has been parsed and sent back."""
    if not turn.calls:
        return turn
    calls = tuple(Call.of(call.name, call.arguments) for call in turn.calls)
    return replace(sent_back(server, turn, style), calls=calls)


def drift(server: str, case: Case) -> Drift:
    """Counts the trained turns of a sample that drift."""
    style = case.target.style
    counts = Drift()
    for item in case.generated:
        if item.turn.calls:
            counts.turns += 1
            counts.with_text += bool(item.turn.content)
            again = replayed(server, item.turn, style)
            counts.drifting += flat_turn(again, style) != flat_turn(item.turn, style)
    return counts


def line(server: str, drift: Drift) -> str:
    """Returns what was counted, in words."""
    return (
        f"replay {server}: {drift.drifting:,} of {drift.turns:,} trained turns with calls"
        f" ({drift.with_text:,} with text) are rendered differently once parsed and sent back"
    )
