"""Renders samples as a table with a sortable head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from builder.dataset.rows import DatasetRow
from builder.dataset.store import Address
from builder.report.html import EMPTY, Html, shorten, tag, text
from builder.report.samples import request_of
from builder.text import number
from builder.view.brief_paths import PATHS, brief_paths
from builder.view.query import Query
from builder.view.sample_facets import facet_value, sample_numbers, sample_values
from builder.view.tally import row_counts

_NUMBERS = ("length", "turns", "calls", "errors")
_TEXTS = ("outcome", "context", "source", "model")
_TITLES = {
    "length": "Tokens", "turns": "Turns", "calls": "Calls", "errors": "Errors",
    "outcome": "Outcome", "context": "Context", "source": "Source", "model": "Model",
}  # fmt: skip
_TITLE = 140
_SOURCE = 40
"""Characters of a source that are shown, in two lines."""
_WHOLE = 1_200
"""Characters of a title that a mouse on it shows."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A sample in the list: its number, its address, the state of its review, and an excerpt."""

    at: int
    address: Address
    row: DatasetRow
    state: str = ""
    excerpt: Html = EMPTY


def sample_table(
    rows: Sequence[TableRow],
    query: Query,
    known: Mapping[str, Sequence[str]],
    *,
    in_tokens: bool,
) -> Html:
    """Returns the samples as a table.

    `known` are the values of each facet in the dataset: the columns of facets without any are
    omitted. `in_tokens` says whether lengths are in tokens, and not in characters.
    """
    texts = [name for name in _TEXTS if known.get(name)]
    sources = [facet_value(item.row.meta.source) for item in rows]
    brief = brief_paths(sources, known.get(PATHS, ()), _SOURCE)
    titles = _TITLES if in_tokens else {**_TITLES, "length": "Characters"}
    head = [tag("th", text("#"), scope="col", class_="num"), tag("th", text("Sample"), scope="col")]
    head += [_sortable(name, titles[name], query, "num") for name in _NUMBERS]
    head += [_sortable(name, titles[name], query, None) for name in texts]
    body = [_line(item, query, texts, titles, brief) for item in rows]
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body), class_="samples")
    return tag("div", table, class_="scroll")


def _sortable(name: str, title: str, query: Query, kind: str | None) -> Html:
    """Returns the head of a column with a link that sorts by it, or turns the order round."""
    first, second = (f"-{name}", name) if name in _NUMBERS else (name, f"-{name}")
    wanted = second if query.sort == first else first
    is_sorted = query.sort.removeprefix("-") == name
    order = "descending" if query.sort.startswith("-") else "ascending"
    arrow = tag("span", text(" ↓" if order == "descending" else " ↑"), aria_hidden="true")
    link = tag("a", text(title), arrow if is_sorted else EMPTY, href=query.sorted(wanted).url())
    return tag("th", link, scope="col", class_=kind, aria_sort=order if is_sorted else None)


def _line(
    item: TableRow,
    query: Query,
    texts: Sequence[str],
    titles: Mapping[str, str],
    brief: Mapping[str, str],
) -> Html:
    row = item.row
    counts = row_counts(row)
    numbers, values = sample_numbers(row, counts), sample_values(row, counts)
    fault = row.reading.code if row.foreign else ""
    words = request_of(row)
    title = shorten(words, _TITLE) or ("(not a sample)" if fault else "(no request)")
    link = tag(
        "a", text(title), href=query.url("row", at=item.address), class_="asked", dir="auto",
        title=shorten(words, _WHOLE) or None,
    )  # fmt: skip
    badge = tag("span", text(item.state), class_=f"state {item.state}") if item.state else EMPTY
    why = tag("code", text(fault), class_="count") if fault else EMPTY
    cells = [
        tag("td", text(f"#{number(item.at)}"), class_="num count"),
        tag("th", tag("div", badge, link, why), item.excerpt, scope="row"),
    ]
    for name in _NUMBERS:
        kind = "num error" if name == "errors" and numbers[name] else "num"
        cells.append(_cell(titles[name], number(numbers[name]), kind))
    for name in texts:
        written = ", ".join(values.get(name, ()))
        cells.append(_cell(titles[name], written, name, brief.get(written, "")))
    return tag("tr", *cells)


def _cell(title: str, written: str, kind: str, brief: str = "") -> Html:
    """Returns a cell; on a phone, where there is no head, the style sheet shows its title."""
    shown_text = brief or shorten(written, 60)
    shown = tag("span", text(shown_text), title=written if shown_text != written else None)
    return tag("td", shown if written else EMPTY, class_=kind, data_title=title)


def progress(decided: Sequence[tuple[str, int]], count: int, url: Callable[[str], str]) -> Html:
    """Returns how much of `count` samples is reviewed, from (state, samples) of each decision."""
    done = sum(samples for _, samples in decided)
    listed = [
        tag("a", text(f"{number(samples)} {state}"), href=url(state), class_=state)
        for state, samples in decided
        if samples
    ]
    meter = tag("progress", value=done, max=max(count, 1), aria_label="Reviewed samples")
    words = tag("span", text(f"{number(done)} of {number(count)} reviewed"))
    return tag("p", meter, words, *listed, class_="progress")
