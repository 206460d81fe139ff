"""Supplies the results that an agent program sends for unanswered calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from builder.conversation import Message, ToolCall, ToolResult


def supply_results(
    messages: Iterable[Message], result: Callable[[ToolCall], ToolResult | None]
) -> tuple[list[Message], int]:
    """Returns the messages with a result for each unanswered call, and the number of added results.

    For agent programs that answer such calls themselves in later requests. The result of a call is
    expected before the next message of the user or the model. Calls of the last turn stay
    unanswered if no message follows, and so does one for which `result` returns None.
    """
    answered: list[Message] = []
    pending: list[ToolCall] = []
    turn: str | None = None
    supplied = 0
    for message in messages:
        continues = message.role == "assistant" and turn is not None and message.turn == turn
        if message.role != "tool" and not continues:
            added = [answer for call in pending if (answer := result(call)) is not None]
            answered += [Message("tool", (answer,)) for answer in added]
            supplied += len(added)
            pending = []
        if message.role == "assistant":
            turn = message.turn
            pending += [part for part in message.parts if isinstance(part, ToolCall)]
        for part in message.parts:
            if isinstance(part, ToolResult):
                _remove_answered(pending, part)
        answered.append(message)
    return answered, supplied


def _remove_answered(pending: list[ToolCall], result: ToolResult) -> None:
    """Removes the call that a result answers from the pending calls."""
    fitting: Sequence[ToolCall] = pending
    if result.call_id is not None:
        fitting = [call for call in pending if call.id in (None, result.call_id)]
    if fitting:
        pending.remove(fitting[0])
