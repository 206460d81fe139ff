"""Renders the rejects in the viewer: a list with facets, and a page for each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from builder.conversation import Json
from builder.dataset.rejects import Reject
from builder.report.codes import explained
from builder.report.html import EMPTY, Html, facts_list, join, marked, shorten, tag, text
from builder.report.turns import as_written
from builder.view.index import REJECT_FACETS, RejectIndex, Result
from builder.view.list_page import ListPage, rows_list, step_links
from builder.view.query import Query
from builder.view.raw import raw_html, raw_records

_FIELDS = 20


def reject_list(index: RejectIndex, params: Mapping[str, str]) -> Html:
    """Returns a page of the matching rejects, and an explanation of the selected code."""
    query = _query(params)
    result = _result(index, query)
    listed = ListPage("rejects", "rejects", query, result, REJECT_FACETS, {}, {}, result.top)
    page, numbers = listed.page(params)
    items = [_item(each, Reject.read(index.line(each)), query) for each in numbers]
    code = query.value("code")
    return join((explained(code) if code else EMPTY, listed.html(page, rows_list(items, page))))


def reject_page(
    index: RejectIndex, line_number: int, params: Mapping[str, str], logs: Path | None
) -> Html | None:
    """Returns the page of a reject with its raw record, or None."""
    line = index.line(line_number)
    if line is None:
        return None
    reject = Reject.read(line)
    if logs is None:
        note = "Start the viewer with --logs FOLDER, the input of the build, to see the record."
        record = tag("p", text(note), class_="note")
    else:
        record = raw_html(raw_records(logs, reject.source, reject.record))
    return join(
        (
            _steps(index, line_number, _query(params)),
            tag("h2", tag("code", text(shorten(reject.code, 80) or "(no code)"))),
            explained(reject.code),
            facts_list(map(_fact, list(line.items())[:_FIELDS]), "facts broad", 400),
            tag("section", tag("h3", text("Raw record")), record, class_="raw"),
        )
    )


def _query(params: Mapping[str, str]) -> Query:
    return Query.read(params, REJECT_FACETS, ())


def _result(index: RejectIndex, query: Query) -> Result:
    return index.result(query, lambda *_: None, 0)


def _steps(index: RejectIndex, line_number: int, query: Query) -> Html:
    links = step_links(
        _result(index, query),
        line_number,
        query,
        "rejects",
        lambda other: query.url("reject", line=other),
    )
    return tag("nav", *links, class_="pages", aria_label="Rejects of the result")


def _fact(pair: tuple[str, Json]) -> tuple[str, str]:
    return pair[0], as_written(pair[1])


def _item(line_number: int, reject: Reject, query: Query) -> Html:
    about = " · ".join(shorten(value, 100) for value in reject.place)
    words = shorten(reject.message, 300) or "(no message)"
    pattern = query.pattern
    url = query.url("reject", line=line_number)
    link = tag("a", marked(words, pattern), href=url, class_="asked", dir="auto")
    code = tag("code", text(shorten(reject.code, 60)), class_="count")
    return tag("li", code, link, tag("span", marked(about, pattern), class_="about below"))
