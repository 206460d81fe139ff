"""What the requests and answers of an API hold: the types that its bodies are read into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from builder.conversation import Json, Message, Reasoning, Unparsed
from builder.problem import Problem
from builder.readers.api.capture.envelope import Exchange
from builder.readers.toolkit.comparison import calls


@dataclass(frozen=True, slots=True)
class History:
    """What a request says: its messages in order, the system text first.

    `tools` is None if the request names none. `problems` are faults of the conversation. `session`
    is the log's own name of what the request belongs to (a session, a trace), or "": histories of
    different names are never one conversation, whatever they say. `outcome` is that of the
    conversation, as far as the log of this request tells it.
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

    fault    why it is no target although it was read: `truncated`, `content_filter`
    model    its name as the response gives it
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
        """Tells whether it is a complete answer with text or calls."""
        parts = self.message.parts
        return self.fault is None and any(not isinstance(part, Reasoning) for part in parts)

    @property
    def is_no_target(self) -> bool:
        """Tells whether part of it is missing or could not be parsed."""
        return self.fault is not None or any(
            isinstance(part, Unparsed) for part in self.message.parts
        )

    @property
    def counts(self) -> bool:
        """Tells whether its calls or text must be counted if no request continues from it."""
        return self.usable or bool(calls(self.message))


@dataclass(frozen=True, slots=True)
class Api:
    """What the bodies of one API mean.

    name       of its reader, as `Exchange.dialect` gives it
    history    of a request's body; no messages: it cannot be read
    answers    of an exchange (its request may be None), the first preferred; () for an error
    continues  whether a body or event without a request belongs to the response of the one before
    complete   makes, for one log, what writes into a request the history that the server keeps,
               and finds the request of an answer that came later
    """

    name: str
    history: Callable[[dict[str, Json]], History]
    answers: Callable[[Exchange], Sequence[ApiAnswer]]
    continues: Callable[[Json, Json], bool]
    complete: Callable[[], Callable[[Exchange], Exchange]] | None = None
