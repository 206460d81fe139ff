"""Merges nested steps that log the same model call.

A framework's step contains its provider's step, and both log the call as their instrumentations saw
it (docs/formats/langfuse.md). The inner step is closer to the request. If its messages or its
answer cannot be read (plain text, "None", nothing), those of the enclosing step are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, takewhile

from builder.problem import Problem
from builder.readers.toolkit.chat_messages import has_unknown_parts
from builder.readers.toolkit.comparison import calls
from builder.readers.traces.any_vendor.answers import Outcome, read_outcome
from builder.readers.traces.any_vendor.parts import PartNotes
from builder.readers.traces.platforms.model_call import ModelCall, Step, enclosing

MAX_DEPTH = 100
"""Maximum number of enclosing steps that are considered."""


def resolve(steps: Sequence[Step]) -> Iterator[tuple[Step, ModelCall | str]]:
    """Yields each step with its model call, or with the code under which it is ignored.

    The steps must be those of one trace, in the order in which they began.
    """
    by_id = {step.id: step for step in steps if step.id is not None}
    inner: dict[str, list[Step]] = {}  # by step id: the model calls inside it
    for step in steps:
        if step.call is not None:
            for around in _around(step, by_id):
                inner.setdefault(around.id or "", []).append(step)
    # By the place of a step.
    resolved = {step.where: step.code if step.call is None else step.call for step in steps}
    for step in reversed(steps):  # inner steps before the steps around them
        within = [one for one in inner.get(step.id or "", ()) if one.id not in inner]
        if within:
            _choose(step, within, resolved)
    for step in steps:
        yield step, resolved[step.where]


def _around(step: Step, by_id: Mapping[str, Step]) -> Iterator[Step]:
    """Yields the steps around a call, innermost first, up to the next tool or agent."""
    nearest = islice(enclosing(step, by_id), MAX_DEPTH)
    return takewhile(lambda around: not around.nests, nearest)


def _choose(step: Step, within: Sequence[Step], resolved: dict[str, ModelCall | str]) -> None:
    """Chooses between a step and the innermost calls inside it, and updates `resolved`."""
    outer = resolved[step.where]
    if not isinstance(outer, ModelCall) and step.output is None:
        return
    calls_inside = ((one.where, resolved[one.where]) for one in within)
    inside = [(where, call) for where, call in calls_inside if isinstance(call, ModelCall)]
    if not isinstance(outer, ModelCall):
        if len(inside) == 1 and not inside[0][1].outcome.answers:
            where, call = inside[0]
            resolved[where] = replace(call, outcome=_logged_around(step) or call.outcome)
        return
    logged = [(where, call) for where, call in inside if call.messages or call.outcome.answers]
    if not logged:
        resolved.update((where, "inner_step") for where, _ in inside)
    elif len(logged) == 1:
        where, call = logged[0]
        resolved[where] = _merged(outer, call)
        resolved[step.where] = "wrapper"
    elif _names(outer) <= {name for _, call in logged for name in _names(call)}:
        resolved[step.where] = "wrapper"
    else:
        detail = "its calls are in none of the steps inside it"
        problem = Problem("partial_history", step.where, detail, records=0)
        resolved[step.where] = replace(outer, problems=(*outer.problems, problem))


def _merged(outer: ModelCall, inner: ModelCall) -> ModelCall:
    """Returns the call that both steps log, from the inner step as far as it can be read there."""
    asked = inner if _is_readable(inner) or not _is_readable(outer) else outer
    kept = bool(inner.outcome.answers) and _names(outer) <= _names(inner)
    answered = inner if kept or not outer.outcome.answers else outer
    return replace(
        answered,
        messages=asked.messages,
        notes=asked.notes,
        tools=next((call.tools for call in (asked, answered, outer) if call.tools), asked.tools),
        model=inner.model or outer.model,
        response=inner.response or outer.response,
        previous=asked.previous,
        problems=tuple(dict.fromkeys((*asked.problems, *answered.problems))),
    )


def _is_readable(call: ModelCall) -> bool:
    read = call.messages and not call.notes.unreadable
    return bool(read) and not has_unknown_parts(call.messages)


def _names(call: ModelCall) -> set[str]:
    """Returns the names of the tools that a call's answers call."""
    return {made.name for answer in call.outcome.answers for made in calls(answer.message)}


def _logged_around(step: Step) -> Outcome | None:
    """Returns the tool calls that a step without a model call logs as its output.

    Returns None for text without calls, since the step may have changed it.
    """
    notes = PartNotes()
    outcome = read_outcome(step.output, notes) if step.output is not None else Outcome()
    made = any(calls(answer.message) for answer in outcome.answers)
    return replace(outcome, before=()) if made and not notes.unreadable else None
