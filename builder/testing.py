"""Helpers for tests: `assert_proven` for datasets, `check_reader` for readers.

from builder.testing import assert_proven, check_reader
def test_my_dataset(): assert_proven("data/train.jsonl", fail_on=["secrets"])
def test_my_reader(): check_reader(READER, Source("log.jsonl", Path("tests/log.jsonl")))
"""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from os import PathLike, fspath
from typing import cast

from builder.api import audit_dataset, verify_dataset
from builder.audit.options import AuditOptions
from builder.audit.result import GateAction
from builder.audit.run import CODES
from builder.conversation import Conversation, Event, Ignored, Json, Used
from builder.jsonio import JsonFault, dumps, loads
from builder.problem import Problem
from builder.readers import Reader, read_events, recognise
from builder.sources.source import Source
from builder.sources.stream import ItemChunk, WholeFile
from builder.verify.summary import LineReport

FINDINGS = 20
"""Number of findings that a failed assertion about a dataset names."""
CUTS = 16
"""Number of copies that are truncated and have one corrupted byte."""
CHANGES = 48
"""Number of JSON values that are replaced by a value of another type."""
TOGETHER = 4
"""Number of values that are replaced in one copy. If reading fails, each is tried alone."""
SHOWN = 2_000
"""Number of characters of a record that a failure message contains."""

_WHOLE = WholeFile(0, "", 0)

_OTHERS: tuple[Json, ...] = (
    None, True, 7, -0.5, "", "other", [], ["other"], [{}], [[]], {}, {"other": 1},
    {"type": "text", "text": 1},
)  # fmt: skip

JsonPath = tuple[str | int, ...]
"""Steps from a record to a value in it; the step "" goes into the JSON that a string contains."""


def assert_proven(
    dataset: str | PathLike[str], *, tokenizer: str = "qwen3", fail_on: Iterable[str] = ()
) -> None:
    """Verifies every sample of a dataset, and audits it for the names in `fail_on`.

    Raises AssertionError if a sample is not proven, there is none, or an audit or a code in
    `fail_on` has findings that are still in the dataset. Raises UsageError if there is no such
    dataset or tokenizer.
    """
    bad: list[str] = []

    def note(report: LineReport) -> None:
        bad.extend(f"{report.file}:{report.line} {item.code}: {item.message}"
                   for item in report.findings)  # fmt: skip

    dataset = fspath(dataset)
    summary = verify_dataset(dataset, tokenizer=tokenizer, on_report=note)
    proven = f"{summary.proven} of {summary.samples} samples verified"
    assert summary.samples, f"{dataset}: contains no samples"
    assert not bad, "\n".join([f"{dataset}: {proven}", *bad[:FINDINGS]])
    gates = set(fail_on)
    unknown = gates - {*CODES, *(code for codes in CODES.values() for code in codes)}
    assert not unknown, f"fail_on: no such audit or code: {', '.join(sorted(unknown))}"
    audited = audit_dataset(dataset, options=AuditOptions(tokenizer=tokenizer)) if gates else None
    fired = [
        f"{item.audit}: {item.code}: {item.count} in {item.samples} samples"
        for item in (audited.findings if audited is not None else ())
        if item.gate is GateAction.report and {item.audit, item.code} & gates
    ]
    assert not fired, "\n".join([f"{dataset}:", *fired])


def check_reader(reader: Reader, source: Source) -> list[Event]:
    """Checks that `reader` fulfils its contract on a source; returns the events of the source.

    Raises AssertionError if
    - the source is not recognised, or by another reader too, or only because of its name,
    - not all of the records that were read are accounted for,
    - a second reading, or reading each item of the source alone, gives other events,
    - the reader raises, or does not account for all records, on truncated and corrupted copies of
      the file, or on copies in which JSON values have another type. The message contains the
      changed record, before and after.
    """
    name = source.name
    claims = recognise(source)
    assert list(claims) == [reader.name], f"{name}: claimed by {claims}"
    events = read_counted(reader, _unread_copy(source, name))
    again = read_counted(reader, _unread_copy(source, name))
    assert events == again, f"{name}: two readings differ"
    renamed = _unread_copy(source, "renamed")
    assert reader.name in recognise(renamed), f"{name}: recognised by its name only"
    if reader.item_sizes is not None and (count := len(reader.item_sizes(renamed))):
        pieces = [ItemChunk(at, at + 1, 1, 0, _WHOLE) for at in range(count)]
        apart = (read_counted(reader, Source(name, source.path, window=one)) for one in pieces)
        joined = [event for found in apart for event in found]
        assert _summary(joined) == _summary(events), f"{name}: items differ if read alone"
    _check_cuts(reader, source)
    _check_changes(reader, source)
    return events


def read_counted(reader: Reader, source: Source) -> list[Event]:
    """Returns all events of a source. Raises AssertionError if they break docs/readers.md.

    Every record must be accounted for, and every conversation must have messages and its own id.
    """
    events = list(read_events(reader, source, named=True))
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


def _summary(events: list[Event]) -> tuple[list[Event], Counter[str]]:
    """Returns conversations and problems in order, and the counts of all other records."""
    counts: Counter[str] = Counter()
    for event in events:
        if isinstance(event, Ignored | Used):
            counts[event.code if isinstance(event, Ignored) else ""] += event.records
    return [event for event in events if isinstance(event, Conversation | Problem)], +counts


def _unread_copy(source: Source, name: str) -> Source:
    members = [_unread_copy(member, member.name) for member in source.members]
    return Source(name, source.path, members=members)


def _failure(reader: Reader, source: Source) -> Exception | None:
    """Returns the exception that reading a source raises, or None."""
    try:
        read_counted(reader, source)
    except Exception as error:  # the caller reports any exception
        return error
    return None


# -- copies with corrupted bytes -----------------------------------------------------------------


def _check_cuts(reader: Reader, source: Source) -> None:
    if source.path is None or source.members or source.head.startswith(b"SQLite"):
        return
    for detail, data in _cuts(source.path.read_bytes()):
        if (error := _failure(reader, Source(source.name, data=data))) is not None:
            message = f"{source.name}, {detail}: {type(error).__name__}: {error}"
            raise AssertionError(message) from error


def _cuts(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields copies of a file, each with a description: cut and corrupted, or lines shuffled."""
    pick = random.Random(0)  # noqa: S311 - the same copies each time
    for _ in range(CUTS if data else 0):
        end, new = pick.randrange(len(data)) + 1, pick.randrange(256)
        at = pick.randrange(end)
        start = data.rfind(b"\n", 0, at) + 1
        number = data.count(b"\n", 0, at) + 1
        line = data[start:end].partition(b"\n")[0]
        detail = (
            f"cut to {end} bytes, byte {at} from {data[at]:#04x} to {new:#04x}, which is byte "
            f"{at - start} of line {number}: {line[:SHOWN]!r}"
        )
        yield detail, data[:at] + bytes([new]) + data[at + 1 : end]
    lines = data.splitlines(keepends=True)
    if 1 < len(lines) < 10_000:
        pick.shuffle(lines)
        yield "lines shuffled", b"".join(lines)


# -- copies with values of another type ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ValueChange:
    """The change of one JSON value in a source to `new`.

    `member` is the position of a member of the source, `record` that of a line in a JSONL file.
    """

    member: int
    record: int
    path: JsonPath
    new: Json


class ChangedCopies:
    """Makes copies of a source in which JSON values are replaced by values of another type.

    Values in JSON that a string contains are replaced as well.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._members = source.members or (source,)
        self._records = [_documents(member) for member in self._members]

    def choose(self, count: int, pick: random.Random) -> list[ValueChange]:
        """Returns `count` changes chosen by `pick`; none for a source without JSON."""
        places = [
            (member, record, path)
            for member, records in enumerate(self._records)
            for record, value in enumerate(records)
            if not isinstance(value, bytes)
            for path in _paths(value)
        ]
        return [
            ValueChange(*pick.choice(places), pick.choice(_OTHERS))
            for _ in range(count if places else 0)
        ]

    def apply(self, changes: Iterable[ValueChange]) -> Source:
        """Returns a copy of the source with the changes, which must not contain each other."""
        members = [_unread_copy(member, member.name) for member in self._members]
        records = {change.member: list(self._records[change.member]) for change in changes}
        for change in changes:
            value = records[change.member][change.record]
            assert not isinstance(value, bytes), "it has paths"
            records[change.member][change.record] = _replaced(value, change.path, change.new)
        for at, values in records.items():
            data = b"\n".join(map(_encoded, values))
            members[at] = Source(self._members[at].name, data=data)
        return Source(self._source.name, members=members) if self._source.members else members[0]

    def describe(self, change: ValueChange) -> str:
        """Describes the location of the change, and the value and record before and after."""
        value = self._records[change.member][change.record]
        assert not isinstance(value, bytes), "it has paths"
        steps = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in change.path)
        return (
            f"{self._members[change.member].name}, record {change.record + 1}: "
            f"{steps or 'the whole'}: {_shortened(_at(value, change.path))} became "
            f"{_shortened(change.new)}\n  record before: {_shortened(value)}"
            f"\n  record after: {_shortened(_replaced(value, change.path, change.new))}"
        )


def _check_changes(reader: Reader, source: Source) -> None:
    copies = ChangedCopies(source)
    chosen = copies.choose(CHANGES, random.Random(0))  # noqa: S311 - the same copies each time
    for group in _groups(chosen):
        error = _failure(reader, copies.apply(group))
        if error is None:
            continue
        alone = ((change, _failure(reader, copies.apply([change]))) for change in group)
        found = next(((change, fault) for change, fault in alone if fault is not None), None)
        changes, cause = ([found[0]], found[1]) if found is not None else (group, error)
        described = "\n".join(map(copies.describe, changes))
        raise AssertionError(f"{type(cause).__name__}: {cause}\n{described}") from cause


def _groups(changes: Sequence[ValueChange]) -> Iterator[list[ValueChange]]:
    """Yields the changes in groups of up to `TOGETHER` that do not contain each other."""
    waiting = list(changes)
    while waiting:
        group: list[ValueChange] = []
        rest: list[ValueChange] = []
        for change in waiting:
            free = len(group) < TOGETHER and not any(_overlap(change, other) for other in group)
            (group if free else rest).append(change)
        yield group
        waiting = rest


def _overlap(one: ValueChange, other: ValueChange) -> bool:
    if (one.member, one.record) != (other.member, other.record):
        return False
    shorter = min(len(one.path), len(other.path))
    return one.path[:shorter] == other.path[:shorter]


def _documents(source: Source) -> list[Json | bytes]:
    """Returns the JSON value of a file, or of each line; the bytes of lines that are not JSON."""
    data = source.first(1 << 20) if source.peek.kind in ("json", "jsonl") else b""
    found: list[Json | bytes] = []
    for text in [data] if source.peek.kind == "json" else data.splitlines():
        try:
            found.append(loads(text))
        except JsonFault:
            found.append(text)
    return found


def _encoded(value: Json | bytes) -> bytes:
    return value if isinstance(value, bytes) else dumps(value).encode("utf-8", "surrogatepass")


def _shortened(value: Json) -> str:
    text = dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"


def _paths(value: Json) -> Iterator[JsonPath]:
    """Yields the paths to a value itself and to all values in it."""
    yield ()
    for step, item in _steps(value):
        for path in _paths(item):
            yield (step, *path)


def _steps(value: Json) -> Iterable[tuple[str | int, Json]]:
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, list):
        return enumerate(value)
    inner = _inside(value)
    return () if inner is None else (("", inner),)


def _inside(value: Json) -> Json:
    """Returns the object or list that a string contains as JSON, or None."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return None
    try:
        return loads(value)
    except JsonFault:
        return None


def _at(value: Json, path: JsonPath) -> Json:
    for step in path:
        value = next(item for own, item in _steps(value) if own == step)
    return value


def _replaced(value: Json, path: JsonPath, new: Json) -> Json:
    """Returns the value with `new` at the path."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(value, str):
        return dumps(_replaced(_inside(value), rest, new))
    if isinstance(value, list):
        return [_replaced(x, rest, new) if at == step else x for at, x in enumerate(value)]
    assert isinstance(value, dict), "only these have steps"
    return {key: _replaced(x, rest, new) if key == step else x for key, x in value.items()}


# -- golden files --------------------------------------------------------------------------------


def describe(event: Event) -> dict[str, Json]:
    """Returns an event as JSON for golden files: its type and non-default fields.

    A result that did not fail is described like one whose log does not say so.
    """
    if isinstance(event, Conversation):  # a message names its model only if it is another one
        messages = (
            replace(
                message,
                model=None if message.model == event.model else message.model,
                response=None,  # random, and no part of what a reader makes of a log
            )
            for message in event.messages
        )
        event = replace(event, messages=tuple(messages))
    return cast("dict[str, Json]", _describe(event))


def _describe(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            item.name: _describe(getattr(value, item.name))
            for item in fields(value)
            if getattr(value, item.name) != _default(item)
            and not (item.name == "is_error" and getattr(value, item.name) is False)
        }
        return {"is": type(value).__name__, **changed}
    if isinstance(value, tuple):
        return [_describe(item) for item in value]
    return value.tolist() if isinstance(value, array) else value


def _default(item: Field[object]) -> object:
    if item.default_factory is not MISSING:
        return item.default_factory()
    return item.default
