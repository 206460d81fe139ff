"""Defines the options of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from builder.options import SUPPLIED
from builder.paths import UserPath


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Options of an audit of a dataset, among those of `audit:` in the configuration.

    near_duplicates  `off`: not searched for; `drop` affects only `build`
    contamination    evaluation sets: files, folders or names on the Hub
    mix              target shares by pattern, compared with the actual shares; not a key
    tokenizer        counts the tokens of datasets without meta/; not a key
    """

    near_duplicates: Literal["drop", "report", "off"] = "report"
    contamination: tuple[UserPath, ...] = ()
    mix: Mapping[str, float] = field(default_factory=dict, metadata=SUPPLIED)
    tokenizer: str = field(default="qwen3", metadata=SUPPLIED)

    @property
    def sets(self) -> tuple[str, ...]:
        """Returns the evaluation sets: as a path if it exists, otherwise as a name on the Hub."""
        return tuple(item.located_or_name for item in self.contamination)
