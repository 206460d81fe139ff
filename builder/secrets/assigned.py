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


@dataclass(eq=False)
class Assigned:
    """A name, a sign and a value in a text.

    match    that of `NAMED`, after the name
    text     the text
    keyword  the last word of the name, in lower case
    start    where the keyword begins

    These nearly every candidate needs, so they are set at once:

    prefix           what is before the keyword in the name: `DB_`, `--`
    name_start       where the name begins
    sign             the sign, or one that stands for it (`between.sign_of`)
    before_sign      the character before the sign
    is_attribute     it is the text of an element, which an attribute names: `<string name="pw">`
    sep              the sign, but `>` for all ends of an element's beginning
    quoted           the value is in quotation marks
    begin            where the value begins
    value            the value, without the punctuation of a sentence; it may be empty
    is_for_password  it is the name of a password: nearly any value counts
    is_option        it is an option of a command: `--token`
    """

    match: re.Match[str]
    text: str
    keyword: str
    start: int

    def __post_init__(self) -> None:
        """Sets what nearly every candidate needs."""
        match, text, start = self.match, self.text, self.start
        prefix = prefix_of(text, start)
        is_escape = text[start - len(prefix) - 1] == "\\"
        self.prefix = prefix[1:] if is_escape and prefix[:1] in ("n", "r", "t", "0") else prefix
        self.name_start = start - len(self.prefix)
        self.sign = sign_of(match)
        end = match.start("sep")
        self.before_sign = text[end - 1 : end]
        self.is_attribute = self.sign.endswith(">") and self.before_sign in ("'", '"')
        self.sep = ">" if self.is_attribute else self.sign
        self.quoted = match["quote"] is not None
        self.begin = match.start("quoted" if self.quoted else "bare")
        self.value = match["quoted"] if self.quoted else match["bare"].rstrip(".,:")
        self.is_for_password = self.keyword in PASSWORDS
        self.is_option = self.prefix.startswith("-")

    @cached_property
    def name(self) -> str:
        """The name, without the sign of its plural and words after its keyword."""
        return self.text[self.name_start : self.start + len(self.keyword)]

    @cached_property
    def opened(self) -> str:
        """The character before the name."""
        return "<" if self.is_attribute else self.text[self.name_start - 1 : self.name_start]

    @cached_property
    def after(self) -> str:
        """The twelve code points after a value without quotation marks."""
        end = self.match.end("bare")
        return self.text[end : end + 12]

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
