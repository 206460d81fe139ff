"""Estimates the cost of a training unit from part of the input before the work begins.

A sample of unit `turn` or `query` contains everything before its target, so long conversations are
written many times over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from builder.build.convert import Task
from builder.conversation import Conversation
from builder.jsonio import dumps
from builder.normalize import normalise
from builder.normalize.units import examples
from builder.problem import UsageError
from builder.qwen3.flatten import flatten
from builder.readers import readers, recognise
from builder.sources.copies import is_remote

INPUTS = 24
"""Number of inputs to sample, evenly spaced."""
CONVERSATIONS = 8
"""Number of conversations to take from each."""
MAX_BYTES = 2 << 20
"""A larger file is skipped unless its reader yields conversations line by line."""
LARGE = 3.0
"""The factor from which on a warning is printed."""


@dataclass(frozen=True, slots=True)
class UnitCost:
    """How many times more text another unit gives than `conversation`, measured on a few."""

    factor: float
    conversations: int


def unit_cost(tasks: Sequence[Task]) -> UnitCost | None:
    """Estimates the cost of the unit that the tasks will be built with; None if it has none."""
    whole = repeated = conversations = 0
    step = max(len(tasks) // INPUTS, 1)
    for task in islice(tasks, 0, None, step):
        for conversation in islice(_conversations(task), CONVERSATIONS):
            dialogue = normalise(conversation, task.options).dialogue
            if dialogue is None:
                continue
            sizes = [len(content) for _, content in flatten(dialogue).messages]
            upto = [0, *accumulate(sizes)]
            definitions = len(dumps(list(dialogue.tools)))
            whole += definitions + upto[-1]
            repeated += sum(
                definitions + upto[len(example.dialogue.turns)]
                for example in examples(dialogue, task.options.unit)
            )
            conversations += 1
    return UnitCost(repeated / whole, conversations) if whole else None


def _conversations(task: Task) -> Iterator[Conversation]:
    """Yields conversations of a task's source if they can be obtained without much reading."""
    if is_remote(task.source) or task.source.members or task.source.path is None:
        return
    source = task.source.unread_copy()
    claims = [task.format] if task.format != "auto" else list(recognise(source))
    if len(claims) != 1:
        return
    reader = readers()[claims[0]]
    try:
        if reader.splits is None and task.source.path.stat().st_size > MAX_BYTES:
            return
        for event in reader.read(source):
            if isinstance(event, Conversation):
                yield event
    except UsageError:
        raise
    except Exception:  # whatever the fault, the build itself reports it
        return
