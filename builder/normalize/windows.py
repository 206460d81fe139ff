"""Shortens samples that are too long: divides dialogues into windows, cuts long tool responses.

A window consists of the head of the dialogue and consecutive steps. The head is everything before
the first assistant turn: system text, tools, and the query or, after a compaction, the summary. A
step is an assistant turn with everything up to the next one, so a call is never separated from its
result. Every window but the first repeats the step before its first new target, because the target
answers that step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from builder.qwen3.tokens import TokenSequence
from builder.sample import Dialogue, Turn

SLACK = 8
"""Tokens of the empty think block that the template puts before the last turn of a window (4)."""

HISTORY_SHARE = 4
"""Steps repeated only as context take at most 1/4 of a window from its targets."""


@dataclass(frozen=True, slots=True)
class Window:
    """A piece of a dialogue.

    places    indices of its turns
    targets   indices of the targets that are trained here and in no earlier window
    repeated  indices of the assistant turns that earlier windows also contain
    skipped   number of assistant turns between the head and the first step
    """

    places: tuple[int, ...]
    targets: tuple[int, ...]
    repeated: tuple[int, ...]
    skipped: int


def plan_windows(
    turns: Sequence[Turn],
    targets: Collection[int],
    sizes: Sequence[int],
    limit: int,
    *,
    only_first: bool = False,
) -> tuple[list[Window], list[int]]:
    """Covers the targets with windows of at most `limit` tokens.

    `sizes` are the tokens of each turn; the first one includes the tools. `only_first`: returns
    only one window, the longest beginning of the dialogue. Returns (windows, targets that do not
    fit).
    """
    begins = [at for at, turn in enumerate(turns) if turn.role == "assistant"]
    steps = list(pairwise([*begins, len(turns)]))
    sums = list(accumulate((sum(sizes[a:b]) for a, b in steps), initial=0))
    head = sum(sizes[: begins[0]]) + SLACK

    def fits(first: int, last: int) -> bool:
        return head + sums[last] - sums[first] + sizes[begins[last]] <= limit

    windows: list[Window] = []
    no_room: list[int] = []
    wanted = [step for step, at in enumerate(begins) if at in targets]
    while wanted:
        new = wanted[0]
        first = 0 if only_first else max(new - 1, 0)
        if not fits(first, new):
            no_room.append(begins[wanted.pop(0)])
            continue
        room = limit // HISTORY_SHARE
        while first and sums[new] - sums[first - 1] <= room and fits(first - 1, new):
            first -= 1
        last = new
        while last + 1 < len(steps) and fits(first, last + 1):
            last += 1
        last = max(step for step in wanted if step <= last)
        while first and fits(first - 1, last):
            first -= 1
        windows.append(
            Window(
                (*range(begins[0]), *range(begins[first], begins[last] + 1)),
                tuple(begins[step] for step in wanted if step <= last),
                tuple(begins[first:new]),
                first,
            )
        )
        wanted = [step for step in wanted if step > last]
        if only_first:
            return windows, [*no_room, *(begins[step] for step in wanted)]
    return windows, no_room


def shorten_responses(
    dialogue: Dialogue, limit: int, encode: Callable[[str], TokenSequence]
) -> tuple[Dialogue, int]:
    """Cuts the middle out of tool responses of more than `limit` tokens, and counts them.

    The first and last tokens that remain are `limit` in all. A line between them gives the number
    of tokens left out.
    """
    count = 0

    def shortened(text: str) -> str:
        nonlocal count
        if len(text.encode("utf-8", "surrogatepass")) <= limit:
            return text  # a token is at least a byte
        tokens = encode(text)
        if len(tokens) <= limit:
            return text
        count += 1
        tail = limit // 2
        mark = f"[… {len(tokens) - limit} tokens left out …]"
        return f"{tokens.first(limit - tail)}\n{mark}\n{tokens.last(tail)}"

    turns = tuple(
        replace(turn, responses=tuple(map(shortened, turn.responses))) if turn.responses else turn
        for turn in dialogue.turns
    )
    return (replace(dialogue, turns=turns) if count else dialogue), count
