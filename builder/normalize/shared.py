"""Tool definitions that the sessions of an agent share; `builder.normalize.tool_use` makes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from builder.conversation import Json

Definition: TypeAlias = "dict[str, Json]"


@dataclass(frozen=True, slots=True)
class SharedTools:
    """The definitions that sessions of an agent share.

    inferred  {name: definition} from the calls of all its sessions
    logged    {version: {name: definition}} of tools that sessions of this version logged
    common    {version: names of the tools that each list of this version has}
    """

    inferred: Mapping[str, Definition] = field(default_factory=dict)
    logged: Mapping[str, Mapping[str, Definition]] = field(default_factory=dict)
    common: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def listed(self, version: str | None, called: Collection[str]) -> list[Json]:
        """Returns the definitions for a session without any: the common and the called ones."""
        known = self.logged.get(version or "", {})
        names = {*self.common.get(version or "", ()), *called}
        return [known[name] for name in sorted(names) if name in known]
