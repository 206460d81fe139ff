"""Counts calls by tool, errors, schema violations, and tools and parameters never used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from builder.audit.failures import ERROR, CallPlace, failed_calls
from builder.audit.notes import AuditRow, FindingNotes
from builder.audit.result import AuditFinding, AuditTable
from builder.conversation import Json
from builder.ledger import ranked
from builder.readers.toolkit.narrow import as_dict
from builder.sample import Call
from builder.verify.schemas import BrokenSchemaFault, violations

MAX_TOOLS = 20_000
"""Tools counted separately; all others are counted together."""
OTHERS = "(other tools)"
SHOWN = 50

CODES = (
    "broken_schema",
    "error_result",
    "parameter_never_used",
    "schema_violation",
    "tool_never_called",
    "tool_not_defined",
)

_COLUMNS = {
    "calls": "calls",
    "errors": "error results",
    "stopped": "denied or interrupted",
    "violations": "schema violations",
    "defined": "samples that define it",
    "inferred": "of these, inferred",
}
"""{count of a tool: head of its column}"""


def _is_inferred(source: str | None, function: Mapping[str, Json]) -> bool:
    """Returns whether a definition was inferred from calls; those that are have no description."""
    return source == "inferred" or (source == "mixed" and "description" not in function)


@dataclass(slots=True)
class _Tool:
    """Counts of a tool; `parameters` are the defined ones, `used` those that occur in calls."""

    counts: Counter[str] = field(default_factory=Counter)
    parameters: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)

    def merge(self, other: _Tool) -> None:
        self.counts += other.counts
        self.parameters |= other.parameters
        self.used |= other.used


class CallAudit:
    """Counts by tool name."""

    def __init__(self) -> None:
        self.notes = FindingNotes()
        self._tools: dict[str, _Tool] = {}
        self._paths: Counter[tuple[str, str]] = Counter()
        self._sources: Counter[str] = Counter()
        self._judged: Counter[str] = Counter()
        """Failed calls by what shows the failure: `flags` of the log, or `wording`."""

    def add(self, row: AuditRow) -> None:
        """Counts the definitions and calls of a sample."""
        definitions: dict[str, str] = {}
        for tool, text in zip(row.sample.tools, row.sample.definitions, strict=True):
            function = as_dict(tool, "function")
            name = function.get("name")
            if isinstance(name, str):
                definitions[name] = text
                known = self._tool(name)
                known.counts["defined"] += 1
                known.counts["inferred"] += _is_inferred(row.meta.tools_source, function)
                properties = as_dict(function, "parameters", "properties")
                known.parameters.update(list(properties)[:1000])
        self._sources[row.meta.tools_source or "unknown"] += 1
        if row.dialogue is None:
            return
        logged = row.failed_calls
        failures = failed_calls(row.dialogue, logged)
        self._judged["wording" if logged is None else "flags"] += sum(
            failure == ERROR for failure in failures.values()
        )
        for at, turn in enumerate(row.dialogue.turns):
            for number, call in enumerate(turn.calls):
                place = CallPlace(at, number)
                self._call(row, str(place), call, failures.get(place), definitions)

    def _tool(self, name: str) -> _Tool:
        if name not in self._tools and len(self._tools) >= MAX_TOOLS:
            name = OTHERS
        return self._tools.setdefault(name, _Tool())

    def merge(self, later: CallAudit) -> None:
        """Adds the counts of the samples that follow."""
        self.notes.merge(later.notes)
        self._sources += later._sources
        self._judged += later._judged
        for name, other in later._tools.items():
            self._tool(name).merge(other)
        for path, count in later._paths.items():
            if path in self._paths or len(self._paths) < MAX_TOOLS:
                self._paths[path] += count

    @property
    def inferred(self) -> dict[str, int]:
        """Returns {tool: samples} of the definitions that were inferred, most samples first."""
        counts = {name: tool.counts["inferred"] for name, tool in self._tools.items()}
        return {name: count for name, count in ranked(counts) if count}

    def _call(
        self, row: AuditRow, part: str, call: Call, failure: str | None, definitions: dict[str, str]
    ) -> None:
        tool = self._tool(call.name)
        tool.counts["calls"] += 1
        tool.used.update(list(call.arguments)[:1000])
        if failure == ERROR:
            tool.counts["errors"] += 1
            self.notes.add("error_result", row, part, call.name[:80])
        elif failure is not None:
            tool.counts["stopped"] += 1
        if call.name not in definitions:
            if row.sample.tools:
                self.notes.add("tool_not_defined", row, part, call.name[:80])
            return
        try:
            broken = violations(definitions[call.name], call.arguments)
        except BrokenSchemaFault:
            self.notes.add("broken_schema", row, part, call.name[:80])
            return
        if broken:
            tool.counts["violations"] += 1
            paths = sorted({text.partition(":")[0] for text in broken})
            for path in paths:
                if (call.name, path) in self._paths or len(self._paths) < MAX_TOOLS:
                    self._paths[call.name, path] += 1
            self.notes.add("schema_violation", row, part, f"{call.name[:80]}: {paths[0][:80]}")

    def tables(self) -> list[AuditTable]:
        """Returns calls by tool, violations by path, and samples by source of definitions."""
        order = sorted(self._tools.items(), key=lambda item: (-item[1].counts["calls"], item[0]))
        counted = [(name, tool.counts) for name, tool in order[:SHOWN]]
        columns = dict(_COLUMNS)
        if not any(counts["inferred"] for _, counts in counted):
            del columns["inferred"]
        rows: tuple[tuple[str | int, ...], ...] = tuple(
            (name, *(counts[key] for key in columns)) for name, counts in counted
        )
        note = "A call counts in each sample that contains it."
        note += f" {len(order)} tools; the {SHOWN} called most." if len(order) > SHOWN else ""
        heads = ("tool", *columns.values())
        broken = tuple((*key, count) for key, count in ranked(self._paths)[:SHOWN])
        sources = tuple(sorted(self._sources.items()))
        return [
            AuditTable(
                "tools", "Calls by tool", heads, rows, note, bars="calls", bad="error results"
            ),
            AuditTable(
                "violations", "Schema violations by path", ("tool", "path", "calls"), broken
            ),
            AuditTable(
                "tools_source", "Sources of tool definitions", ("source", "samples"), sources,
                bars="samples",
            ),
        ]  # fmt: skip

    def _error_message(self) -> str:
        flagged, worded = self._judged["flags"], self._judged["wording"]
        if not worded:
            return "calls that failed, as the log says"
        if not flagged:
            return "calls with a result that reads like an error: the log does not say what failed"
        return (
            f"calls that failed: {flagged:,} as the log says; {worded:,} by the wording of the"
            " result, where the log does not say what failed"
        )

    def findings(self) -> Iterator[AuditFinding]:
        """Yields the findings."""
        messages = {
            "broken_schema": "calls whose tool has an unusable schema",
            "error_result": self._error_message(),
            "schema_violation": "calls whose arguments violate their schema",
            "tool_not_defined": "calls of tools that their sample does not define",
        }
        for code in self.notes.codes():
            yield self.notes.finding("calls", code, messages[code])
        never = [name for name, tool in self._tools.items() if not tool.counts["calls"]]
        if never:
            message = f"tools that are defined and never called: {_some(never)}"
            yield AuditFinding("calls", "tool_never_called", message, len(never), 0)
        unused = [
            f"{name}.{parameter}"
            for name, tool in self._tools.items()
            if tool.counts["calls"]
            for parameter in sorted(tool.parameters - tool.used)
        ]
        if unused:
            message = f"parameters of called tools that no call uses: {_some(unused)}"
            yield AuditFinding("calls", "parameter_never_used", message, len(unused), 0)


def _some(names: list[str]) -> str:
    listed = ", ".join(name[:60] for name in sorted(names)[:5])
    return listed + (", …" if len(names) > 5 else "")
