"""Training units: which pieces of a dialogue become samples, and which turns each one teaches.

- `conversation`: the whole dialogue, every assistant turn taught (the specification's form)
- `query`: one sample for each user query, up to the answer to it
- `turn`: one sample for each assistant turn, which is its last

Each assistant turn of the dialogue is taught in exactly one sample; what stands before it is
context. The template shows the thoughts after the last query only (last_query_index,
qwen3-template-pitfalls.md A1), so a sample keeps those and loses the earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from builder.sample import Dialogue, Turn

UNITS = ("conversation", "query", "turn")


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """A dialogue to make a sample of.

    unit              what `meta.unit` says: "turn" whenever the last turn calls and is itself to be
                      learnt, else the unit asked for
    trained           how many of its last assistant turns it teaches
    thoughts_dropped  thoughts that the template would not show
    """

    dialogue: Dialogue
    unit: str
    trained: int
    thoughts_dropped: int = 0


def examples(dialogue: Dialogue, unit: str) -> Iterator[TrainingExample]:
    """The examples of a dialogue, in order. A dialogue ends with an assistant turn."""
    start = 0
    for end in _ends(dialogue.turns, unit):
        trained = sum(turn.role == "assistant" for turn in dialogue.turns[start:end])
        turns, dropped = _visible(dialogue.turns[:end])
        written = "turn" if turns[-1].calls else unit
        yield TrainingExample(replace(dialogue, turns=turns), written, trained, dropped)
        start = end


def _ends(turns: tuple[Turn, ...], unit: str) -> Iterator[int]:
    """Where the examples end: after an assistant turn.

    A query that comes while tool responses wait for an answer does not end an example: the turn
    that called would be left without its answer.
    """
    for at, turn in enumerate(turns):
        last = at == len(turns) - 1
        answered = turn.role == "assistant" and (last or turns[at + 1].role == "user")
        if (unit == "turn" and turn.role == "assistant") or (unit == "query" and answered) or last:
            yield at + 1


def _visible(turns: tuple[Turn, ...]) -> tuple[tuple[Turn, ...], int]:
    """The turns without the thoughts before the last query, and how many those were."""
    query = max((at for at, turn in enumerate(turns) if turn.role == "user"), default=-1)
    hidden = sum(bool(turn.reasoning) for turn in turns[:query])
    if not hidden:
        return turns, 0
    seen = tuple(replace(turn, reasoning="") for turn in turns[:query])
    return seen + turns[query:], hidden
