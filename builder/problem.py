"""Faults of data, as values.

A fault in a log is not an exception: it is found, given a code, counted and written down,
and the rest of the run goes on. Exceptions are for bugs and for the user's own mistakes
(:class:`UsageError`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault: what it is (`code`), where it is (`where`) and what was found (`detail`).

    `code` is a stable snake_case word that users count, filter and gate on. `where` points into
    the source ("line 12", "[3]", "session abc"). `records` is the number of records that are
    thereby not used: 1 for a record that could not be read, 0 for a fault of a conversation whose
    records were read all right.
    """

    code: str
    where: str
    detail: str
    records: int = 1


class BuilderError(Exception):
    """The base class of every exception that the public API raises on purpose."""


class UsageError(BuilderError):
    """The user's mistake: a bad option, configuration or path. Ends the command with exit code 2.

    The message is one line that names the file, the key and, where there is one, the nearest
    valid name.
    """


def nearest(name: str, valid: Iterable[str]) -> str:
    """Returns the end of a message about an unknown name.

    `, did you mean 'X'?` where a valid name is close, else the list of the valid names.
    """
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1)
    return f", did you mean {close[0]!r}?" if close else f"; there are: {', '.join(names)}"
