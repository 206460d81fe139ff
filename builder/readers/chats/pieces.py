"""Cuts the pieces of an answer with inline results into turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from builder.conversation import Context, Message, Part, ToolCall, ToolResult


def turns(
    pieces: Iterable[Part],
    context: Context | None,
    untrained: str | None = None,
    model: str | None = None,
) -> Iterator[Message]:
    """Yields the turns of an answer: text, thoughts and calls, then their results, and so on.

    Calls without text or a result between them are parallel. A result without an id belongs to the
    latest open call with its name, else to the oldest open one; results follow in the order of
    their calls.
    """
    answer = Message("assistant", (), untrained=untrained, context=context, model=model)
    parts: list[Part] = []
    answered: list[tuple[int, ToolResult]] = []
    for piece in pieces:
        if isinstance(piece, ToolResult):
            answered.append((_asked(parts, answered, piece), piece))
            continue
        if answered:
            yield from _turn(answer, parts, answered)
            parts, answered = [], []
        parts.append(piece)
    yield from _turn(answer, parts, answered)


def _asked(parts: list[Part], answered: list[tuple[int, ToolResult]], result: ToolResult) -> int:
    """Returns the position of the call that a result answers; that of none is behind all."""
    taken = {at for at, _ in answered}
    calls = [(at, one) for at, one in enumerate(parts) if isinstance(one, ToolCall)]
    free = [(at, call) for at, call in calls if at not in taken]
    if result.call_id is not None:
        same = [at for at, call in free if call.id == result.call_id]
        if same:
            return same[0]
    same = [at for at, call in free if call.name == result.name and call.id is None]
    if same:
        return same[-1]
    return free[0][0] if free and result.call_id is None else len(parts)


def _turn(
    answer: Message, parts: list[Part], answered: list[tuple[int, ToolResult]]
) -> Iterator[Message]:
    if parts:
        yield replace(answer, parts=tuple(parts))
    for _, result in sorted(answered, key=lambda item: item[0]):
        yield Message("tool", (result,))
