"""Counts calls, errors and the tokens of parts while the viewer indexes a dataset."""

from __future__ import annotations

import re
import threading
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from builder.audit.calls import MAX_TOOLS, OTHERS
from builder.audit.failures import ERROR, CallPlace, is_error, placed
from builder.audit.lengths import PARTS_NOTE, token_histogram, turn_histograms
from builder.audit.result import AuditTable, Histogram
from builder.dataset.rows import DatasetRow
from builder.dataset.store import content, messages
from builder.jsonio import JsonFault, loads
from builder.qwen3.parts import PARTS, characters_by_part
from builder.qwen3.render import RESPONSE_CLOSE, RESPONSE_OPEN, render_sample
from builder.qwen3.written import written_style
from builder.readers.toolkit.narrow import as_str
from builder.sample import Sample

_CALL = re.compile(r'<tool_call>\s*(?:\{"name": ("(?:[^"\\]|\\.)*")|<function=([^<>\n]{1,400})>)')


@dataclass(slots=True)
class RowCounts:
    """What a row contains.

    turns   its assistant turns
    calls   the names of the called tools, in order
    failed  the names of those that failed (`builder.audit.failures`)
    errors  calls that failed
    """

    turns: int = 0
    calls: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    errors: int = 0


def row_counts(row: DatasetRow) -> RowCounts:
    """Counts a row, whatever it contains."""
    counts = RowCounts()
    logged = row.failed_calls
    failures = placed(logged) if logged is not None else {}
    asked: list[str] = []
    for number, message in enumerate(messages(content(row))):
        role, written = message.get("role"), as_str(message.get("content"))
        if role == "assistant":
            counts.turns += 1
            asked = list(_calls(written)) if "<tool_call>" in written else []
            counts.calls += asked
            for at, name in enumerate(asked) if failures else ():
                if failures.get(CallPlace(number, at)) == ERROR:
                    counts.errors += 1
                    counts.failed.append(name)
        elif role == "tool" or (role == "user" and written.startswith(RESPONSE_OPEN)):
            for at, response in enumerate(_responses(written) if logged is None else ()):
                if is_error(response):
                    counts.errors += 1
                    counts.failed += asked[at : at + 1]
            if role == "tool":
                asked = asked[1:]
    return counts


def _calls(written: str) -> Iterator[str]:
    for match in _CALL.finditer(written):
        if match[2]:
            yield match[2]
            continue
        try:
            yield as_str(loads(match[1].encode("utf-8", "surrogatepass")))
        except JsonFault:
            continue


def _responses(written: str) -> list[str]:
    if not written.startswith(RESPONSE_OPEN):
        return [written]
    pieces = written.split(RESPONSE_OPEN)[1:]
    return [piece.rpartition(RESPONSE_CLOSE)[0].strip("\n") for piece in pieces]


class Tally:
    """Sums of the rows indexed so far, which one thread adds while others read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._parts: Counter[str] = Counter()
        self._tokens = 0
        """Those of `_parts`; 0: they are in code points."""
        self._lengths, self._turns, self._of_sample = array("I"), array("I"), array("I")

    def add(self, row: DatasetRow, counts: RowCounts) -> None:
        """Adds a row."""
        with self._lock:
            for counter, names in ((self._calls, counts.calls), (self._failed, counts.failed)):
                for name in names:
                    known = name in self._calls or len(self._calls) < MAX_TOOLS
                    counter[name if known else OTHERS] += 1
            if row.meta.tokens_by_part and not self._tokens:
                self._parts.clear()
            if row.meta.tokens_by_part or not self._tokens:
                self._parts.update(row.meta.tokens_by_part or _characters(row))
            self._tokens += sum(row.meta.tokens_by_part.values())
            if row.meta.tokens:
                self._lengths.append(row.meta.tokens)
            if counts.turns:
                self._turns.append(counts.turns)
                self._of_sample.append(row.meta.calls or len(counts.calls))

    def histograms(self) -> tuple[Histogram, ...]:
        """Returns the histograms of tokens, turns and calls, which are those of the audit."""
        with self._lock:
            lengths, turns, calls = self._lengths[:], self._turns[:], self._of_sample[:]
        made = [token_histogram(lengths)] if lengths else []
        return (*made, *(turn_histograms(turns, calls) if turns else ()))

    def tables(self) -> tuple[AuditTable, ...]:
        """Returns calls by tool and tokens by part, with the keys of the audit's tables."""
        with self._lock:
            calls, failed, parts = self._calls.copy(), self._failed.copy(), self._parts.copy()
            unit = "tokens" if self._tokens else "characters"
        rows = tuple(
            (name, count, failed[name])
            for name, count in sorted(calls.items(), key=lambda item: (-item[1], item[0]))
        )
        tables = [
            AuditTable(
                "tools",
                "Calls by tool",
                ("tool", "calls", "error results"),
                rows,
                bars="calls",
                bad="error results",
            )
        ]
        whole = parts.total()
        shares = tuple(
            (name, count, round(count / max(whole, 1), 4))
            for name, count in (("sample", whole), *((part, parts[part]) for part in PARTS))
        )
        title, heads = f"{unit.title()} by part", ("part", unit, "share")
        tables.append(AuditTable("lengths", title, heads, shares, PARTS_NOTE, "share"))
        return tuple(tables)


def _characters(row: DatasetRow) -> dict[str, int]:
    """Returns {part: code points} of a row whose tokens are not counted."""
    sample = row.sample
    if not isinstance(sample, Sample):
        return {}
    return characters_by_part(render_sample(sample, written_style(sample)))
