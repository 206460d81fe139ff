"""Renders the rejects: their reasons with counts, the rejects of one reason, each on a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from builder.codes import explain, is_loss, meaning
from builder.dataset.rejects import Reject
from builder.report.html import EMPTY, Html, macro, marked, tag, text
from builder.report.turns import as_written
from builder.text import shorten
from builder.view.index import REJECT_FACETS, RejectIndex, Result
from builder.view.lists import PAGE_ROWS, ListPage, step_links
from builder.view.query import Query
from builder.view.raw import raw_html, raw_records

_FIELDS = 20
_REASONS = 200
_ABOUT = (
    "What was not used, by reason. Red codes are losses; grey ones had nothing to train, are in the"
    " dataset already, or were left out on request."
)


def reject_list(index: RejectIndex, params: Mapping[str, str]) -> Html:
    """Returns the reasons with their counts, or the matching rejects of one or of a search."""
    query = _query(params)
    result = _result(index, query)
    code = query.value("code")
    is_grouped = not code and not query.text
    facets = {name: title for name, title in REJECT_FACETS.items()
              if name != "code" or not is_grouped}  # fmt: skip
    listed = ListPage("rejects", "rejects", query, result, facets, {}, {}, result.top, _meaning)
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


def reject_page(
    index: RejectIndex, line_number: int, params: Mapping[str, str], logs: Path | None
) -> Html | None:
    """Returns the page of a reject with its raw record, or None."""
    line = index.line(line_number)
    if line is None:
        return None
    reject, query = Reject.read(line), _query(params)
    if logs is None:
        note = "Start the viewer with --logs FOLDER, the input of the build, to see the record."
        record = tag("p", text(note), class_="note")
    else:
        record = raw_html(raw_records(logs, reject.source, reject.record))
    links = step_links(
        _result(index, query), line_number, query, "rejects",
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


def _query(params: Mapping[str, str]) -> Query:
    return Query.read(params, REJECT_FACETS, ())


def _result(index: RejectIndex, query: Query) -> Result:
    return index.result(query, lambda *_: None, 0)


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
