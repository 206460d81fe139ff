"""The steps of a platform's trace as its reader returns them, before they become conversations."""

from __future__ import annotations

from dataclasses import dataclass, field

from builder.conversation import Json, Message
from builder.problem import Problem
from builder.readers.traces.any_vendor.answers import Outcome
from builder.readers.traces.any_vendor.parts import PartNotes


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A model call as a step logs it.

    messages      of the request, as logged
    notes         problems found while reading the request; `answer_notes` those of the answer
    failed        the platform marks the step as failed; `error` is its message
    response      id of the response; `previous` is the id of the response it continues
    """

    messages: tuple[Message, ...]
    outcome: Outcome
    notes: PartNotes
    answer_notes: PartNotes = field(default_factory=PartNotes)
    tools: tuple[Json, ...] | None = None
    model: str | None = None
    failed: bool = False
    error: str = ""
    response: str | None = None
    previous: str | None = None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trace: an observation, a run.

    where   place of its record, unique in the source
    order   texts that sort in the order in which the steps began
    code    the code under which it is ignored if it calls no model
    nests   a tool or an agent: a call of a model below it is not the call above it
    agent   its `system` text also applies to the calls below it
    output  the logged result of a step without a model call, None if not needed
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
