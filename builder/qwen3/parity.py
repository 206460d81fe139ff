"""Determines parity with inference: is a turn trained after the bytes that a server renders?

An assistant turn is in parity in a mode of inference (thinking, non-thinking) if
`apply_chat_template(messages before it, add_generation_prompt=True, enable_thinking=…)` is a byte
prefix of the rendering in which the turn is trained (docs/parity.md). Rendering every
prefix would take one rendering per turn; the rendering of the sample suffices:

- The messages before a turn render alike with and without the later ones, except for thoughts: the
  template shows thoughts only after the last query, so a later query hides earlier thoughts.
- The generation prompt must follow these messages in the rendering. In non-thinking mode and
  without thoughts, this is so only at the last turn, where the template writes the empty think
  block.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from builder.qwen3.render import Rendering, is_response, last_query, shown_thought
from builder.qwen3.style import SPECIFIED, Style, Thoughts

MODES = {"thinking": True, "non-thinking": False}
"""{mode of inference: its value of `enable_thinking`}."""

ASSISTANT = SPECIFIED.assistant
"""The header of an assistant turn in ChatML."""

Spans = tuple[tuple[int, int], ...]


def spans(rendering: Rendering, prompt: str, header: str = ASSISTANT) -> Spans:
    """Returns [start, end) of each assistant turn's trained text, after the generation prompt.

    `prompt` is the generation prompt of the mode, which begins with the `header`. A turn that does
    not start with all of it (only the last turn has the empty think block) is trained from right
    after its header.
    """
    tail = prompt.removeprefix(header)
    return tuple(
        (start + len(tail) if rendering.text.startswith(tail, start) else start, end)
        for start, end in rendering.answers
    )


def in_parity(
    messages: Sequence[tuple[str, str]],
    rendering: Rendering,
    prompts: Mapping[str, str],
    style: Style,
    thoughts: Sequence[str] = (),
) -> tuple[frozenset[str], ...]:
    """Returns, for each assistant turn, the modes in which it is in parity.

    `prompts` maps each mode to its generation prompt; `thoughts` are those beside the messages.
    """
    hides = style.thoughts in (Thoughts.hybrid, Thoughts.current)  # a later query hides thoughts
    same = same_context(messages, style, thoughts) if hides else [True] * len(rendering.answers)
    begins = [start - len(style.assistant) for start, _ in rendering.answers]
    return tuple(
        frozenset(mode for mode in prompts if rendering.text.startswith(prompts[mode], begin))
        if equal
        else frozenset()
        for equal, begin in zip(same, begins, strict=True)
    )


def same_context(
    messages: Sequence[tuple[str, str]], style: Style = SPECIFIED, thoughts: Sequence[str] = ()
) -> list[bool]:
    """Returns for each assistant turn whether later messages leave its context unchanged."""
    whole = last_query(messages, style)
    always = style.thoughts is Thoughts.current and style.fills
    thoughtful: list[int] = []
    same: list[bool] = []
    query: int | None = None
    for at, (role, content) in enumerate(messages):
        if role == "user" and not is_response(content, style):
            query = at
        if role != "assistant":
            continue
        # Without a query the template uses the last index.
        alone = at - 1 if query is None else query
        low, high = sorted((alone, whole))
        # A thought between the two boundaries is shown in one rendering and hidden in the other.
        equal = bisect_right(thoughtful, high) == bisect_right(thoughtful, low)
        if equal and at and messages[at - 1][0] == "assistant":
            before = messages[at - 1][1]
            equal = shown_thought(before, after_query=at - 1 > alone, last=True) == shown_thought(
                before, after_query=at - 1 > whole, last=False
            )
        same.append(equal)
        beside = bool(thoughts and thoughts[at])
        if always or beside or shown_thought(content, after_query=True, last=False)[0]:
            thoughtful.append(at)
    return same


def counts(turns: Sequence[frozenset[str]]) -> dict[str, int]:
    """Returns {mode: number of turns in parity} for every mode."""
    return {mode: sum(mode in modes for modes in turns) for mode in MODES}
