"""Loads the tables of rules: tokens.toml and contexts.toml, which say what their fields mean."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

ESCAPES = (r"\\[nrt]", r"%[0-9A-Fa-f]{2}", r"\dm")
"""What a token or a datum may directly follow: a newline in JSON, a URL's escape, a colour."""
_START = "(?:(?<![A-Za-z0-9])|" + "|".join(f"(?<={escape})" for escape in ESCAPES) + ")"
"""Before a token: no letter or digit, but for a newline in JSON, a URL's escape, a colour."""
_END = "(?![A-Za-z0-9])"
_ISSUED = re.compile(r"(?!(?:api|key|live|pat|sdk|secret|ext)[_.-])[A-Za-z$][\w.$-]{2,40}[_.-]")
"""Beginnings that only tokens have, in other lengths as well: `glpat-`."""


@dataclass(frozen=True)
class Rule:
    """A rule of a table. See the head of tokens.toml and of contexts.toml."""

    kind: str
    pattern: str
    start: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    back: int = 0
    grade: str = ""
    token: bool = False
    example: str = ""

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern, with what must be beside a token."""
        if self.token:
            return re.compile(f"{_START}(?:{self.pattern}){_END}")
        return re.compile(self.pattern, re.IGNORECASE)

    @cached_property
    def other_length(self) -> re.Pattern[str] | None:
        """A pattern for tokens of another length than documented: issuers change theirs."""
        if not self.token or self.back or not all(map(_ISSUED.fullmatch, self.start)):
            return None
        begins = "|".join(map(re.escape, self.start))
        return re.compile(f"{_START}(?:{begins})(?P<v>[A-Za-z0-9_-]{{20,300}}){_END}")


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((files("builder.secrets") / name).read_text(encoding="utf-8"))


_CONTEXTS = _table("contexts.toml")
NAMES: dict[str, str] = _CONTEXTS["names"]
"""The words of names (`builder.secrets.names`)."""
VALUES: dict[str, list[str]] = _CONTEXTS["values"]
"""Patterns of values that are no secrets."""


def _rules(table: dict[str, list[dict[str, Any]]], separator: str, *, token: bool) -> list[Rule]:
    macros = {} if token else _CONTEXTS["macros"]
    made = []
    for kind, row in ((kind, row) for kind, rows in table.items() for row in rows):
        pattern = row["pattern"]
        for macro, text in macros.items():
            pattern = pattern.replace(f"<{macro}>", text)
        start, near = row.get("start"), row.get("near")
        made.append(
            Rule(
                kind if token else "secret",
                pattern,
                tuple(start.split(separator)) if start else (),
                tuple(near.split("|")) if near else (),
                row.get("back", 0),
                row.get("grade", "random" if row.get("random") else ""),
                token,
                row["example"],
            )
        )
    return made


TOKENS = tuple(_rules(_table("tokens.toml"), " ", token=True))
CONTEXTS = tuple(_rules(_CONTEXTS["contexts"], "|", token=False))
