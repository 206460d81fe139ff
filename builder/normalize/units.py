"""Divides a dialogue into training units: the samples, and the turns that each one trains.

- `conversation`: the whole dialogue, every assistant turn a target
- `query`: one sample for each user query, which ends with its answer
- `turn`: one sample for each assistant turn, which ends with this turn

Each target of the dialogue is a target of exactly one sample; the turns before it are context. The
template shows only the thoughts after the last query (its
`last_query_index`), so a sample keeps only those.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, count, pairwise
from operator import is_not

from builder.qwen3.flat import sent_back
from builder.qwen3.render import render_sample
from builder.qwen3.templates import SPECIFIED, Style, Thoughts
from builder.qwen3.tokenizer import Target
from builder.qwen3.tokens import TokenSequence
from builder.sample import Dialogue, Sample, Turn

UNITS = ("conversation", "query", "turn")


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """A dialogue for one sample; it ends with its last target.

    targets  ordinals of its targets among its assistant turns, from 0
    origins  for each of its assistant turns the ordinal in the whole dialogue
    changes  {code: count} of changes in this example only: `reasoning_dropped` counts thoughts that
             the template would not show
    """

    dialogue: Dialogue
    targets: tuple[int, ...]
    origins: tuple[int, ...]
    changes: Mapping[str, int] = field(default_factory=dict)


def examples(dialogue: Dialogue, unit: str, style: Style = SPECIFIED) -> Iterator[TrainingExample]:
    """Yields the examples of a dialogue, in order. A dialogue ends with an assistant turn.

    `style` is that of the chat template, which shows all thoughts or only those of the last query.
    """
    start = 0
    for end in _ends(dialogue.turns, unit, style):
        turns = enumerate(dialogue.turns[start:end], start)
        targets = [at for at, turn in turns if turn.role == "assistant" and turn.trained]
        start = end
        if targets:
            yield example(dialogue, range(targets[-1] + 1), targets, style)


def example(
    dialogue: Dialogue,
    places: Sequence[int],
    targets: Collection[int],
    style: Style = SPECIFIED,
    *,
    weighted: bool = False,
) -> TrainingExample:
    """Makes the example of the turns at `places`, where those at `targets` are trained.

    If `weighted`, or if it contains a turn that is not a target of the dialogue, all turns except
    its targets are marked as not trained, so that the weights identify exactly the targets.
    """
    assistant = (at for at, turn in enumerate(dialogue.turns) if turn.role == "assistant")
    ordinals = {at: ordinal for ordinal, at in enumerate(assistant)}
    turns, dropped = _visible(tuple(dialogue.turns[at] for at in places), style)
    answers = [at for at in places if at in ordinals]
    if weighted or not all(dialogue.turns[at].trained for at in answers):
        turns = tuple(
            replace(turn, trained=at in targets) if at in ordinals else turn
            for at, turn in zip(places, turns, strict=True)
        )
    return TrainingExample(
        replace(dialogue, turns=turns),
        tuple(ordinal for ordinal, at in enumerate(answers) if at in targets),
        tuple(ordinals[at] for at in answers),
        {"reasoning_dropped": dropped} if dropped else {},
    )


def with_history(item: TrainingExample, server: str, style: Style) -> TrainingExample:
    """Returns the example with its context as a server renders it; counts `history_sent_back`.

    Turns that are trained stay as the model writes them.
    """
    targets = set(item.targets)
    ordinals = count()
    turns = tuple(
        sent_back(server, turn, style)
        if turn.role == "assistant" and next(ordinals) not in targets
        else turn
        for turn in item.dialogue.turns
    )
    changed = sum(map(is_not, turns, item.dialogue.turns))
    if not changed:
        return item
    return replace(
        item,
        dialogue=replace(item.dialogue, turns=turns),
        changes={**item.changes, "history_sent_back": changed},
    )


def _ends(turns: tuple[Turn, ...], unit: str, style: Style) -> Iterator[int]:
    """Yields the ends of the examples, each after an assistant turn.

    A query that follows tool responses does not end an example, because the assistant has not yet
    answered the earlier query, unless the template would hide a thought that is trained.
    """
    hides = unit == "query" and style.thoughts is not Thoughts.every
    has_thought = False
    for at, turn in enumerate(turns):
        is_last = at == len(turns) - 1
        has_thought |= hides and turn.trained and bool(turn.reasoning)
        after = at + 1 if is_last or not has_thought or turns[at + 1].role != "tool" else at + 2
        ends_query = after >= len(turns) or turns[after].role in ("user", "system")
        ends_unit = unit == "turn" or (unit == "query" and ends_query)
        if is_last or (turn.role == "assistant" and ends_unit):
            has_thought = False
            yield at + 1


def _visible(turns: tuple[Turn, ...], style: Style) -> tuple[tuple[Turn, ...], int]:
    """Returns (turns without the thoughts that the template hides, number of these thoughts)."""
    if style.thoughts is Thoughts.every:
        return turns, 0
    query = max((at for at, turn in enumerate(turns) if turn.role == "user"), default=-1)
    hidden = sum(bool(turn.reasoning) for turn in turns[:query])
    if not hidden:
        return turns, 0
    visible = tuple(replace(turn, reasoning="") for turn in turns[:query])
    return visible + turns[query:], hidden


# -- shortens samples that are too long ------------------------------------------------------------

_SLACK = 8
"""Tokens of the empty think block that the template puts before the last turn of a window (4)."""

_HISTORY_SHARE = 4
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
    head = sum(sizes[: begins[0]]) + _SLACK

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
        room = limit // _HISTORY_SHARE
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


def turn_sizes(sample: Sample, count: int, target: Target) -> list[int]:
    """Returns the number of tokens of each of the `count` turns; the first includes the tools."""
    begin = target.style.markers.begin  # an added token: no other token crosses its boundary
    text = render_sample(sample, target.style).text
    sizes = [len(target.encode(begin + piece)) for piece in text.split(begin)[1:]]
    extra = len(sizes) - count  # a system turn that the template adds for the tools
    return [sum(sizes[: extra + 1]), *sizes[extra + 1 :]]


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
