"""Parity with inference: is a turn trained in the bytes that a server would have shown before it?

For an assistant turn and a mode of inference (thinking, non-thinking) the question is whether
`apply_chat_template(messages before it, add_generation_prompt=True, enable_thinking=…)` is a byte
prefix of the rendering in which the turn is trained (verification.md, `parity`). Asking the
template so for every turn costs a rendering each; the answer follows from the one rendering:

- What stands before a turn is rendered the same with and without what follows, but for thoughts:
  they are shown after the last query only, and a later query hides those of earlier turns.
- The generation prompt itself is there if the rendering goes on with it. Without thoughts that is
  so for the last turn only in non-thinking mode: the template writes the empty think block there
  and nowhere else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from builder.conversation import Json
from builder.qwen3.render import Rendering, is_response, last_query, shown_thought
from builder.qwen3.style import Style, Thoughts

MODES = ("thinking", "non-thinking")

ASSISTANT = "<|im_start|>assistant\n"

Spans = tuple[tuple[int, int], ...]


def spans(rendering: Rendering, prompt: str) -> Spans:
    """[start, end) of each assistant turn's trained text: what follows the generation prompt.

    `prompt` is the mode's. A turn that the template begins otherwise (the empty think block stands
    before the last only) is trained from after the beginning of the assistant turn.
    """
    tail = prompt.removeprefix(ASSISTANT)
    return tuple(
        (start + len(tail) if rendering.text.startswith(tail, start) else start, end)
        for start, end in rendering.answers
    )


def in_parity(
    messages: Sequence[tuple[str, str]],
    rendering: Rendering,
    prompts: Mapping[str, str],
    style: Style,
) -> tuple[frozenset[str], ...]:
    """For each assistant turn the modes in which it is in parity. `prompts` is {mode: prompt}."""
    hybrid = style.thoughts is Thoughts.hybrid  # in the others no later query hides a thought
    same = same_context(messages) if hybrid else [True] * len(rendering.answers)
    begins = [start - len(ASSISTANT) for start, _ in rendering.answers]
    return tuple(
        frozenset(mode for mode in prompts if rendering.text.startswith(prompts[mode], begin))
        if equal
        else frozenset()
        for equal, begin in zip(same, begins, strict=True)
    )


def same_context(messages: Sequence[tuple[str, str]]) -> list[bool]:
    """For each assistant turn: do the messages before it render alike alone and in the whole?"""
    whole = last_query(messages)
    thoughtful: list[int] = []
    same: list[bool] = []
    query: int | None = None
    for at, (role, content) in enumerate(messages):
        if role == "user" and not is_response(content):
            query = at
        if role != "assistant":
            continue
        alone = at - 1 if query is None else query  # without any query the last index counts
        low, high = sorted((alone, whole))
        # A thought between the two borders is shown in one rendering and hidden in the other.
        equal = bisect_right(thoughtful, high) == bisect_right(thoughtful, low)
        if equal and at and messages[at - 1][0] == "assistant":
            before = messages[at - 1][1]
            equal = shown_thought(before, after_query=at - 1 > alone, last=True) == shown_thought(
                before, after_query=at - 1 > whole, last=False
            )
        same.append(equal)
        if shown_thought(content, after_query=True, last=False)[0]:
            thoughtful.append(at)
    return same


def counts(turns: Sequence[frozenset[str]]) -> dict[str, Json]:
    """{mode: turns in parity}, every mode named."""
    return {mode: sum(mode in modes for modes in turns) for mode in MODES}
