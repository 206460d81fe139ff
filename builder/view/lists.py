"""Renders lists of rows that match a query: search, facets with counts, links to pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from builder.report.html import EMPTY, Html, macro
from builder.text import number, shorten
from builder.view.index import Result
from builder.view.query import Query, whole_number

PAGE_ROWS = 50
_SHOWN_VALUES = 7
_MORE_VALUES = 60

Top = Callable[[str, int], tuple[list[tuple[str, int]], int]]
Link = tuple[str, str, str]
"""(text, address, relation or "")"""

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{16,}|[A-Z0-9]{26}")
_TIME = r"(?:[T_-]?\d\d[-:_]?\d\d[-:_]?\d\d)?(?!\d)"
_DATE = re.compile(rf"(20\d\d)[-_/]?([01]\d)[-_/]?([0-3]\d){_TIME}")
_FOLDERS = frozenset(("sessions", "session", "projects", "rollout", "chats", "logs", "history"))


@dataclass(frozen=True, slots=True)
class ListPage:
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
    top: Top
    meanings: Callable[[str, str], str] = lambda *_: ""

    def page(self, params: Mapping[str, str]) -> tuple[int, list[int]]:
        """Returns the number of the requested page, from 0, and the numbers of its rows."""
        at = min(whole_number(params.get("page", "")), self.pages - 1)
        return at, self.result.numbers[at * PAGE_ROWS : (at + 1) * PAGE_ROWS].tolist()

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
        count, known = len(self.result.numbers), self.result.view.count
        words = f"{number(count)} of {number(known)} {self.what}"
        if self.query.text:
            verb = "contains" if count == 1 else "contain"
            words += f" {verb} “{shorten(self.query.text, 60)}”"
        return words

    @property
    def _pending(self) -> str:
        """Returns what is not indexed or searched yet, or ""."""
        result, pending = self.result, []
        if not result.view.is_complete:
            pending.append(f"{number(result.view.count)} {self.what} are indexed so far")
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

    def _steps(self, page: int) -> list[Link]:
        last = self.pages - 1
        steps = (("First", 0, ""), ("Previous page", page - 1, "prev"),
                 ("Next page", page + 1, "next"), ("Last", last, ""))  # fmt: skip
        return [
            (name, self.query.url(self.address, page=to or ""), rel)
            for name, to, rel in steps
            if 0 <= to <= last and to != page
        ]


def step_links(
    result: Result, row: int, query: Query, back: str, url: Callable[[int], str | None]
) -> list[Link]:
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


def brief_source(source: str) -> str:
    """Returns a path as project and date, or the beginning of its id where it names no date."""
    stem, dot, _ = source.rpartition(".")
    stem = stem if dot and "/" not in source[len(stem) :] else source
    date, found = _DATE.search(stem), _ID.search(stem)
    bare = _DATE.sub("/", _ID.sub("/", stem))
    words = [part.strip("-_. ") for part in bare.split("/")]
    names = [part for part in words if part and not part.isdigit() and part not in _FOLDERS]
    name = "/".join(names[-2:])
    name = name if len(name) <= 40 else f"…{name[-39:]}"
    day = "-".join(date.groups()) if date else found[0][:8] if found else ""
    return " ".join(filter(None, (name, day))) or source
