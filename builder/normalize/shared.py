"""Defines the tool definitions that an agent's sessions share (`builder.normalize.tool_use`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from builder.conversation import Json

Definition: TypeAlias = "dict[str, Json]"


@dataclass(frozen=True, slots=True)
class AgentDefinitions:
    """What one version of an agent sends; `system` and `tools` are None if not to be used."""

    agent: str
    version: str
    system: str | None = None
    tools: tuple[Json, ...] | None = None


@dataclass(frozen=True, slots=True)
class SharedTools:
    """The definitions that the sessions of an agent share.

    inferred  {name: definition}, inferred from the calls of all sessions
    logged    {version: {name: definition}}, logged by sessions of this version
    common    {version: names of the tools in all logged lists of this version}
    source    {name: definition}, logged by other requests of the same source
    """

    inferred: Mapping[str, Definition] = field(default_factory=dict)
    logged: Mapping[str, Mapping[str, Definition]] = field(default_factory=dict)
    common: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: Mapping[str, Definition] = field(default_factory=dict)

    def listed(self, version: str | None, called: Collection[str]) -> list[Json]:
        """Returns the definitions for a session that logged none: common and called tools."""
        known = self.logged.get(version or "", {})
        names = {*self.common.get(version or "", ()), *called}
        return [known[name] for name in sorted(names) if name in known]

    def elsewhere(self, version: str | None) -> Mapping[str, Definition]:
        """Returns the definitions in other logs that a session or request of a log may use."""
        return {**self.source, **self.logged.get(version or "", {})}
