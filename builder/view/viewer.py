"""Renders the pages of `builder view`: samples, one sample, rejects, the review."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from builder.audit.result import Audit, AuditFinding, GateAction
from builder.conversation import Json
from builder.dataset.rejects import REJECTS
from builder.dataset.review import ACCEPT, DECISIONS, REJECT, Decision
from builder.dataset.rows import DatasetRow
from builder.dataset.store import Address, Rows, as_stored, content
from builder.jsonio import dumps
from builder.output.manifest import Manifest
from builder.qwen3.tokenizer import Target, target_for
from builder.report.html import EMPTY, Html, join, marked, prose, shorten, tag, text
from builder.report.ledger_stages import ledger_counts
from builder.report.overview import how_made, proof
from builder.report.page import page
from builder.report.survey import Survey, survey, with_contexts
from builder.report.verdict import first_screen
from builder.text import number
from builder.view.columns import ColumnView, Mask
from builder.view.index import RejectIndex, Result, SampleIndex
from builder.view.list_page import ListPage
from builder.view.query import Query, whole_number
from builder.view.reject_pages import reject_list, reject_page
from builder.view.review_file import ACCEPTED, MAX_NOTE, REJECTED, STATES, ReviewFile, csv_bytes
from builder.view.sample_facets import (
    FACETS,
    ORDERS,
    SORTS,
    facet_meaning,
    id_digest,
    sample_id,
)
from builder.view.sample_page import SamplePage
from builder.view.sample_table import TableRow, progress, sample_table
from builder.view.search import sample_texts
from builder.view.tally import Tally

KEYS = (
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
    def _counted(self) -> Survey:
        """Returns the counts of the samples; those of the manifest for a file."""
        if self._folder is not None:
            return survey(str(self._folder))
        stated = self.manifest.ledger
        return Survey(samples=stated.samples if stated is not None else 0)

    # -- samples -----------------------------------------------------------------------------------

    def samples(self, params: Mapping[str, str]) -> bytes:
        """Returns a page of the list of matching samples."""
        query = _query(params)
        result = self.result(query)

        def top(facet: str, most: int) -> tuple[list[tuple[str, int]], int]:
            if facet != "review":
                return result.top(facet, most)
            mask = result.mask(without=facet)
            states = self.review.masks(result.view)
            counts = [(state, int((states[state] & mask).sum())) for state in STATES]
            there = [pair for pair in counts if pair[1]]
            return there, len(there)

        orders = {**ORDERS, "review": STATES}
        listed = ListPage("", "samples", query, result, FACETS, orders, SORTS, top, facet_meaning)
        page, numbers = listed.page(params)
        items = [item for item in (self._item(each, query) for each in numbers) if item]
        known = {name: column.names for name, column in result.view.facets.items()}
        in_tokens = any(item.row.meta.tokens for item in items)
        table = sample_table(items, query, known, in_tokens=in_tokens) if items else EMPTY
        main = listed.html(page, table, _jump(), self._progress())
        return self._page("Samples", main)

    def result(self, query: Query) -> Result:
        """Returns the rows that match a query."""

        def reviewed(view: ColumnView, facet: str, value: str) -> Mask | None:
            if facet != "review":
                return None
            return self.review.masks(view).get(value, np.zeros(view.count, dtype=np.bool_))

        self.review.decisions  # noqa: B018 - updates `version` if the file changed
        return self.index.result(query, reviewed, self.review.version)

    def _item(self, row_number: int, query: Query) -> TableRow | None:
        address = self.rows.locate(row_number)
        row = self._row(address) if address is not None else None
        if address is None or row is None:
            return None
        decision = self.review.decisions.get(sample_id(row), Decision())
        state = _STATE_NAMES[decision.decision]
        return TableRow(row_number, address, row, state, _excerpt(content(row), query))

    def _progress(self) -> Html:
        """Returns how many samples are reviewed, where that is kept, and what to do with it."""
        view, decisions = self.index.view, self.review.decisions
        if not decisions:
            words = "Nothing is reviewed yet: open a sample, and accept (key a) or reject (r) it."
            return tag("p", text(words), class_="progress")
        masks = self.review.masks(view)
        decided = [(state, int(masks[state].sum())) for state in (ACCEPTED, REJECTED)]
        shown = progress(decided, view.count, lambda state: Query().choosing("review", state).url())
        path = shlex.quote(str(self.review.path))
        words = (
            f"Kept in `{path}`. To leave out what you rejected, build again with"
            f" `--review {path}`. The review "
        )
        csv = tag("a", text("as CSV"), href="review.csv")
        return join((shown, tag("p", prose(words), csv, text("."), class_="progress")))

    def sample(self, address: Address, params: Mapping[str, str]) -> bytes | None:
        """Returns the page of a sample, or None if there is no such row."""
        row = self._row(address)
        if row is None:
            return None
        query = _query(params)
        known = self.rows.number(address)
        row_number = known if known is not None else address.row
        sample_page = SamplePage(
            row, address, row_number, query, params.get("side", ""), self.target, self.logs,
            self.review.decisions.get(sample_id(row), Decision()),
        )  # fmt: skip
        steps = sample_page.steps(self.result(query), self.rows, len(self.review.decisions))
        main = join((sample_page.html(steps), _jump()))
        return self._page(f"Sample #{number(row_number)}", main)

    def decide(self, given: Mapping[str, str]) -> str | None:
        """Records a decision; returns the URL to go to, or None for an invalid request.

        Raises UsageError if the review cannot be written.
        """
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
        query = _query(given)
        after = self._after(address, query) if given.get("decision") in DECISIONS else None
        note = given.get("note", now.note).replace("\r\n", "\n").strip()[:MAX_NOTE]
        self.review.decide(sample, Decision(wanted, note))
        return query.url("row", at=after or address, side=given.get("side", ""))

    def _after(self, address: Address, query: Query) -> Address | None:
        """Returns the address of the next sample of the result; None after the last."""
        row_number = self.rows.number(address)
        result = self.result(query)
        place = result.place(row_number) if row_number is not None else None
        after = result.at(place + 1) if place is not None else None
        return self.rows.locate(after) if after is not None else None

    def review_csv(self) -> bytes:
        """Returns every decision as a line of CSV, with the location of its sample if found."""
        decisions = dict(self.review.decisions)
        places: dict[str, tuple[str, str, str]] = {}
        ids = self.index.view.numbers["id"]
        wanted = np.array([id_digest(name) for name in decisions], dtype=np.uint64)
        for at in np.flatnonzero(np.isin(ids, wanted)).tolist():
            address = self.rows.locate(at)
            row = self._row(address) if address is not None else None
            if row is not None and sample_id(row) in decisions:
                where = f"{row.file}:{row.number}"
                source, record = row.meta.source, row.meta.record
                places.setdefault(sample_id(row), (where, source, record))
        return csv_bytes(
            (name, item, *places.get(name, ("", "", "")))
            for name, item in sorted(decisions.items())
        )

    def raw(self, address: Address) -> bytes | None:
        """Returns the row as JSON, as stored in the file, or None."""
        row = self._row(address)
        return dumps(as_stored(row)).encode("utf-8", "replace") if row is not None else None

    # -- the dataset -------------------------------------------------------------------------------

    def overview(self) -> bytes:
        """Returns the first page of the report, counted at the first request."""
        stated = self.manifest.ledger
        ledger = ledger_counts(stated) if stated is not None else None
        overview = with_contexts(self._counted, self.manifest)
        audit = _audit_in(self.manifest, overview.samples, self.index.tally)
        main = join(
            (
                tag("h2", text("Overview"), class_="unseen-title"),
                first_screen(overview, ledger, self.manifest, audit),
                tag("section", tag("h2", text("How it was made")), how_made(self.manifest)),
                tag("section", tag("h2", text("Verified against")), proof(self.manifest)),
            )
        )
        return self._page("Overview", main)

    def rejects(self, params: Mapping[str, str]) -> bytes:
        """Returns a page of the list of matching rejects."""
        if self.rejected is None:
            note = f"There is no {REJECTS}."
            return self._page("Rejects", tag("p", text(note), class_="note"))
        return self._page("Rejects", reject_list(self.rejected, params))

    def reject(self, params: Mapping[str, str]) -> bytes | None:
        """Returns the page of a reject, or None."""
        if self.rejected is None:
            return None
        line_number = whole_number(params.get("line", ""))
        content = reject_page(self.rejected, line_number, params, self.logs)
        return (
            self._page(f"Reject {number(line_number + 1)}", content)
            if content is not None
            else None
        )

    def message(self, title: str, words: str) -> bytes:
        """Returns a page with a message."""
        return self._page(title, join((_jump(), tag("p", text(words)))))

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
        known = np.flatnonzero(self.index.view.numbers["id"] == id_digest(wanted))
        if len(known):
            return self.rows.locate(int(known[0]))
        beginning = f'"{wanted}'.encode("utf-8", "replace")
        metas = self.rows.metas(beginning)
        return next((address for address, meta in metas if meta.id.startswith(wanted)), None)

    # -- parts -------------------------------------------------------------------------------------

    def _row(self, address: Address) -> DatasetRow | None:
        return next(self.rows.rows(address), None)

    def _page(self, title: str, main: Html) -> bytes:
        place = self._folder or self.rows.files[0].file.path
        name = self.manifest.name or place.resolve().name
        links = [(".", "Samples"), ("rejects", "Rejects"), ("overview", "Overview")]
        if self.rejected is None:
            links.remove(("rejects", "Rejects"))
        return page(shorten(name, 80), main, links, subtitle=title, viewer=True, keys=KEYS)


def _audit_in(manifest: Manifest, samples: int, tally: Tally) -> Audit:
    """Returns the findings that the manifest lists, with charts of the rows indexed so far."""
    charts = Audit(samples, tables=tally.tables(), histograms=tally.histograms())
    if manifest.audit is None:
        return charts
    gates = {gate.value: gate for gate in GateAction}
    findings = tuple(
        AuditFinding(
            item.audit,
            item.code,
            item.message,
            item.count,
            item.samples,
            gates.get(item.gate, GateAction.report),
        )
        for item in manifest.audit.findings
    )
    return replace(charts, findings=findings)


def _query(params: Mapping[str, str]) -> Query:
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
            return tag("p", text(before), marked(excerpt, pattern), text(after), class_="excerpt",
                       dir="auto")  # fmt: skip
    return EMPTY


def _jump() -> Html:
    field = tag("input", type="search", name="to", autocomplete="off")
    label = tag("label", text("Go to a number, file:line, or id"), field)
    button = tag("button", text("Go"), type="submit")
    return tag("form", label, button, action="go", method="get", class_="filters")
