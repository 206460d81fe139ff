"""Renders the pages of `builder view`: samples, one sample, rejects, the review."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from builder.audit.counts import Counts, count_dataset
from builder.audit.result import Audit, AuditTable
from builder.audit.tables import histograms, tables
from builder.codes import explain, is_loss, meaning
from builder.conversation import Json
from builder.dataset.rejects import REJECTS, Reject
from builder.dataset.review import ACCEPT, DECISIONS, REJECT, Decision
from builder.dataset.rows import DatasetRow
from builder.dataset.store import Address, Rows, as_stored, content
from builder.jsonio import dumps
from builder.output.manifest import Manifest
from builder.paths import file_inside
from builder.problem import Problem, UsageError
from builder.qwen3.tokenizer import Target, target_for
from builder.report.html import EMPTY, Html, cut, join, macro, marked, omission, page, tag, text
from builder.report.report import accounting, first_screen, how_made
from builder.report.samples import Picked, headline, request_of, sample_html
from builder.report.turns import DisplayOptions, Limits, as_written, indented
from builder.sample import Sample
from builder.sources.source import Source
from builder.text import counted, number, shorten
from builder.view.index import (
    FACETS,
    ORDERS,
    REJECT_FACETS,
    SORTS,
    Query,
    RejectIndex,
    Result,
    SampleIndex,
    facet_meaning,
    sample_id,
    sample_texts,
    whole_number,
)
from builder.view.review_file import ACCEPTED, MAX_NOTE, REJECTED, STATES, ReviewFile

# -- renders lists of rows that match a query: search, facets with counts, links to pages ----------

PAGE_ROWS = 50
_SHOWN_VALUES = 7
_MORE_VALUES = 60

_Top = Callable[[str, int], tuple[list[tuple[str, int]], int]]
_Link = tuple[str, str, str]
"""(text, address, relation or "")"""

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16,}|[A-Z0-9]{26}")
_TIME = r"(?:[T_-]?\d\d[-:_]?\d\d[-:_]?\d\d)?(?!\d)"
_DATE = re.compile(rf"(20\d\d)[-_/]?([01]\d)[-_/]?([0-3]\d){_TIME}")
_FOLDERS = frozenset(("sessions", "session", "projects", "rollout", "chats", "logs", "history"))


@dataclass(frozen=True, slots=True)
class _ListPage:
    """The contents of a list.

    address  the address of the list; "" for the samples
    what     a plural noun for its rows
    facets   {key of a facet: title}
    orders   {key of a facet: its values in their fixed order}, for facets that have one
    sorts    {key of an order: title}
    top      returns the values of a facet with their counts, and the number of values
    meanings returns what a value of a facet means, or ""
    """

    address: str
    what: str
    query: Query
    result: Result
    facets: Mapping[str, str]
    orders: Mapping[str, Sequence[str]]
    sorts: Mapping[str, str]
    top: _Top
    meanings: Callable[[str, str], str] = lambda *_: ""

    def page(self, params: Mapping[str, str]) -> tuple[int, list[int]]:
        """Returns the number of the requested page, from 0, and the numbers of its rows."""
        at = min(whole_number(params.get("page", "")), self.pages - 1)
        return at, [*self.result.numbers[at * PAGE_ROWS : (at + 1) * PAGE_ROWS]]

    def html(
        self,
        page: int,
        rows: Html,
        tools: Html = EMPTY,
        note: Html = EMPTY,
        bulk: Html = EMPTY,
        *,
        is_paged: bool = True,
    ) -> Html:
        """Returns a page of the list, from 0.

        `tools` appear next to the search, `note` under it, `bulk` above the rows.
        """
        facets = [self._facet(name) for name in self.facets]
        shown = {
            "address": self.address,
            "query": self.query,
            "sorts": self.sorts,
            "status": self._status,
            "pending": self._pending,
            "chips": self._chips(),
            "meant": " ".join(
                f"{value}: {words}."
                for name, value in self.query.chosen
                if (words := self.meanings(name, value))
            ),
            "facets": list(filter(None, facets)),
            "number": number(page + 1),
            "pages": number(self.pages),
            "steps": self._steps(page) if self.pages > 1 and is_paged else [],
        }
        return macro("viewer", "listing", page=shown, rows=rows, tools=tools, note=note, bulk=bulk)

    @property
    def pages(self) -> int:
        """Returns the number of pages, at least one."""
        return max(1, -(-len(self.result.numbers) // PAGE_ROWS))

    @property
    def _status(self) -> str:
        count, known = len(self.result.numbers), self.result.count
        words = f"{number(count)} of {number(known)} {self.what}"
        if self.query.text:
            verb = "contains" if count == 1 else "contain"
            words += f" {verb} “{shorten(self.query.text, 60)}”"
        return words

    @property
    def _pending(self) -> str:
        """Returns what is not indexed or searched yet, or ""."""
        result, pending = self.result, []
        if not result.is_indexed:
            pending.append(f"{number(result.count)} {self.what} are indexed so far")
        if result.searched < 1:
            pending.append(f"{result.searched:.0%} are searched")
        return " and ".join(pending)

    def _chips(self) -> list[tuple[str, str]]:
        """Returns the selected values with the addresses that remove them."""
        query = self.query
        chips = [
            (f"{self.facets[name]}: {shorten(value, 60)}", query.choosing(name, ""))
            for name, value in query.chosen
        ]
        if query.text:
            rest = Query("", query.chosen, query.sort)
            chips.insert(0, (f"Text: {shorten(query.text, 60)}", rest))
        return [(name, rest.url(self.address)) for name, rest in chips]

    def _facet(self, name: str) -> tuple[object, ...] | None:
        """Returns the values of a facet, or None if none would narrow the list."""
        chosen = self.query.value(name)
        values, count = self.top(name, _SHOWN_VALUES + _MORE_VALUES)
        if not values or (not chosen and count == 1 and values[0][1] == len(self.result.numbers)):
            return None
        order = self.orders.get(name)
        if order is not None:
            values.sort(key=lambda pair: order.index(pair[0]) if pair[0] in order else len(order))
        links = []
        for value, samples in values:
            query = self.query.choosing(name, "" if value == chosen else value)
            brief = brief_source(value) if name == "source" else shorten(value, 70)
            full = self.meanings(name, value) or (value if brief != value else "")
            links.append((brief, full, query.url(self.address), samples, value == chosen))
        visible = _SHOWN_VALUES if order is None else len(values)
        left = count - visible
        most = len(links) - visible
        note = f"The {number(most)} most frequent of these." if left > most else ""
        return self.facets[name], links[:visible], links[visible:], left, note

    def _steps(self, page: int) -> list[_Link]:
        last = self.pages - 1
        steps = (("First", 0, ""), ("Previous page", page - 1, "prev"),
                 ("Next page", page + 1, "next"), ("Last", last, ""))  # fmt: skip
        return [
            (name, self.query.url(self.address, page=to or ""), rel)
            for name, to, rel in steps
            if 0 <= to <= last and to != page
        ]


def _step_links(
    result: Result, row: int, query: Query, back: str, url: Callable[[int], str | None]
) -> list[_Link]:
    """Returns links from row `row` to its neighbours in the result, and back to the list.

    `back` is the address of the list; `url` returns that of a row, or None.
    """
    place = result.place(row)
    links = [
        (name, address, rel)
        for name, rel, step in (("Previous", "prev", -1), ("Next", "next", 1))
        if place is not None and (other := result.at(place + step)) is not None
        if (address := url(other)) is not None
    ]
    listed = query.url(back, page=(place or 0) // PAGE_ROWS or "")
    return [*links, ("Back to the list", listed, "")]


def brief_source(source: str, *, ids: bool = True) -> str:
    """Returns a path as project and date, or with `ids` the beginning of its id without a date."""
    stem, dot, _ = source.rpartition(".")
    stem = stem if dot and "/" not in source[len(stem) :] else source
    date, found = _DATE.search(stem), _ID.search(stem)
    bare = _DATE.sub("/", _ID.sub("/", stem))
    words = [part.strip("-_. ") for part in bare.split("/")]
    names = [part for part in words if part and not part.isdigit() and part not in _FOLDERS]
    name = "/".join(names[-2:])
    name = name if len(name) <= 40 else f"…{name[-39:]}"
    day = "-".join(date.groups()) if date else found[0][:8] if found and ids else ""
    return " ".join(filter(None, (name, day))) or source


# -- finds the raw records of a sample in its logs, if they still exist ----------------------------

MAX_RECORDS = 60
_MAX_BYTES = 32 << 20
_CHARACTERS = 20_000
_PROBE = 80
"""Characters of a turn that are searched for in records."""

_LINES = re.compile(r"(?:(?P<member>\S+) )?lines? (?P<first>\d+)(?:(?:-| to line )(?P<last>\d+))?")
_ITEMS = re.compile(r"(?P<key>\w*)\[(?P<first>\d+)\](?:-(?P=key)\[(?P<last>\d+)\])?")

_Record = tuple[str, str]
"""(location, text)"""


def raw_records(logs: Path, source: str, record: str) -> list[_Record] | None:
    """Returns at most MAX_RECORDS + 1 records, or None if they cannot be found.

    `source` and `record` come from meta/, which is not trusted: nothing outside `logs` is read.
    """
    lines = _LINES.fullmatch(record)
    member = f"/{lines['member']}" if lines is not None and lines["member"] else ""
    path = file_inside(logs, source + member)
    if path is None:
        return None
    opened = Source(path.name, path, max_record_bytes=_MAX_BYTES)
    if lines is not None:
        first, last = _range(lines)
        return list(islice(_lines(opened, first, last), MAX_RECORDS + 1))
    items = _ITEMS.fullmatch(record)
    if items is None and record != "file":
        return None
    document = opened.document(exact=True)
    if isinstance(document, Problem):
        return _text(path) if items is None else None
    if items is None:
        return [("the whole file", indented(document))]
    return _items(document, items["key"], *_range(items))


def _text(path: Path) -> list[_Record] | None:
    """Returns the beginning of a text file; None for a binary file."""
    with path.open("rb") as stream:
        data = stream.read(4 * _CHARACTERS)
    if b"\0" in data:
        return None
    return [("the beginning of the file", data.decode("utf-8", "replace")[:_CHARACTERS])]


def _range(match: re.Match[str]) -> tuple[int, int]:
    first = int(match["first"][:15])
    return first, int(match["last"][:15]) if match["last"] else first


def _lines(source: Source, first: int, last: int) -> Iterator[_Record]:
    for item in source.lines():
        if isinstance(item, Problem):  # too long to show, or cut off at the end of the file
            place = item.where.removeprefix("line ")
            if not place.isdigit() or first <= int(place) <= last:
                yield item.where, f"({item.code}: {item.detail})"
        elif item[0] > last:
            return
        elif item[0] >= first:
            yield f"line {item[0]}", item[1].decode("utf-8", "replace")


def _items(document: Json, key: str, first: int, last: int) -> list[_Record] | None:
    listed = document.get(key) if key and isinstance(document, dict) else document
    if not isinstance(listed, list):
        return None
    last = min(last, first + MAX_RECORDS, len(listed) - 1)
    return [(f"{key}[{at}]", indented(listed[at])) for at in range(first, last + 1)]


def _records_of_turns(
    messages: Sequence[tuple[str, str]], records: Sequence[_Record]
) -> dict[int, tuple[str, str]]:
    """Returns {turn: (id on the page, location) of the record that contains its text}.

    meta/ does not relate turns to records, so the records are searched for the longest line of each
    turn, beginning at the record of the previous turn. Turns with changed text may not be found.
    """
    locations: dict[int, tuple[str, str]] = {}
    first = 0
    for at, (_, message) in enumerate(messages):
        line = max(message[:20_000].splitlines() or [""], key=len)[:_PROBE].strip()
        if len(line) < 8:
            continue
        once = dumps(line)[1:-1]
        probes = {line, once, dumps(once)[1:-1], json.dumps(line)[1:-1]}
        for record in range(first, min(len(records), MAX_RECORDS)):
            if any(probe in records[record][1] for probe in probes):
                locations[at] = (f"record-{record}", records[record][0])
                first = record
                break
    return locations


def raw_html(records: list[_Record] | None) -> Html:
    """Returns the records, each with its location."""
    shown = [(where, cut(value, _CHARACTERS)) for where, value in (records or ())[:MAX_RECORDS]]
    more = omission(1, "record or more") if len(records or ()) > MAX_RECORDS else EMPTY
    return macro("viewer", "records", found=shown, more=more)


# -- renders the rejects ---------------------------------------------------------------------------

_FIELDS = 20
_REASONS = 200
_ABOUT = (
    "What was not used, by reason. Red codes are losses; grey ones had nothing to train, are in the"
    " dataset already, or were left out on request."
)


def _reject_list(index: RejectIndex, params: Mapping[str, str]) -> Html:
    """Returns the reasons with their counts, or the matching rejects of one or of a search."""
    query = _reject_query(params)
    result = index.result(query)
    code = query.value("code")
    is_grouped = not code and not query.text
    facets = {name: title for name, title in REJECT_FACETS.items()
              if name != "code" or not is_grouped}  # fmt: skip
    listed = _ListPage("rejects", "rejects", query, result, facets, {}, {}, result.top, _meaning)
    page, numbers = listed.page(params)
    if is_grouped:
        note = tag("p", text(_ABOUT), class_="note")
        return listed.html(page, _reasons(result, query), note=note, is_paged=False)
    items = [_item(each, Reject.read(index.line(each)), query) for each in numbers]
    note = macro("report", "explained", known=explain(code)) if code else EMPTY
    rows = macro("viewer", "rejects", items=items, start=page * PAGE_ROWS + 1)
    return listed.html(page, rows, note=note)


def _reasons(result: Result, query: Query) -> Html:
    """Returns the codes, losses first, each with its meaning and the number of rejects."""
    found, _ = result.top("code", _REASONS)
    groups = [
        (code, is_loss(code), meaning(code), count, query.choosing("code", code).url("rejects"))
        for code, count in sorted(found, key=lambda pair: (not is_loss(pair[0]), -pair[1]))
    ]
    return macro("viewer", "reasons", groups=groups)


def _reject_page(
    index: RejectIndex, line_number: int, params: Mapping[str, str], logs: Path | None
) -> Html | None:
    """Returns the page of a reject with its raw record, or None."""
    line = index.line(line_number)
    if line is None:
        return None
    reject, query = Reject.read(line), _reject_query(params)
    if logs is None:
        note = "Start the viewer with --logs FOLDER, the input of the build, to see the record."
        record = tag("p", text(note), class_="note")
    else:
        record = raw_html(raw_records(logs, reject.source, reject.record))
    links = _step_links(
        index.result(query), line_number, query, "rejects",
        lambda other: query.url("reject", line=other),
    )  # fmt: skip
    steps = macro("viewer", "steps", where="", links=links, label="Rejects of the result")
    stated = [(name, value) for name, value in line.items() if name != "code" and value is not None]
    facts = [(name, as_written(value)) for name, value in stated[:_FIELDS]]
    return macro(
        "viewer", "reject", steps=steps, name=reject.code, is_loss=is_loss(reject.code),
        words=meaning(reject.code), record=record,
        explained=macro("report", "explained", known=explain(reject.code)),
        facts=macro("charts", "facts", pairs=facts, style="facts broad", limit=400),
    )  # fmt: skip


def _reject_query(params: Mapping[str, str]) -> Query:
    return Query.read(params, REJECT_FACETS, ())


def _meaning(facet: str, value: str) -> str:
    return meaning(value) if facet == "code" else ""


def _item(line_number: int, reject: Reject, query: Query) -> tuple[str, bool, Html, Html, str]:
    """Returns the code of a reject, whether it is a loss, its meaning, its place, its address."""
    details = shorten(reject.message, 300)
    words = meaning(reject.code) or details or "(no message)"
    about = " · ".join(shorten(value, 100) for value in reject.place)
    if details and details != words:
        about = f"{details} · {about}"
    shown, place = marked(words, query.pattern), marked(about, query.pattern)
    address = query.url("reject", line=line_number)
    return reject.code, is_loss(reject.code), shown, place, address


# -- renders the page of one sample: navigation, the review form, the sample -----------------------

_RECORDS, _RENDERED = "records", "text"
"""The values of `side` that show the raw records or the rendered text next to the conversation."""

_LIMITS = Limits(60_000, 20_000, 40_000, 400, 200, 4_000)
_MAX_SAMPLE = 6_000_000
"""Bytes of a sample on its page."""


_KEYS = (
    ("j or →", "next sample, or next row of a list"),
    ("k or ←", "previous sample or row"),
    ("Enter", "open the row"),
    ("/", "search"),
    ("a, r, u", "accept the sample, reject it, undo the decision"),
    ("n", "write a note"),
    ("f", "unfold or fold long texts"),
    ("?", "show these keys"),
)
_AROUND = 90
"""Characters shown on either side of a search match."""
_STATE_NAMES = {ACCEPT: ACCEPTED, REJECT: REJECTED, "": ""}
_NUMBERS = {"length": "Tokens", "turns": "Turns", "calls": "Calls", "errors": "Errors"}
_TEXTS = {"outcome": "Outcome", "context": "Context", "source": "Source", "model": "Model"}
"""{column of the list: its title}"""


class Viewer:
    """The pages of one dataset. Methods return whole pages, whatever the query contains.

    `folder` is the built folder (None for a file), `logs` the folder of its logs, `review` the file
    of decisions.
    """

    def __init__(
        self,
        folder: Path | None,
        rows: Rows,
        manifest: Manifest,
        tokenizer: str,
        review: ReviewFile,
        logs: Path | None = None,
    ) -> None:
        self.rows = rows
        self.logs = logs
        self.manifest = manifest
        self.review = review
        self.index = SampleIndex(rows)
        self._folder = folder
        self._tokenizer = tokenizer
        rejects = folder / REJECTS if folder is not None else None
        has_rejects = rejects is not None and rejects.is_file()
        self.rejected = RejectIndex(rejects) if rejects is not None and has_rejects else None

    def close(self) -> None:
        """Stops the threads."""
        self.index.close()
        if self.rejected is not None:
            self.rejected.close()

    @cached_property
    def target(self) -> Target:
        """Returns the tokenizer, which is loaded for the first sample."""
        return target_for(self._tokenizer)

    @cached_property
    def _counts(self) -> Counts:
        return count_dataset(str(self._folder or self.rows.files[0].file.path))

    # -- samples -----------------------------------------------------------------------------------

    def samples(self, params: Mapping[str, str]) -> bytes:
        """Returns a page of the list of matching samples."""
        query = _sample_query(params)
        result = self.result(query)
        orders = {**ORDERS, "review": STATES}
        listed = _ListPage("", "samples", query, result, FACETS, orders, SORTS, result.top,
                           facet_meaning)  # fmt: skip
        page, numbers = listed.page(params)
        bulk = EMPTY
        if query and len(result.numbers) > 1 and result.is_complete:
            bulk = macro("viewer", "bulk", fields=query.fields, count=len(result.numbers))
        jump = macro("viewer", "jump")
        table = self._table(numbers, query, result) if numbers else EMPTY
        return self._page("Samples", listed.html(page, table, jump, self._progress(), bulk))

    def _table(self, numbers: list[int], query: Query, result: Result) -> Html:
        """Returns samples as a table, without the columns that are the same in all samples."""
        sizes = [name for name in _NUMBERS if len({*result.measured[name]}) > 1]
        texts = [name for name in _TEXTS if len({*result.values[name]}) > 1]
        found = ((at, self.rows.locate(at)) for at in numbers)
        rows = [(at, address, row) for at, address in found
                if address is not None and (row := self._row(address)) is not None]  # fmt: skip
        in_tokens = any(row.meta.tokens for *_, row in rows)
        titles = {**_NUMBERS, **_TEXTS, "length": "Tokens" if in_tokens else "Characters"}
        heads = []
        for name in (*sizes, *texts):
            first, second = (f"-{name}", name) if name in _NUMBERS else (name, f"-{name}")
            wanted = query.sorted(second if query.sort == first else first)
            order = "descending" if query.sort.startswith("-") else "ascending"
            is_sorted = query.sort.removeprefix("-") == name
            kind = "num" if name in _NUMBERS else ""
            heads.append((titles[name], wanted.url(), kind, order if is_sorted else ""))
        lines = []
        for at, address, row in rows:
            cells = []
            for name in sizes:
                size = result.measured[name][at]
                kind = "num error" if name == "errors" and size else "num"
                cells.append((titles[name], number(size), "", kind))
            for name in texts:
                whole = ", ".join(result.values[name][at])
                brief = brief_source(whole, ids=False) if name == "source" else shorten(whole, 60)
                cells.append((titles[name], brief, whole if whole != brief else "", name))
            fault = row.reading.code if row.foreign else ""
            words = request_of(row)
            decision = self.review.decisions.get(sample_id(row), Decision()).decision
            lines.append({
                "at": at, "address": query.url("row", at=address), "cells": cells, "fault": fault,
                "title": shorten(words, 140) or ("(not a sample)" if fault else "(no request)"),
                "whole": shorten(words, 1_200), "state": _STATE_NAMES[decision],
                "excerpt": _excerpt(content(row), query),
            })  # fmt: skip
        return macro("viewer", "samples", heads=heads, rows=lines)

    def result(self, query: Query) -> Result:
        """Returns the rows that match a query."""
        return self.index.result(query, self.review.decisions)

    def _progress(self) -> Html:
        """Returns how many samples are reviewed, where that is kept, and what to do with it."""
        decisions, ids = self.review.decisions, self.index.ids[:]
        made = Counter(decisions[name].decision for name in ids if name in decisions)
        decided = [
            (state, made[decision], Query().choosing("review", state).url())
            for decision, state in _STATE_NAMES.items()
            if decision and decisions
        ]
        done, count = sum(samples for _, samples, _ in decided), max(len(ids), 1)
        path = shlex.quote(str(self.review.path))
        return macro("viewer", "progress", done=done, count=count, decided=decided, path=path)

    def sample(self, address: Address, params: Mapping[str, str]) -> bytes | None:
        """Returns the page of a sample, or None if there is no such row.

        It is below its place in the result of the query, its neighbours and its review.
        """
        row = self._row(address)
        if row is None:
            return None
        query, side = _sample_query(params), params.get("side", "")
        known = self.rows.number(address)
        picked = Picked(known if known is not None else address.row, row)
        title, about = headline(picked)
        views = {"Conversation": "", "Rendered text": _RENDERED}
        if self.logs is not None:
            views["Raw records"] = _RECORDS
        shown = side if side in views.values() else ""
        tabs = [
            (name, query.url("row", at=address, side=one), one == shown)
            for name, one in views.items()
        ]
        decided = self.review.decisions.get(sample_id(row), Decision())
        reading = self._reading(row, query, shown)
        content = macro(
            "viewer",
            "sample",
            steps=self._steps(picked.number, query, side),
            title=title,
            whole=shorten(request_of(row), 1_200),
            about=about,
            tabs=[*tabs, ("JSON", f"raw?at={address}", False)],
            fields=(*query.fields, ("at", str(address)), ("side", side)),
            decision=decided.decision,
            note=decided.note,
            body=sample_html(picked, self.target, _MAX_SAMPLE, _LIMITS, reading),
        )
        main = join((content, macro("viewer", "jump")))
        return self._page(f"Sample #{number(picked.number)}", main)

    def _steps(self, at: int, query: Query, side: str) -> Html:
        """Returns the position of a sample in the result, and links to its neighbours."""
        result, reviewed = self.result(query), len(self.review.decisions)
        place = result.place(at)
        where = f"#{number(at)}"
        if place is not None:
            found = " found" if query else ""
            where += f" ({number(place + 1)} of {number(len(result.numbers))}{found})"
        elif query:
            where += ", not in the result"
        where += f", {number(reviewed)} reviewed" if reviewed else ""

        def url(other: int) -> str | None:
            address = self.rows.locate(other)
            return query.url("row", at=address, side=side) if address is not None else None

        links = _step_links(result, at, query, "", url)
        return macro("viewer", "steps", where=where, links=links, label="Samples of the result")

    def _reading(self, row: DatasetRow, query: Query, side: str) -> DisplayOptions:
        """Returns the display options: marked matches, and what the right side shows."""
        if self.logs is None or side != _RECORDS:
            return DisplayOptions(query.pattern, outline=True, rendered=side == _RENDERED)
        records = raw_records(self.logs, row.meta.source, row.meta.record)
        locations: dict[int, tuple[str, str]] = {}
        if isinstance(row.sample, Sample) and records:
            locations = _records_of_turns(row.sample.messages, records)
        heading = tag("h3", text("Raw records"))
        raw = tag("section", join((heading, raw_html(records))), class_="raw")
        return DisplayOptions(query.pattern, True, locations, raw)

    def decide(self, given: Mapping[str, str]) -> str | None:
        """Records a decision; returns the URL to go to, or None for an invalid request.

        `all` decides on every sample of a query, if `count` is their number. Raises UsageError if
        it is not, or if the review cannot be written.
        """
        if given.get("all"):
            return self._decide_all(given)
        address = Address.read(given.get("at", ""))
        row = self._row(address) if address is not None else None
        if address is None or row is None:
            return None
        sample = sample_id(row)
        wanted = given.get("decision", "")
        now = self.review.decisions.get(sample, Decision())
        if wanted == "note":
            wanted = now.decision
        elif wanted == "none":
            wanted = ""
        elif wanted not in DECISIONS:
            return None
        query = _sample_query(given)
        after = self._after(address, query) if given.get("decision") in DECISIONS else None
        note = given.get("note", now.note).replace("\r\n", "\n").strip()[:MAX_NOTE]
        self.review.decide({sample: Decision(wanted, note)})
        return query.url("row", at=after or address, side=given.get("side", ""))

    def _decide_all(self, given: Mapping[str, str]) -> str | None:
        wanted, query = given.get("decision", ""), _sample_query(given)
        if wanted not in DECISIONS:
            return None
        result = self.result(query)
        count = len(result.numbers)
        if not result.is_complete or given["count"].strip().replace(",", "") != str(count):
            raise UsageError(
                f"{counted(count, 'sample')} match: type this number to {wanted} all of them"
            )
        known, made = self.review.decisions, {}
        for at in result.numbers:
            sample = result.ids[at]
            made[sample] = Decision(wanted, known.get(sample, Decision()).note)
        self.review.decide(made)
        return query.url()

    def _after(self, address: Address, query: Query) -> Address | None:
        """Returns the address of the next sample of the result; None after the last."""
        row_number = self.rows.number(address)
        result = self.result(query)
        place = result.place(row_number) if row_number is not None else None
        after = result.at(place + 1) if place is not None else None
        return self.rows.locate(after) if after is not None else None

    def raw(self, address: Address) -> bytes | None:
        """Returns the row as JSON, as stored in the file, or None."""
        row = self._row(address)
        return dumps(as_stored(row)).encode("utf-8", "replace") if row is not None else None

    # -- the dataset -------------------------------------------------------------------------------

    def overview(self) -> bytes:
        """Returns the first page of the report, counted at the first request."""
        main = join(
            (
                tag("h2", text("Overview"), class_="unseen-title"),
                first_screen(self._counts, self.manifest, self._audit()),
                accounting(self.manifest.ledger),
                tag("section", tag("h2", text("How it was made")), how_made(self.manifest)),
            )
        )
        return self._page("Overview", main)

    def _audit(self) -> Audit:
        """Returns the findings that the manifest lists, with charts of the counts and the index."""
        audit = self.manifest.audit
        called, _ = self.index.result(Query()).top("tool", 50)
        heads = ("tool", "samples")
        by_tool = AuditTable("tools", "Samples by called tool", heads, tuple(called), "", "samples")
        findings = audit.findings if audit is not None else ()
        made = (*tables(self._counts), by_tool)
        return Audit(self._counts.samples, findings, made, histograms(self._counts))

    def rejects(self, params: Mapping[str, str]) -> bytes:
        """Returns a page of the list of matching rejects."""
        if self.rejected is None:
            note = f"There is no {REJECTS}."
            return self._page("Rejects", tag("p", text(note), class_="note"))
        return self._page("Rejects", _reject_list(self.rejected, params))

    def reject(self, params: Mapping[str, str]) -> bytes | None:
        """Returns the page of a reject, or None."""
        if self.rejected is None:
            return None
        line_number = whole_number(params.get("line", ""))
        content = _reject_page(self.rejected, line_number, params, self.logs)
        return (
            self._page(f"Reject {number(line_number + 1)}", content)
            if content is not None
            else None
        )

    def message(self, title: str, words: str) -> bytes:
        """Returns a page with a message."""
        return self._page(title, join((macro("viewer", "jump"), tag("p", text(words)))))

    def not_found(self) -> bytes:
        """Returns the page for an unknown URL."""
        return self.message("Not found", "There is no such sample or page.")

    def find(self, wanted: str) -> Address | None:
        """Finds a row by its number, `file:line`, or at least six characters of its id."""
        wanted = wanted.strip().removeprefix("#").replace(",", "")
        if wanted.isascii() and wanted.isdigit():
            return self.rows.locate(int(wanted[:18]))
        name, _, line = wanted.rpartition(":")
        if name and line.isascii() and line.isdigit():
            for at, opened in enumerate(self.rows.files):
                if opened.file.name.endswith(name):
                    row = opened.data.row_of_line(int(line[:18]))
                    return Address(at, row) if row is not None else None
        if len(wanted) >= 6:
            return self._find_id(wanted.lower())
        return None

    def _find_id(self, wanted: str) -> Address | None:
        ids = enumerate(self.index.ids[:])
        known = next((at for at, name in ids if name.startswith(wanted)), None)
        return self.rows.locate(known) if known is not None else None

    # -- parts -------------------------------------------------------------------------------------

    def _row(self, address: Address) -> DatasetRow | None:
        return next(self.rows.rows(address), None)

    def _page(self, title: str, main: Html) -> bytes:
        place = self._folder or self.rows.files[0].file.path
        name = self.manifest.name or place.resolve().name
        links = [(".", "Samples"), ("rejects", "Rejects"), ("overview", "Overview")]
        if self.rejected is None:
            links.remove(("rejects", "Rejects"))
        return page(shorten(name, 80), main, links, _KEYS, subtitle=title, viewer=True)


def _sample_query(params: Mapping[str, str]) -> Query:
    return Query.read(params, FACETS, SORTS)


def _excerpt(value: Json, query: Query) -> Html:
    """Returns an excerpt around the first match of the search, or nothing."""
    pattern = query.pattern
    if pattern is None:
        return EMPTY
    for words in sample_texts(value):
        match = pattern.search(words)
        if match is not None:
            begin, end = max(match.start() - _AROUND, 0), match.end() + _AROUND
            excerpt = " ".join(words[begin:end].split())
            before, after = "…" if begin else "", "…" if end < len(words) else ""
            return join((text(before), marked(excerpt, pattern), text(after)))
    return EMPTY
