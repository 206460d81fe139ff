"""Reads files whose records are conversations, or form conversations together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar

from builder.conversation import (
    Conversation,
    Event,
    Ignored,
    Json,
    Media,
    Message,
    Part,
    Text,
    ToolResult,
    unknown_part,
)
from builder.jsonio import a_json_type
from builder.problem import Problem
from builder.readers.toolkit.history import HistoryEntry, SessionHistory, lost_message
from builder.readers.toolkit.marks import snake
from builder.readers.toolkit.narrow import one_or_many
from builder.readers.toolkit.places import ignored, unique_name
from builder.readers.toolkit.tables import listed, words
from builder.readers.toolkit.unknown_keys import count_columns, row_columns
from builder.sources.source import Record, Source

# -- how a run ended according to its log ---------------------------------------------------------

_OUTCOME_KEYS = listed("outcome", "keys")
_SCORES = words("outcome", "beside")
_NESTED = listed("outcome", "nested")
_SCORE_WORDS = words("outcome", "score")
_NO_SCORE = words("outcome", "no_score")


def logged_outcome(*places: Mapping[str, Json], **known: Json) -> dict[str, Json] | None:
    """Returns the `known` values, completed by the values of `_OUTCOME_KEYS` in `places`.

    `known` has precedence, then the first place that has a value. Leaves out None, "" and empty
    lists and objects; returns None if nothing remains.
    """
    outcome = dict(known)
    for key in _OUTCOME_KEYS:
        for place in places:
            if not has_content(outcome.get(key)) and key in place:
                outcome[key] = place[key]
    return {key: value for key, value in sorted(outcome.items()) if has_content(value)} or None


def outcome_beside(row: Json) -> dict[str, Json] | None:
    """Returns the outcome next to a conversation in a row, or next to a request and response."""
    if not isinstance(row, dict):
        return None
    places = [row, *(inner for key in _NESTED if isinstance(inner := row.get(key), dict))]
    named: dict[str, Json] = {}
    for place in reversed(places):
        named |= {key: value for key, value in place.items() if _is_score(key, value)}
    known = ({key: place[key] for key in _SCORES & place.keys()} for place in places)
    return {**named, **(logged_outcome(*known) or {})} or None


def _is_score(key: str, value: Json) -> bool:
    """Returns whether a column holds numbers, and its name says that they judge (`f1_reward`)."""
    named = set(snake(key).split("_"))
    if named.isdisjoint(_SCORE_WORDS) or not named.isdisjoint(_NO_SCORE):
        return False
    numbers = [*value.values()] if isinstance(value, dict) else one_or_many(value)
    return bool(numbers) and all(type(one) in (int, float) for one in numbers)


def outcome_of_records(records: Iterable[Json]) -> dict[str, Json] | None:
    """Returns the outcome beside the records of one conversation; the last to state it counts."""
    outcome: dict[str, Json] = {}
    for record in records:
        outcome |= outcome_beside(record) or {}
    return outcome or None


def with_outcome(events: Iterable[Event], row: Json) -> Iterator[Event]:
    """Yields the events of a row; conversations without an outcome get that of the row."""
    for event in events:
        if isinstance(event, Conversation) and event.outcome is None:
            event = replace(event, outcome=outcome_beside(row))  # noqa: PLW2901 - completed
        yield event


def has_content(value: Json) -> bool:
    """Returns whether a value is neither None nor empty; False and 0 have content."""
    return value is not None and value not in ("", [], {})


# -- media in columns of a row --------------------------------------------------------------------

P = TypeVar("P", bound=Part)
X = TypeVar("X", bound=Problem | Ignored)

_MEDIA = (("image", "images"), ("video", "videos"), ("audio", "audios"))
"""The columns of media, which texts refer to by `<image>`, `<video>`, `<audio>`."""
_FILE = re.compile(
    r"^data:|\.(?:png|jpe?g|gif|webp|bmp|tiff?|svg|mp4|avi|mov|mkv|webm|wav|mp3|flac|ogg|m4a)(?:\?|$)",
    re.IGNORECASE,
)
_LONGEST_NAME = 512
"""A longer text is encoded content."""


def with_media(messages: Sequence[Message], row: dict[str, Json]) -> list[Message]:
    """Returns the messages with the media of the row's columns in place of the tags.

    Texts refer to media by `<image>`, `<video>` and `<audio>`. Media without a tag have no known
    position: they become an unknown part of the first user message, unless the messages contain
    media parts themselves, which the columns then hold.
    """
    messages = list(messages)
    for kind, plural in _MEDIA:
        media = row.get(plural) or row.get(kind)
        if isinstance(media, str) and not _is_media(media, kind, messages):
            continue
        left = len(media) if isinstance(media, list) else int(bool(media))
        placed = (part for message in messages for part in message.parts)
        left -= sum(isinstance(part, Media) and part.kind == kind for part in placed)
        for index, message in enumerate(messages if left > 0 else ()):
            if message.role in ("user", "tool"):
                parts, left = _with_tags(message.parts, kind, left)
                messages[index] = replace(message, parts=parts)
        asked = next((at for at, one in enumerate(messages) if one.role == "user"), None)
        if left > 0 and asked is not None:
            first = messages[asked]
            messages[asked] = replace(first, parts=(*first.parts, unknown_part(plural)))
    return messages


def _is_media(value: str, kind: str, messages: Sequence[Message]) -> bool:
    """Returns whether the text in a column is a file or its content.

    Runs of agents have the name of their container in `image`.
    """
    if _FILE.search(value) or len(value) > _LONGEST_NAME:
        return True
    parts = (part for message in messages for part in message.parts)
    return any(isinstance(part, Text) and f"<{kind}>" in part.text for part in parts)


def _with_tags(
    parts: Sequence[P], kind: str, left: int
) -> tuple[tuple[P | Text | Media, ...], int]:
    """Returns parts with media in place of at most `left` tags, and how many of these are left."""
    placed: list[Any] = []
    for part in parts:
        if isinstance(part, ToolResult):
            content, left = _with_tags(part.content, kind, left)
            placed.append(replace(part, content=content))
        elif isinstance(part, Text) and left > 0 and f"<{kind}>" in part.text:
            first, *others = part.text.split(f"<{kind}>", left)
            left -= len(others)
            placed += [Text(first)] if first.strip() else []
            for text in others:
                placed += [Media(kind), *([Text(text)] if text.strip() else [])]
        else:
            placed.append(part)
    return tuple(placed), left


Row = Callable[[str, dict[str, Json], "Counter[str]"], Iterable[Event]]
"""Reads one row: (place of the record, the row, names already used) → its events."""

_ReadHook = Callable[[Source], Iterator[Event]]


def splits(source: Source) -> bool:
    """Allows a JSONL file to be cut between any two lines (the `splits` hook)."""
    return source.peek.kind == "jsonl"


def read_rows(source: Source, row: Row, name: str = "") -> Iterator[Event]:
    """Yields the events of each row, or a Problem if the record is not an object.

    Columns with text that keys/NAME.toml of the format does not have are counted
    (`unknown_column`).
    """
    known = row_columns(name)
    names: Counter[str] = Counter()
    for record in objects(source.records(), "the row is "):
        if isinstance(record, Problem):
            yield record
        else:
            where, value = record
            yield from count_columns(with_outcome(row(where, value, names), value), value, known)


def objects(
    records: Iterable[Record | X], prefix: str = ""
) -> Iterator[tuple[str, dict[str, Json]] | Problem | X]:
    """Yields place and value of each record, or a Problem if the value is not an object.

    `prefix` is the beginning of the Problem's detail, e.g. "an event is ". What could not be
    decoded, or is ignored, is yielded as it is.
    """
    for record in records:
        if not isinstance(record, Record):
            yield record
        elif isinstance(record.value, dict):
            yield record.where, record.value
        else:
            yield not_object(record, prefix)


def not_object(record: Record, prefix: str = "") -> Problem:
    """Returns the problem of a record that is not an object."""
    detail = f"{prefix}{a_json_type(record.value)}"
    return Problem("not_object", record.where, detail)


def read_objects(source: Source, row: Row, prefix: str = "") -> Iterator[Event]:
    """Yields the events of each record, or a Problem if it is not an object (see `objects`)."""
    names: Counter[str] = Counter()
    for record in objects(source.records(), prefix):
        if isinstance(record, Problem):
            yield record
        else:
            yield from row(*record, names)


def read_each(
    row: Callable[[str, dict[str, Json], Counter[str]], Event], name: str = ""
) -> _ReadHook:
    """Returns the `read` hook of a format with one conversation in each row (`read_rows`)."""
    return lambda source: read_rows(source, lambda *record: [row(*record)], name)


def refused(source: Source, detail: str) -> Iterator[Event]:
    """Yields the Problem `unverified_format` that stands for all records that can be read."""
    records = 0
    for record in objects(source.records(), "a line that is "):
        if isinstance(record, Problem):
            yield record
        else:
            records += 1
    yield Problem("unverified_format", "file", detail, records)


@dataclass(slots=True)
class RecordLog:
    """The records of one session so far; `missing` is what its next answers lack."""

    CUT_IS_LOST: ClassVar[bool] = False
    """A last record that was cut off is lost like any other; else the answer before it is whole."""

    history: SessionHistory
    missing: set[str] = field(default_factory=lambda: {"system", "tools"})

    def add(self, where: str, value: dict[str, Json], /) -> str:
        """Reads a record; returns the code under which it is ignored, "" if it is not."""
        raise NotImplementedError

    def lose(self, where: str) -> None:
        """Notes that a record cannot be read: what stands around it is not joined."""
        self.missing |= {"history"}
        self.history.entries.append(HistoryEntry(lost_message(), where))


def add_records(
    log: RecordLog, records: Iterable[tuple[str, dict[str, Json]] | Problem]
) -> Generator[Problem | Ignored, None, int]:
    """Adds the records of `objects` to a log; returns the number of those that it counts.

    Yields the Problems, and the counts of what it ignores. Answers after a record that cannot be
    read lack `history`, except after one that was cut off, which is the last.
    """
    counts: Counter[str] = Counter()
    for record in records:
        if isinstance(record, Problem):
            if record.code != "truncated" or log.CUT_IS_LOST:
                log.lose(record.where)
            yield replace(record, where=log.history.prefix + record.where)
        else:
            counts[log.add(*record)] += 1
    count = counts.pop("", 0)
    yield from ignored(counts)
    return count


class Collector(Protocol):
    """Collects records into conversations."""

    def take(self, record: Record, /) -> Iterator[Event]:
        """Reads one record; yields the events that are now final."""

    def rest(self) -> Iterator[Event]:
        """Yields the events of conversations that are still open after the last record."""


@dataclass(slots=True)
class SeparateMessages:
    """Collects the messages of one conversation that are separate records."""

    first: str
    last: str = ""
    records: int = 0
    items: list[Json] = field(default_factory=list)

    def add(self, where: str, items: Iterable[Json]) -> None:
        """Adds the messages in the record at this place."""
        self.items += items
        self.records += 1
        self.last = where

    @property
    def place(self) -> str:
        """Returns the place of the only record, or those of the first and the last one."""
        return self.first if self.first == self.last else f"{self.first} to {self.last}"


def collected(
    records: Iterable[Record | Problem], collector: Collector, shapes: tuple[type, ...] = (dict,)
) -> Iterator[Event]:
    """Yields the events of records that form conversations together.

    A record has one of the shapes, else it is a Problem. A record that is a whole conversation may
    have its outcome next to the messages.
    """
    for record in records:
        if isinstance(record, Problem):
            yield record
        elif not isinstance(record.value, shapes):
            yield not_object(record, "a record is ")
        else:
            for event in collector.take(record):
                own = isinstance(event, Conversation) and event.record == record.where
                yield from with_outcome([event], record.value) if own else (event,)
    yield from collector.rest()


def missing_records(lost: Sequence[Problem]) -> tuple[Problem, ...]:
    """Returns the problem of a conversation that lacks records which the model may have seen."""
    return tuple(replace(problem, records=0) for problem in lost[:1])


def row_name(where: str, name: Json, names: Counter[str]) -> str:
    """Returns a unique id for a row's conversation: the row's own id, else its place."""
    named = isinstance(name, str | int) and not isinstance(name, bool) and str(name)
    return unique_name(str(name) if named else where, names)
