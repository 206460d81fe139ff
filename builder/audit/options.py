"""Options of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What an audit of a dataset is told.

    contamination   evaluation sets: files, folders or names on the Hub
    mix             target shares by pattern, drawn beside the shares found
    near            are near duplicates looked for?
    tokenizer       counts the tokens of datasets that have no meta/
    """

    contamination: tuple[str, ...] = ()
    mix: Mapping[str, float] = field(default_factory=dict)
    near: bool = True
    tokenizer: str = "qwen3"
