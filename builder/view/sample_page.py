"""Renders the page of one sample: navigation, the review form, the sample."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from builder.dataset.review import Decision
from builder.dataset.rows import DatasetRow
from builder.dataset.store import Address, Rows
from builder.qwen3.tokenizer import Target
from builder.report.html import Html, join, macro, tag, text
from builder.report.rendered import Limits
from builder.report.samples import Picked, headline, request_of, sample_html
from builder.report.turns import DisplayOptions
from builder.sample import Sample
from builder.text import number, shorten
from builder.view.index import Result
from builder.view.lists import step_links
from builder.view.query import Query
from builder.view.raw import raw_html, raw_records, records_of_turns

RECORDS, RENDERED = "records", "text"
"""The values of `side` that show the raw records or the rendered text next to the conversation."""

_LIMITS = Limits(60_000, 20_000, 40_000, 400, 200, 4_000)
_MAX_SAMPLE = 6_000_000
"""Bytes of a sample on its page."""


@dataclass(frozen=True, slots=True)
class SamplePage:
    """A request for a sample.

    at       the number of the sample in the dataset, from 0
    query    the query that the user came from
    side     RECORDS, RENDERED, or "" for the conversation alone
    logs     the folder of the logs, if it is known
    decided  the review decision
    """

    row: DatasetRow
    address: Address
    at: int
    query: Query
    side: str
    target: Target
    logs: Path | None
    decided: Decision

    def html(self, result: Result, rows: Rows, reviewed: int) -> Html:
        """Returns the sample below its place in the result, its neighbours and its review.

        `reviewed` is the number of samples with a decision.
        """
        picked = Picked(self.at, self.row)
        title, about = headline(picked)
        views = [("Conversation", ""), ("Rendered text", RENDERED)]
        views += [("Raw records", RECORDS)] if self.logs is not None else []
        shown = self.side if self.side in dict(views).values() else ""
        tabs = [(name, self._url(self.address, side), side == shown) for name, side in views]
        return macro(
            "viewer",
            "sample",
            steps=self._steps(result, rows, reviewed),
            title=title,
            whole=shorten(request_of(self.row), 1_200),
            about=about,
            tabs=[*tabs, ("JSON", f"raw?at={self.address}", False)],
            fields=(*self.query.fields, ("at", str(self.address)), ("side", self.side)),
            decision=self.decided.decision,
            note=self.decided.note,
            body=sample_html(picked, self.target, _MAX_SAMPLE, _LIMITS, self._reading()),
        )

    def _steps(self, result: Result, rows: Rows, reviewed: int) -> Html:
        """Returns the position of the sample in the result, and links to its neighbours."""
        place = result.place(self.at)
        where = f"#{number(self.at)}"
        if place is not None:
            found = " found" if self.query else ""
            where += f" ({number(place + 1)} of {number(len(result.numbers))}{found})"
        elif self.query:
            where += ", not in the result"
        where += f", {number(reviewed)} reviewed" if reviewed else ""

        def url(other: int) -> str | None:
            address = rows.locate(other)
            return self._url(address, self.side) if address is not None else None

        links = step_links(result, self.at, self.query, "", url)
        return macro("viewer", "steps", where=where, links=links, label="Samples of the result")

    def _url(self, to: Address, side: str) -> str:
        return self.query.url("row", at=to, side=side)

    def _reading(self) -> DisplayOptions:
        """Returns the display options: marked matches, and what the right side shows."""
        if self.logs is None or self.side != RECORDS:
            rendered = self.side == RENDERED
            return DisplayOptions(self.query.pattern, outline=True, rendered=rendered)
        meta, sample = self.row.meta, self.row.sample
        records = raw_records(self.logs, meta.source, meta.record)
        locations: dict[int, tuple[str, str]] = {}
        if isinstance(sample, Sample) and records:
            locations = records_of_turns(sample.messages, records)
        heading = tag("h3", text("Raw records"))
        raw = tag("section", join((heading, raw_html(records))), class_="raw")
        return DisplayOptions(self.query.pattern, True, locations, raw)
