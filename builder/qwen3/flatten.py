"""Converts a Dialogue to a Sample (the specification's flat form) or to structured messages."""

from __future__ import annotations

from typing import Any

from builder.conversation import Json
from builder.sample import Call, Dialogue, Sample, Turn, Weights


def flatten(dialogue: Dialogue) -> Sample:
    """Makes the training record: calls as `<tool_call>` text, results as `<tool_response>` turns.

    If a turn is not trained, every assistant message has a weight, 0 or 1.
    """
    weights: Weights = ()
    if any(turn.role == "assistant" and not turn.trained for turn in dialogue.turns):
        weights = tuple(
            int(turn.trained) if turn.role == "assistant" else None for turn in dialogue.turns
        )
    return Sample(tuple(flat_turn(turn) for turn in dialogue.turns), dialogue.tools, weights)


def flat_turn(turn: Turn) -> tuple[str, str]:
    """Returns the role and the content of the turn as one message."""
    if turn.role == "tool":
        blocks = (f"<tool_response>\n{text}\n</tool_response>" for text in turn.responses)
        return "user", "\n".join(blocks)
    if turn.role != "assistant":
        return turn.role, turn.content
    pieces = [turn.content] if turn.content else []
    pieces += [call_text(call) for call in turn.calls]
    thought = f"<think>\n{turn.reasoning}\n</think>\n\n" if turn.reasoning else ""
    return "assistant", thought + "\n".join(pieces)


def call_text(call: Call) -> str:
    """Writes a call as the template does."""
    return f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.text}}}\n</tool_call>'


def structured(dialogue: Dialogue) -> list[dict[str, Any]]:
    """Makes the messages in the structured form that an inference server renders.

    Arguments that `tojson` would write differently are passed as their JSON text, which the
    template inserts verbatim (verification.md, `structured`).
    """
    messages: list[dict[str, Any]] = []
    for turn in dialogue.turns:
        if turn.role == "tool":
            messages += [{"role": "tool", "content": text} for text in turn.responses]
            continue
        message: dict[str, Any] = {"role": turn.role, "content": turn.content}
        if turn.role == "assistant":
            if turn.reasoning or "</think>" in turn.content:
                # Defined even if empty: otherwise the template looks for thoughts in the text.
                message["reasoning_content"] = turn.reasoning
            if turn.calls:
                message["tool_calls"] = [
                    {
                        "type": "function",
                        "function": {"name": call.name, "arguments": _arguments(call)},
                    }
                    for call in turn.calls
                ]
        messages.append(message)
    return messages


def _arguments(call: Call) -> Json:
    return call.arguments if call.text == call.plain else call.text
