"""Renders the pages of `builder view`: samples, one sample, rejects, the review."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np

from builder.audit.counts import Counts, count_dataset
from builder.audit.result import Audit, AuditFinding, AuditTable, GateAction
from builder.audit.tables import histograms, tables
from builder.conversation import Json
from builder.dataset.rejects import REJECTS
from builder.dataset.review import ACCEPT, DECISIONS, REJECT, Decision
from builder.dataset.rows import DatasetRow
from builder.dataset.store import Address, Rows, as_stored, content
from builder.jsonio import dumps
from builder.output.manifest import Manifest
from builder.problem import UsageError
from builder.qwen3.tokenizer import Target, target_for
from builder.report.html import EMPTY, Html, join, macro, marked, tag, text
from builder.report.page import page
from builder.report.report import accounting, first_screen, how_made
from builder.report.samples import request_of
from builder.text import counted, number, shorten
from builder.view.columns import ColumnView, Mask
from builder.view.index import RejectIndex, Result, SampleIndex
from builder.view.lists import ListPage, brief_source
from builder.view.query import Query, whole_number
from builder.view.reject_pages import reject_list, reject_page
from builder.view.review_file import ACCEPTED, MAX_NOTE, REJECTED, STATES, ReviewFile
from builder.view.sample_facets import (
    FACETS,
    ORDERS,
    SORTS,
    facet_meaning,
    id_digest,
    row_counts,
    sample_id,
    sample_numbers,
    sample_values,
)
from builder.view.sample_page import SamplePage
from builder.view.search import sample_texts

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
        bulk = EMPTY
        if query and len(result.numbers) > 1 and result.is_complete:
            bulk = macro("viewer", "bulk", fields=query.fields, count=len(result.numbers))
        jump = macro("viewer", "jump")
        table = self._table(numbers, query, result.view) if numbers else EMPTY
        return self._page("Samples", listed.html(page, table, jump, self._progress(), bulk))

    def _table(self, numbers: list[int], query: Query, view: ColumnView) -> Html:
        """Returns samples as a table, without the columns that are the same in all samples."""
        sizes = [name for name in _NUMBERS if len(np.unique(view.numbers[name])) > 1]
        texts = [name for name in _TEXTS if len(view.facets[name].names) > 1]
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
            counts = row_counts(row)
            measured, values = sample_numbers(row, counts), sample_values(row, counts)
            cells = []
            for name in sizes:
                kind = "num error" if name == "errors" and measured[name] else "num"
                cells.append((titles[name], number(measured[name]), "", kind))
            for name in texts:
                whole = ", ".join(values.get(name, ()))
                brief = brief_source(whole) if name == "source" else shorten(whole, 60)
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

        def reviewed(view: ColumnView, facet: str, value: str) -> Mask | None:
            if facet != "review":
                return None
            return self.review.masks(view).get(value, np.zeros(view.count, dtype=np.bool_))

        self.review.decisions  # noqa: B018 - updates `version` if the file changed
        return self.index.result(query, reviewed, self.review.version)

    def _progress(self) -> Html:
        """Returns how many samples are reviewed, where that is kept, and what to do with it."""
        view, decided = self.index.view, []
        masks = self.review.masks(view) if self.review.decisions else {}
        for state in (ACCEPTED, REJECTED) if masks else ():
            url = Query().choosing("review", state).url()
            decided.append((state, int(masks[state].sum()), url))
        done, count = sum(samples for _, samples, _ in decided), max(view.count, 1)
        path = shlex.quote(str(self.review.path))
        return macro("viewer", "progress", done=done, count=count, decided=decided, path=path)

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
        reviewed = len(self.review.decisions)
        shown = sample_page.html(self.result(query), self.rows, reviewed)
        main = join((shown, macro("viewer", "jump")))
        return self._page(f"Sample #{number(row_number)}", main)

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
        query = _query(given)
        after = self._after(address, query) if given.get("decision") in DECISIONS else None
        note = given.get("note", now.note).replace("\r\n", "\n").strip()[:MAX_NOTE]
        self.review.decide({sample: Decision(wanted, note)})
        return query.url("row", at=after or address, side=given.get("side", ""))

    def _decide_all(self, given: Mapping[str, str]) -> str | None:
        wanted, query = given.get("decision", ""), _query(given)
        if wanted not in DECISIONS:
            return None
        result = self.result(query)
        count = len(result.numbers)
        if not result.is_complete or given["count"].strip().replace(",", "") != str(count):
            raise UsageError(
                f"{counted(count, 'sample')} match: type this number to {wanted} all of them"
            )
        known, made = self.review.decisions, {}
        for at in result.numbers.tolist():
            address = self.rows.locate(at)
            row = self._row(address) if address is not None else None
            if row is not None:
                sample = sample_id(row)
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
        view, audit = self.index.view, self.manifest.audit
        called, _ = view.facets["tool"].top(np.ones(view.count, dtype=np.bool_), 50)
        heads = ("tool", "samples")
        by_tool = AuditTable("tools", "Samples by called tool", heads, tuple(called), "", "samples")
        gates = {gate.value: gate for gate in GateAction}
        findings = tuple(
            AuditFinding(item.audit, item.code, item.message, item.count, item.samples,
                         gates.get(item.gate, GateAction.report))
            for item in (audit.findings if audit is not None else ())
        )  # fmt: skip
        made = (*tables(self._counts), by_tool)
        return Audit(self._counts.samples, findings, made, histograms(self._counts))

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
        return page(shorten(name, 80), main, links, KEYS, subtitle=title, viewer=True)


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
            return join((text(before), marked(excerpt, pattern), text(after)))
    return EMPTY
