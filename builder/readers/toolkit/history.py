"""Builds the conversations of a session from the changes of its history.

Messages are added, taken back and replaced, and the system prompt and the tools may change between
requests. A reader appends each message as the log is replayed and calls `rewind` and `replace`
where the agent program changed the history that it sends. `conversations` then returns

- one conversation for each history that was replaced, and the last one. Answers that a later
  history kept are repeats there;
- one with the problem `rewound` for each branch that was taken back, if it contains an answer;
- a further one where a request has another system prompt, or changes or removes a tool. Added
  tools and a changed date in the system prompt do not divide a conversation: the last state is used
  for all its turns (`tools_added_later`, `system_date_moved`). If earlier answers call a tool that
  was removed, its definition is added (`tool_shared`), and the answers lack `tools`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Event,
    Json,
    Message,
    Text,
    ToolCall,
    lowest,
)
from builder.problem import Problem
from builder.readers.toolkit.call_keys import with_session_keys
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.readers.toolkit.places import span
from builder.readers.toolkit.segments import Segments
from builder.readers.toolkit.volatile import without_volatile


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The parts of a request that are not messages. None: not in the log."""

    system: str | None = None
    tools: tuple[Json, ...] | None = None
    model: str | None = None


@dataclass(slots=True, eq=False)
class HistoryEntry:
    """A message of the history, and where it stands in the log.

    request  for an answer of the model: the request that it answers
    changes  codes of changes that the reader made to its logged text
    kind     the reader's own word for the origin of the message
    """

    message: Message
    where: str
    request: RequestHead | None = None
    changes: tuple[str, ...] = ()
    kind: str = ""


@dataclass(slots=True)
class SessionHistory:
    """The messages that a session's next request would contain, and those of earlier requests.

    `name` is the id of the session's conversations, `scope` identifies the session in the keys of
    its calls, e.g. the source's name. `prefix` begins the places of the conversations.
    """

    format_name: str
    name: str
    scope: str
    prefix: str = ""
    entries: list[HistoryEntry] = field(default_factory=list)
    _past: list[tuple[list[HistoryEntry], int | None]] = field(default_factory=list)

    def append(
        self,
        message: Message,
        where: str,
        request: RequestHead | None = None,
        changes: tuple[str, ...] = (),
        kind: str = "",
    ) -> HistoryEntry:
        """Appends a message and returns its entry, which may still be changed."""
        entry = HistoryEntry(message, where, request, changes, kind)
        self.entries.append(entry)
        return entry

    def rewind(self, length: int) -> None:
        """Takes back all but the first `length` messages."""
        if any(map(_is_answer, self.entries[length:])):
            self._past.append((self.entries, length))
        self.entries = self.entries[:length]

    def replace(self, entries: Iterable[HistoryEntry] = ()) -> None:
        """Replaces the history, e.g. by a summary and kept messages; kept entries stay the same."""
        if any(map(_is_answer, self.entries)):
            self._past.append((self.entries, None))
        self.entries = list(entries)

    def conversations(
        self,
        records: int,
        *,
        names: Counter[str] | None = None,
        version: str | None = None,
        outcome: Mapping[str, Json] | None = None,
    ) -> Iterator[Event]:
        """Yields the conversations; the first one counts all `records` of the session.

        `names`: ids that other sessions of the source have. The context of an answer without one
        follows from its request: what the log lacks is `missing`, else it is `logged`.
        """
        taken = Counter[str]() if names is None else names
        segments = Segments(self.name, records, taken)
        targets: set[int] = set()
        numbers: dict[int, int] = {}
        for entry in chain(*(entries for entries, _ in self._past), self.entries):
            numbers.setdefault(id(entry), len(numbers))
        for entries, kept in [*self._past, (self.entries, None)]:
            answers = {id(item) for item in entries if _is_answer(item)}
            if not entries or (answers <= targets and self._past):
                continue  # begun, and not answered
            past = targets if kept is None else targets | {id(item) for item in entries[:kept]}
            for messages, stretch in _stretches(entries, past, numbers):
                if kept is None:
                    targets.update(id(item) for item in stretch if _is_answer(item))
                heads = [e.request for e in reversed(stretch) if e.request is not None]
                tools = heads[0].tools if heads else None
                if borrowed := _borrowed(heads, messages):
                    tools = (*(tools or ()), *borrowed)
                    messages = list(map(_lacking_tools, messages))  # noqa: PLW2901 - completed
                changes = Counter(code for item in stretch for code in item.changes)
                changes += Counter(_moved(stretch))
                changes += Counter(tool_shared=len(borrowed))
                place = self.prefix + span(stretch[0].where, stretch[-1].where)
                detail = f"rewound to its message {kept}"
                yield Conversation(
                    id=segments.next_name(),
                    record=place,
                    messages=tuple(with_session_keys(self.format_name, messages, self.scope)),
                    tools=tools,
                    model=next((head.model for head in heads if head.model), None),
                    records=segments.take_records(),
                    problems=() if kept is None else (Problem("rewound", place, detail, 0),),
                    changes=dict(sorted(changes.items())),
                    version=version,
                    context=lowest([m.context for m in messages if m.context is not None]),
                    outcome=outcome,
                )
        yield from segments.rest("no_messages")


def _is_answer(entry: HistoryEntry) -> bool:
    return entry.message.role == "assistant"


def _stretches(
    entries: Sequence[HistoryEntry], past: set[int], numbers: Mapping[int, int]
) -> Iterator[tuple[list[Message], Sequence[HistoryEntry]]]:
    """Yields the messages of each stretch of a history, with the entries that they come from.

    `past` are answers that are targets of other conversations, `numbers` the numbers of entries.
    """
    begins = 0
    current: RequestHead | None = None
    last = -1  # the last answer so far
    for at, entry in enumerate(entries):
        if not _is_answer(entry):
            continue
        new = entry.request
        if current is not None and new is not None and not continues(current, new):
            yield _messages(entries[: last + 1], begins, past, current, numbers)
            begins = last + 1
        current = new or current
        last = at
    if entries:
        yield _messages(entries, begins, past, current, numbers)


def continues(old: RequestHead, new: RequestHead) -> bool:
    """Returns whether a request changes nothing but a date in the prompt, and only adds tools."""
    if (old.system is None) != (new.system is None) or (old.tools is None) != (new.tools is None):
        return False
    if without_volatile(old.system or "") != without_volatile(new.system or ""):
        return False
    kept = {_name(tool): tool for tool in new.tools or ()}
    return all(kept.get(_name(tool)) == tool for tool in old.tools or ())


def _name(tool: Json) -> str:
    """Returns the name of a definition, which OpenAI's shape has one level deeper."""
    value = as_dict(tool)
    return as_str(value.get("name")) or as_str(value, "function", "name")


def _moved(stretch: Sequence[HistoryEntry]) -> Iterator[str]:
    """Yields the codes of what differs between the requests of a stretch."""
    requests = [entry.request for entry in stretch if entry.request is not None]
    for old, new in pairwise(requests):
        if continues(old, new):
            if len(new.tools or ()) > len(old.tools or ()):
                yield "tools_added_later"
            if old.system != new.system:
                yield "system_date_moved"


def _borrowed(heads: Sequence[RequestHead], messages: Iterable[Message]) -> tuple[Json, ...]:
    """Returns the definitions of tools that earlier answers call and that were removed since.

    They come from the latest of the requests (`heads`, the last first) that defines them.
    """
    if not heads or heads[0].tools is None:
        return ()
    known: dict[str, Json] = {}
    for head in heads:
        for tool in head.tools or ():
            known.setdefault(_name(tool), tool)
    own = {_name(tool) for tool in heads[0].tools}
    called = {call.name: None for message in messages for call in calls(message)}
    return tuple(known[name] for name in called if name in known and name not in own)


def _lacking_tools(message: Message) -> Message:
    """Returns the message; an answer was given to a request with another list of tools."""
    if message.context is None:
        return message
    return replace(message, context=Context.lacking({*message.context.missing, "tools"}))


def _messages(
    entries: Sequence[HistoryEntry],
    begins: int,
    past: set[int],
    request: RequestHead | None,
    numbers: Mapping[int, int],
) -> tuple[list[Message], Sequence[HistoryEntry]]:
    """Returns a stretch: answers before the position `begins`, and those in `past`, are repeats."""
    sent: list[Message] = []
    if request is not None and request.system:
        sent.append(Message("system", (Text(request.system),)))
    for at, entry in enumerate(entries):
        message = _with_places(entry, numbers[id(entry)])
        if _is_answer(entry):
            if message.untrained is None and (at < begins or id(entry) in past):
                message = replace(message, untrained=REPEAT)
            if message.context is None:
                message = replace(message, context=_context(entry.request))
            model = entry.request.model if entry.request is not None else None
            if message.model is None and request is not None and model != request.model:
                message = replace(message, model=model)
        sent.append(message)
    return sent, entries


def _context(request: RequestHead | None) -> Context:
    system = request is not None and request.system is not None
    tools = request is not None and request.tools is not None
    lacking = [] if system else ["system"]
    return Context.lacking(lacking if tools else [*lacking, "tools"])


def _with_places(entry: HistoryEntry, number: int) -> Message:
    """Returns the message with a place for each call, from which its key is made."""
    if not _is_answer(entry):
        return entry.message
    place = entry.message.turn or number
    parts = tuple(
        replace(part, key=f"{place}.{at}") if isinstance(part, ToolCall) else part
        for at, part in enumerate(entry.message.parts)
    )
    return replace(entry.message, parts=parts)
