"""Estimates from a part of the input how much text a training unit will write.

A sample of unit `turn` or `query` repeats everything before its target, so a long conversation is
written many times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice

from builder.build.convert import Task, sole_reader
from builder.conversation import Conversation
from builder.jsonio import dumps
from builder.normalize.normalise import normalise
from builder.normalize.units import examples
from builder.problem import UsageError
from builder.qwen3.flatten import flat_turn
from builder.sources.copies import is_remote

INPUTS = 24
"""Number of inputs to sample, evenly spaced."""
CONVERSATIONS = 8
"""Number of conversations to take from each."""
MAX_BYTES = 2 << 20
"""A larger file is skipped unless its reader yields conversations line by line."""
LARGE = 3.0
"""A warning is printed from this factor on."""


@dataclass(frozen=True, slots=True)
class UnitCost:
    """The text of a unit as a multiple of the text of `conversation`, measured on a few."""

    factor: float
    conversations: int


def unit_cost(tasks: Sequence[Task]) -> UnitCost | None:
    """Estimates the cost of the unit of the tasks; None if no conversation could be measured."""
    whole = repeated = conversations = 0
    step = max(len(tasks) // INPUTS, 1)
    for task in islice(tasks, 0, None, step):
        for conversation in islice(_conversations(task), CONVERSATIONS):
            dialogue = normalise(conversation, task.options).dialogue
            if dialogue is None:
                continue
            contents = (len(flat_turn(turn)[1]) for turn in dialogue.turns)
            sizes = list(accumulate(contents, initial=len(dumps(list(dialogue.tools)))))
            whole += sizes[-1]
            repeated += sum(
                sizes[len(example.dialogue.turns)]
                for example in examples(dialogue, task.options.unit, task.options.style)
            )
            conversations += 1
    return UnitCost(repeated / whole, conversations) if whole else None


def _conversations(task: Task) -> Iterator[Conversation]:
    """Yields the conversations of a task's source; none if that would read a large file whole."""
    if is_remote(task.source) or task.source.members or task.source.path is None:
        return
    copy = replace(task, source=task.source.unread_copy())
    if (reader := sole_reader(copy)) is None:
        return
    try:
        if reader.splits is None and task.source.path.stat().st_size > MAX_BYTES:
            return
        for event in reader.read(copy.source):
            if isinstance(event, Conversation):
                yield event
    except UsageError:
        raise
    except Exception:  # whatever the fault, the build itself reports it
        return
