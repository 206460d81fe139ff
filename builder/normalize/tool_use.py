"""Infers one set of tool definitions for all sessions of an agent whose logs lack them.

The calls of one session show only some arguments of a tool. So the calls of all sessions of an
agent are counted (`ToolUse`), and one definition per tool is inferred from them (`SharedTools`).
Sessions that logged no definitions get those that sessions of the same version logged. Counts are
sums, so the result depends neither on the order of the sessions nor on the workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from builder.conversation import Conversation, Json, ToolCall, ToolResult
from builder.jsonio import dumps, loads, schema_type
from builder.ledger import ranked
from builder.normalize import calls
from builder.normalize.calls import call_fault, result_text
from builder.normalize.calls import decoded as decoded_arguments
from builder.normalize.draft import DraftCall
from builder.normalize.options import Definition, SharedTools
from builder.normalize.tools import convert, function_tool, schema_of, tool_name
from builder.readers.toolkit.made_up import says_unknown
from builder.readers.toolkit.narrow import as_dict

MAX_ARGUMENTS = 100
"""A tool with more argument names takes free-form arguments, so it gets no shared definition."""


class ToolUse:
    """Counts the calls and the logged definitions of sessions.

    `counts` has these keys. All leaves are numbers, which `add` sums.

    calls     {tool: {"calls": n, "arguments": {name: {"calls": n, "places": sum of its positions,
              "kinds": {type: n}, "items": {type: n}}}}}
    logged    {version: {"lists": n, "tools": {name: {definition as JSON: n}}}}
    versions  {version: number of sessions that lack definitions}
    """

    def __init__(self, counts: dict[str, Any] | None = None) -> None:
        self.counts: dict[str, Any] = {} if counts is None else counts

    def add(self, other: Mapping[str, Any]) -> None:
        """Adds the counts of other sessions."""
        _add(self.counts, other)

    def take(self, conversation: Conversation, supplied: Iterable[Json] | None) -> bool:
        """Counts a conversation; returns whether it lacks definitions that others may supply."""
        listed = conversation.tools if conversation.tools is not None else supplied
        known = {tool_name(tool): tool for tool in convert(listed or (), Counter())}
        incomplete = conversation.context is not None and "tools" in conversation.context.missing
        if conversation.tools and conversation.version and not incomplete:
            names = {name: {dumps(tool): 1} for name, tool in known.items()}
            logged = {conversation.version: {"lists": 1, "tools": names}}
            self.add({"logged": logged})
        lacks = listed is None
        parts = [part for message in conversation.messages for part in message.parts]
        results = {part.call_id: part for part in parts if isinstance(part, ToolResult)}
        for part in parts:
            if isinstance(part, ToolCall) and part.name not in known:
                lacks = True
                result = results.get(part.id) if part.id is not None else None
                if result is None or not says_unknown(result_text(result), part.name):
                    self._call(part, padded=conversation.padded)
        if lacks and conversation.version:
            self.add({"versions": {conversation.version: 1}})
        return lacks

    def _call(self, part: ToolCall, *, padded: bool) -> None:
        arguments = decoded_arguments(part.arguments, Counter())
        if padded and isinstance(part.arguments, dict):
            arguments = calls.unpadded(part.arguments, None, Counter())
        if not isinstance(arguments, dict) or call_fault(DraftCall(0, part.name, arguments)):
            return
        used = {
            key: {
                "calls": 1,
                "places": position,
                "kinds": {schema_type(value): 1},
                "items": Counter(map(schema_type, value)) if isinstance(value, list) else {},
            }
            for position, (key, value) in enumerate(arguments.items())
        }
        self.add({"calls": {part.name: {"calls": 1, "arguments": used}}})

    def shared(self, other: Mapping[str, Any]) -> SharedTools:
        """Returns the definitions for the sessions whose own counts are `other`."""
        calls, logged = self.counts.get("calls", {}), self.counts.get("logged", {})
        versions = sorted(logged.keys() & other.get("versions", {}).keys())
        listed = {version: sorted(logged[version]["tools"].items()) for version in versions}
        return SharedTools(
            inferred={
                name: _inferred(name, calls[name])
                for name in sorted(other.get("calls", {}))
                if len(calls[name]["arguments"]) <= MAX_ARGUMENTS
            },
            logged={
                # The most frequent one; of equally frequent ones, the first in text order.
                version: {name: as_dict(loads(ranked(texts)[0][0])) for name, texts in tools}
                for version, tools in listed.items()
            },
            common={
                version: tuple(
                    name
                    for name, texts in listed[version]
                    if sum(texts.values()) == logged[version]["lists"]
                )
                for version in versions
            },
        )

    @staticmethod
    def wanted(counts: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the part of a session's counts that `shared` needs for this session."""
        return {key: dict.fromkeys(counts.get(key, {}), 1) for key in ("calls", "versions")}


def _add(counts: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, int):
            counts[key] = counts.get(key, 0) + value
        else:
            _add(counts.setdefault(key, {}), value)


def _inferred(name: str, used: Mapping[str, Any]) -> Definition:
    """Returns a definition with the arguments in the order of their mean position in calls."""
    arguments: dict[str, Any] = used["arguments"]

    def mean_position(key: str) -> tuple[Fraction, str]:
        return Fraction(arguments[key]["places"], arguments[key]["calls"]), key

    names = sorted(arguments, key=mean_position)
    schemas = {
        key: schema_of([kind for kind, _ in ranked(used["kinds"])], used["items"])
        for key, used in arguments.items()
    }
    required = [key for key in names if arguments[key]["calls"] == used["calls"]]
    return function_tool(name, {key: schemas[key] for key in names}, required)
