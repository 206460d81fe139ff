"""Divides a dialogue into training units: the samples, and the turns that each one trains.

- `conversation`: the whole dialogue, every assistant turn a target
- `query`: one sample for each user query, which ends with its answer
- `turn`: one sample for each assistant turn, which ends with this turn

Each target of the dialogue is a target of exactly one sample; the turns before it are context. The
template shows only the thoughts after the last query (its
`last_query_index`), so a sample keeps only those.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from operator import is_not

from builder.qwen3.sent_back import sent_back
from builder.qwen3.style import SPECIFIED, Style, Thoughts
from builder.sample import Dialogue, Turn

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
