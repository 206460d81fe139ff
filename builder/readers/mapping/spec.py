"""Defines a mapping: where the parts of a conversation stand in a log of one's own.

Each value is a path in JMESPath (https://jmespath.org), with the function `json(text)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any

from builder.conversation import Json
from builder.jsonio import loads_text
from builder.problem import UsageError

ROLES = ("system", "developer", "user", "assistant", "tool", "call", "thought", "fragment", "skip")
"""What a value of `message.role` may mean."""


@dataclass(frozen=True, slots=True)
class ConversationPaths:
    """`conversation`: paths from a record."""

    messages: str | None = None
    id: str | None = None
    session: str | None = None
    order: str | None = None
    system: str | None = None
    tools: str | None = None
    model: str | None = None
    license: str | None = None
    outcome: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallPaths:
    """`message.call`: paths from an item of `message.calls`."""

    name: str | None = None
    arguments: str | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class ResultPaths:
    """`message.result`: paths from an item of `message.results`, or from a message of role tool."""

    text: str | None = None
    id: str | None = None
    name: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class MessagePaths:
    """`message`: paths from a message. `roles` translates the values at `role`."""

    role: str | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    reasoning: str | None = None
    calls: str | None = None
    call: CallPaths = field(default_factory=CallPaths)
    results: str | None = None
    result: ResultPaths = field(default_factory=ResultPaths)
    model: str | None = None
    stop: str | None = None
    turn: str | None = None


@dataclass(frozen=True, slots=True)
class MappingSpec:
    """A mapping file: docs/mapping.md explains its keys."""

    message: MessagePaths
    conversation: ConversationPaths = field(default_factory=ConversationPaths)
    records: str | None = None
    query: str | None = None

    def faults(self) -> Iterator[str]:
        """Yields a line for each fault of a value, and each contradiction."""
        yield from self.faults_of_values()
        yield from self.contradictions()

    def faults_of_values(self) -> Iterator[str]:
        """Yields a line for each path that is not JMESPath, and each unknown role."""
        for key, path in self.paths():
            try:
                _search()(path, None)
            except ValueError as error:  # the base class of the library's exceptions
                if "invalid type for value" in str(error):
                    continue  # a function, which is given nothing here
                why = str(error).splitlines()[0].removeprefix("Invalid jmespath expression: ")
                yield f"{key}: {path!r} is not a JMESPath (https://jmespath.org): {why.rstrip(':')}"
        for value, role in self.message.roles.items():
            if role not in ROLES:
                yield f"message.roles.{value}: must be one of {', '.join(ROLES)}, found {role!r}"

    def contradictions(self) -> Iterator[str]:
        """Yields a line for each key that is missing, or that does not go with another."""
        if self.message.role is None and self.conversation.messages is None:
            yield "message.role: is missing"
        if self.conversation.messages is None and self.conversation.id is None:
            yield "conversation: needs messages (a list in each record) or id (to group records)"
        if self.conversation.messages is None and self.conversation.session is not None:
            yield "conversation.session: goes with messages; without them, id groups the records"
        if self.group is None and self.conversation.order is not None:
            yield "conversation.order: orders the records of a conversation: name its session"
        if self.records is not None and self.query is not None:
            yield "query: does not go with records"

    def paths(self) -> Iterator[tuple[str, str]]:
        """Yields (key, path) of all paths, e.g. ("message.call.name", "function.name")."""
        yield from _paths(self, "")

    @property
    def are_messages(self) -> bool:
        """Returns whether each record is a message."""
        return self.conversation.messages is None

    @property
    def group(self) -> str | None:
        """Returns the path of what the records of a conversation share; None: it is one record."""
        return self.conversation.id if self.are_messages else self.conversation.session


def _paths(section: Any, prefix: str) -> Iterator[tuple[str, str]]:
    for item in fields(section):
        value, key = getattr(section, item.name), f"{prefix}{item.name}"
        if is_dataclass(value):
            yield from _paths(value, f"{key}.")
        elif isinstance(value, Mapping):
            if item.name != "roles":
                yield from ((f"{key}.{name}", path) for name, path in value.items())
        elif value is not None and item.name != "query":
            yield key, value


QUESTION = "# Decide: "
"""The beginning of a line of a mapping file that asks what its author has to answer."""


def refuse_questions(name: str, text: str) -> None:
    """Raises UsageError, in one line, if the text of a mapping file asks anything."""
    lines = [line.strip() for line in text.splitlines()]
    asked = [line.removeprefix(QUESTION) for line in lines if line.startswith(QUESTION.strip())]
    if asked:
        more = f" (and {len(asked) - 1} more)" if asked[1:] else ""
        how = "answer it, and remove its line with # Decide"
        raise UsageError(f"{name}: a question is open{more}, {how}: {asked[0]}")


def search_tree(path: str) -> dict[str, Any]:
    """Returns the syntax tree of a path."""
    import jmespath  # noqa: PLC0415 - see `_search`

    return dict(jmespath.compile(path).parsed)


@cache
def _search() -> Callable[[str, Json], Json]:
    """Returns a function that searches a value by a path. Raises ValueError for a wrong path."""
    # 60 ms, which only mappings need.
    import jmespath.functions  # noqa: PLC0415

    class Functions(jmespath.functions.Functions):
        @jmespath.functions.signature({"types": []})
        def _func_json(self, text: Json) -> Json:
            return loads_text(text)

    options = jmespath.Options(custom_functions=Functions())
    compiled = cache(jmespath.compile)
    return lambda path, value: compiled(path).search(value, options=options)


def value_at(path: str | None, value: Json) -> Json:
    """Returns what stands at the path; None if there is no path, or nothing there."""
    if path is None:
        return None
    try:
        return _search()(path, value)
    except (ValueError, TypeError, ArithmeticError, RecursionError):
        return None  # a function got a value of another type or size than it takes
