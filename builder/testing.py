"""The contract suite for readers: for our own tests and for authors of readers elsewhere.

from builder.testing import check_reader
def test_my_reader(): check_reader(my_reader, Path("tests/cases/plain/input/log.jsonl"))
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import cast

from builder.conversation import Conversation, Event, Ignored, Json, Used
from builder.problem import Problem
from builder.readers import Reader, recognise
from builder.source import Source

CUTS = 12
"""How many truncated and damaged copies of an input a reader is tried on."""


def check_reader(reader: Reader, source: Source) -> list[Event]:
    """Hold `reader` to the contract on a source; returns the events that it gave.

    Raises AssertionError: not recognised, or by another reader too; recognised by its name only;
    records that do not add up; another result at the second reading; an exception or a wrong sum
    on truncated or damaged copies of the file.
    """
    name = source.name
    claims = recognise(source)
    assert list(claims) == [reader.NAME], f"{name}: claimed by {claims}"
    events = _read(reader, _again(source, name))
    assert events == _read(reader, _again(source, name)), f"{name}: two readings differ"
    assert reader.recognise(_again(source, "renamed")), f"{name}: recognised by its name only"
    if source.path is not None and not source.members and not source.head.startswith(b"SQLite"):
        for damaged in _damaged(source.path.read_bytes()):
            _read(reader, Source(name, data=damaged))
    return events


def _again(source: Source, name: str) -> Source:
    members = [_again(member, member.name) for member in source.members]
    return Source(name, source.path, members=members)


def _read(reader: Reader, source: Source) -> list[Event]:
    events = list(reader.read(source))
    counted = 0
    ids: set[str] = set()
    for event in events:
        match event:
            case Conversation():
                counted += event.records
                assert event.id not in ids, f"{source.name}: two conversations {event.id!r}"
                ids.add(event.id)
                assert event.messages, f"{source.name}: conversation {event.id!r} is empty"
            case Problem() | Ignored() | Used():
                counted += event.records
    assert counted == source.records_read, (
        f"{source.name}: {source.records_read} records read, {counted} accounted for"
    )
    return events


def _damaged(data: bytes) -> Iterator[bytes]:
    pick = random.Random(0)  # noqa: S311 - damage must repeat, not surprise
    for _ in range(CUTS if data else 0):
        yield data[: pick.randrange(len(data))]
        at = pick.randrange(len(data))
        yield data[:at] + bytes([pick.randrange(256)]) + data[at + 1 :]
    lines = data.splitlines(keepends=True)
    if 1 < len(lines) < 10_000:
        pick.shuffle(lines)
        yield b"".join(lines)


def describe(event: Event) -> dict[str, Json]:
    """An event as a JSON value for golden files: its kind and its fields that are not default."""
    return cast("dict[str, Json]", _describe(event))


def _describe(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        shown = {
            item.name: _describe(getattr(value, item.name))
            for item in fields(value)
            if getattr(value, item.name) != _default(item)
        }
        return {"is": type(value).__name__, **shown}
    if isinstance(value, tuple):
        return [_describe(item) for item in value]
    return value


def _default(item: Field[object]) -> object:
    if item.default_factory is not MISSING:
        return item.default_factory()
    return item.default
