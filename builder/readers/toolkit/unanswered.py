"""Calls without a result: what an agent program sends in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from builder.conversation import Message, ToolCall, ToolResult


def supply_results(
    messages: Iterable[Message], result: Callable[[ToolCall], ToolResult]
) -> tuple[list[Message], int]:
    """Returns the messages with a result for each unanswered call, and how many were added.

    For agent programs that answer such calls themselves in each later request. A call is answered
    by the results between its turn and the next message of the user or the model. The calls of the
    last turn stay as they are if nothing follows.
    """
    found: list[Message] = []
    pending: list[ToolCall] = []
    turn: str | None = None
    supplied = 0
    for message in messages:
        continues = message.role == "assistant" and turn is not None and message.turn == turn
        if message.role != "tool" and not continues:
            found += [Message("tool", (result(call),)) for call in pending]
            supplied += len(pending)
            pending = []
        if message.role == "assistant":
            turn = message.turn
            pending += [part for part in message.parts if isinstance(part, ToolCall)]
        for part in message.parts:
            if isinstance(part, ToolResult):
                _answer(pending, part)
        found.append(message)
    return found, supplied


def _answer(pending: list[ToolCall], result: ToolResult) -> None:
    """Takes the call that a result answers out of the pending ones."""
    fitting: Sequence[ToolCall] = pending
    if result.call_id is not None:
        fitting = [call for call in pending if call.id in (None, result.call_id)]
    if fitting:
        pending.remove(fitting[0])
