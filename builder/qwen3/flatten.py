"""Dialogue → training record, and Dialogue → the structured form that a server renders."""

from __future__ import annotations

from builder.conversation import Json
from builder.jsonio import dumps
from builder.qwen3.markup import write_responses
from builder.sample import Call, Dialogue, Sample, Turn


def flatten(dialogue: Dialogue) -> Sample:
    """The record whose rendering is that of `structured(dialogue)`.

    This holds for dialogues as Dialogue and Turn describe them: no control tokens in their texts,
    no leading newlines in an assistant's content, thoughts only after the last user turn.
    """
    return Sample(tuple(_message(turn) for turn in dialogue.turns), dialogue.tools)


def _message(turn: Turn) -> tuple[str, str]:
    if turn.role == "tool":
        return "user", write_responses(turn.responses)
    if turn.role != "assistant":
        return turn.role, turn.content
    content = "\n".join([*([turn.content] if turn.content else []), *map(write_call, turn.calls)])
    if turn.reasoning:
        content = f"<think>\n{turn.reasoning}\n</think>\n\n{content}"
    return "assistant", content


def write_call(call: Call) -> str:
    """A call with its tags."""
    return f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.text}}}\n</tool_call>'


def structured(dialogue: Dialogue) -> tuple[list[dict[str, Json]], list[Json] | None]:
    """(messages, tools) as `apply_chat_template` takes them: tool_calls, role tool, thoughts apart.

    The arguments of a call whose markup was neutralised are passed as their exact text, which the
    template inserts as it is; all others as the value, which its `tojson` writes.
    """
    messages: list[dict[str, Json]] = []
    for turn in dialogue.turns:
        if turn.role == "tool":
            messages += [{"role": "tool", "content": response} for response in turn.responses]
            continue
        message: dict[str, Json] = {"role": turn.role, "content": turn.content}
        if turn.reasoning:
            message["reasoning_content"] = turn.reasoning
        if turn.calls:
            message["tool_calls"] = [_tool_call(call) for call in turn.calls]
        messages.append(message)
    return messages, list(dialogue.tools) or None


def _tool_call(call: Call) -> Json:
    verbatim = call.text != dumps(call.arguments)
    arguments: Json = call.text if verbatim else call.arguments
    return {"type": "function", "function": {"name": call.name, "arguments": arguments}}
