r"""Makes HTML a type: text becomes `Html` only by being escaped, so no log text can act.

Log text is hostile. Markup is escaped, and every character that is invisible or would reorder
others (control characters, ANSI codes, direction marks, zero-width ones, lone surrogates) is shown
as an escape like `\u202e`.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from itertools import groupby
from re import Pattern
from typing import NewType

from builder.text import escape_char

Html = NewType("Html", str)

EMPTY = Html("")

_VOID = frozenset({"br", "hr", "input", "meta"})
_SVG_VOID = frozenset({"line", "path", "rect"})
_KEPT = "\n\t"

Attribute = str | int | float | None


def tag(element: str, /, *children: Html, **attributes: Attribute) -> Html:
    """Returns an element. `class_` is `class`, `aria_label` is `aria-label`; None omits one.

    An attribute that is "" is written without a value.
    """
    written = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None
    )
    if element in _SVG_VOID and not children:
        return Html(f"<{element}{written}/>")
    if element in _VOID and not children:
        return Html(f"<{element}{written}>")
    return Html(f"<{element}{written}>{''.join(children)}</{element}>")


def _attribute(key: str, value: str | int | float) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value == "":
        return f" {name}"
    return f' {name}="{html.escape(seen(str(value)))}"'


def join(children: Iterable[Html]) -> Html:
    """Returns the pieces, concatenated."""
    return Html("".join(children))


def text(value: str) -> Html:
    """Returns text with escaped markup and invisible characters shown as marked escapes."""
    if _is_plain(value):
        return Html(html.escape(value, quote=False))
    pieces = []
    for is_seen, run in groupby(value, key=_is_seen):
        chars = "".join(run)
        if is_seen:
            pieces.append(html.escape(chars, quote=False))
        else:
            pieces.append(f'<b class="unseen">{"".join(map(escape_char, chars))}</b>')
    return Html("".join(pieces))


def plain(value: str) -> Html:
    """Returns the same without marks, for places that allow only text: titles, options, SVG."""
    return Html(html.escape(seen(value), quote=False))


def seen(value: str) -> str:
    """Returns the text with invisible characters as escapes; it is not HTML yet."""
    if _is_plain(value):
        return value
    return "".join(char if _is_seen(char) else escape_char(char) for char in value)


def _is_plain(value: str) -> bool:
    return value.isprintable() or value.translate({10: None, 9: None}).isprintable()


def _is_seen(char: str) -> bool:
    return char.isprintable() or char in _KEPT


def marked(value: str, hits: Pattern[str] | None) -> Html:
    """Returns the text with the matches of the pattern marked."""
    if hits is None:
        return text(value)
    pieces: list[Html] = []
    at = 0
    for found in hits.finditer(value):
        pieces += [text(value[at : found.start()]), tag("mark", text(found[0]), class_="hit")]
        at = found.end()
    return join([*pieces, text(value[at:])])


def shorten(value: str, limit: int) -> str:
    """Returns the text on one line, cut to `limit` characters with an ellipsis."""
    line = " ".join(value[: 4 * limit].split())
    return line if len(line) <= limit and len(value) <= 4 * limit else f"{line[: limit - 1]}…"


def number(value: float) -> str:
    """Formats a number: grouped thousands, three digits if it is not a whole number."""
    if isinstance(value, int) or value.is_integer():
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"


def cut(value: str, limit: int, hits: Pattern[str] | None = None) -> Html:
    """Returns the text, or its two ends with the number of characters omitted between them.

    A text only slightly longer than the limit is not cut. Matches of `hits` are marked.
    """
    if len(value) <= limit * 5 // 4:
        return marked(value, hits)
    head = limit * 2 // 3
    tail = limit - head
    begin, end = value[:head], value[len(value) - tail :]
    return join((marked(begin, hits), left_out(len(value) - limit), marked(end, hits)))


def left_out(count: int, what: str = "characters") -> Html:
    """Returns the mark in place of the omitted part."""
    return tag("i", text(f"… {number(count)} {what} left out …"), class_="cut")
