"""The steps of a platform's trace as its reader hands them on, before they are put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from builder.conversation import Json, Message
from builder.problem import Problem
from builder.readers.traces.any_vendor.answers import Outcome
from builder.readers.traces.any_vendor.parts import PartNotes


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What a step says of its call of a model.

    messages      of the request, as logged
    notes         what reading the request left open, `answer_notes` what reading the answer did
    failed        the platform marks the step as failed; `error` is its own message
    response      id of the response, `previous` that of the one that the request went on from
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
    order   texts that sort as the steps began
    code    under which it is ignored if it calls no model
    nests   a tool or an agent: a call of a model below it is not the call above it
    agent   its `system` text holds for the calls below it as well
    output  what a step without a call of a model logs as its result, None if not needed
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
