"""Traces of platforms: their steps put in order, and their calls of models made conversations.

Source: langfuse.md and langsmith.md, "Pitfalls". Both keep a tree of steps; a step that calls a
model holds what its instrumentation saw, which may be the whole request, or only what is new in it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from builder.conversation import Event, Ignored, Json, Media, Message, Part, Text, ToolResult
from builder.problem import Problem
from builder.readers.api.capture.api import History
from builder.readers.api.capture.envelope import Exchange
from builder.readers.api.capture.histories import Histories
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.messages import unknown_parts
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.readers.traces.any_vendor.answers import Outcome
from builder.readers.traces.any_vendor.parts import PartNotes
from builder.readers.traces.any_vendor.requests import with_system

MAX_HELD = 20_000
"""Steps that are held until their trace is whole."""
MAX_REMEMBERED = 2_000
"""Answers whose history is remembered for a later request that tells only what is new."""
_REPLACED = frozenset({"redacted-by-litellm", "<truncated due to size exceeding limit>"})
"""What instrumentations write in place of a text that they do not log."""
_SYSTEMS = ("system", "developer")
_MEDIA = re.compile(r"@@@langfuseMedia:type=([a-z]+)[^@]*@@@")
_KINDS = {"image": "image", "audio": "audio", "video": "video"}


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What a step says of its call of a model.

    messages  of the request as logged
    whole     whether both the request and what came of it were logged
    failed    the platform says that the step ended in an error
    response  id of the response, `previous` that of the one that the request went on from
    """

    messages: tuple[Message, ...]
    outcome: Outcome
    notes: PartNotes
    tools: tuple[Json, ...] | None = None
    model: str | None = None
    whole: bool = True
    failed: bool = False
    response: str | None = None
    previous: str | None = None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trace: an observation, a run.

    where   of its record, unique in the source
    order   texts that sort as the steps were begun
    code    under which it is ignored if it calls no model
    nests   a tool or an agent: a call of a model below it is not the call above it
    agent   its `system` text holds for the calls below it as well
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


class Traces:
    """Traces on their way to conversations: `take` each, then `rest`; both give events."""

    def __init__(self) -> None:
        self._histories = Histories()
        self._known: OrderedDict[tuple[str, str], tuple[Message, ...]] = OrderedDict()
        self._turns: OrderedDict[tuple[str, str], str] = OrderedDict()

    def rest(self) -> Iterator[Event]:
        """The conversations that were open."""
        yield from self._histories.rest()

    def take(self, trace_id: str, session: str, steps: Sequence[Step]) -> Iterator[Event]:
        """One trace. Without a session of its own it is one."""
        ordered = sorted(steps, key=lambda step: step.order)
        by_id = {step.id: step for step in ordered if step.id is not None}
        wrappers = _wrappers(ordered, by_id)
        for step in ordered:
            if step.call is None:
                yield Ignored(step.code)
            elif step.id in wrappers:
                yield Ignored("wrapper")
            else:
                system = _system(step, by_id)
                yield from self._call(step, step.call, system, trace_id, session or trace_id)

    def _call(
        self, step: Step, call: ModelCall, system: str, trace_id: str, session: str
    ) -> Iterator[Event]:
        answers = [replace(answer, model=call.model) for answer in call.outcome.answers]
        messages = self._whole(call, trace_id)
        names = sorted(set(call.notes.unknown))
        problems = [*call.problems, *unknown_parts(names, step.where)]
        if next((one.role for one in messages if one.role not in _SYSTEMS), "") == "tool":
            detail = "the request tells only what is new, and what it goes on from is not logged"
            problems.append(Problem("partial_history", step.where, detail, records=0))
        messages = (*messages, *call.outcome.before)
        if any(_is_replaced(message) for message in (*messages, *(a.message for a in answers))):
            detail = "a text was taken out before it was logged"
            problems.append(Problem("redacted", step.where, detail, records=0))
        if not any(message.role in _SYSTEMS for message in messages):
            messages = with_system(messages, system)
        history = History(
            tuple(self._with_turns(_with_media(message), trace_id) for message in messages),
            tools=call.tools,
            model=call.model,
            problems=tuple(problems),
            changes=call.notes.changes,
            session=session + _without(call.tools, messages),
        )
        self._remember(step, call, trace_id, messages)
        error: dict[str, Json] | None = {"error": {"type": "of the step"}} if call.failed else None
        yield from self._histories.take(Exchange(step.where, response=error), history, answers)

    def _whole(self, call: ModelCall, trace_id: str) -> tuple[Message, ...]:
        """The messages, after those that the request goes on from where it tells only the new."""
        new = tuple(message for message in call.messages if message.role not in _SYSTEMS)
        if not new or any(message.role == "assistant" for message in new):
            return call.messages
        before = self._known.get(("", call.previous)) if call.previous else None
        if before is None and new[0].role == "tool":
            results = [part for part in new[0].parts if isinstance(part, ToolResult)]
            found = (self._known.get((trace_id, part.call_id or "")) for part in results)
            before = next((history for history in found if history), None)
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
            while len(memory) > MAX_REMEMBERED:
                memory.popitem(last=False)

    def _with_turns(self, message: Message, trace_id: str) -> Message:
        """The message with the turn of the answer that made its calls.

        Some frameworks (Koog) send parallel calls back as messages of their own.
        """
        turns = {self._turns.get((trace_id, call.id or "")) for call in calls(message)}
        turn = turns.pop() if len(turns) == 1 else None
        return message if turn is None else replace(message, turn=turn)


@dataclass(slots=True)
class _Trace:
    """The steps of one trace, as far as they have come."""

    steps: list[Step]
    session: str


class Held:
    """Steps that wait until their trace is whole: exports have their own order."""

    def __init__(self) -> None:
        self._traces = Traces()
        self._held: OrderedDict[str, _Trace] = OrderedDict()  # by trace id, the last touched last
        self._count = 0
        self._sessions: dict[str, str] = {}

    def name_session(self, trace_id: str, session: str) -> None:
        """Tell the session of a trace, whose steps may not name it."""
        self._sessions[trace_id] = session

    def add(self, trace_id: str, session: str, step: Step) -> Iterator[Event]:
        """One more step. Where too many are held the oldest trace is taken as it is."""
        held = self._held.setdefault(trace_id, _Trace([], ""))
        self._held.move_to_end(trace_id)
        held.session = held.session or session
        held.steps.append(step)
        self._count += 1
        while self._count > MAX_HELD and len(self._held) > 1:
            yield from self._settle(*self._held.popitem(last=False))

    def _settle(self, trace_id: str, held: _Trace) -> Iterator[Event]:
        self._count -= len(held.steps)
        session = held.session or self._sessions.get(trace_id, "")
        yield from self._traces.take(trace_id, session, held.steps)

    def rest(self) -> Iterator[Event]:
        """The traces that are still held, in the order of time, then what they leave open."""
        order = {name: min(step.order for step in held.steps) for name, held in self._held.items()}
        for name in sorted(self._held, key=lambda name: order[name]):
            yield from self._settle(name, self._held[name])
        self._held.clear()
        yield from self._traces.rest()


def _wrappers(ordered: Sequence[Step], by_id: dict[str, Step]) -> set[str | None]:
    """Calls around others: a framework's step of a call around its provider's.

    What a tool or an agent runs below a call is a call of its own, not the same one.
    """
    found: set[str | None] = set()
    for step in ordered:
        if step.call is None or not step.call.whole:
            continue
        seen = {step.id}
        above = by_id.get(step.parent or "")
        while above is not None and not above.nests and above.id not in seen:
            seen.add(above.id)
            if above.call is not None:
                found.add(above.id)
            above = by_id.get(above.parent or "")
    return found


def _system(step: Step, by_id: dict[str, Step]) -> str:
    """System text kept outside the messages: the step's own, or that of the agent above it."""
    seen: set[str | None] = set()
    node: Step | None = step
    while node is not None and node.id not in seen:
        if node.system or node.agent:
            return node.system
        seen.add(node.id)
        node = by_id.get(node.parent or "")
    return ""


def _without(tools: tuple[Json, ...] | None, messages: Sequence[Message]) -> str:
    """What sets a request apart that no longer offers a tool that was called before, or "".

    A framework asks for the result of a finished conversation so, in a call of its own.
    """
    offered = {
        as_str(one.get("name")) or as_str(as_dict(one.get("function")).get("name"))
        for one in map(as_dict, tools or ())
    }
    missing = {call.name for message in messages for call in calls(message)} - offered
    return f" without {sorted(missing)}" if offered and missing and "" not in offered else ""


def _is_replaced(message: Message) -> bool:
    return any(isinstance(part, Text) and part.text in _REPLACED for part in message.parts)


def _with_media(message: Message) -> Message:
    """The message with its references to stored media as what they stand for."""
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
            parts.append(Media(_KINDS.get(as_str(match[1]), "file")))
            at = match.end()
        parts += [Text(rest)] if (rest := part.text[at:]) else []
    return replace(message, parts=tuple(parts))
