"""Counts calls, errors and the length of parts while the viewer indexes a dataset."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from builder.audit.calls import MAX_TOOLS, OTHERS
from builder.audit.failures import ERROR, CallPlace, is_error, placed
from builder.audit.result import AuditTable
from builder.dataset.rows import DatasetRow
from builder.dataset.store import content, messages
from builder.jsonio import JsonFault, dumps, loads
from builder.qwen3.render import RESPONSE_CLOSE, RESPONSE_OPEN
from builder.readers.toolkit.narrow import as_dict, as_str

_CALL = re.compile(r'<tool_call>\s*(?:\{"name": ("(?:[^"\\]|\\.)*")|<function=([^<>\n]{1,400})>)')
_THOUGHT_END = "</think>"


@dataclass(slots=True)
class RowCounts:
    """What a row contains.

    calls   the names of the called tools, in order
    failed  the names of those that failed (`builder.audit.failures`)
    errors  calls that failed
    parts   {part: characters}, named as in the audit of lengths
    """

    calls: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    errors: int = 0
    parts: Counter[str] = field(default_factory=Counter)


def row_counts(row: DatasetRow) -> RowCounts:
    """Counts a row, whatever it contains."""
    counts = RowCounts()
    value = content(row)
    tools = as_dict(value).get("tools")
    if tools:
        counts.parts["tools"] = len(tools if isinstance(tools, str) else dumps(tools))
    logged = row.failed_calls
    failures = placed(logged) if logged is not None else {}
    asked: list[str] = []
    for number, message in enumerate(messages(value)):
        role, written = message.get("role"), as_str(message.get("content"))
        if role == "assistant":
            asked = list(_calls(written)) if "<tool_call>" in written else []
            counts.calls += asked
            for at, name in enumerate(asked) if failures else ():
                if failures.get(CallPlace(number, at)) == ERROR:
                    counts.errors += 1
                    counts.failed.append(name)
            _add_answer(counts.parts, written)
            counts.parts["thoughts"] += len(as_str(message.get("reasoning_content")))
        elif role == "tool" or (role == "user" and written.startswith(RESPONSE_OPEN)):
            counts.parts["responses"] += len(written)
            for at, response in enumerate(_responses(written) if logged is None else ()):
                if is_error(response):
                    counts.errors += 1
                    counts.failed += asked[at : at + 1]
            if role == "tool":
                asked = asked[1:]
        else:
            counts.parts["system" if role == "system" else "user"] += len(written)
    return counts


def _add_answer(parts: Counter[str], written: str) -> None:
    thought = written.find(_THOUGHT_END) + len(_THOUGHT_END)
    thought = thought if thought >= len(_THOUGHT_END) and written.startswith("<think>") else 0
    calls = written.find("<tool_call>", thought)
    calls = calls if calls >= 0 else len(written)
    parts["thoughts"] += thought
    parts["assistant"] += calls - thought
    parts["calls"] += len(written) - calls


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
        self._chars = 0

    def add(self, row: DatasetRow, counts: RowCounts) -> None:
        """Adds a row."""
        with self._lock:
            for counter, names in ((self._calls, counts.calls), (self._failed, counts.failed)):
                for name in names:
                    known = name in self._calls or len(self._calls) < MAX_TOOLS
                    counter[name if known else OTHERS] += 1
            self._parts.update(counts.parts)
            self._tokens += row.meta.tokens
            self._chars += row.meta.chars

    def tables(self) -> tuple[AuditTable, ...]:
        """Returns calls by tool and tokens by part, with the keys of the audit's tables."""
        with self._lock:
            calls, failed, parts = self._calls.copy(), self._failed.copy(), self._parts.copy()
            tokens, chars = self._tokens, self._chars
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
        whole = max(chars, parts.total(), 1)
        parts["template"] = max(chars - parts.total(), 0)
        unit = "tokens" if tokens else "characters"
        shares = tuple(
            (name, round((tokens or whole) * count / whole), round(count / whole, 4))
            for name, count in parts.items()
        )
        note = f"{unit} of parts are estimated from code points" if tokens else ""
        tables.append(
            AuditTable(
                "lengths", f"{unit.title()} by part", ("part", unit, "share"), shares, note, "share"
            )
        )
        return tuple(tables)
