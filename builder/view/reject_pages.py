"""Renders the rejects in the viewer: a list with facets, and a page for each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from builder.codes import is_loss, meaning
from builder.conversation import Json
from builder.dataset.rejects import Reject
from builder.report.codes import explained
from builder.report.html import Html, facts_list, join, marked, shorten, tag, text
from builder.report.turns import as_written
from builder.view.index import REJECT_FACETS, RejectIndex, Result
from builder.view.list_page import ListPage, rows_list, step_links
from builder.view.query import Query
from builder.view.raw import raw_html, raw_records

_FIELDS = 20
_ABOUT = (
    "What was not used, and why. Red codes are losses; grey ones had nothing to train, are"
    " in the dataset already, or were left out on request."
)


def reject_list(index: RejectIndex, params: Mapping[str, str]) -> Html:
    """Returns a page of the matching rejects, and an explanation of the selected code."""
    query = _query(params)
    result = _result(index, query)
    listed = ListPage(
        "rejects", "rejects", query, result, REJECT_FACETS, {}, {}, result.top, _meaning
    )
    page, numbers = listed.page(params)
    items = [_item(each, Reject.read(index.line(each)), query) for each in numbers]
    code = query.value("code")
    words = explained(code) if code else tag("p", text(_ABOUT), class_="note")
    return listed.html(page, rows_list(items, page), below=words)


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
            tag("h2", _code(reject), text(f" {meaning(reject.code)}"), class_="asked-for"),
            explained(reject.code),
            facts_list(_facts(line), "facts broad", 400),
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


def _facts(line: Mapping[str, Json]) -> list[tuple[str, str]]:
    stated = [(name, value) for name, value in line.items() if name != "code" and value is not None]
    return [(name, as_written(value)) for name, value in stated[:_FIELDS]]


def _meaning(facet: str, value: str) -> str:
    return meaning(value) if facet == "code" else ""


def _code(reject: Reject) -> Html:
    """Returns the code, red if what has it could have been trained."""
    style = "loss" if is_loss(reject.code) else "count"
    return tag("code", text(shorten(reject.code, 60) or "(no code)"), class_=style)


def _item(line_number: int, reject: Reject, query: Query) -> Html:
    """Returns a reject with the meaning of its code, and below it the details and the place."""
    pattern = query.pattern
    details = shorten(reject.message, 300)
    words = meaning(reject.code) or details or "(no message)"
    about = " · ".join(shorten(value, 100) for value in reject.place)
    if details and details != words:
        about = f"{details} · {about}"
    url = query.url("reject", line=line_number)
    link = tag("a", marked(words, pattern), href=url, class_="asked", dir="auto")
    place = tag("span", marked(about, pattern), class_="about below")
    return tag("li", _code(reject), link, place)
