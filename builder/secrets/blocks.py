"""Finds secrets in manifests of Kubernetes and in `INSERT` statements, by the block that contains them.

- `kind: Secret`: every value of `data` and `stringData`, in YAML and in JSON
- `INSERT INTO t (name, password) VALUES (…), (…)`, `COPY t (name, password) FROM stdin`: the values
  of columns named like a secret
- cookies: `builder.secrets.cookies`
"""

# ruff: noqa: E501 - patterns
from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from builder.secrets import cookies
from builder.secrets.assignments import named_secret, names_secret
from builder.secrets.escapes import string_end
from builder.secrets.hits import Hit
from builder.secrets.prefilter import LinePrefilter, Lines
from builder.secrets.values import is_stand_in, looks_random

LINES = LinePrefilter(
    r"(?i:insert[ \t]+into|copy[ \t]+[^ \t\n]+[ \t]*\()|kind\\*[\"']?:[ \t]*\\*[\"']?Secret|"
    + cookies.CONDITION
)
"""Finds the lines that show what such a block is."""

_BREAK = r"(?:\r?\n|(?:\\{1,4}r)?\\{1,4}n)"
_KIND = re.compile(r"kind\\{0,7}[\"']?:[ \t]{0,4}\\{0,7}[\"']?Secret(?![A-Za-z])")
"""What says that a manifest is one of secrets: `"kind": "Secret"`."""
MAX_MANIFEST = 8000
"""Maximum code points before and after `kind: Secret` that belong to the same manifest."""
_DOCUMENT = re.compile(rf"(?:\A|{_BREAK})[^\S\n]{{0,8}}(?:\d{{1,6}}[\t\u2192])?---")
r"""The border between two manifests: `\n---`."""
_DATA = re.compile(
    r"(?<![A-Za-z])(?:string)?data\\{0,7}[\"']?:[ \t]{0,4}(?:\{|(?=[\r\n\\]))", re.IGNORECASE
)
"""The name of the section with the values: `stringData: {`."""
_LINE = r"[ \t]{0,24}(?:\d{1,6}[\t\u2192]|[+-](?=[ \t]))?[ \t]{1,24}"
_ENTRY = re.compile(
    rf"{_BREAK}{_LINE}\\{{0,7}}[\"']?(?P<k>[\w.-]{{1,120}})\\{{0,7}}[\"']?:[ \t]{{1,4}}(?P<q>\\{{0,7}}[\"'])?"
    r"(?P<v>[^\s\"'\\{}|>][^\n\"'\\]{2,8000}?)(?(q)\\{0,7}[\"'])(?=[ \t]{0,40}(?:,|#|\r|\n|\\{1,4}[nr]|$|\}))"
)
r"""A value of the section, in YAML: `\n  password: hunter22\n`."""
_BEFORE = re.compile(
    rf"(?:\A|{_BREAK})(?:[ \t]{{0,8}}\d{{1,6}}[\t\u2192])?(?P<sign>[+-])?(?P<indent>[ \t]*(?:- )?)"
    r"\\{0,7}[\"']?\Z"
)
r"""The beginning of the line of the section: `\n  `."""
_NEXT = re.compile(
    rf"(?P<break>{_BREAK})(?:[ \t]{{0,8}}\d{{1,6}}[\t\u2192])?(?P<sign>[+-](?=[ \t]))?"
    r"(?P<indent>[ \t]*)(?=[^\s\\])"
)
r"""The beginning of a line below it: `\n    password`."""
_OPEN_KEY = re.compile(
    r"(?:[\w.-]*[_.-])?(?:user(?:[_-]?name)?|login|host(?:[_-]?name)?|port|database|db(?:[_-]?name)?"
    r"|type|engine|driver|scheme|protocol|email|region|namespace|name|endpoint)",
    re.IGNORECASE,
)
"""The name of a value that is no secret: `db_username`."""
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_.@:-]{0,100}")
"""A plain word in lower case: `app@db.internal`."""
_MEMBER = re.compile(
    r"[{,]\s{0,40}\\{0,7}\"(?P<k>[\w.-]{1,120})\\{0,7}\":[ \t]{0,4}\\{0,7}\"(?P<v>[^\"\\]{3,8000})\\{0,7}\""
)
"""A value of the section, in JSON: `{"password": "hunter22"`."""
_WORD = re.compile("insert|copy", re.IGNORECASE)
_INSERT = re.compile(
    r"insert[ \t]{1,4}into[ \t]{1,4}[\w.\"`\[\]]{1,120}\s{0,4}\((?P<names>[^()]{3,2000})\)\s{0,8}values\s{0,8}",
    re.IGNORECASE,
)
"""The beginning of a statement with rows: `INSERT INTO users (name, password) VALUES `."""
_COPY = re.compile(
    r"copy[ \t]{1,4}[\w.\"`\[\]]{1,120}\s{0,4}\((?P<names>[^()]{3,2000})\)\s{1,8}from\s{1,8}stdin[^\n]{0,200}?;",
    re.IGNORECASE,
)
"""The beginning of rows between tabs: `COPY users (name, password) FROM stdin;`."""
_COPIED_ROW = re.compile(
    r"(?P<break>\r?\n|(?:\\{1,4}r)?\\{1,4}n)(?P<cells>(?!\\{1,4}\.|(?i:copy)[ \t])(?:[^\n\\]|\\{1,4}[Nt]){1,4000})"
)
r"""A line of such rows: `\nme\thunter22`."""
_TAB = re.compile(r"\t|\\{1,4}t")
_ROW = re.compile(r"[\s,]{0,8}\(")
_CELL = re.compile(
    r"\s{0,40}(?:\\{0,7}'(?P<v>[^'\\\n]{0,400})\\{0,7}'|\\{0,7}\"(?P<w>[^\"\\\n]{0,400})\\{0,7}\""
    r"|[^,'\"()]{0,200}(?:\([^()]{0,200}\))?)\s{0,40}(?P<end>[,)])"
)
"""A value in the row of a statement: `'hunter22',`."""
MAX_ROWS = 200
"""Rows of a statement that are examined."""


def find_in_blocks(text: str, lines: Lines) -> Iterator[Hit]:
    """Yields the secrets of manifests and statements that lines of `LINES` show."""
    kinds: list[re.Match[str]] = []
    for start, end in lines:
        yield from cookies.find_cookies(text, start, end)
        kinds += _KIND.finditer(text, start, end)
        for word in _WORD.finditer(text, start, end):
            insert = _INSERT.match(text, word.start())
            if insert is not None:
                yield from _rows(text, insert)
            copy = _COPY.match(text, word.start())
            if copy is not None:
                yield from _copied(text, copy)
    for first, last in _manifests(text, kinds):
        yield from _values(text, first, last)


def _manifests(text: str, kinds: Sequence[re.Match[str]]) -> list[tuple[int, int]]:
    """Returns [start, end) of the manifests around `kind: Secret`, none overlapping."""
    found: list[tuple[int, int]] = []
    rules = list(_DOCUMENT.finditer(text)) if kinds else []
    starts, ends = [0, *(rule.end() for rule in rules)], [rule.start() for rule in rules]
    ends.append(len(text))
    for kind in kinds:
        first = max(kind.start() - MAX_MANIFEST, starts[bisect_right(starts, kind.start()) - 1])
        last = min(kind.end() + MAX_MANIFEST, ends[bisect_left(ends, kind.end())])
        if found and first < found[-1][1]:
            first = found.pop()[0]
        found.append((first, last))
    return found


def _values(text: str, first: int, last: int) -> Iterator[Hit]:
    """Yields the values of the sections `data` and `stringData` in a manifest."""
    done = first
    for data in _DATA.finditer(text, first, last):
        if data.start() < done:
            continue  # inside a section that was examined
        if data[0].endswith("{"):
            stop = text.find("}", data.end(), last)
            done = stop if stop >= 0 else last
            entries = _MEMBER.finditer(text, data.end() - 1, done)
        else:
            done = _section_end(text, data, last)
            entries = _ENTRY.finditer(text, data.end(), done)
        for entry in entries:
            if not is_stand_in(entry["v"]) and not _is_open(entry["k"], entry["v"]):
                yield Hit(*entry.span("v"), "secret", certain=False)


def _section_end(text: str, data: re.Match[str], last: int) -> int:
    """Returns where the lines below `data:` end: with their indentation, hunk or string."""
    before = _BEFORE.search(text, max(0, data.start() - 60), data.start())
    is_diff = before is not None and before["sign"] is not None
    least = len(before["indent"]) if before is not None else 0
    line_break = ""
    for line in _NEXT.finditer(text, data.end(), last):
        line_break = line_break or line["break"]
        indent = len(line["indent"]) - (is_diff and line["sign"] is None)
        if indent <= least:
            last = line.start()
            break
    return string_end(text, line_break, data.end(), last)


def _is_open(key: str, value: str) -> bool:
    """Returns whether it is a plain word under a name such as `username`, and no secret."""
    is_word = _PLAIN.fullmatch(value) is not None and not looks_random(value)
    return is_word and _OPEN_KEY.fullmatch(key) is not None


def _rows(text: str, insert: re.Match[str]) -> Iterator[Hit]:
    """Yields the secrets in the rows of an `INSERT` statement."""
    names = _columns(insert)
    if not any(map(names_secret, names)):
        return
    at = insert.end()
    for _ in range(MAX_ROWS):
        row = _ROW.match(text, at)
        if row is None:
            return
        at = row.end()
        for name in names:
            cell = _CELL.match(text, at)
            if cell is None:
                return
            at = cell.end()
            group = "v" if cell["v"] is not None else "w"
            if cell[group] and named_secret(name, cell[group]):
                yield Hit(*cell.span(group), "secret", certain=False)
            if cell["end"] == ")":
                break


def _copied(text: str, copy: re.Match[str]) -> Iterator[Hit]:
    """Yields the secrets in the rows after a `COPY` statement, whose cells are between tabs."""
    names = _columns(copy)
    at = copy.end()
    for _ in range(MAX_ROWS):
        row = _COPIED_ROW.match(text, at)
        if row is None:
            return
        tabs = list(_TAB.finditer(text, *row.span("cells")))
        if len(tabs) != len(names) - 1:
            return  # no row of this statement
        at = row.end()
        starts = [row.start("cells"), *(tab.end() for tab in tabs)]
        ends = [*(tab.start() for tab in tabs), at]
        for name, start, end in zip(names, starts, ends, strict=True):
            if end > start and named_secret(name, text[start:end]):
                yield Hit(start, end, "secret", certain=False)


def _columns(statement: re.Match[str]) -> list[str]:
    """Returns the names of the columns of a statement."""
    return [name.strip(" \t\r\n\"`'[]\\") for name in statement["names"].split(",")]
