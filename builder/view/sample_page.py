"""Renders the page of one sample: navigation, the review form, the sample."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from builder.dataset.review import ACCEPT, REJECT, Decision
from builder.dataset.rows import DatasetRow
from builder.dataset.store import Address, Rows
from builder.qwen3.tokenizer import Target
from builder.report.html import EMPTY, Html, join, shorten, tag, text
from builder.report.rendered import Limits, legend
from builder.report.samples import Picked, headline, request_of, sample_html
from builder.report.turns import DisplayOptions
from builder.sample import Sample
from builder.text import number
from builder.view.index import Result
from builder.view.list_page import step_links
from builder.view.query import Query
from builder.view.raw import raw_html, raw_records, records_of_turns
from builder.view.review_file import MAX_NOTE

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

    def html(self, steps: Html) -> Html:
        """Returns the sample with its review form, below links to its neighbours."""
        picked = Picked(self.at, self.row)
        headed, about = headline(picked)
        whole = shorten(request_of(self.row), 1_200)
        head = tag("h2", text(headed), dir="auto", class_="asked-for", title=whole or None)
        fold = tag("button", text("Unfold long texts"), type="button", data_folds="",
                   hidden="")  # fmt: skip
        return join(
            (
                tag("div", steps, self._review(), class_="sample-bar"),
                tag("div", head, tag("p", text(about), class_="note"), class_="sample-head"),
                tag("div", self._tabs(), fold, class_="sample-tabs"),
                sample_html(picked, self.target, _MAX_SAMPLE, _LIMITS, self._reading()),
            )
        )

    def steps(self, result: Result, rows: Rows, reviewed: int) -> Html:
        """Returns the position of the sample in the result, and links to its neighbours.

        `reviewed` is the number of samples with a decision.
        """
        place = result.place(self.at)
        where = f"#{number(self.at)}"
        if place is not None:
            found = " found" if self.query else ""
            where += f" ({number(place + 1)} of {number(len(result.numbers))}{found})"
        elif self.query:
            where += ", not in the result"
        more = tag("span", text(f", {number(reviewed)} reviewed"), class_="reviewed")

        def url(other: int) -> str | None:
            address = rows.locate(other)
            return self._url(address, self.side) if address is not None else None

        links = step_links(result, self.at, self.query, "", url)
        position = tag("span", text(where), more if reviewed else EMPTY)
        return tag("nav", position, *links, class_="pages", aria_label="Samples of the result")

    def _url(self, to: Address, side: str) -> str:
        return self.query.url("row", at=to, side=side)

    def _reading(self) -> DisplayOptions:
        """Returns the display options: marked matches, and what the right side shows."""
        if self.logs is None or self.side != RECORDS:
            return DisplayOptions(
                self.query.pattern, outline=True, rendered=self.side == RENDERED, above=legend()
            )
        meta, sample = self.row.meta, self.row.sample
        records = raw_records(self.logs, meta.source, meta.record)
        locations: dict[int, tuple[str, str]] = {}
        if isinstance(sample, Sample) and records:
            locations = records_of_turns(sample.messages, records)
        raw = tag("section", tag("h3", text("Raw records")), raw_html(records), class_="raw")
        return DisplayOptions(self.query.pattern, True, locations, raw)

    def _tabs(self) -> Html:
        """Returns links that choose what is shown beside the conversation."""
        views = [("Conversation", ""), ("Rendered text", RENDERED)]
        views += [("Raw records", RECORDS)] if self.logs is not None else []
        shown = self.side if self.side in dict(views).values() else ""
        tabs = [
            tag("a", text(name), href=self._url(self.address, value),
                aria_current="true" if shown == value else None)
            for name, value in views
        ]  # fmt: skip
        tabs.append(tag("a", text("JSON"), href=f"raw?at={self.address}"))
        return tag("nav", *tabs, class_="pages tabs", aria_label="View of the sample")

    def _review(self) -> Html:
        """Returns the form with the buttons of the review and the note."""
        fields = (*self.query.fields, ("at", str(self.address)), ("side", self.side))
        hidden = [
            tag("input", type="hidden", name=name, value=value) for name, value in fields if value
        ]
        decision = self.decided.decision
        buttons = [
            tag("button", text(name), type="submit", name="decision", value=value,
                aria_pressed="true" if decision == value else "false", class_=value)
            for name, value in (("Accept", ACCEPT), ("Reject", REJECT))
        ]  # fmt: skip
        if decision:
            undo = tag("button", text("Undo"), type="submit", name="decision", value="none")
            buttons.append(undo)
        note = tag("textarea", text(self.decided.note), name="note", rows=1, maxlength=MAX_NOTE,
                   aria_label="Note", placeholder="Note")  # fmt: skip
        return tag(
            "form",
            *hidden,
            tag("div", *buttons, role="group", aria_label="Review", class_="buttons"),
            note,
            tag(
                "button",
                text("Save"),
                type="submit",
                name="decision",
                value="note",
                aria_label="Save the note",
            ),
            method="post",
            action="review",
            class_="filters review",
        )
