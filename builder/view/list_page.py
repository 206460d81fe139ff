"""Renders the list of rows that match a query: search, facets with counts, page links."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from builder.report.html import EMPTY, Html, join, plain, shorten, tag, text
from builder.text import number
from builder.view.brief_paths import PATHS, brief_paths
from builder.view.index import Result
from builder.view.query import MAX_TEXT, Query, whole_number

PAGE_ROWS = 50
_SHOWN_VALUES = 7
_MORE_VALUES = 60

Top = Callable[[str, int], tuple[list[tuple[str, int]], int]]


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
        number = min(whole_number(params.get("page", "")), self.pages - 1)
        return number, self.result.numbers[number * PAGE_ROWS : (number + 1) * PAGE_ROWS].tolist()

    def html(self, page: int, listed: Html, tools: Html = EMPTY, below: Html = EMPTY) -> Html:
        """Returns a page of the list; `tools` appear next to the search, `below` under it.

        `page` counts from 0, and `listed` are its rows.
        """
        return join(
            (
                tag("div", self._form(), tools, class_="tools-bar"),
                below,
                tag("div", self._status(), self._chosen(), class_="found"),
                tag(
                    "div",
                    tag("div", listed, self._pages(page), class_="results"),
                    self._facets(),
                    class_="with-facets",
                ),
            )
        )

    @property
    def pages(self) -> int:
        """Returns the number of pages, at least one."""
        return max(1, -(-len(self.result.numbers) // PAGE_ROWS))

    def _form(self) -> Html:
        query = self.query
        search = tag(
            "input", type="search", name="text", value=query.text or None, autocomplete="off",
            maxlength=MAX_TEXT,
        )  # fmt: skip
        parts = [tag("label", text("Search"), search)]
        parts += [
            tag("input", type="hidden", name=name, value=value) for name, value in query.chosen
        ]
        if self.sorts:
            options = [
                tag("option", plain(name), value=key, selected="" if key == query.sort else None)
                for key, name in self.sorts.items()
            ]
            order = tag("label", text("Order"), tag("select", *options, name="sort"))
            parts.append(order)
        parts.append(tag("button", text("Search"), type="submit"))
        return tag("form", *parts, action=self.address or ".", role="search", method="get",
                   class_="filters")  # fmt: skip

    def _status(self) -> Html:
        """Returns how many rows match, and whether all were searched."""
        result = self.result
        count, known = len(result.numbers), result.view.count
        words = f"{number(count)} of {number(known)} {self.what}"
        if self.query.text:
            verb = "contains" if count == 1 else "contain"
            words += f" {verb} “{shorten(self.query.text, 60)}”"
        pending = []
        if not result.view.is_complete:
            pending.append(f"{number(known)} {self.what} are indexed so far")
        if result.searched < 1:
            pending.append(f"{result.searched:.0%} are searched")
        more = EMPTY
        if pending:
            again = tag("a", text("Look again"), href=self.query.url(self.address))
            more = tag("span", text(f". {' and '.join(pending)}. "), again)
        status = tag("p", tag("strong", text(words)), more, class_="hits", role="status",
                     data_pending="" if pending else None)  # fmt: skip
        below = tag("a", text("Narrow down"), href="#facets")
        return join((status, tag("p", below, class_="to-facets")))

    def _chosen(self) -> Html:
        """Returns the selected values as links that remove them."""
        query = self.query
        links = [
            _chip(
                f"{self.facets[name]}: {shorten(value, 60)}",
                query.choosing(name, "").url(self.address),
            )
            for name, value in query.chosen
        ]
        if query.text:
            rest = Query("", query.chosen, query.sort)
            links.insert(0, _chip(f"Text: {shorten(query.text, 60)}", rest.url(self.address)))
        if not links:
            return EMPTY
        meant = [f"{value}: {words}." for name, value in query.chosen
                 if (words := self.meanings(name, value))]  # fmt: skip
        note = tag("p", text(" ".join(meant)), class_="note") if meant else EMPTY
        return join((tag("p", *links, class_="chips"), note))

    def _facets(self) -> Html:
        groups = [group for name in self.facets if (group := self._facet(name))]
        if not groups:
            return EMPTY
        return tag("aside", tag("h2", text("Narrow down"), class_="unseen-title"), *groups,
                   class_="facets", id="facets")  # fmt: skip

    def _facet(self, name: str) -> Html:
        """Returns the values of a facet, or nothing if none would narrow the list."""
        chosen = self.query.value(name)
        values, count = self.top(name, _SHOWN_VALUES + _MORE_VALUES)
        if not values or (not chosen and count == 1 and values[0][1] == len(self.result.numbers)):
            return EMPTY
        order = self.orders.get(name)
        if order is not None:
            values.sort(key=lambda pair: order.index(pair[0]) if pair[0] in order else len(order))
        visible = _SHOWN_VALUES if order is None else len(values)
        parts = [tag("h3", text(self.facets[name])), self._values(name, values[:visible], chosen)]
        rest = values[visible:]
        if rest:
            head = tag("summary", text(f"{number(count - visible)} more"))
            left = count - visible - len(rest)
            note = EMPTY
            if left > 0:
                words = f"The {number(len(rest))} most frequent of these."
                note = tag("p", text(words), class_="note")
            parts.append(tag("details", head, self._values(name, rest, chosen), note))
        return tag("section", *parts)

    def _values(self, name: str, values: Sequence[tuple[str, int]], chosen: str) -> Html:
        items = []
        paths = [value for value, _ in values] if name == PATHS else []
        brief = brief_paths(paths, (), 60)
        for value, count in values:
            is_chosen = value == chosen
            query = self.query.choosing(name, "" if is_chosen else value)
            link = tag(
                "a",
                tag("span", text(brief.get(value) or shorten(value, 70)), dir="auto"),
                href=query.url(self.address),
                title=value if value in brief else self.meanings(name, value) or None,
                aria_current="true" if is_chosen else None,
            )
            items.append(tag("li", link, tag("span", text(number(count)), class_="count")))
        return tag("ul", *items)

    def _pages(self, page: int) -> Html:
        if self.pages == 1:
            return EMPTY
        last = self.pages - 1
        steps = [("First", 0, None), ("Previous page", page - 1, "prev"),
                 ("Next page", page + 1, "next"), ("Last", last, None)]  # fmt: skip
        links = [
            tag("a", text(name), href=self.query.url(self.address, page=to or ""), rel=rel)
            for name, to, rel in steps
            if 0 <= to <= last and to != page
        ]
        place = tag("span", text(f"Page {number(page + 1)} of {number(self.pages)}"))
        return tag("nav", place, *links, class_="pages", aria_label="Pages")


def rows_list(items: Sequence[Html], page: int) -> Html:
    """Returns the rows of a page as a numbered list, or nothing."""
    return tag("ol", *items, class_="rows", start=page * PAGE_ROWS + 1) if items else EMPTY


def step_links(
    result: Result, row: int, query: Query, back: str, url: Callable[[int], str | None]
) -> list[Html]:
    """Returns links from row `row` to its neighbours in the result, and back to the list.

    `back` is the address of the list; `url` returns that of a row, or None.
    """
    place = result.place(row)
    links = [
        tag("a", text(name), href=address, rel=rel)
        for name, rel, step in (("Previous", "prev", -1), ("Next", "next", 1))
        if place is not None and (other := result.at(place + step)) is not None
        if (address := url(other)) is not None
    ]
    listed = query.url(back, page=(place or 0) // PAGE_ROWS or "")
    return [*links, tag("a", text("Back to the list"), href=listed)]


def _chip(name: str, address: str) -> Html:
    cross = tag("span", text("✕"), aria_hidden="true")
    return tag("a", text(f"{name} "), cross, href=address, aria_label=f"Remove: {name}")
