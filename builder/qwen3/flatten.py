"""Converts a Dialogue to a Sample (text as the target writes it) or to structured messages."""

from __future__ import annotations

from typing import Any

from builder.qwen3.style import SPECIFIED, Style
from builder.sample import Dialogue, Sample, Turn, Weights


def flatten(dialogue: Dialogue, style: Style = SPECIFIED) -> Sample:
    """Makes the training record: calls as `<tool_call>` text, results as `<tool_response>` turns.

    If a turn is not trained, every assistant message has a weight, 0 or 1. Thoughts are part of the
    text, unless the template reads them only beside it (`Style.beside`).
    """
    weights: Weights = ()
    if any(turn.role == "assistant" and not turn.trained for turn in dialogue.turns):
        weights = tuple(
            int(turn.trained) if turn.role == "assistant" else None for turn in dialogue.turns
        )
    thoughts: tuple[str, ...] = ()
    if style.beside and any(turn.reasoning for turn in dialogue.turns):
        thoughts = tuple(turn.reasoning for turn in dialogue.turns)
    messages = tuple(flat_turn(turn, style) for turn in dialogue.turns)
    return Sample(messages, dialogue.tools, weights, thoughts)


def flat_turn(turn: Turn, style: Style = SPECIFIED) -> tuple[str, str]:
    """Returns the role and the content of the turn as one message."""
    if turn.role == "tool":
        before, after = style.response_edges
        blocks = (f"<tool_response>\n{text}\n</tool_response>" for text in turn.responses)
        return "user", before + "\n".join(blocks) + after
    if turn.role != "assistant":
        return turn.role, turn.content
    write = style.dialect.write
    body = style.between_calls.join(write(call) for call in turn.calls)
    if turn.content:
        body = turn.content + style.before_call + body if body else turn.content
    is_inside = turn.reasoning and not style.beside
    return "assistant", f"<think>\n{turn.reasoning}\n</think>\n\n{body}" if is_inside else body


def structured(dialogue: Dialogue, style: Style = SPECIFIED) -> list[dict[str, Any]]:
    """Makes the messages in the structured form that an inference server renders."""
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
                        "function": {"name": call.name, "arguments": style.dialect.served(call)},
                    }
                    for call in turn.calls
                ]
        messages.append(message)
    return messages
