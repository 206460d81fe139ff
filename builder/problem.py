"""Represents faults of data as values.

A fault in a log is not an exception: it is given a code, counted and recorded, and the run
continues. Exceptions are for bugs and for the user's own mistakes (:class:`UsageError`).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

MAX_NAMES = 40
"""Maximum number of valid names that a message about an unknown one lists."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault: its code (`code`), its location (`where`) and a description (`detail`).

    `code` is a stable snake_case word that users count, filter and gate on. `where` is a location
    in the source ("line 12", "[3]", "session abc"). `records` is the number of records that are
    unused because of it: 1 for a record that could not be read, 0 for a fault of a conversation
    with readable records.
    """

    code: str
    where: str
    detail: str
    records: int = 1


class BuilderError(Exception):
    """The base class of every exception that the public API raises on purpose."""


class UsageError(BuilderError):
    """A mistake of the user: a bad option, configuration or path. Ends a command with exit code 2.

    The message has one line for each fault, which names the file, the key and the nearest valid
    name, if any. `{name}` in it, of a keyword argument here, stands for an option: callers read
    it as an argument (`fresh=True`), users of the command line as `--fresh`.
    """

    def __init__(self, *parts: str, **options: object) -> None:
        super().__init__(*parts)
        self.options = options

    def __str__(self) -> str:
        return self.written(lambda name, value: f"{name}={value!r}")

    def written(self, form: Callable[[str, object], str]) -> str:
        """Returns the message with each option in the form that `form` gives it."""
        text = "".join(self.args)
        for name, value in self.options.items():
            text = text.replace(f"{{{name}}}", form(name, value))
        return text


class OptionError(UsageError):
    """A mistake in one option: its message begins with the name of the parameter.

    The command line writes the option in place of the name. `text` begins with `: ` or a value.
    """

    def __init__(self, option: str, text: str) -> None:
        super().__init__(option, text)

    @property
    def option(self) -> str:
        """Returns the name of the parameter."""
        return str(self.args[0])

    @property
    def text(self) -> str:
        """Returns the message after the name."""
        return str(self.args[1])


def nearest(name: str, valid: Iterable[str]) -> str:
    """Returns the end of a message about an unknown name: `, did you mean 'X'?`, or the names.

    Of more than `MAX_NAMES`, those that are most like it are returned.
    """
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f", did you mean {close[0]!r}?"
    if len(names) <= MAX_NAMES:
        return f"; there are: {', '.join(names)}"
    like = sorted(difflib.get_close_matches(name, names, n=10, cutoff=0))
    return f"; there are: {', '.join(like)} and {len(names) - len(like):,} more"
