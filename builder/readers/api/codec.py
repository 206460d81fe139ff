"""Types for the parsed requests and answers of an API."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Self, TypeVar

from builder.conversation import (
    Context,
    Conversation,
    Event,
    Json,
    Message,
    Reasoning,
    Text,
    Unparsed,
)
from builder.problem import Problem
from builder.readers.api.exchanges import Exchange
from builder.readers.toolkit.comparison import calls, with_request_keys
from builder.readers.toolkit.function_text import with_function_calls
from builder.readers.toolkit.made_up import end_at_made_up
from builder.readers.toolkit.narrow import as_str
from builder.readers.toolkit.tool_forms import is_deferred, without_deferred
from builder.sources.source import Source


@dataclass(frozen=True, slots=True)
class History:
    """The content of a request: its messages in order, the system text first.

    tools     None if the request has none
    deferred  definitions that the request contains and that no search has loaded: the model did not
              see them (`defer_loading`)
    loaded_at  answers before this position did not see all tools, which were loaded later
    problems  of the conversation
    session   the log's own name for the session or trace of the request, or ""; histories with
              different names are never one conversation, even if their messages match
    outcome   of the conversation, if it is logged with this request
    """

    messages: tuple[Message, ...]
    tools: tuple[Json, ...] | None = None
    model: str | None = None
    problems: tuple[Problem, ...] = ()
    changes: Counter[str] = field(default_factory=Counter)
    session: str = ""
    outcome: Mapping[str, Json] | None = None
    deferred: tuple[Json, ...] = ()
    loaded_at: int = 0

    def tools_offered(self, messages: Sequence[Message]) -> tuple[Json, ...] | None:
        """Returns the tools; () if the request has none and none of the messages calls a tool.

        A deferred tool that one of the messages calls was loaded, by a search that is not logged.
        """
        if self.tools is None and not any(map(calls, messages)):
            return ()
        called = {call.name for message in messages for call in calls(message)}
        loaded = (tool for tool in self.deferred if as_str(tool, "name") in called)
        return self.tools if not self.deferred else (*(self.tools or ()), *loaded)

    def without_deferred(self, loaded: Collection[str], at: int) -> History:
        """Returns the history without the tools that are deferred and not `loaded`, by name.

        `at`: the position after which all of those were loaded.
        """
        marked = sum(map(is_deferred, self.tools or ()))
        if not marked:
            return self
        offered, deferred = without_deferred(self.tools or (), loaded)
        return replace(
            self,
            tools=offered,
            deferred=deferred,
            loaded_at=at if len(deferred) < marked else self.loaded_at,
            changes=self.changes + Counter({"deferred_tools": len(deferred)}),
        )


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """One answer of the model to a request.

    fault    why a readable answer is not a target: `truncated`, `content_filter`
    model    the model's name in the response
    prefill  the request's last message is the beginning of the answer
    """

    message: Message
    fault: str | None = None
    model: str | None = None
    prefill: bool = False
    problems: tuple[Problem, ...] = ()
    changes: Counter[str] = field(default_factory=Counter)

    def named(self, message: Message, *, completed: bool = False) -> Message:
        """Returns this answer as a later request repeats it, with the response's model and ids.

        `completed`: the request has more of it, so the recorded tokens are not all.
        """
        tokens = None if completed else self.message.tokens
        return replace(message, model=self.model, tokens=tokens, response=self.message.response)

    def with_fault(self, fault: str | None) -> Self:
        """Returns this answer with a fault that is logged beside it, unless it has its own."""
        return replace(self, fault=self.fault or fault)

    def in_context(self, context: Context) -> Self:
        """Returns this answer with its own context."""
        return replace(self, message=replace(self.message, context=context))

    @property
    def usable(self) -> bool:
        """Returns whether the answer is complete and has text or calls."""
        parts = self.message.parts
        return self.fault is None and any(not isinstance(part, Reasoning) for part in parts)

    @property
    def is_no_target(self) -> bool:
        """Returns whether part of the answer is missing or could not be parsed."""
        return self.fault is not None or any(
            isinstance(part, Unparsed) for part in self.message.parts
        )

    @property
    def has_content(self) -> bool:
        """Returns whether the answer has more than thoughts, even if it is cut.

        It must be counted if no request continues it.
        """
        return any(
            bool(part.text) if isinstance(part, Text) else not isinstance(part, Reasoning)
            for part in self.message.parts
        )


@dataclass(frozen=True, slots=True)
class Api:
    """Functions that parse the bodies of one API.

    name       of the API's reader, as in `Exchange.dialect`
    history    parses the body of a request; returns no messages if it cannot be parsed
    answers    parses the answers of an exchange, whose request may be None; preferred one first, ()
               for an error
    continues  returns whether a body or event without a request continues the previous response
    complete   creates a function for one log that inserts history kept by the server into a request
               and finds the request of an answer that arrived later
    """

    name: str
    history: Callable[[dict[str, Json]], History]
    answers: Callable[[Exchange], Sequence[ApiAnswer]]
    continues: Callable[[Json, Json], bool]
    complete: Callable[[], Callable[[Exchange], Exchange]] | None = None


@dataclass(frozen=True, slots=True)
class ServerStep:
    """The items that one exchange added to a history kept by the server.

    `whole`: the log contains the history from its beginning.
    """

    before: ServerStep | None
    items: tuple[Json, ...]
    whole: bool

    @classmethod
    def after(cls, before: ServerStep | None, named: str | None, items: Iterable[Json]) -> Self:
        """Returns a request's step. `before` is the step that it names, None if not in the log."""
        return cls(before, tuple(items), named is None or (before is not None and before.whole))

    def all(self) -> list[Json]:
        """Returns the items of this step and all before it."""
        steps = []
        step: ServerStep | None = self
        while step is not None:
            steps.append(step.items)
            step = step.before
        return [item for items in reversed(steps) for item in items]


MAX_KEPT = 32 << 20
"""Maximum number of characters of JSON kept for later requests."""

_Value = TypeVar("_Value")


class Kept(Generic[_Value]):
    """Values by name: the last one, and earlier ones up to MAX_KEPT characters in total."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, tuple[_Value, int]] = OrderedDict()
        self._weight = 0

    def get(self, name: str) -> _Value | None:
        """Returns the value of a name, if it is kept."""
        stored = self._values.get(name)
        return stored[0] if stored is not None else None

    def put(self, name: str, value: _Value, weight: int) -> None:
        """Keeps a value of this weight."""
        self._weight += weight - self._values.pop(name, (value, 0))[1]
        self._values[name] = (value, weight)
        while self._weight > MAX_KEPT and len(self._values) > 1:
            self._weight -= self._values.popitem(last=False)[1][1]


def weight(value: Json) -> int:
    """Returns about how many characters of JSON a value has."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return 16 + sum(map(weight, inside))
    return 8


def row_conversation(
    name: str, where: str, history: History, *, records: int = 1, complete: bool = True
) -> Conversation | Problem:
    """Returns the conversation of a row; a Problem if it has no assistant message.

    `complete`: the last turn is a target even if its calls are unanswered. A list that a program
    maintains may end with an interrupted turn.
    """
    if not any(message.role == "assistant" for message in history.messages):
        return Problem("no_response", where, "no assistant message", records)
    changes = Counter(history.changes)
    messages = with_function_calls(history.messages, history.tools, changes)
    return Conversation(
        id=name,
        record=where,
        messages=with_request_keys(end_at_made_up(messages)),
        tools=history.tools_offered(messages),
        model=history.model,
        records=records,
        problems=tuple(replace(problem, where=where) for problem in history.problems),
        changes=changes,
        complete=complete and history.messages[-1].role == "assistant",
    )


def read_list(source: Source, read: Callable[[list[Json]], History]) -> Iterator[Event]:
    """Yields the conversation of a file of messages, with the problems of unreadable records.

    Problems after the last message do not affect the conversation.
    """
    messages: list[Json] = []
    unread: list[Problem] = []
    gaps: list[Problem] = []
    for record in source.records():
        if isinstance(record, Problem):
            yield record
            unread.append(record)
            continue
        messages.append(record.value)
        gaps += [replace(problem, records=0) for problem in unread]
        unread = []
    if not messages:
        return
    history, records = read(messages), len(messages)
    conversation = row_conversation("file", "file", history, records=records, complete=False)
    if isinstance(conversation, Conversation):
        conversation = replace(conversation, problems=(*gaps, *conversation.problems))
    yield conversation
