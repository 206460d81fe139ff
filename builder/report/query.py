"""Represents the query of a list (text, a value per facet, order) and its form in a URL."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

MAX_TEXT = 300
"""Characters of a text or a value that are used."""


@dataclass(frozen=True, slots=True)
class Query:
    """The conditions on rows, and their order.

    text    in a message or a tool definition, without regard to case
    chosen  (facet, value) pairs that must all match
    sort    the name of an order; "" is that of the dataset
    """

    text: str = ""
    chosen: tuple[tuple[str, str], ...] = ()
    sort: str = ""

    @classmethod
    def read(
        cls, asked: Mapping[str, str], facets: Collection[str], sorts: Collection[str]
    ) -> Query:
        """Parses the fields of an address; unknown ones are ignored."""
        chosen = [(name, asked[name][:MAX_TEXT]) for name in facets if asked.get(name)]
        sort = asked.get("sort", "")
        return cls(
            asked.get("text", "").strip()[:MAX_TEXT],
            tuple(chosen),
            sort if sort in sorts else "",
        )

    def __bool__(self) -> bool:
        return bool(self.text or self.chosen)

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Returns the fields of its address, in the order in which they are written."""
        own = [("text", self.text), *self.chosen, ("sort", self.sort)]
        return [(name, value) for name, value in own if value]

    def url(self, address: str = "", /, **more: object) -> str:
        """Returns the address of a page for this query, with further fields; "" omits one."""
        extra = [(key, str(value)) for key, value in more.items() if value != ""]
        asked = urlencode([*self.fields, *extra])
        return f"{address}?{asked}" if asked else address or "."

    def choosing(self, facet: str, value: str) -> Query:
        """Returns the query with a value of a facet in place of another one; "" for any value."""
        others = [pair for pair in self.chosen if pair[0] != facet]
        return replace(self, chosen=(*others, (facet, value)) if value else tuple(others))

    def value(self, facet: str) -> str:
        """Returns the chosen value of a facet, or ""."""
        return dict(self.chosen).get(facet, "")

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """Returns the pattern of the text; None if there is no text."""
        return re.compile(re.escape(self.text), re.IGNORECASE) if self.text else None


def whole_number(written: str) -> int:
    """Returns the number in a field of an address, or 0."""
    return int(written) if written.isascii() and written.isdigit() and len(written) < 16 else 0
