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
from builder.normalize.options import LengthOptions
from builder.normalize.units import examples
from builder.problem import UsageError
from builder.qwen3.flatten import flat_turn
from builder.sources.copies import is_remote

INPUTS = 48
"""Number of inputs to sample, evenly spaced."""
CONVERSATIONS = 8
"""Number of conversations to take from each."""
MAX_BYTES = 8 << 20
"""A larger file is skipped unless its reader yields conversations line by line."""
LARGE = 3.0
"""A warning is printed from this factor on."""
TOKEN = 3.5
"""Code points of a token, to compare lengths with `limits.max_tokens`."""


@dataclass(frozen=True, slots=True)
class UnitCost:
    """The text of a unit as a multiple of the text of `conversation`, measured on a few.

    `files` were read for it, of `of_files`.
    """

    factor: float
    conversations: int
    files: int
    of_files: int


def unit_cost(tasks: Sequence[Task]) -> UnitCost | None:
    """Estimates the cost of the unit of the tasks; None if no conversation could be measured."""
    whole = repeated = 0.0
    conversations = 0
    chosen = tasks[:: max(len(tasks) // INPUTS, 1)]
    for task in chosen:
        for conversation in islice(_conversations(task), CONVERSATIONS):
            dialogue = normalise(conversation, task.options).dialogue
            if dialogue is None:
                continue
            contents = (len(flat_turn(turn)[1]) for turn in dialogue.turns)
            sizes = list(accumulate(contents, initial=len(dumps(list(dialogue.tools)))))
            whole += _within(task.lengths, sizes[-1], sizes[-1])
            written = 0
            for example in examples(dialogue, task.options.unit, task.options.style):
                size = sizes[len(example.dialogue.turns)]
                repeated += _within(task.lengths, size, size - written)
                written = size
            conversations += 1
    if not whole:
        return None
    files, of_files = ({task.origin for task in some} for some in (chosen, tasks))
    return UnitCost(repeated / whole, conversations, len(files), len(of_files))


def _within(limits: LengthOptions, size: int, own: int) -> float:
    """Returns the text of an example within the limits; `own` is what no example before it has."""
    most = (limits.max_tokens or 0) * TOKEN
    if not most or size <= most:
        return size
    return {"split": max(own, most), "cut": most, "reject": 0.0}[limits.too_long]


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
