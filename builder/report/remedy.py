"""Defines advice on a dataset: a finding, how much it matters, and what can be done about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Remedy:
    """What can be done: code is between backticks, and `commands` are ready to paste.

    `price` is what it costs, or "".
    """

    text: str
    price: str = ""
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding in a line, the share of the dataset that it affects, and what can be done.

    `remedies` begin with the best. `detail` has more on the finding, or "". `severity` is how much
    the finding changes what a model learns where it occurs: from 0, nothing, to 1, all of it; 2 is
    for what must not be trained at all.
    """

    share: float
    finding: str
    remedies: tuple[Remedy, ...]
    detail: str = ""
    severity: float = 1.0

    @property
    def effect(self) -> float:
        """Returns by what advice is ranked: the share times the severity."""
        return self.share * self.severity
