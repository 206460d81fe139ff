"""Defines the options of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from builder.options import SUPPLIED, options
from builder.paths import UserPath
from builder.qwen3.reference import EMBEDDED


@options
@dataclass(frozen=True, slots=True)
class AuditOptions:
    """The options of an audit; a part of `audit:` in the configuration.

    near_duplicates  `off` does not search for them; `drop` differs from `report` only in `build`
    contamination    evaluation sets: files, folders or Hub ids
    mix              target shares by pattern, to compare with the actual shares; not a key
    tokenizer        counts the tokens of datasets without meta/; not a key
    """

    near_duplicates: Literal["drop", "report", "off"] = "report"
    contamination: tuple[UserPath, ...] = ()
    mix: Mapping[str, float] = field(default_factory=dict, metadata=SUPPLIED)
    tokenizer: str = field(default=EMBEDDED, metadata=SUPPLIED)

    @property
    def sets(self) -> tuple[str, ...]:
        """Returns the evaluation sets, as existing paths or names on the Hub."""
        return tuple(item.located_or_name for item in self.contamination)
