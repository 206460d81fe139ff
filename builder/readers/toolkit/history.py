"""Builds the conversations of a session, from changes of its history or a tree of messages.

There is one for each history, for each branch that was taken back (`rewound`), and where a request
has another system prompt, or changes or removes a tool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, pairwise, takewhile, zip_longest
from typing import Generic, TypeVar

from builder.conversation import (
    LOST_RECORD,
    REPEAT,
    Context,
    Conversation,
    Event,
    Json,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    lowest,
)
from builder.problem import Problem
from builder.readers.toolkit.comparison import calls, with_keys, with_session_keys, without_volatile
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.readers.toolkit.places import Segments, span

# -- records that name their parents; every walk ends, whatever the links are ---------------------

K = TypeVar("K")


def upwards(
    start: K | None, parent_of: Callable[[K], K | None], until: Container[object] = ()
) -> Iterator[K]:
    """Yields an id and those above it, the nearest first.

    Ends before one of `until`, where `parent_of` returns None, and where a cycle closes.
    """
    above: set[K] = set()
    while start is not None and start not in above and start not in until:
        above.add(start)
        yield start
        start = parent_of(start)


class Links(Generic[K]):
    """The tree of records by the ids of their parents.

    parents  by the id of each record, in the order of the log; an id that is no record's, and None,
             are no parents, except for holes
    holes    the ids of records that others name and that the log lacks, if `has_holes`: each
             continues the record before the first that names it, so that nothing there is
             abandoned and branches stay branches. Put `lost_message` in its place.
    leaves   the ids that are no record's parent; a cycle has none
    """

    def __init__(self, parents: Mapping[K, K | None], *, has_holes: bool = False) -> None:
        self.parents: dict[K, K | None] = {}
        self.holes: set[K] = set()
        before: K | None = None
        for one, parent in parents.items():
            is_known = parent in parents or parent in self.holes
            if has_holes and parent is not None and not is_known:
                self.parents[parent] = before
                self.holes.add(parent)
            self.parents[one] = parent if is_known or has_holes else None
            before = one
        inner = set(self.parents.values())
        self.leaves = [one for one in self.parents if one not in inner]

    def path(self, leaf: K, until: Container[object] = ()) -> list[K]:
        """Returns the ids from the root, or from just below one of `until`, to the leaf."""
        return [*upwards(leaf, self.parents.get, until)][::-1]


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
    _session: str | None = None
    _again: int | None = None
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
        if self._again is not None:
            self.rewind(self._again)
            self._again = None
        entry = HistoryEntry(message, where, request, changes, kind)
        self.entries.append(entry)
        return entry

    def repeats(self, name: str) -> bool:
        """Returns whether a record repeats the messages of that name (`kind`).

        A program that goes back writes the messages that it keeps again: what is appended next
        follows the last one that was repeated.
        """
        names = [entry.kind for entry in self.entries]
        if not name or name not in names:
            return False
        at = self._again
        if at is None or names[at : at + 1] != [name]:
            at = names.index(name)
        while names[at : at + 1] == [name]:  # a record may be several messages
            at += 1
        self._again = at
        return True

    def put(self, where: str, role: str, parts: Iterable[Part]) -> None:
        """Appends a message of these parts, unless it is empty."""
        if parts := tuple(parts):
            self.append(Message(role, parts), where)

    def answer(
        self,
        where: str,
        parts: Iterable[Part],
        missing: Iterable[str],
        model: str | None = None,
        untrained: str | None = None,
    ) -> None:
        """Appends an answer, unless it is empty; `missing`: what the log lacks of its request."""
        if parts := tuple(parts):
            message = Message("assistant", parts, where, untrained, Context.lacking(missing))
            self.append(message, where, RequestHead(model=model))

    def rewind(self, length: int) -> None:
        """Takes back all but the first `length` messages."""
        if any(map(_is_answer, self.entries[length:])):
            self._past.append((self.entries, length))
        self.entries = self.entries[:length]

    def is_other(self, session: Json) -> bool:
        """Notes the session that a record names; returns whether the records before name another.

        Then the file has several, and what stands before is not this one's history: `replace` it.
        """
        before, self._session = self._session, as_str(session) or self._session
        return before is not None and self._session != before

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
    value = as_dict(tool)
    return as_str(value.get("name")) or as_str(value, "function", "name")


def _moved(stretch: Sequence[HistoryEntry]) -> Iterator[str]:
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
    return with_keys(entry.message, lambda at, _: f"{place}.{at}")


# -- chats whose messages form a tree -------------------------------------------------------------

_ROOTS = frozenset({
    "00000000-0000-4000-8000-000000000000", "00000000-0000-0000-0000-000000000000",
    "client-created-root", "root",
})  # fmt: skip
"""Names of the empty message above the first one, which exports need not contain."""


@dataclass(frozen=True, slots=True)
class ChatNode:
    """A message of the tree.

    parent    id of the message that it follows; None: it is the first one. An id that the chat does
              not have: what was sent before it is lost, and the answers after it lack `history`
    messages  what it contains, in order; () for a node without content
    group     siblings of different groups do not replace each other: they are answers of several
              models that the user asked at once. "": the siblings replace each other
    """

    parent: str | None
    messages: tuple[Message, ...]
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """What the conversations of a chat have in common; see `Conversation` for the fields."""

    format_name: str
    scope: str
    name: str
    where: str
    system: str = ""
    model: str | None = None
    context: Context | None = None
    changes: Mapping[str, int] | None = None
    outcome: Mapping[str, Json] | None = None


def chat_conversations(
    chat: Chat, nodes: Mapping[str, ChatNode], current: str | None, names: Counter[str]
) -> Iterator[Event]:
    """Yields the conversation that ends at the current message, and the abandoned branches.

    The first one counts the chat as one record; a chat without messages, or whose messages have no
    content, is ignored. `current` None or unknown: the last leaf.
    """
    targets: set[str] = set()
    segments = Segments(chat.name, records=1, taken=names)
    for path, is_abandoned in paths(nodes, current):
        answers = {
            one for one in path if any(item.role == "assistant" for item in nodes[one].messages)
        }
        messages = [message for one in path for message in _node_messages(one, nodes[one], targets)]
        if not messages or (answers <= targets and not segments.records):
            continue
        targets |= answers
        if chat.system:
            messages.insert(0, Message("system", (Text(chat.system),)))
        context = chat.context
        above = nodes[path[0]].parent
        if above is not None and above not in nodes and above not in _ROOTS:
            context = _lacking_history(context)
            messages = [
                one if one.context is None else replace(one, context=_lacking_history(one.context))
                for one in messages
            ]
        detail = "the chat went on from another message"
        is_first = bool(segments.records)
        yield Conversation(
            id=segments.next_name(),
            record=chat.where,
            messages=tuple(with_session_keys(chat.format_name, messages, chat.scope)),
            model=chat.model,
            records=segments.take_records(),
            problems=(Problem("rewound", chat.where, detail, 0),) if is_abandoned else (),
            changes=dict(chat.changes or {}) if is_first else {},
            context=context,
            outcome=chat.outcome if is_first else None,
        )
    yield from segments.rest("no_content" if nodes else "no_messages")


def paths(nodes: Mapping[str, ChatNode], current: str | None) -> Iterator[tuple[list[str], bool]]:
    """Yields (ids from the first message on, whether it was abandoned) of each path to a leaf.

    The path to the current message is the first one; it need not end at a leaf.
    """
    links = Links({one: node.parent for one, node in nodes.items()})
    parents = links.parents
    if current not in nodes:
        current = links.leaves[-1] if links.leaves else next(iter(nodes), None)
    if current is None:
        return
    chosen = links.path(current)
    yield chosen, False
    on_path = set(chosen)
    last_of_group: dict[tuple[str | None, str], str] = {}
    for one, node in nodes.items():
        last_of_group[parents[one], node.group] = one
    replacing = {parents[one]: one for one in chosen}
    for leaf in links.leaves:
        if leaf in on_path:
            continue
        path = links.path(leaf)
        first = next(one for one in path if one not in on_path)
        parent, group = parents[first], nodes[first].group
        other = replacing.get(parent)
        is_beside = group != "" and other is not None and nodes[other].group not in ("", group)
        yield path, not (is_beside and last_of_group[parent, group] == first)


def _lacking_history(context: Context | None) -> Context | None:
    lost = Context.lacking({"history"})
    return lost if context is None else lowest((context, lost))


def _node_messages(name: str, node: ChatNode, targets: set[str]) -> Iterator[Message]:
    """Yields the messages of a node, with a place for each call; those of `targets` as repeats."""
    start = 0
    for message in node.messages:
        if message.role != "assistant":
            yield message
            continue
        keyed = with_keys(message, partial(_place, name, start))
        start += len(message.parts)
        repeat = name in targets and message.untrained is None
        yield replace(keyed, untrained=REPEAT) if repeat else keyed


def _place(name: str, start: int, at: int, _: ToolCall) -> str:
    return f"{name}.{start + at}"


def in_order(messages: Mapping[str, tuple[Message, ...]]) -> dict[str, ChatNode]:
    """Returns the nodes of a chat whose log has an order in place of parents.

    A node follows the one before it. A text right after another answer of text is a version of it:
    these programs write an answer as one message, so that it is not continued by a second one.
    """
    nodes: dict[str, ChatNode] = {}
    last: str | None = None
    for name, own in messages.items():
        is_version = last is not None and _is_text(own) and _is_text(nodes[last].messages)
        parent = nodes[last].parent if is_version and last is not None else last
        nodes[name] = ChatNode(parent, own)
        last = name if own else last
    return nodes


def has_versions(nodes: Mapping[str, ChatNode]) -> bool:
    """Returns whether two nodes follow the same one."""
    parents = [node.parent for node in nodes.values() if node.messages]
    return len(set(parents)) < len(parents)


def _is_text(messages: tuple[Message, ...]) -> bool:
    alone = messages[0] if len(messages) == 1 else None
    return (
        alone is not None
        and alone.role == "assistant"
        and any(isinstance(part, Text) for part in alone.parts)
        and not any(isinstance(part, ToolCall) for part in alone.parts)
    )


# -- results that an agent program sends for unanswered calls -------------------------------------


def lost_message() -> Message:
    """Returns a message in the place of records that the log lacks (`LOST_RECORD`)."""
    return Message("user", (LOST_RECORD,))


def around_holes(conversation: Conversation) -> Iterator[Conversation]:
    """Yields the parts of a conversation that stand around holes in it (`lost_message`).

    It is divided at a hole after calls without their results, or between two answers, if answers to
    prompts follow: shown as one, what the hole separates would be joined. A later part begins with
    the system prompt and the hole.
    """
    messages = conversation.messages
    starts = [0]
    for at, message in enumerate(messages):
        if LOST_RECORD in message.parts and message.role == "user":
            before, after = messages[starts[-1] : at], messages[at + 1 :]
            if _are_apart(before, after) and _has_prompted(after):
                starts.append(at)
    if len(starts) == 1:
        yield conversation
        return
    head = [*takewhile(lambda one: one.role in ("system", "developer"), messages)]
    for number, (start, end) in enumerate(zip_longest(starts, starts[1:])):
        part = messages[start:end]
        yield replace(
            conversation,
            id=f"{conversation.id}+{number}" if number else conversation.id,
            messages=(*head, *part) if number else part,
            records=0 if number else conversation.records,
            changes={} if number else conversation.changes,
            complete=conversation.complete and end is None,
        )


def _are_apart(before: Sequence[Message], after: Sequence[Message]) -> bool:
    """Returns whether the messages around a hole can be in no sample together."""
    last = next((at for at in reversed(range(len(before))) if before[at].role == "assistant"), None)
    if last is None:
        return False
    run = [*takewhile(lambda one: one.role == "assistant", before[last::-1])]
    open_calls = [call for message in run for call in calls(message)]
    is_answered = not open_calls and LOST_RECORD not in before[last].parts
    for message in [*before[last + 1 :], *after]:
        if message.role == "assistant":
            return bool(open_calls) or is_answered
        is_answered = is_answered and not _is_prompt(message)
        for part in message.parts:
            if isinstance(part, ToolResult):
                _remove_answered(open_calls, part)
    return bool(open_calls)


def _has_prompted(messages: Sequence[Message]) -> bool:
    """Returns whether an answer that may be trained follows a prompt of the user."""
    prompt = next((at for at, one in enumerate(messages) if _is_prompt(one)), len(messages))
    return any(one.role == "assistant" and one.untrained is None for one in messages[prompt:])


def _is_prompt(message: Message) -> bool:
    return message.role == "user" and any(
        isinstance(part, Text) and not part.harness and part.text.strip() for part in message.parts
    )


def supply_results(
    messages: Iterable[Message], result: Callable[[ToolCall], ToolResult | None]
) -> tuple[list[Message], int]:
    """Returns the messages with a result for each unanswered call, and the number of added results.

    For agent programs that answer such calls themselves in later requests. The result of a call is
    expected before the next message of the user or the model. Calls of the last turn stay
    unanswered if no message follows, and so do those before a `lost_message`, which may have had
    their results, and one for which `result` returns None.
    """
    answered: list[Message] = []
    pending: list[ToolCall] = []
    turn: str | None = None
    supplied = 0
    for message in messages:
        continues = message.role == "assistant" and turn is not None and message.turn == turn
        if LOST_RECORD in message.parts:
            pending = []
        if message.role != "tool" and not continues:
            added = [answer for call in pending if (answer := result(call)) is not None]
            answered += [Message("tool", (answer,)) for answer in added]
            supplied += len(added)
            pending = []
        if message.role == "assistant":
            turn = message.turn
            pending += [part for part in message.parts if isinstance(part, ToolCall)]
        for part in message.parts:
            if isinstance(part, ToolResult):
                _remove_answered(pending, part)
        answered.append(message)
    return answered, supplied


def _remove_answered(pending: list[ToolCall], result: ToolResult) -> None:
    fitting: Sequence[ToolCall] = pending
    if result.call_id is not None:
        fitting = [call for call in pending if call.id in (None, result.call_id)]
    if fitting:
        pending.remove(fitting[0])
