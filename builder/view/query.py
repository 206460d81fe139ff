"""Represents the query of a list (text, values of facets, order), which is part of its URL."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

MAX_TEXT = 300
"""Characters of a text or value that are used; the rest is ignored."""


@dataclass(frozen=True, slots=True)
class Query:
    """Conditions on rows, and their order.

    text    must occur in a message or a tool definition; case is ignored
    chosen  (facet, value) pairs, all of which must match
    sort    the name of an order; "" is the order of the dataset
    """

    text: str = ""
    chosen: tuple[tuple[str, str], ...] = ()
    sort: str = ""

    @classmethod
    def read(
        cls, params: Mapping[str, str], facets: Collection[str], sorts: Collection[str]
    ) -> Query:
        """Parses the fields of a URL; ignores unknown ones."""
        chosen = [(name, params[name][:MAX_TEXT]) for name in facets if params.get(name)]
        sort = params.get("sort", "")
        return cls(
            params.get("text", "").strip()[:MAX_TEXT], tuple(chosen), sort if sort in sorts else ""
        )

    def __bool__(self) -> bool:
        return bool(self.text or self.chosen)

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Returns the (name, value) fields of the URL, in order."""
        own = [("text", self.text), *self.chosen, ("sort", self.sort)]
        return [(name, value) for name, value in own if value]

    def url(self, address: str = "", /, **more: object) -> str:
        """Returns the URL of a page for this query, with further fields; "" omits a field."""
        extra = [(key, str(value)) for key, value in more.items() if value != ""]
        fields = urlencode([*self.fields, *extra])
        return f"{address}?{fields}" if fields else address or "."

    def choosing(self, facet: str, value: str) -> Query:
        """Returns a query with another value of a facet; "" removes the condition."""
        others = [pair for pair in self.chosen if pair[0] != facet]
        return replace(self, chosen=(*others, (facet, value)) if value else tuple(others))

    def sorted(self, order: str) -> Query:
        """Returns the query with another order."""
        return replace(self, sort=order)

    def value(self, facet: str) -> str:
        """Returns the chosen value of a facet, or ""."""
        return dict(self.chosen).get(facet, "")

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """Returns a pattern that matches the text, or None if there is none."""
        return re.compile(re.escape(self.text), re.IGNORECASE) if self.text else None


def whole_number(written: str) -> int:
    """Parses a number in a URL or header; returns 0 for anything else."""
    return int(written) if written.isascii() and written.isdigit() and len(written) < 16 else 0
