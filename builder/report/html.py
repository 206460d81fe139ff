r"""HTML as a type: text becomes `Html` only by being escaped, so nothing of a log can act.

Log text is hostile. Markup is escaped, and every character that a reader could not see, or that
would move others (control characters, ANSI codes, direction marks, zero-width ones, lone
surrogates), is shown as an escape like `\u202e`.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from itertools import groupby
from re import Pattern
from typing import NewType

Html = NewType("Html", str)

EMPTY = Html("")
_VOID = frozenset({"br", "hr", "input", "meta"})
_SVG_VOID = frozenset({"line", "path", "rect"})
_KEPT = "\n\t"

Attribute = str | int | float | None


def tag(element: str, /, *children: Html, **attributes: Attribute) -> Html:
    """An element. `class_` is `class`, `aria_label` is `aria-label`; None leaves one out.

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
    """The pieces one after the other."""
    return Html("".join(children))


def text(value: str) -> Html:
    """Text as text: markup escaped, what cannot be seen shown as marked escapes."""
    if _is_plain(value):
        return Html(html.escape(value, quote=False))
    pieces = []
    for is_seen, run in groupby(value, key=_is_seen):
        chars = "".join(run)
        if is_seen:
            pieces.append(html.escape(chars, quote=False))
        else:
            pieces.append(f'<b class="unseen">{"".join(map(_escape, chars))}</b>')
    return Html("".join(pieces))


def plain(value: str) -> Html:
    """The same without marks, for places that hold text alone: titles, options, all of SVG."""
    return Html(html.escape(seen(value), quote=False))


def seen(value: str) -> str:
    """The text with what cannot be seen as escapes; no HTML yet."""
    if _is_plain(value):
        return value
    return "".join(char if _is_seen(char) else _escape(char) for char in value)


def _is_plain(value: str) -> bool:
    return value.isprintable() or value.translate({10: None, 9: None}).isprintable()


def _is_seen(char: str) -> bool:
    return char.isprintable() or char in _KEPT


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def marked(value: str, hits: Pattern[str] | None) -> Html:
    """Text with what the pattern matches marked."""
    if hits is None:
        return text(value)
    pieces: list[Html] = []
    at = 0
    for found in hits.finditer(value):
        pieces += [text(value[at : found.start()]), tag("mark", text(found[0]), class_="hit")]
        at = found.end()
    return join([*pieces, text(value[at:])])


def shorten(value: str, limit: int) -> str:
    """The text on one line, of `limit` characters at most, an ellipsis where it was cut."""
    line = " ".join(value[: 4 * limit].split())
    return line if len(line) <= limit and len(value) <= 4 * limit else f"{line[: limit - 1]}…"


def number(value: float) -> str:
    """A number for people: thousands apart, three digits of what is no whole number."""
    if isinstance(value, int) or value.is_integer():
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"


def cut(value: str, limit: int, hits: Pattern[str] | None = None) -> Html:
    """The text, or its two ends with the number of characters left out between them.

    A text little longer than the limit is not cut. What `hits` matches is marked.
    """
    if len(value) <= limit * 5 // 4:
        return marked(value, hits)
    head = limit * 2 // 3
    tail = limit - head
    begin, end = value[:head], value[len(value) - tail :]
    return join((marked(begin, hits), left_out(len(value) - limit), marked(end, hits)))


def left_out(count: int, what: str = "characters") -> Html:
    """The mark in place of what was left out."""
    return tag("i", text(f"… {number(count)} {what} left out …"), class_="cut")
