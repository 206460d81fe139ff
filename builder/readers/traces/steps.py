"""Sorts the steps of platform traces and turns their model calls into conversations.

A step has what its instrumentation saw: the whole request, or only its new messages.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, takewhile

from builder.conversation import Event, Ignored, Json, Media, Message, Part, Text, ToolResult
from builder.problem import Problem
from builder.readers.api.codec import History
from builder.readers.api.exchanges import Exchange
from builder.readers.api.histories import Histories
from builder.readers.toolkit.chat_messages import has_unknown_parts, unreadable_messages
from builder.readers.toolkit.comparison import LoggedAnswers, calls
from builder.readers.toolkit.history import upwards
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, first_of, name_or_none
from builder.readers.toolkit.rows import has_content
from builder.readers.traces.any_vendor import Outcome, read_outcome, with_system
from builder.readers.traces.parts import PartNotes
from builder.sources.source import Source


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
            nearest = islice(enclosing(step, by_id), MAX_DEPTH)
            for around in takewhile(lambda around: not around.nests, nearest):
                inner.setdefault(around.id or "", []).append(step)
    # By the place of a step.
    resolved = {step.where: step.code if step.call is None else step.call for step in steps}
    for step in reversed(steps):  # inner steps before the steps around them
        within = [one for one in inner.get(step.id or "", ()) if one.id not in inner]
        if within:
            _choose(step, within, resolved)
    for step in steps:
        yield step, resolved[step.where]


def _choose(step: Step, within: Sequence[Step], resolved: dict[str, ModelCall | str]) -> None:
    outer = resolved[step.where]
    if not isinstance(outer, ModelCall) and step.output is None:
        return
    calls_inside = ((one.where, resolved[one.where]) for one in within)
    inside = [(where, call) for where, call in calls_inside if isinstance(call, ModelCall)]
    if not isinstance(outer, ModelCall):
        if len(inside) == 1 and not inside[0][1].outcome.answers:
            where, call = inside[0]
            notes = PartNotes()
            around = read_outcome(step.output, notes)
            # Text without calls may be changed by the step.
            made = any(calls(answer.message) for answer in around.answers)
            if made and not notes.unreadable:
                resolved[where] = replace(call, outcome=replace(around, before=()))
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
    return {made.name for answer in call.outcome.answers for made in calls(answer.message)}


@dataclass(slots=True)
class _TraceFacts:
    """Facts about a trace other than its steps, added as its records are read.

    outcome  as `Conversation.outcome`; named scores and feedback are objects keyed by name
    """

    id: str
    session: str = ""
    outcome: dict[str, Json] = field(default_factory=dict)

    def add_scores(self, scores: Iterable[Json]) -> None:
        """Adds Langfuse scores; values of the same name become a list."""
        for score in map(as_dict, scores):
            name = name_or_none(score.get("name"))
            if name is None:
                continue
            value = first_of(score, "value", "stringValue", "string_value")
            if first_of(score, "dataType", "data_type") == "CATEGORICAL":
                value = first_of(score, "stringValue", "string_value", "value")
            self._put("score", name, value)
            self._put("evaluator", name, score.get("source"))
            self._put("feedback", name, score.get("comment"))

    def add(self, key: str, value: Json) -> None:
        """Sets a key that has no value yet, unless the value is empty."""
        if has_content(value):
            self.outcome.setdefault(key, value)

    def outcome_with(self, error: str) -> Mapping[str, Json] | None:
        """Returns the outcome of a conversation in this trace; None if nothing was logged."""
        outcome = {**self.outcome, "error": error} if error else self.outcome
        return dict(sorted(outcome.items())) or None

    def _put(self, key: str, name: str, value: Json) -> None:
        if value is None or value == "":
            return
        named = self.outcome.setdefault(key, {})
        if not isinstance(named, dict):
            return
        if name in named:
            before = named[name]
            named[name] = [*(as_list(before) or [before]), value]
        else:
            named[name] = value


_MAX_BUFFERED = 20_000
"""Maximum number of steps that are buffered until their trace is complete."""
_MAX_REMEMBERED = 2_000
"""Maximum number of answers whose history is kept for requests that log only new messages."""
_SYSTEMS = ("system", "developer")
_KEPT = ("resp_", "conv_")
"""Beginnings of the ids of responses and conversations whose history OpenAI keeps."""
_MEDIA = re.compile(r"@@@langfuseMedia:type=([a-z]+)[^@]*@@@")


class Traces:
    """Turns traces into conversations: call `take` for each, then `rest`; both yield events."""

    def __init__(self) -> None:
        self._logged = LoggedAnswers()
        self._histories = Histories(self._logged)
        # Histories by ("", id of the response) and (trace id, id of a call in the answer).
        self._known: OrderedDict[tuple[str, str], tuple[Message, ...]] = OrderedDict()
        # The places of answers with several calls, by (trace id, id of a call).
        self._turns: OrderedDict[tuple[str, str], str] = OrderedDict()

    def rest(self) -> Iterator[Event]:
        """Yields the conversations that are still open."""
        yield from self._histories.rest()

    def take(self, trace: _TraceFacts, steps: Sequence[Step]) -> Iterator[Event]:
        """Yields the events of one trace; a trace without a session is a session of its own."""
        ordered = sorted(steps, key=lambda step: step.order)
        by_id = {step.id: step for step in ordered if step.id is not None}
        resolved = list(resolve(ordered))
        broken = _before_bare_answers(resolved)
        for step, call in resolved:
            if isinstance(call, str):
                yield Ignored(call)
                continue
            if step.where in broken:
                detail = "further answers of the model are logged without their requests"
                problem = Problem("partial_history", step.where, detail, records=0)
                call = replace(call, problems=(*call.problems, problem))  # noqa: PLW2901 - completed
            yield from self._call(step, call, _system(step, by_id), trace)

    def _call(
        self, step: Step, call: ModelCall, system: str, trace: _TraceFacts
    ) -> Iterator[Event]:
        answers = [replace(answer, model=call.model) for answer in call.outcome.answers]
        messages = self._whole(call, trace.id)
        noted = (*call.notes.problems, *call.answer_notes.problems)
        problems = [*call.problems, *noted, *_unreadable(step, call)]
        roles = {one.role for one in messages}
        if (call.previous or "").startswith(_KEPT) and "assistant" not in roles:
            detail = "the request continues a response that is not in the log"
            problems.append(Problem("missing_history", step.where, detail, records=0))
        elif next((one.role for one in messages if one.role not in _SYSTEMS), "") == "tool":
            detail = "the request has only new messages; the response it continues is not logged"
            problems.append(Problem("partial_history", step.where, detail, records=0))
        messages = (*messages, *call.outcome.before)
        if not any(message.role in _SYSTEMS for message in messages):
            messages = with_system(messages, system)
        self._logged.add(call.outcome.before)
        history = History(
            tuple(self._joined(map(_with_media, messages), trace.id)),
            tools=call.tools,
            model=call.model,
            problems=tuple(problems),
            changes=call.notes.changes + call.answer_notes.changes,
            session=(trace.session or trace.id) + _withdrawn_tools(call.tools, messages),
            outcome=trace.outcome_with(call.error),
        )
        self._remember(step, call, trace.id, messages)
        error: dict[str, Json] | None = {"error": {"type": "of the step"}} if call.failed else None
        exchange = Exchange(step.where, response=error, is_empty=call.is_empty)
        yield from self._histories.take(exchange, history, answers)

    def _whole(self, call: ModelCall, trace_id: str) -> tuple[Message, ...]:
        """Returns all messages of a request, also if only the new ones are logged."""
        new = tuple(message for message in call.messages if message.role not in _SYSTEMS)
        if not new or any(message.role == "assistant" for message in new):
            return call.messages
        before = self._known.get(("", call.previous)) if call.previous else None
        if before is None and new[0].role == "tool":
            results = [part for part in new[0].parts if isinstance(part, ToolResult)]
            known = (self._known.get((trace_id, part.call_id or "")) for part in results)
            before = next((history for history in known if history), None)
        if before is None:
            return call.messages
        return (*before, *(one for one in call.messages if one in new or one not in before))

    def _remember(
        self, step: Step, call: ModelCall, trace_id: str, messages: tuple[Message, ...]
    ) -> None:
        for answer in call.outcome.answers[:1]:
            names = [made.id for made in calls(answer.message) if made.id]
            keys = [(trace_id, name) for name in names]
            if call.response:
                keys.append(("", call.response))
            for key in keys:
                self._known[key] = (*messages, answer.message)
            if len(names) > 1:
                for name in names:
                    self._turns[trace_id, name] = step.where
        for memory in (self._known, self._turns):
            while len(memory) > _MAX_REMEMBERED:
                memory.popitem(last=False)

    def _joined(self, messages: Iterable[Message], trace_id: str) -> list[Message]:
        """Merges messages with calls of the same answer into one, before the results.

        Some frameworks (Koog) send each parallel call separately, followed by its result.
        """
        found: list[Message] = []
        joined: dict[str, int] = {}  # index in `found`, by the answer's place
        for message in messages:
            turns = {self._turns.get((trace_id, call.id or "")) for call in calls(message)}
            turn = turns.pop() if len(turns) == 1 else None
            at = joined.get(turn) if turn is not None else None
            if message.role not in ("assistant", "tool"):
                joined.clear()
            if at is not None:
                found[at] = replace(found[at], parts=(*found[at].parts, *message.parts))
                continue
            if turn is not None:
                joined[turn] = len(found)
            found.append(message)
        return found


class TraceBuffer:
    """Buffers the steps of a source until their trace is complete, since exports are unordered."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.names: Counter[str] = Counter()  # of the places of steps
        self._traces = Traces()
        self._steps: OrderedDict[str, list[Step]] = OrderedDict()  # least recent first
        self._count = 0
        self._facts: dict[str, _TraceFacts] = {}

    def trace(self, trace_id: str) -> _TraceFacts:
        """Returns the facts about a trace, to be changed in place."""
        return self._facts.setdefault(trace_id, _TraceFacts(trace_id))

    def add(self, trace_id: str, session: str, step: Step) -> Iterator[Event]:
        """Adds a step; if too many are buffered, yields the events of the oldest traces."""
        facts = self.trace(trace_id)
        facts.session = facts.session or session
        self._steps.setdefault(trace_id, []).append(step)
        self._steps.move_to_end(trace_id)
        self._count += 1
        while self._count > _MAX_BUFFERED and len(self._steps) > 1:
            yield from self._take(*self._steps.popitem(last=False))

    def _take(self, trace_id: str, steps: Sequence[Step]) -> Iterator[Event]:
        self._count -= len(steps)
        yield from self._traces.take(self.trace(trace_id), steps)

    def rest(self) -> Iterator[Event]:
        """Yields the events of the buffered traces by time, then those of open conversations."""
        order = {name: min(step.order for step in steps) for name, steps in self._steps.items()}
        for name in sorted(self._steps, key=lambda name: order[name]):
            yield from self._take(name, self._steps[name])
        self._steps.clear()
        yield from self._traces.rest()


def _before_bare_answers(resolved: Sequence[tuple[Step, ModelCall | str]]) -> set[str]:
    """Returns the places of steps whose answer continues in the next step of the same parent.

    Some agent instrumentations log each block of an answer as a step, and the request only in the
    first, whose answer is then a turn without its calls.
    """
    names: set[str] = set()
    last: dict[str | None, str] = {}
    for step, call in resolved:
        if isinstance(call, str):
            continue
        if not call.messages and call.outcome.answers and step.parent in last:
            names.add(last[step.parent])
        last[step.parent] = step.where
    return names


def _unreadable(step: Step, call: ModelCall) -> tuple[Problem, ...]:
    names = {*call.notes.unreadable, *call.answer_notes.unreadable}
    if "flattened" in names:
        detail = "the request was logged as one text, in which messages cannot be distinguished"
        return (Problem("flattened", step.where, detail, records=0),)
    return unreadable_messages(sorted(names), step.where)


def _system(step: Step, by_id: dict[str, Step]) -> str:
    """Returns the system text logged outside the messages: of the step or of its agent."""
    steps = chain([step], enclosing(step, by_id))
    return next((one.system for one in steps if one.system or one.agent), "")


def _withdrawn_tools(tools: tuple[Json, ...] | None, messages: Sequence[Message]) -> str:
    """Returns a suffix for the session of a request without a tool that was called before, or "".

    Frameworks ask for the result of a finished conversation in such a separate request.
    """
    offered = {
        as_str(one.get("name")) or as_str(one, "function", "name")
        for one in map(as_dict, tools or ())
    }
    missing = {call.name for message in messages for call in calls(message)} - offered
    return f" without {sorted(missing)}" if offered and missing and "" not in offered else ""


def _with_media(message: Message) -> Message:
    """Returns the message with references to stored media replaced by media parts."""
    if not any(isinstance(part, Text) and "@@@langfuse" in part.text for part in message.parts):
        return message
    parts: list[Part] = []
    for part in message.parts:
        if not isinstance(part, Text):
            parts.append(part)
            continue
        at = 0
        for match in _MEDIA.finditer(part.text):
            parts += [Text(before)] if (before := part.text[at : match.start()]) else []
            parts.append(Media(match[1] if match[1] in ("image", "audio", "video") else "file"))
            at = match.end()
        parts += [Text(rest)] if (rest := part.text[at:]) else []
    return replace(message, parts=tuple(parts))
