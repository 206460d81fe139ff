"""Defines a name and the value after it, as `builder.secrets.between.NAMED` finds them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from builder.secrets.between import BARS, LINE_BEFORE, sign_of
from builder.secrets.names import prefix_of
from builder.secrets.words import PASSWORDS

MIN_GAP = 3
"""Spaces between a variable and its value that align it with others."""


@dataclass(frozen=True)
class Assigned:
    """A name, a sign and a value in a text.

    match    that of `NAMED`, after the name
    text     the text
    keyword  the last word of the name, in lower case
    start    where the keyword begins
    """

    match: re.Match[str]
    text: str
    keyword: str
    start: int

    @cached_property
    def prefix(self) -> str:
        """What is before the keyword in the name: `DB_`, `--`."""
        prefix = prefix_of(self.text, self.start)
        is_escape = self.text[self.start - len(prefix) - 1] == "\\"
        return prefix[1:] if is_escape and prefix[:1] in ("n", "r", "t", "0") else prefix

    @cached_property
    def name_start(self) -> int:
        """Where the name begins."""
        return self.start - len(self.prefix)

    @cached_property
    def name(self) -> str:
        """The name, without the sign of its plural and words after its keyword."""
        return self.text[self.name_start : self.start + len(self.keyword)]

    @cached_property
    def sign(self) -> str:
        """The sign, or one that stands for it (`between.sign_of`)."""
        return sign_of(self.match)

    @cached_property
    def is_attribute(self) -> bool:
        """Whether it is the text of an element, which an attribute names: `<string name="pw">`."""
        return self.sign.endswith(">") and self.before_sign in ("'", '"')

    @cached_property
    def sep(self) -> str:
        """The sign, but `>` for all ends of an element's beginning."""
        return ">" if self.is_attribute else self.sign

    @cached_property
    def before_sign(self) -> str:
        """The character before the sign."""
        at = self.match.start("sep")
        return self.text[at - 1 : at]

    @cached_property
    def opened(self) -> str:
        """The character before the name."""
        return "<" if self.is_attribute else self.text[self.name_start - 1 : self.name_start]

    @cached_property
    def quoted(self) -> bool:
        """Whether the value is in quotation marks."""
        return self.match["quote"] is not None

    @cached_property
    def begin(self) -> int:
        """Where the value begins."""
        return self.match.start("quoted" if self.quoted else "bare")

    @cached_property
    def value(self) -> str:
        """The value, without the punctuation of a sentence; it may be empty."""
        return self.match["quoted"] if self.quoted else self.match["bare"].rstrip(".,:")

    @cached_property
    def after(self) -> str:
        """The twelve code points after a value without quotation marks."""
        end = self.match.end("bare")
        return self.text[end : end + 12]

    @cached_property
    def is_for_password(self) -> bool:
        """Whether it is the name of a password: nearly any value counts."""
        return self.keyword in PASSWORDS

    @cached_property
    def is_option(self) -> bool:
        """Whether it is an option of a command: `--token`."""
        return self.prefix.startswith("-")

    @cached_property
    def is_row(self) -> bool:
        """Whether name and value are cells of a table drawn with lines."""
        return self.sep in BARS

    @cached_property
    def is_list(self) -> bool:
        """Whether the value is the first of a list."""
        end = self.match.end("sep")
        return "[" in self.text[end : end + 2]

    @cached_property
    def is_spaced(self) -> bool:
        """Whether there is a space before the sign."""
        return self.before_sign == " "

    @cached_property
    def is_tight(self) -> bool:
        """Whether there is nothing but `=` between name and value: `TOKEN=…`."""
        is_next = self.begin == self.match.end("sep") + self.quoted
        return self.sep == "=" and not self.is_spaced and is_next

    @cached_property
    def is_loose(self) -> bool:
        """Whether only a bracket or a space connects them; an option or a column suffices."""
        is_space = not self.sep and not self.is_option and not self.is_column
        return self.sep == "(" or is_space

    @cached_property
    def is_column(self) -> bool:
        """Whether it is `DB_PASSWORD<tab>value`, as `env` and tables print variables.

        PowerShell aligns the values with spaces.
        """
        if not self.prefix.isupper() or not self.text[self.start : self.start + 2].isupper():
            return False
        if self.match["tab"] or self.match["sep"] == "\t":
            return True
        gap = "" if self.quoted else self.match[0][: self.begin - self.match.start()]
        return len(gap) >= MIN_GAP and gap.isspace() and self.line_before is not None

    @cached_property
    def line_before(self) -> re.Match[str] | None:
        """The line up to the keyword, if nothing but a name is on it."""
        return LINE_BEFORE.search(self.text, max(0, self.start - 100), self.start)

    @cached_property
    def ends_line(self) -> bool:
        """Whether a value without quotation marks ends its line."""
        return self.after[:1] in ("", "\n", "\r", "\\")
