"""The pages of `builder view`: the samples of a dataset in order, searched, and one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cached_property
from itertools import islice
from pathlib import Path
from urllib.parse import urlencode

from builder.conversation import Json
from builder.dataset.rows import DatasetRow
from builder.jsonio import dumps
from builder.qwen3.tokenizer import Target, load
from builder.report.facts import as_object, as_text, read_ledger
from builder.report.flow import ledger_figure
from builder.report.html import EMPTY, Html, join, number, plain, shorten, tag, text
from builder.report.overview import how_made, proof
from builder.report.page import page
from builder.report.query import Query
from builder.report.raw import raw_html, raw_records
from builder.report.rejects import FILE, reject_table
from builder.report.rendered import Limits, legend
from builder.report.samples import Picked, headline, sample_html
from builder.report.store import Address, LineIndex, Rows, decoded
from builder.report.survey import Survey
from builder.report.verdict import verdict

PAGE_ROWS = 50
SCAN_BYTES = 24 << 20
"""How much a search reads before it shows what it has and asks whether to go on."""
REACH_BYTES = 2 << 30
"""How much is counted to find a row by its number before the page says that it is not there yet."""
_META_BYTES = 60
"""What a line of meta/ counts of that: most are passed unread."""
_LIMITS = Limits(60_000, 20_000, 40_000, 400, 200, 4_000)
_MAX_SAMPLE = 6_000_000


class Viewer:
    """The pages over one dataset. Every method gives whole pages; none raises for any query."""

    def __init__(
        self,
        folder: Path | None,
        rows: Rows,
        manifest: dict[str, Json],
        tokenizer: str,
        logs: Path | None = None,
    ) -> None:
        self.rows = rows
        self.logs = logs
        self.manifest = manifest
        self._tokenizer = tokenizer
        rejects = folder / FILE if folder is not None else None
        has_rejects = rejects is not None and rejects.is_file()
        self._rejects = LineIndex(rejects) if rejects is not None and has_rejects else None

    @cached_property
    def target(self) -> Target:
        """The tokenizer, looked for when the first sample is shown."""
        return load(self._tokenizer)

    # -- pages -------------------------------------------------------------------------------------

    def samples(self, query: Query, at: Address) -> bytes:
        """A page of samples from an address on, those that fit."""
        shown, go_on = self._fitting(query, at)
        items = [self._item(address, row, query) for address, row in shown]
        result = tag("ol", *items, class_="rows") if items else EMPTY
        links = [self._list_link("Go on", query, go_on)] if go_on is not None else []
        if at != Address(0, 0):
            links.insert(0, self._list_link("From the beginning", query, Address(0, 0)))
        end = "No further sample." if go_on is None else f"Read as far as {self._place(go_on)}."
        main = join(
            (
                tag("div", _jump(), self._search(query), class_="tools-bar"),
                self._files(),
                result,
                tag("p", text(end), class_="note"),
                tag("p", *links, class_="pages"),
            )
        )
        return self._page("Samples", main)

    def sample(self, address: Address, query: Query) -> bytes | None:
        """Returns the page of one sample, or None if there is no such row.

        With a query, the next sample is the next one that fits it.
        """
        found = next(self.rows.rows(address, REACH_BYTES), None)
        if found is None:
            return None
        known = self.rows.number(address)
        picked = Picked(known if known is not None else address.row, found[1])
        body = sample_html(picked, self.target, _LIMITS, _MAX_SAMPLE)
        asked, about = headline(picked)
        steps = [
            tag("a", text(name), href=f"row?{_asked(query, step)}", rel=rel)
            for name, rel, step in (
                ("Previous", "prev", self._before(address) if not query else None),
                ("Next in the result" if query else "Next", "next", self._next(query, address)),
            )
            if step is not None
        ]
        if query:
            steps.insert(0, tag("a", text("Back to the result"), href=f"?{_asked(query, address)}"))
        steps.append(tag("a", text("The row as JSON"), href=f"raw?at={address}"))
        main = join(
            (
                tag("div", _jump(), tag("p", *steps, class_="pages"), class_="tools-bar"),
                tag("h2", text(asked), dir="auto", class_="asked-for"),
                tag("p", text(about), class_="note"),
                legend(),
                body,
                self._raw_records(found[1]),
            )
        )
        return self._page(f"Sample {self._place(address)}", main)

    def raw(self, address: Address) -> bytes | None:
        """The row as JSON text."""
        found = next(self.rows.rows(address, REACH_BYTES), None)
        return dumps(found[1].value).encode("utf-8", "replace") if found is not None else None

    def overview(self) -> bytes:
        """What the manifest says; nothing of the dataset is read for it."""
        ledger = read_ledger(self.manifest)
        counts = Survey(samples=ledger.samples if ledger is not None else 0)
        main = join(
            (
                verdict(counts, ledger, self.manifest, None),
                ledger_figure(ledger) if ledger is not None else EMPTY,
                tag("section", tag("h2", text("How it was made")), how_made(self.manifest)),
                tag("section", tag("h2", text("Proven against")), proof(self.manifest)),
            )
        )
        return self._page("Overview", main)

    def rejects(self, code: str, part: str, row: int) -> bytes:
        """A page of what was not used, from a line on: of one code or all, by a part of it."""
        lines: list[dict[str, Json]] = []
        go_on: int | None = None
        budget = SCAN_BYTES
        if self._rejects is not None and self._rejects.reach(row, REACH_BYTES):
            for at, (_, raw) in enumerate(self._rejects.lines(row), start=row):
                budget -= len(raw)
                if len(lines) == PAGE_ROWS or budget < 0:
                    go_on = at
                    break
                line = as_object(decoded(raw))
                if (not code or line.get("code") == code) and (not part or part in dumps(line)):
                    lines.append(line)
        fields_ = (("code", "Code", code), ("text", "Source or message", part))
        form = tag("form", *map(_input, fields_), _button("Search"), action="rejects", **_GET)
        coded = [{**line, "message": f"{as_text(line.get('code'))}: {as_text(line.get('message'))}"}
                 for line in lines]  # fmt: skip
        result = reject_table(coded) if lines else tag("p", text("None."), class_="note")
        link = EMPTY
        if go_on is not None:
            asked = urlencode({"code": code, "text": part, "from": go_on})
            link = tag("p", tag("a", text("Go on"), href=f"rejects?{asked}"), class_="pages")
        return self._page("Rejects", join((form, result, link)))

    def nothing(self) -> bytes:
        """The page for what is not there."""
        message = (
            "There is no such sample, or it is further than could be counted so far: try again."
        )
        return self._page("Not found", join((_jump(), tag("p", text(message)))))

    def find(self, wanted: str) -> Address | None:
        """A row by its number, its `file:line`, or the beginning of its id (6 letters at least)."""
        wanted = wanted.strip().removeprefix("#").replace(",", "")
        if wanted.isascii() and wanted.isdigit():
            return self.rows.locate(int(wanted[:18]), REACH_BYTES)
        name, _, line = wanted.rpartition(":")
        if name and line.isascii() and line.isdigit():
            for at, opened in enumerate(self.rows.files):
                if opened.file.name.endswith(name):
                    row = opened.data.row_of_line(int(line[:18]), REACH_BYTES)
                    return Address(at, row) if row is not None else None
        if len(wanted) >= 6:
            for at in range(len(self.rows.files)):
                beginning = f'"{wanted.lower()}'
                held = beginning.encode("utf-8", "replace")
                for address, meta in self.rows.metas(Address(at, 0), REACH_BYTES, held):
                    if f'"{as_text(meta.get("id"))}'.startswith(beginning):
                        return address
        return None

    # -- parts -------------------------------------------------------------------------------------

    def _raw_records(self, row: DatasetRow) -> Html:
        """The records that the sample was made from, where the user has named the logs."""
        if self.logs is None:
            return EMPTY
        records = raw_records(
            self.logs, as_text(row.meta.get("source")), as_text(row.meta.get("record"))
        )
        head = tag("summary", text("Raw records"))
        return tag("section", tag("details", head, raw_html(records)), class_="raw")

    def _fitting(
        self, query: Query, at: Address, most: int = PAGE_ROWS
    ) -> tuple[list[tuple[Address, DatasetRow]], Address | None]:
        """Returns the next samples that fit, and where to continue (None: that was the end)."""
        found: list[tuple[Address, DatasetRow]] = []
        budget = SCAN_BYTES
        for address, meta, row, size in self._candidates(query, at):
            if len(found) == most or budget < 0:
                return found, address
            budget -= size
            if not query.has_meta(meta):
                continue
            if row is not None and (not query.asks_rows or query.has_row(row.value)):
                found.append((address, row))
            elif row is None:
                found += [item[:2] for item in islice(self.rows.rows(address, REACH_BYTES), 1)]
        return found, None

    def _candidates(
        self, query: Query, at: Address
    ) -> Iterator[tuple[Address, dict[str, Json], DatasetRow | None, int]]:
        """(address, meta, row; None where meta/ is enough to judge, bytes) from an address on."""
        for file in range(at.file, len(self.rows.files)):
            start = at if file == at.file else Address(file, 0)
            if query and not query.asks_rows and self.rows.files[file].meta is not None:
                for address, meta in self.rows.metas(start, REACH_BYTES, query.holds):
                    yield address, meta, None, _META_BYTES
            else:
                for address, row, size in self.rows.rows(start, REACH_BYTES):
                    yield address, row.meta, row, size

    def _next(self, query: Query, address: Address) -> Address | None:
        """Returns the next row that fits the query, within what one page may read."""
        after = self._after(address)
        if after is None or not query:
            return after
        found, go_on = self._fitting(query, after, most=1)
        return found[0][0] if found else go_on

    def _after(self, address: Address) -> Address | None:
        step = Address(address.file, address.row + 1)
        if self.rows.exists(step, REACH_BYTES):
            return step
        step = Address(address.file + 1, 0)
        return step if self.rows.exists(step, REACH_BYTES) else None

    def _before(self, address: Address) -> Address | None:
        if address.row:
            return Address(address.file, address.row - 1)
        return self.rows.last(address.file - 1, REACH_BYTES) if address.file else None

    def _place(self, address: Address) -> str:
        known = self.rows.number(address)
        if known is not None:
            return f"#{number(known)}"
        return f"{self.rows.files[address.file].file.name}, row {number(address.row)}"

    def _item(self, address: Address, row: DatasetRow, query: Query) -> Html:
        asked, about = headline(Picked(0, row))
        return tag(
            "li",
            tag("span", text(self._place(address)), class_="count"),
            tag(
                "a",
                text(asked),
                href=f"row?{_asked(query, address)}",
                class_="asked",
                dir="auto",
            ),
            tag("span", text(about), class_="about"),
        )

    def _search(self, query: Query) -> Html:
        names = (("text", "Text"), ("tool", "Tool"), ("source", "Source"), ("code", "Code"))
        inputs = [_input((key, label, getattr(query, key))) for key, label in names]
        return tag("form", *inputs, _button("Search"), action=".", role="search", **_GET)

    def _files(self) -> Html:
        """The files, to open one at its beginning."""
        if len(self.rows.files) < 2:
            return EMPTY
        links = [
            tag("li", tag("a", text(opened.file.name), href=f"?at={Address(at, 0)}"))
            for at, opened in enumerate(self.rows.files[:2000])
        ]
        head = tag("summary", text(f"{number(len(self.rows.files))} files"))
        return tag("details", head, tag("ul", *links), class_="files")

    def _list_link(self, name: str, query: Query, at: Address) -> Html:
        return tag("a", text(name), href=f"?{_asked(query, at)}")

    def _page(self, title: str, main: Html) -> bytes:
        name = as_text(as_object(self.manifest.get("config")).get("name")) or "dataset"
        links = [(".", "Samples"), ("rejects", "Rejects"), ("overview", "Overview")]
        if self._rejects is None:
            links.remove(("rejects", "Rejects"))
        return page(shorten(name, 80), main, links, subtitle=title, forms="'self'")


def _asked(query: Query, at: Address) -> str:
    """Returns the address of a row with the query, as the part after the question mark."""
    asked = {item.name: getattr(query, item.name) for item in fields(query)}
    return urlencode({key: value for key, value in asked.items() if value} | {"at": str(at)})


_GET = {"method": "get", "class_": "filters"}


def _jump() -> Html:
    field = _input(("to", "Go to a number, file:line, or id", ""))
    return tag("form", field, _button("Go"), action="go", **_GET)


def _input(named: tuple[str, str, str]) -> Html:
    key, label, value = named
    field = tag("input", type="search", name=key, value=value or None, autocomplete="off")
    return tag("label", text(label), field)


def _button(name: str) -> Html:
    return tag("button", plain(name), type="submit")
