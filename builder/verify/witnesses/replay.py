"""Finds turns that drift: sent back by a client, they are not the text that was trained.

A server parses the model's text into content and calls, a client sends both back with the next
request, and the template renders them as history. docs/parity.md has measured figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from builder.problem import UsageError, nearest
from builder.qwen3.flatten import flat_turn
from builder.qwen3.style import Style
from builder.sample import Call, Turn
from builder.verify.witnesses.case import Case


def _before_first_tag(turn: Turn, style: Style) -> str:
    """Returns everything before `<tool_call>`: what separates text and call stays in the text."""
    return turn.content + style.before_call if turn.content else ""


def _of_vllm(turn: Turn, style: Style) -> str:
    return _before_first_tag(turn, style) if style.dialect.plain else turn.content.strip()


def _of_sglang(turn: Turn, style: Style) -> str:
    return turn.content.strip() if style.dialect.plain else _before_first_tag(turn, style)


SERVERS: Mapping[str, Callable[[Turn, Style], str]] = {
    "vllm": _of_vllm,  # its parsers `hermes`, and `qwen3_coder`, which strips the text
    "sglang": _of_sglang,  # its parsers `qwen25`, which strips the text, and `qwen3_coder`
}
"""{server: the content that its parser makes of a turn with calls}."""


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
    wanted = [name.strip() for part in names for name in part.split(",") if name.strip()]
    for name in wanted:
        if name not in SERVERS:
            raise UsageError(f"--replay {name!r}: no such server{nearest(name, SERVERS)}")
    return [name for name in SERVERS if name in wanted]


def replayed(server: str, turn: Turn, style: Style) -> Turn:
    """Returns a turn as the template renders it after it has been parsed and sent back."""
    if not turn.calls:
        return turn
    content = SERVERS[server](turn, style)
    if style.trims != "none":
        content = content.strip()
    calls = tuple(Call.of(call.name, call.arguments) for call in turn.calls)
    return replace(turn, content=content, calls=calls)


def drift(server: str, case: Case) -> Drift:
    """Counts the trained turns of a sample that drift."""
    style = case.target.style
    found = Drift()
    for item in case.generated:
        if item.turn.calls:
            found.turns += 1
            found.with_text += bool(item.turn.content)
            again = replayed(server, item.turn, style)
            found.drifting += flat_turn(again, style) != flat_turn(item.turn, style)
    return found


def line(server: str, found: Drift) -> str:
    """Returns what was counted, in words."""
    return (
        f"replay {server}: {found.drifting:,} of {found.turns:,} trained turns with calls"
        f" ({found.with_text:,} with text) are rendered differently once parsed and sent back"
    )
