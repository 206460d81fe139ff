"""Defines the steps of a platform's trace, which become conversations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from builder.conversation import Json, Message
from builder.problem import Problem
from builder.readers.toolkit.links import upwards
from builder.readers.traces.any_vendor.answers import Outcome
from builder.readers.traces.any_vendor.parts import PartNotes


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A model call as a step logs it.

    messages      messages of the request, as logged
    notes         findings while the request was read
    answer_notes  findings while the answer was read
    failed        whether the platform marks the step as failed; `error` is its message
    is_empty      whether an output was logged that contains nothing
    response      id of the response; `previous` is the id of the response that it continues
    """

    messages: tuple[Message, ...]
    outcome: Outcome
    notes: PartNotes
    answer_notes: PartNotes = field(default_factory=PartNotes)
    tools: tuple[Json, ...] | None = None
    model: str | None = None
    failed: bool = False
    error: str = ""
    is_empty: bool = False
    response: str | None = None
    previous: str | None = None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trace: an observation or a run.

    where   place of its record, unique in the source
    order   a text by which steps are sorted in the order in which they began
    code    the code under which it is ignored if it calls no model
    nests   whether it is a tool or an agent, so that model calls inside it and around it differ
    agent   whether its `system` text also applies to the calls inside it
    output  the logged result of a step without a model call; None if it is not needed
    """

    where: str
    id: str | None
    parent: str | None
    order: str
    code: str
    nests: bool = False
    agent: bool = False
    system: str = ""
    call: ModelCall | None = None
    output: Json = None


def enclosing(step: Step, by_id: Mapping[str, Step]) -> Iterator[Step]:
    """Yields the steps around a step, the innermost first."""
    parents = upwards(
        step.parent, lambda one: by_id[one].parent if one in by_id else None, until={step.id}
    )
    return (by_id[one] for one in parents if one in by_id)
