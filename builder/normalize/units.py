"""Divides a dialogue into training units: the samples, and the turns that each one trains.

- `conversation`: the whole dialogue, every assistant turn a target (the specification's form)
- `query`: one sample for each user query, up to the answer to it
- `turn`: one sample for each assistant turn, which is its last

Each target of the dialogue is a target of exactly one sample; the turns before it are context. The
template shows only the thoughts after the last query (last_query_index, qwen3-template-pitfalls.md
A1), so a sample keeps those and loses the earlier ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from builder.sample import Dialogue, Turn

UNITS = ("conversation", "query", "turn")


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """A dialogue to make a sample of, which ends with its last target.

    targets           ordinals of its targets among its assistant turns, from 0
    origins           ordinal in the whole dialogue of each of its assistant turns
    changes           changes in this example only, {code: count}: `reasoning_dropped`
                      for thoughts that the template would not show
    """

    dialogue: Dialogue
    targets: tuple[int, ...]
    origins: tuple[int, ...]
    changes: Mapping[str, int] = field(default_factory=dict)


def examples(dialogue: Dialogue, unit: str) -> Iterator[TrainingExample]:
    """Yields the examples of a dialogue, in order. A dialogue ends with an assistant turn."""
    start = 0
    for end in _ends(dialogue.turns, unit):
        turns = enumerate(dialogue.turns[start:end], start)
        targets = [at for at, turn in turns if turn.role == "assistant" and turn.trained]
        start = end
        if targets:
            yield example(dialogue, range(targets[-1] + 1), targets)


def example(
    dialogue: Dialogue, places: Sequence[int], targets: Collection[int], *, weighted: bool = False
) -> TrainingExample:
    """Makes the example of the turns at `places`, of which those at `targets` are trained.

    If it has a turn that is not a target of the dialogue, or if `weighted`, all turns except its
    own targets are marked as not trained, so that the weights name exactly the targets.
    """
    ordinals = {
        at: ordinal
        for ordinal, at in enumerate(
            at for at, turn in enumerate(dialogue.turns) if turn.role == "assistant"
        )
    }
    turns, dropped = _visible(tuple(dialogue.turns[at] for at in places))
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


def _ends(turns: tuple[Turn, ...], unit: str) -> Iterator[int]:
    """Returns where the examples end: after an assistant turn.

    A query that comes while tool responses are still unanswered does not end an example, because
    the turn with the calls would be left without its answer.
    """
    for at, turn in enumerate(turns):
        last = at == len(turns) - 1
        answered = turn.role == "assistant" and (last or turns[at + 1].role in ("user", "system"))
        if (unit == "turn" and turn.role == "assistant") or (unit == "query" and answered) or last:
            yield at + 1


def _visible(turns: tuple[Turn, ...]) -> tuple[tuple[Turn, ...], int]:
    """Returns the turns without the thoughts before the last query, and the number of those."""
    query = max((at for at, turn in enumerate(turns) if turn.role == "user"), default=-1)
    hidden = sum(bool(turn.reasoning) for turn in turns[:query])
    if not hidden:
        return turns, 0
    visible = tuple(replace(turn, reasoning="") for turn in turns[:query])
    return visible + turns[query:], hidden
