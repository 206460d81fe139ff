"""The types into which requests and answers of an API are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from builder.conversation import Json, Message, Reasoning, Unparsed
from builder.problem import Problem
from builder.readers.api.capture.envelope import Exchange
from builder.readers.toolkit.comparison import calls


@dataclass(frozen=True, slots=True)
class History:
    """The content of a request: its messages in order, the system text first.

    `tools` is None if the request has none. `problems` are faults of the conversation. `session` is
    the log's own name for the session or trace of the request, or "": histories with different
    names are never one conversation, even if their messages match. `outcome` is the outcome of the
    conversation, as far as it is logged with this request.
    """

    messages: tuple[Message, ...]
    tools: tuple[Json, ...] | None = None
    model: str | None = None
    problems: tuple[Problem, ...] = ()
    changes: Counter[str] = field(default_factory=Counter)
    session: str = ""
    outcome: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """One answer of the model to a request.

    fault    why it is not a target although it was read: `truncated`, `content_filter`
    model    the model's name in the response
    prefill  the request's last message is the beginning of this one
    """

    message: Message
    fault: str | None = None
    model: str | None = None
    prefill: bool = False
    problems: tuple[Problem, ...] = ()
    changes: Counter[str] = field(default_factory=Counter)

    @property
    def usable(self) -> bool:
        """Returns whether it is a complete answer with text or calls."""
        parts = self.message.parts
        return self.fault is None and any(not isinstance(part, Reasoning) for part in parts)

    @property
    def is_no_target(self) -> bool:
        """Returns whether part of it is missing or could not be parsed."""
        return self.fault is not None or any(
            isinstance(part, Unparsed) for part in self.message.parts
        )

    @property
    def counts(self) -> bool:
        """Returns whether its calls or text must be counted if no request continues it."""
        return self.usable or bool(calls(self.message))


@dataclass(frozen=True, slots=True)
class Api:
    """How the bodies of one API are read.

    name       the name of its reader, as `Exchange.dialect` returns it
    history    reads the body of a request; no messages: it cannot be read
    answers    reads the answers of an exchange (its request may be None), preferred one first; ()
               for an error
    continues  returns whether a body or event without a request continues the previous response
    complete   makes a function for one log that inserts history kept by the server into a request
               and finds the request of an answer that arrived later
    """

    name: str
    history: Callable[[dict[str, Json]], History]
    answers: Callable[[Exchange], Sequence[ApiAnswer]]
    continues: Callable[[Json, Json], bool]
    complete: Callable[[], Callable[[Exchange], Exchange]] | None = None


@dataclass(frozen=True, slots=True)
class ServerStep:
    """The items that one exchange added to a history that the server keeps.

    `whole`: the log has the history from its beginning.
    """

    before: ServerStep | None
    items: tuple[Json, ...]
    whole: bool

    @classmethod
    def after(cls, before: ServerStep | None, named: str | None, items: Iterable[Json]) -> Self:
        """Returns the step of a request: `before` is the one it names, if the log has it."""
        return cls(before, tuple(items), named is None or (before is not None and before.whole))

    def all(self) -> list[Json]:
        """Returns the history up to here."""
        steps = []
        step: ServerStep | None = self
        while step is not None:
            steps.append(step.items)
            step = step.before
        return [item for items in reversed(steps) for item in items]
