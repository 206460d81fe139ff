"""The contract suite for readers: for our own tests and for authors of readers elsewhere.

from builder.testing import check_reader
def test_my_reader(): check_reader(my_reader, Path("tests/cases/plain/input/log.jsonl"))
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import cast

from builder.conversation import Conversation, Event, Ignored, Json, Used
from builder.jsonio import JsonFault, dumps, loads
from builder.problem import Problem
from builder.readers import Reader, read_events, recognise
from builder.sources.chunk import ItemChunk, WholeFile
from builder.sources.source import Source

CUTS = 12
"""How many truncated and damaged copies of an input a reader is tried on."""
RETYPED = 40
"""How many copies in which a JSON value has become one of another type."""

_WHOLE = WholeFile(0, "", 0)

_OTHERS: tuple[Json, ...] = (
    None, True, 7, -0.5, "", "other", [], ["other"], [{}], [[]], {}, {"other": 1},
    {"type": "text", "text": 1},
)  # fmt: skip


def check_reader(reader: Reader, source: Source) -> list[Event]:
    """Hold `reader` to the contract on a source; returns the events that it gave.

    Raises AssertionError: not recognised, or by another reader too; recognised by its name only;
    records that do not add up; another result at the second reading, or if each of its items is
    read alone; an exception or a wrong sum on truncated or damaged copies of the file, or on copies
    with a JSON value of another type.
    """
    name = source.name
    claims = recognise(source)
    assert list(claims) == [reader.name], f"{name}: claimed by {claims}"
    events = _read(reader, _again(source, name))
    assert events == _read(reader, _again(source, name)), f"{name}: two readings differ"
    assert reader.recognise(_again(source, "renamed")), f"{name}: recognised by its name only"
    item_sizes = getattr(reader, "item_sizes", None)
    if item_sizes is not None and (count := len(item_sizes(_again(source, name)))):
        pieces = [ItemChunk(at, at + 1, 1, 0, _WHOLE) for at in range(count)]
        apart = (_read(reader, Source(name, source.path, window=piece)) for piece in pieces)
        said = [event for found in apart for event in found]
        assert _told(said) == _told(events), f"{name}: its {count} items say something else apart"
    if source.path is not None and not source.members and not source.head.startswith(b"SQLite"):
        for damaged in _damaged(source.path.read_bytes()):
            _read(reader, Source(name, data=damaged))
    pick = random.Random(0)  # noqa: S311 - damage must repeat, not surprise
    for copy in retyped(source, RETYPED, pick):
        _read(reader, copy)
    return events


def _told(events: list[Event]) -> tuple[list[Event], Counter[str]]:
    """What the events say: the records that are not used up to their sum, all else in order."""
    counts: Counter[str] = Counter()
    for event in events:
        if isinstance(event, Ignored | Used):
            counts[event.code if isinstance(event, Ignored) else ""] += event.records
    return [event for event in events if isinstance(event, Conversation | Problem)], +counts


def _again(source: Source, name: str) -> Source:
    members = [_again(member, member.name) for member in source.members]
    return Source(name, source.path, members=members)


def _read(reader: Reader, source: Source) -> list[Event]:
    events = list(read_events(reader, source))
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


def retyped(source: Source, copies: int, pick: random.Random) -> Iterator[Source]:
    """Copies of a source in which one JSON value, chosen by `pick`, has become another.

    Of a store, one member has. JSON inside of strings is changed as well.
    """
    members = source.members or (source,)
    documents = [_documents(member) for member in members]
    places = [
        (at, line, path)
        for at, lines in enumerate(documents)
        for line, value in enumerate(lines)
        if not isinstance(value, bytes)
        for path in _places(value)
    ]
    for at, line, path in (pick.choice(places) for _ in range(copies if places else 0)):
        lines = list(documents[at])
        value = lines[line]
        assert not isinstance(value, bytes), "it has places"
        lines[line] = _replaced(value, path, pick.choice(_OTHERS))
        data = b"\n".join(
            item if isinstance(item, bytes) else dumps(item).encode("utf-8", "surrogatepass")
            for item in lines
        )
        changed = [_again(member, member.name) for member in members]
        changed[at] = Source(members[at].name, data=data)
        yield Source(source.name, members=changed) if source.members else changed[0]


def _documents(source: Source) -> list[Json | bytes]:
    """The JSON values of a file: of the whole, or of its lines; bytes for what is none."""
    data = source.first(1 << 20) if source.peek.kind in ("json", "jsonl") else b""
    found: list[Json | bytes] = []
    for text in [data] if source.peek.kind == "json" else data.splitlines():
        try:
            found.append(loads(text))
        except JsonFault:
            found.append(text)
    return found


def _places(value: Json) -> Iterator[tuple[str | int, ...]]:
    """The paths to the values in a value; the step "" goes into the JSON that a string holds."""
    yield ()
    inner = _inside(value)
    steps: Iterable[tuple[str | int, Json]] = ()
    if inner is not None:
        steps = (("", inner),)
    elif isinstance(value, dict):
        steps = value.items()
    elif isinstance(value, list):
        steps = enumerate(value)
    for step, item in steps:
        for path in _places(item):
            yield (step, *path)


def _inside(value: Json) -> Json:
    """The object or list that a string holds as JSON, or None."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return None
    try:
        return loads(value)
    except JsonFault:
        return None


def _replaced(value: Json, path: tuple[str | int, ...], new: Json) -> Json:
    """The value with `new` at the path."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(value, str):
        return dumps(_replaced(_inside(value), rest, new))
    if isinstance(value, list):
        return [_replaced(x, rest, new) if at == step else x for at, x in enumerate(value)]
    assert isinstance(value, dict), "only these have steps"
    return {key: _replaced(x, rest, new) if key == step else x for key, x in value.items()}


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
