"""Selects samples by conditions on meta/, and limits how many of them are written.

Conditions are data, not code: a field and its permitted values. A sample that does not meet one is
left out with the code of that condition, so that the ledger shows what each condition costs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from builder.conversation import Json
from builder.dataset.meta import NAMES, SampleMeta
from builder.options import Number, Scalar, named
from builder.paths import UserPath
from builder.problem import nearest

TOOLS = "tools"
"""The one field that is not in meta/: the names of the tools that the sample calls."""

_MODEL, MODELS = "model", "models"
"""A condition on the model must hold for every model that gave a trained turn."""

FIELDS = frozenset((*NAMES, TOOLS))
"""The keys of a line of meta/, and `TOOLS`."""

TOKENS = "tokens"
"""The field of which `limits.max_tokens` is the maximum."""

SHARES = "select_shares"
TOTAL = "select_max_tokens_total"


@dataclass(frozen=True, slots=True)
class Condition:
    """The permitted values of a field; a value must meet every given key.

    min, max  a number within these bounds, both included
    in        one of these; a text may be a pattern with `*`, `?` and `[…]`; null: no value
    not       none of these
    """

    min: Number | None = None
    max: Number | None = None
    among: tuple[Scalar, ...] = field(default=(), metadata=named("in"))
    none_of: tuple[Scalar, ...] = field(default=(), metadata=named("not"))

    def holds(self, value: Json) -> bool:
        """Returns whether a value meets the condition; a list meets `in` by any of its values."""
        if self.min is not None or self.max is not None:
            if isinstance(value, bool) or not isinstance(value, int | float):
                return False
            # `not`, because NaN compares false with any bound.
            if self.min is not None and not value >= self.min:
                return False
            if self.max is not None and not value <= self.max:
                return False
        values = (value or [None]) if isinstance(value, list) else [value]
        if self.among and not _any_equal(values, self.among):
            return False
        return not _any_equal(values, self.none_of)


@dataclass(frozen=True, slots=True)
class SelectOptions:
    """Options of `select:` (configs/default.yaml describes each key)."""

    where: Mapping[str, Condition] = field(default_factory=dict)
    review: UserPath | None = None
    unreviewed: Literal["keep", "drop"] = "keep"
    shares: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    max_tokens_total: int | None = None

    @property
    def fields(self) -> frozenset[str]:
        """The fields whose values are needed."""
        return frozenset((*self.where, *self.shares))

    def refusal(self, values: Mapping[str, Json]) -> str | None:
        """Returns the code of the first condition that a sample does not meet, or None."""
        return next(map(condition_code, self.unmet(values)), None)

    def unmet(self, values: Mapping[str, Json]) -> Iterator[str]:
        """Yields the fields of the conditions that a sample does not meet."""
        for name, condition in self.where.items():
            if not all(map(condition.holds, _values(values, name))):
                yield name

    def group(self, values: Mapping[str, Json]) -> str:
        """Returns the value that `shares` groups by; several models are a group of their own."""
        listed = [", ".join(map(_text, _values(values, name))) for name in self.shares]
        return "".join(listed)

    def contradictions(self) -> Iterator[str]:
        """Yields a message for options that are valid separately but not together."""
        for key in ("where", "shares"):
            for name in getattr(self, key):
                if (first := name.partition(".")[0]) not in FIELDS:
                    yield f"select.{key}.{name}: no field of meta/{nearest(first, FIELDS)}"
        if self.unreviewed == "drop" and self.review is None:
            yield "select.unreviewed: drop needs select.review"
        if len(self.shares) > 1:
            yield "select.shares: names more than one field"
        for name, shares in self.shares.items():
            if sum(shares.values()) > 1 + 1e-9:
                yield f"select.shares.{name}: the shares add up to more than 1"
        for name, condition in self.where.items():
            if condition == Condition():
                yield f"select.where.{name}: has no condition: min, max, in or not"


def value_of(values: Mapping[str, Json], name: str) -> Json:
    """Returns the value of a field, or None; dots in its name separate nested keys."""
    value: Json = values.get(name)
    if value is None and "." in name:
        first, rest = name.split(".", 1)
        inner = values.get(first)
        return value_of(inner, rest) if isinstance(inner, dict) else None
    return value


def _values(values: Mapping[str, Json], name: str) -> Sequence[Json]:
    is_model = name in (_MODEL, MODELS)
    return SampleMeta.read(values).every_model if is_model else [value_of(values, name)]


def condition_code(name: str) -> str:
    """Returns the code for samples that are left out by a condition on the field."""
    return "select_" + re.sub(r"\W+", "_", name)


def _any_equal(values: Iterable[Json], choices: tuple[Scalar, ...]) -> bool:
    return any(_equals(value, choice) for value in values for choice in choices)


def _equals(value: Json, choice: object) -> bool:
    if isinstance(value, str) and isinstance(choice, str):
        return value == choice or fnmatchcase(value, choice)
    return value == choice and isinstance(value, bool) == isinstance(choice, bool)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
