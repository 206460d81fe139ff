"""Renders the rejects in the viewer: a list with facets, and each with its raw record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from builder.conversation import Json
from builder.report.codes import explained
from builder.report.facts import as_text
from builder.report.html import EMPTY, Html, join, marked, shorten, tag, text
from builder.report.index import REJECT_FACETS, RejectIndex, Result
from builder.report.list_page import PAGE_ROWS, ListPage
from builder.report.query import Query
from builder.report.raw import raw_html, raw_records
from builder.report.turns import indented

_FIELDS = 20


def reject_list(index: RejectIndex, asked: Mapping[str, str]) -> Html:
    """Returns a page of the matching rejects; the selected code is explained."""
    query = _query(asked)
    result = _result(index, query)
    listed = ListPage("rejects", "rejects", query, result, REJECT_FACETS, {}, {}, result.top)
    at, numbers = listed.page(asked)
    items = [_item(each, index.line(each), query) for each in numbers]
    code = query.value("code")
    return join((explained(code) if code else EMPTY, listed.html(at, items)))


def reject_page(
    index: RejectIndex, at: int, asked: Mapping[str, str], logs: Path | None
) -> Html | None:
    """Returns one reject with its raw record; None if there is no such line."""
    line = index.line(at)
    if line is None:
        return None
    if logs is None:
        note = "Start the viewer with --logs FOLDER, the input of the build, to see the record."
        record = tag("p", text(note), class_="note")
    else:
        places = (as_text(line.get(key)) for key in ("source", "record"))
        record = raw_html(raw_records(logs, *places))
    code = as_text(line.get("code"))
    return join(
        (
            _steps(index, at, _query(asked)),
            tag("h2", tag("code", text(shorten(code, 80) or "(no code)"))),
            explained(code),
            tag("dl", *map(_fact, list(line.items())[:_FIELDS]), class_="facts broad"),
            tag("section", tag("h3", text("Raw record")), record, class_="raw"),
        )
    )


def _query(asked: Mapping[str, str]) -> Query:
    return Query.read(asked, REJECT_FACETS, ())


def _result(index: RejectIndex, query: Query) -> Result:
    return index.result(query, lambda *_: None, 0)


def _steps(index: RejectIndex, at: int, query: Query) -> Html:
    result = _result(index, query)
    place = result.place(at)
    links: list[Html] = []
    if place is not None:
        for name, rel, step in (("Previous", "prev", place - 1), ("Next", "next", place + 1)):
            other = result.at(step)
            if other is not None:
                links.append(tag("a", text(name), href=query.url("reject", line=other), rel=rel))
    back = query.url("rejects", page=(place or 0) // PAGE_ROWS or "")
    links.append(tag("a", text("Back to the list"), href=back))
    return tag("nav", *links, class_="pages", aria_label="Rejects of the result")


def _fact(pair: tuple[str, Json]) -> Html:
    key, value = pair
    display_text = value if isinstance(value, str) else indented(value)
    return tag(
        "div", tag("dt", text(shorten(key, 40))), tag("dd", text(shorten(display_text, 400)))
    )


def _item(at: int, line: Mapping[str, Json] | None, query: Query) -> Html:
    found = line or {}
    places = (as_text(found.get(key)) for key in ("source", "record", "format"))
    about = " · ".join(shorten(value, 100) for value in places if value)
    words = shorten(as_text(found.get("message")), 300) or "(no message)"
    pattern = query.pattern
    link = tag("a", marked(words, pattern), href=query.url("reject", line=at), class_="asked",
               dir="auto")  # fmt: skip
    code = tag("code", text(shorten(as_text(found.get("code")), 60)), class_="count")
    return tag("li", code, link, tag("span", marked(about, pattern), class_="about below"))
