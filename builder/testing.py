"""Helpers for tests: `assert_proven` for datasets, `check_reader` for readers.

from builder.testing import assert_proven, check_reader
def test_my_dataset(): assert_proven("data/train.jsonl", fail_on=["secrets"])
def test_my_reader(): check_reader(READER, Source("log.jsonl", Path("tests/log.jsonl")))
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from os import PathLike, fspath
from typing import Any

from builder.api import audit_dataset, verify_dataset
from builder.audit.options import AuditOptions
from builder.conversation import Conversation, Event, Ignored, Json, Used
from builder.finding import GateAction
from builder.gates import check_gates, fires
from builder.jsonio import JsonFault, dumps, loads
from builder.problem import Problem
from builder.qwen3.reference import EMBEDDED
from builder.readers import Reader, read_events, recognise
from builder.sources.source import Source
from builder.sources.stream import ItemChunk, WholeFile
from builder.verify.summary import LineReport

FINDINGS = 20
"""Findings that a failed assertion about a dataset names."""
COPIES = 48
"""Changed copies of a source that a reader must survive."""

_OTHERS: tuple[Json, ...] = (None, True, 7, -0.5, "", "x", [], ["x"], [{}], {}, {"x": 1})


def assert_proven(
    dataset: str | PathLike[str], *, tokenizer: str = EMBEDDED, fail_on: Iterable[str] = ()
) -> None:
    """Verifies every sample of a dataset, and audits it for the names in `fail_on`.

    Raises AssertionError if a sample is not proven, there is none, or an audit or a code in
    `fail_on` has findings that are still in the dataset. Raises UsageError if there is no such
    dataset, tokenizer, audit or code.
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
    gates, options = set(fail_on), AuditOptions(tokenizer=tokenizer)
    check_gates(gates, options, "fail_on")
    fired = [
        f"{item.audit}: {item.code}: {item.count} in {item.samples} samples"
        for item in (audit_dataset(dataset, options=options).findings if gates else ())
        if item.gate is GateAction.report and fires(item, gates)
    ]
    assert not fired, "\n".join([f"{dataset}:", *fired])


def check_reader(reader: Reader, source: Source) -> list[Event]:
    """Checks that `reader` fulfils its contract on a source; returns the events of the source.

    Raises AssertionError if
    - the source is not recognised, or by another reader too, or only because of its name,
    - not all of the records that were read are accounted for,
    - a second reading, or reading each item of the source alone, gives other events,
    - the reader raises, or does not account for all records, on copies that are truncated, have a
      corrupted byte, or a JSON value of another type. The message says what was changed.
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
        pieces = [ItemChunk(at, at + 1, 1, 0, WholeFile(0, "", 0)) for at in range(count)]
        apart = (read_counted(reader, Source(name, source.path, chunk=one)) for one in pieces)
        joined = [event for found in apart for event in found]
        assert _summary(joined) == _summary(events), f"{name}: items differ if read alone"
    for change, copy in _changed_copies(source):
        try:
            read_counted(reader, copy)
        except Exception as error:  # any exception is a fault of the reader
            message = f"{name}, {change[:2000]}: {type(error).__name__}: {error}"
            raise AssertionError(message) from error
    return events


def read_counted(reader: Reader, source: Source) -> list[Event]:
    """Returns all events of a source. Raises AssertionError if they break docs/readers.md.

    Every record must be accounted for, and every conversation must have messages and its own id.
    """
    events = list(read_events(reader, source, named=True))
    ids: set[str] = set()
    for event in events:
        if isinstance(event, Conversation):
            assert event.id not in ids, f"{source.name}: two conversations {event.id!r}"
            ids.add(event.id)
            assert event.messages, f"{source.name}: conversation {event.id!r} is empty"
    counted = sum(event.records for event in events)
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


def _changed_copies(source: Source) -> Iterator[tuple[str, Source]]:
    """Yields (what was changed, copy): cut and corrupted, shuffled, or a value of another type."""
    members = source.members or (source,)
    pick = random.Random(0)  # noqa: S311 - the same copies each time
    for _ in range(COPIES):
        member = pick.choice(members)
        if member.path is None or member.peek.kind not in ("json", "jsonl", "text"):
            continue
        data = member.path.read_bytes()
        records = [data] if member.peek.kind == "json" else data.splitlines()
        for change, changed in (_corrupted(data, pick), _retyped(records, pick)):
            copy = Source(member.name, data=changed)
            copies = [_unread_copy(one, one.name) if one is not member else copy for one in members]
            yield change, Source(source.name, members=copies) if source.members else copy
    if source.path is not None and not source.members and source.peek.kind == "jsonl":
        lines = source.path.read_bytes().splitlines(keepends=True)[:10_000]
        pick.shuffle(lines)
        yield "lines shuffled", Source(source.name, data=b"".join(lines))


def _corrupted(data: bytes, pick: random.Random) -> tuple[str, bytes]:
    end = pick.randrange(len(data) + 1)
    at, new = pick.randrange(end + 1), pick.randrange(256)
    text = f"cut to {end} bytes, byte {at} is {new:#04x}: {data[max(at - 80, 0) : at + 80]!r}"
    return text, data[:at] + bytes([new]) + data[at + 1 : end]


def _retyped(records: list[bytes], pick: random.Random) -> tuple[str, bytes]:
    """Returns a copy in which one value, at any depth, has another type."""
    number, new = pick.randrange(len(records) or 1), pick.choice(_OTHERS)
    try:
        whole: Any = [loads(records[number])]
    except (JsonFault, IndexError):
        return _corrupted(b"\n".join(records), pick)
    outer, at, place = whole, 0, []
    while isinstance(inner := outer[at], dict | list) and inner and pick.random() < 0.8:
        outer, at = inner, pick.choice([*inner] if isinstance(inner, dict) else range(len(inner)))
        place.append(at)
    text = f"record {number + 1}, {place}: {outer[at]!r} became {new!r}"
    outer[at] = new
    records[number] = dumps(whole[0]).encode("utf-8", "surrogatepass")
    return text, b"\n".join(records)
