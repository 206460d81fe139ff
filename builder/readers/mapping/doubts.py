"""Looks at what a proposed mapping reads, and says what is not certain about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from builder.conversation import (
    Conversation,
    Data,
    Json,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.readers.mapping.calls import scalar_paths
from builder.readers.mapping.names import snake
from builder.readers.mapping.order import is_time, places_of
from builder.readers.mapping.read import conversations, listed, role_of
from builder.readers.mapping.spec import ROLES, MappingSpec, value_at
from builder.readers.mapping.structure import plain
from builder.readers.toolkit.narrow import as_dict
from builder.readers.toolkit.unknown_keys import has_words
from builder.sources.source import Record
from builder.text import counted

_PARENTS = ("parent", "parent_id", "parent_uuid", "parent_message_id")
"""Names of the message that a message follows in a tree."""
_FLAGS = (
    "deleted", "hidden", "removed", "archived", "draft", "is_deleted", "is_hidden", "is_removed",
    "is_archived", "is_draft", "discarded", "retracted",
)  # fmt: skip
"""Names of switches of what its author withdrew, or never sent."""
_SET = ("true", "1", "yes")
"""Values of such a switch that is set: tables have them as numbers or text."""
_SHOWN = 40
"""Characters of a text that a doubt quotes."""


def doubts(spec: MappingSpec, rows: Sequence[Json]) -> Iterator[str]:
    """Yields a line for each thing that the user of a proposal has to decide."""
    yield from _skipped(spec, rows)
    yield from _unordered(spec, rows)
    yield from _branches(spec, rows)
    yield from _flagged(spec, rows)
    found = _conversations(spec, rows)
    is_known = all(one.role in ROLES for event in found for one in event.messages)
    for role in ("user", "assistant") if is_known else ():
        without = sum(all(one.role != role for one in event.messages) for event in found)
        if without:
            yield (
                f"conversation: {without} of {counted(len(found), 'conversation')} have no message"
                f" of the {role}: are they parts of others, or is the role another?"
            )
    messages = [one for event in found for one in event.messages]
    empty = sum(not one.parts for one in messages)
    if empty:
        yield (
            f"message.text: {empty} of {counted(len(messages), 'message')} have no text and no"
            " calls: does another key hold them?"
        )
    yield from _unlinked(spec, rows, found)
    for one, what in _sequences(found):
        yield f"{one}: {what}"
    objects = {one.role for event in found for one in event.messages if _is_object(one)}
    for role in sorted(objects & {"user", "assistant"}):
        yield f"message.text: it finds objects in messages of the {role}: where is their text?"


def _sequences(found: Sequence[Conversation]) -> Iterator[tuple[str, str]]:
    """Yields (key, doubt) about messages that follow each other unusually."""
    unanswered = answers = bad = 0
    for event in found:
        for one, after in pairwise(event.messages):
            has_calls = any(isinstance(part, ToolCall) for part in one.parts)
            unanswered += has_calls and after.role == "user"
            answers += not has_calls and _is_answer(one) and _is_answer(after)
        parts = [part for one in event.messages for part in one.parts]
        bad += sum(isinstance(part, Unparsed) and part.code == "bad_call" for part in parts)
    if unanswered:
        times = counted(unanswered, "message")
        yield "message.results", f"{times} with calls precede one of the user: is it the result?"
    if answers:
        what = f"{counted(answers, 'answer')} follow another: are they one, or was one replaced?"
        yield "message.roles", what
    if bad:
        yield "message.calls", f"{counted(bad, 'value')} of those that are found are no calls"


def _is_answer(message: Message) -> bool:
    return message.role == "assistant" and any(isinstance(one, Text) for one in message.parts)


def characters_read(spec: MappingSpec, rows: Sequence[Json]) -> int:
    """Returns how much text of rows a mapping reads."""
    messages = [one for event in _conversations(spec, rows) for one in event.messages]
    parts: list[Part] = [part for one in messages for part in one.parts]
    parts += [inner for part in parts if isinstance(part, ToolResult) for inner in part.content]
    return sum(len(part.text) for part in parts if isinstance(part, Text))


def _conversations(spec: MappingSpec, rows: Sequence[Json]) -> list[Conversation]:
    records = [Record(f"record {at}", row) for at, row in enumerate(rows, 1)]
    return [one for one in conversations(spec, records) if isinstance(one, Conversation)]


def _skipped(spec: MappingSpec, rows: Sequence[Json]) -> Iterator[str]:
    """Yields a doubt for each value of the role that is skipped and has text."""
    once = {spec.conversation.system, spec.conversation.tools}
    texts: dict[str, str] = {}
    for row in rows:
        items = [row] if spec.are_messages else listed(value_at(spec.conversation.messages, row))
        for item in items:
            if role_of(spec.message, item) != "skip":
                continue
            value = plain(value_at(spec.message.role, item))
            paths = [path for path in scalar_paths([item]) if path not in once]
            words = (text for path in paths if has_words(text := value_at(path, item)))
            text = next((one for one in words if one != value and not is_time(one)), None)
            if text is not None:
                texts.setdefault(value, str(text))
    for value, text in texts.items():
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        yield f"message.roles: did the model see {value!r}, which is skipped ({shown!r})?"


def _unordered(spec: MappingSpec, rows: Sequence[Json]) -> Iterator[str]:
    """Yields a doubt about times that the records of a conversation are not ordered by."""
    if spec.group is None or spec.conversation.order is not None:
        return
    groups: dict[str, list[Json]] = {}
    for row in rows:
        groups.setdefault(str(value_at(spec.group, row)), []).append(row)
    for path in scalar_paths(rows):
        times = [[value_at(path, row) for row in group] for group in groups.values()]
        if not all(is_time(one) for group in times for one in group):
            continue
        if any(places_of(group) != sorted(places_of(group) or []) for group in times):
            yield f"conversation.order: the records are not in the order of {path!r}: is it that?"


def _branches(spec: MappingSpec, rows: Sequence[Json]) -> Iterator[str]:
    """Yields a doubt about messages of which several have one parent: branches of a tree."""
    lists = [listed(value_at(spec.conversation.messages, row)) for row in rows]
    for items in [rows] if spec.are_messages else lists:
        for path in scalar_paths(items):
            if snake(path.rpartition(".")[2]) not in _PARENTS:
                continue
            parents = [one for item in items if (one := value_at(path, item)) is not None]
            if len({*map(str, parents)}) < len(parents):
                yield f"conversation: several messages have one {path!r}: are these branches one?"
                return


def _unlinked(
    spec: MappingSpec, rows: Sequence[Json], found: Sequence[Conversation]
) -> Iterator[str]:
    """Yields a doubt about values that results share with calls, where only places link them."""
    if spec.message.result.id is not None or not any(map(_has_several, found)):
        return
    read = {path for key, path in spec.paths() if key.startswith("message.")}
    calls: list[tuple[str, Json]] = []
    results: list[tuple[str, Json]] = []
    for group, message in _grouped(spec, rows):
        paths = spec.message
        inner = [] if paths.results is None else listed(value_at(paths.results, message))
        made = [] if paths.calls is None else listed(value_at(paths.calls, message))
        if inner or role_of(paths, message) == "tool":
            results += [(group, one) for one in (*inner, message)]
        if made or role_of(paths, message) == "call":
            calls += [(group, one) for one in (*made, message)]
    ids = _neighbours(calls)
    for theirs, values in _neighbours(results).items():
        own = next((one for one, those in ids.items() if values <= those), None)
        if own is not None and read.isdisjoint((own, theirs)):
            yield f"message.result.id: is it {theirs!r}, and {own!r} the id of its call?"
            return


def _grouped(spec: MappingSpec, rows: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    """Yields (conversation, message) of each mapped message."""
    for at, row in enumerate(rows):
        if spec.are_messages:
            yield str(value_at(spec.group, row)), row
        else:
            for one in listed(value_at(spec.conversation.messages, row)):
                yield str(at), one


def _neighbours(items: Sequence[tuple[str, Json]]) -> dict[str, set[tuple[str, str]]]:
    """Returns the values of each path whose neighbours in a conversation all differ."""
    found: dict[str, set[tuple[str, str]]] = {}
    for path in scalar_paths([one for _, one in items]):
        values = [(group, str(value)) for group, one in items
                  if (value := value_at(path, one)) is not None]  # fmt: skip
        if len(values) > 1 and all(one != after for one, after in pairwise(values)):
            found[path] = {*values}
    return found


def _has_several(event: Conversation) -> bool:
    """Returns whether several calls of a conversation precede their results."""
    open_calls = 0
    for part in (part for message in event.messages for part in message.parts):
        if isinstance(part, ToolResult):
            open_calls = 0
        open_calls += isinstance(part, ToolCall)
        if open_calls > 1:
            return True
    return False


def _flagged(spec: MappingSpec, rows: Sequence[Json]) -> Iterator[str]:
    """Yields a doubt for each key that marks records or messages as withdrawn, which are read."""
    counts: Counter[str] = Counter()
    read = {path for _, path in spec.paths()}
    once = () if spec.are_messages else rows
    for one in (*once, *(message for _, message in _grouped(spec, rows))):
        for key, value in as_dict(one).items():
            is_set = value is True or (type(value) in (int, str) and str(value).lower() in _SET)
            counts[key] += is_set and snake(key) in _FLAGS and key not in read
    for key, count in (+counts).items():
        yield f"message: what has {key!r} set ({count}) is read: did the model see it?"


def _is_object(message: Message) -> bool:
    return any(isinstance(part, Data) and isinstance(part.value, dict) for part in message.parts)
