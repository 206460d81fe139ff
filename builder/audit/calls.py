"""Counts calls by tool, with errors and schema violations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from builder.audit.failures import ERROR, CallPlace, failed_calls
from builder.audit.notes import AuditRow, FindingNotes
from builder.audit.result import AuditTable
from builder.conversation import Json
from builder.ledger import ranked
from builder.readers.toolkit.narrow import as_dict
from builder.sample import Call
from builder.verify.schemas import BrokenSchemaFault, violations

_MAX_TOOLS = 20_000
"""Tools counted separately; all others are counted together."""
OTHERS = "(other tools)"
SHOWN = 50
MESSAGES = {
    "broken_schema": "calls whose tool has an unusable schema",
    "error_result": "calls that failed",
    "schema_violation": "calls whose arguments violate their schema",
    "tool_not_defined": "calls of tools that their sample does not define",
}
_COLUMNS = {
    "calls": "calls",
    "errors": "errors",
    "stopped": "denied or interrupted",
    "violations": "schema violations",
    "defined": "samples that define it",
    "inferred": "of these, inferred",
}
"""{count of a tool: head of its column}"""


def _is_inferred(source: str | None, function: Mapping[str, Json]) -> bool:
    return source == "inferred" or (source == "mixed" and "description" not in function)


class CallAudit:
    """Counts by tool name; what is wrong with a call goes to `notes`."""

    def __init__(self) -> None:
        self._tools: dict[str, Counter[str]] = {}
        self._paths: Counter[tuple[str, str]] = Counter()

    def add(self, row: AuditRow, notes: FindingNotes) -> None:
        """Counts the definitions and calls of a sample."""
        definitions: dict[str, str] = {}
        for tool, text in zip(row.sample.tools, row.sample.definitions, strict=True):
            function = as_dict(tool, "function")
            name = function.get("name")
            if isinstance(name, str):
                definitions[name] = text
                known = self._tool(name)
                known["defined"] += 1
                known["inferred"] += _is_inferred(row.meta.tools_source, function)
        if row.dialogue is None:
            return
        failures = failed_calls(row.dialogue, row.failed_calls)
        for at, turn in enumerate(row.dialogue.turns):
            for number, call in enumerate(turn.calls):
                place = CallPlace(at, number)
                self._call(row, place, call, failures.get(place), definitions, notes)

    def _tool(self, name: str) -> Counter[str]:
        if name not in self._tools and len(self._tools) >= _MAX_TOOLS:
            name = OTHERS
        return self._tools.setdefault(name, Counter())

    def merge(self, later: CallAudit) -> None:
        """Adds the counts of the samples that follow."""
        for name, other in later._tools.items():
            self._tool(name).update(other)
        for path, count in later._paths.items():
            self._count(path, count)

    def _count(self, path: tuple[str, str], count: int) -> None:
        if path in self._paths or len(self._paths) < _MAX_TOOLS:
            self._paths[path] += count

    @property
    def inferred(self) -> dict[str, int]:
        """Returns {tool: samples} of the definitions that were inferred, most samples first."""
        counts = {name: tool["inferred"] for name, tool in self._tools.items()}
        return {name: count for name, count in ranked(counts) if count}

    def _call(
        self,
        row: AuditRow,
        place: CallPlace,
        call: Call,
        failure: str | None,
        definitions: dict[str, str],
        notes: FindingNotes,
    ) -> None:
        tool, part, name = self._tool(call.name), str(place), call.name[:80]
        tool["calls"] += 1
        if failure == ERROR:
            tool["errors"] += 1
            is_worded = row.failed_calls is None
            why = "by the wording of the result" if is_worded else "as the log says"
            notes.add("error_result", row, part, name, names={why: 1})
        elif failure is not None:
            tool["stopped"] += 1
        if call.name not in definitions:
            if row.sample.tools:
                notes.add("tool_not_defined", row, part, name)
            return
        try:
            broken = violations(definitions[call.name], call.arguments)
        except BrokenSchemaFault:
            notes.add("broken_schema", row, part, name)
            return
        if broken:
            tool["violations"] += 1
            paths = sorted({text.partition(":")[0] for text in broken})
            for path in paths:
                self._count((call.name, path), 1)
            notes.add("schema_violation", row, part, f"{name}: {paths[0][:80]}")

    def tables(self) -> list[AuditTable]:
        """Returns calls by tool, and violations by path."""
        order = sorted(self._tools.items(), key=lambda item: (-item[1]["calls"], item[0]))
        columns = dict(_COLUMNS)
        if not self.inferred:
            del columns["inferred"]
        rows: tuple[tuple[str | int, ...], ...] = tuple(
            (name, *(tool[key] for key in columns)) for name, tool in order[:SHOWN]
        )
        note = "A call counts in each sample that contains it."
        note += f" {len(order)} tools; the {SHOWN} called most." if len(order) > SHOWN else ""
        heads, bad = ("tool", *columns.values()), _COLUMNS["errors"]
        broken = tuple((*key, count) for key, count in ranked(self._paths)[:SHOWN])
        paths = ("tool", "path", "calls")
        return [
            AuditTable("tools", "Calls by tool", heads, rows, note, bars="calls", bad=bad),
            AuditTable("violations", "Schema violations by path", paths, broken),
        ]
