"""Finds the records of exchanges in files of any kind.

Lines, JSON lists, VCR cassettes, HAR files, WireMock's and CloudWatch's lists, and the text of a
stream; `builder.readers.api.capture.envelope` opens the records.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from builder.conversation import Ignored, Json
from builder.jsonio import JsonFault, loads
from builder.problem import Problem
from builder.readers.api.capture.body import events, is_stream
from builder.readers.api.capture.cassette import LIST_KEYS, interactions, looks_like_cassette
from builder.readers.api.capture.gateway_logs import gateway_records
from builder.readers.toolkit.narrow import as_dict, as_list
from builder.sources.sniff import PEEK_BYTES
from builder.sources.source import Record, Source
from builder.sources.stream import STREAM_ERRORS, stream_problem

_WIREMOCK_KEYS = ("mappings", "requests")
"""Keys of WireMock's lists: of its stubs, and of its journal."""

_TIMED = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+Z (?=\{)")
"""The time before each record that CloudWatch exports to S3."""
PEEK_EXCHANGES = 50
"""Maximum number of exchanges in which recognition looks for a known API."""


def peeked(source: Source) -> Iterator[Json]:
    """Yields the values of the first `records`, as far as the source's peek contains them."""
    head = source.head
    if looks_like_cassette(head):
        for item in interactions(source.first(PEEK_BYTES), source.max_record_bytes):
            if not isinstance(item, Problem):
                yield item
    elif _TIMED.match(head):
        for line in source.first(PEEK_BYTES).splitlines():
            with suppress(JsonFault):  # other lines of the log; a truncated last line
                yield loads(_TIMED.sub(b"", line, count=1))
    elif source.peek.records:
        inside = _listed_exchanges(source.peek.records[0]) if source.peek.kind == "json" else None
        yield from source.peek.records if inside is None else inside
    elif is_stream(text := head.decode("utf-8", "replace")):
        yield from events(text)


def records(source: Source) -> Iterator[Record | Problem | Ignored]:
    """Yields and counts the source's records: one for each exchange, in any kind of file.

    In the text of a stream each line is a record; lines without data are ignored.
    """
    kind = source.peek.kind
    if looks_like_cassette(source.head):  # first, since its block texts may be JSON
        yield from _cassette(source)
    elif _TIMED.match(source.head):
        yield from _timed_lines(source)
    elif kind == "text" and is_stream(source.head.decode("utf-8", "replace")):
        yield from _stream_lines(source)
    elif kind == "json" and (inside := _listed_exchanges(source.document())) is not None:
        yield from (_attached(source, item) for item in source.counted(inside))
    else:
        yield from source.records()


def _attached(source: Source, record: Record) -> Record:
    """Returns an entry of a HAR file with the bodies that Playwright keeps in files beside it."""
    value = as_dict(record.value)
    attached: dict[str, Json] = {}
    for side, key in (("request", "postData"), ("response", "content")):
        body = as_dict(value, side, key)
        name = body.get("_file")
        if isinstance(name, str) and "text" not in body:
            text = {"text": _file_text(source, name), "encoding": "base64"}
            kept = {one: item for one, item in body.items() if one != "_file"}
            attached[side] = {
                **as_dict(value[side]),
                key: {**kept, **text} if text["text"] else kept,
            }
    return replace(record, value={**value, **attached}) if attached else record


def _file_text(source: Source, name: str) -> str:
    """Returns the bytes of a file beside the source in Base64; "" if there is none."""
    other = source.sibling(name)
    with suppress(*STREAM_ERRORS):
        data = other.whole() if other is not None else b""
        return base64.b64encode(data[: source.max_record_bytes]).decode()
    return ""


def _listed_exchanges(document: Json | Problem) -> list[Json] | None:
    """Returns the exchanges in a JSON cassette, a HAR file or CloudWatch's lists, else None."""
    if not isinstance(document, dict):
        return None
    lists = (
        as_dict(document.get("log")).get("entries"),
        *map(document.get, LIST_KEYS),
        *(document[key] for key in _WIREMOCK_KEYS if _are_pairs(document.get(key))),
        gateway_records(document),
    )
    return next((found for found in lists if isinstance(found, list)), None)


def _are_pairs(value: Json) -> bool:
    """Returns whether the items of a list have both sides of an exchange."""
    items = as_list(value)[:3]
    return bool(items) and all(
        isinstance(as_dict(item).get(key), dict)
        for item in items
        for key in ("request", "response")
    )


def _cassette(source: Source) -> Iterator[Record | Problem]:
    count = 0
    try:
        with source.open() as stream:
            for item in interactions(stream, source.max_record_bytes):
                source.count_records()
                where = f"interaction {count}"
                yield item if isinstance(item, Problem) else source.seen(where, item)
                count += 1
    except STREAM_ERRORS as error:
        source.count_records()
        yield stream_problem(error, f"after interaction {count}")


def _timed_lines(source: Source) -> Iterator[Record | Problem]:
    for item in source.lines():
        if isinstance(item, Problem):
            yield item
            continue
        number, line, ended = item
        where = f"line {number}"
        try:
            yield source.seen(where, loads(_TIMED.sub(b"", line, count=1)))
        except JsonFault as fault:
            yield fault.at(where) if ended else replace(fault.at(where), code="truncated")


def _stream_lines(source: Source) -> Iterator[Record | Problem | Ignored]:
    for item in source.lines():
        if isinstance(item, Problem):
            yield item
            continue
        number, line, _ = item
        values = events(line.decode("utf-8", "replace"))
        yield source.seen(f"line {number}", values[0]) if values else Ignored("stream_field")
