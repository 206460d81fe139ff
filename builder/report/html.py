r"""Defines the type `Html`: text becomes `Html` only by escaping, so log text is never markup.

Log text is hostile. Characters that are invisible or would reorder others (control characters, ANSI
codes, direction marks, zero-width characters, lone surrogates) are shown as escapes like `\u202e`.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files
from re import Pattern
from typing import TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from builder.normalize.remedies import with_options
from builder.text import escape_char, number, shorten

Html = Markup

EMPTY = Html("")

_KEPT = "\n\t"


class _Shown(dict[int, str]):
    """A table for `str.translate`: invisible characters become escapes in the form `form`."""

    def __init__(self, form: str) -> None:
        self._form = form

    def __missing__(self, code: int) -> str:
        char = chr(code)
        is_visible = char.isprintable() or char in _KEPT
        shown = char if is_visible else self._form.format(escape_char(char))
        if code < 0x10000:  # a hostile text holds any character, and the table must stay small
            self[code] = shown
        return shown


_UNSEEN, _SEEN = '<b class="unseen">', "</b>"
_ESCAPED = _Shown("{}")
_MARKED = _Shown(f"{_UNSEEN}{{}}{_SEEN}")

Attribute = str | int | float | None


def tag(element: str, /, *children: Html, **attributes: Attribute) -> Html:
    """Returns an element with attributes: `class_` becomes `class`, `aria_label` `aria-label`.

    None omits an attribute; "" writes it without a value.
    """
    written = "".join(
        _attribute(key, value) for key, value in attributes.items() if value is not None
    )
    return Html(f"<{element}{written}>{''.join(children)}</{element}>")


def _attribute(key: str, value: str | int | float) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value == "":
        return f" {name}"
    return f' {name}="{html.escape(escape_invisible(str(value)))}"'


def join(children: Iterable[Html]) -> Html:
    """Returns the pieces, concatenated."""
    return Html("".join(children))


def text(value: str) -> Html:
    """Returns text with escaped markup and invisible characters shown as marked escapes."""
    escaped = html.escape(value, quote=False)
    if _is_plain(value):
        return Html(escaped)
    # No markup of the text is left, so the tags between two escapes are ours.
    return Html(escaped.translate(_MARKED).replace(_SEEN + _UNSEEN, ""))


def plain(value: str) -> Html:
    """Returns escaped text without elements, for titles, options and SVG."""
    return Html(html.escape(escape_invisible(value), quote=False))


def escape_invisible(value: str) -> str:
    """Returns the text with invisible characters as escapes; the result is not HTML."""
    return value if _is_plain(value) else value.translate(_ESCAPED)


def _is_plain(value: str) -> bool:
    return value.isprintable() or value.replace("\n", "").replace("\t", "").isprintable()


def marked(value: str, hits: Pattern[str] | None) -> Html:
    """Returns the text with the matches of the pattern marked."""
    if hits is None:
        return text(value)
    pieces: list[Html] = []
    end = 0
    for hit in hits.finditer(value):
        pieces += [text(value[end : hit.start()]), tag("mark", text(hit[0]), class_="hit")]
        end = hit.end()
    return join([*pieces, text(value[end:])])


def cut(value: str, limit: int, hits: Pattern[str] | None = None) -> Html:
    """Returns the text, or its two ends and how many characters are omitted between them.

    A text up to a quarter longer than the limit is not cut. Matches of `hits` are marked.
    """
    if len(value) <= limit * 5 // 4:
        return marked(value, hits)
    head = limit * 2 // 3
    tail = limit - head
    begin, end = value[:head], value[len(value) - tail :]
    return join((marked(begin, hits), omission(len(value) - limit), marked(end, hits)))


def prose(words: str) -> Html:
    """Returns text with the pieces between backticks as code."""
    pieces = enumerate(words.split("`"))
    return join(tag("code", text(piece)) if at % 2 else text(piece) for at, piece in pieces)


def omission(count: int, what: str = "characters") -> Html:
    """Returns the note that replaces an omitted part."""
    return tag("i", text(f"… {number(count)} {what} left out …"), class_="cut")


@cache
def _environment() -> Environment:
    """Returns the templates; text in them is escaped, and invisible characters are shown."""
    made = Environment(
        loader=PackageLoader("builder.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_inert,
    )
    filters: dict[str, Callable[..., object]] = {
        "text": text, "code": prose, "number": number, "shorten": shorten,
        "options": with_options,
    }  # fmt: skip
    made.filters |= filters
    return made


def _inert(value: object) -> Html:
    if isinstance(value, Markup):
        return value
    return Html(html.escape(escape_invisible("" if value is None else str(value))))


def render(template: str, /, **values: object) -> Html:
    """Returns what a template of this package makes of the values."""
    return Html(_environment().get_template(f"{template}.html").render(values))


def macro(template: str, name: str, /, **values: object) -> Html:
    """Returns what a macro of a template makes of the values."""
    return Html(getattr(_environment().get_template(f"{template}.html").module, name)(**values))


# -- renders the frame of a page -------------------------------------------------------------------

T = TypeVar("T")


@cache
def _asset(name: str) -> str:
    """Returns the text of a style sheet or a script of this package."""
    return (files("builder.report") / "assets" / name).read_text(encoding="utf-8")


def policy(*, viewer: bool = False) -> str:
    """Returns the content-security policy: only this page's styles, scripts, forms and pages."""
    styles, scripts = (
        " ".join(f"'{_hash(_asset(f'{name}.{kind}'))}'" for name in _assets(viewer=viewer))
        for kind in ("css", "js")
    )
    own = "form-action 'self'; connect-src 'self'" if viewer else "form-action 'none'"
    return f"default-src 'none'; style-src {styles}; script-src {scripts}; base-uri 'none'; {own}"


def _assets(*, viewer: bool) -> tuple[str, ...]:
    return ("report", "viewer") if viewer else ("report",)


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def page(
    title: str,
    main: Html,
    links: Sequence[tuple[str, str]],
    keys: Sequence[tuple[str, str]],
    *,
    subtitle: str = "",
    viewer: bool = False,
) -> bytes:
    """Returns the document in UTF-8.

    `links` are (address, text) of the navigation, `keys` (key, effect) of the keyboard help. A page
    of the viewer may contain forms, and sends its address as referrer to other pages of the viewer;
    the name of its tab begins with the subtitle.
    """
    names = _assets(viewer=viewer)
    text = render(
        "page",
        title=title,
        main=main,
        links=links,
        keys=keys,
        subtitle=subtitle,
        viewer=viewer,
        policy=policy(viewer=viewer),
        styles=[Html(_asset(f"{name}.css")) for name in names],
        scripts=[Html(_asset(f"{name}.js")) for name in names],
    )
    return f"{text}\n".encode()


def fit(draw: Callable[[T], Html], items: Sequence[T], most: int, what: str) -> Html:
    """Draws as many of the first items as fit in `most` bytes, and notes how many are omitted."""
    kept: list[Html] = []
    size = 0
    for item in items:
        piece = draw(item)
        size += len(piece.encode())
        if size > most:
            break
        kept.append(piece)
    lost = len(items) - len(kept)
    return join([*kept, tag("p", omission(lost, what)) if lost else EMPTY])
