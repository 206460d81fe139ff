"""Renders the frame of a page: one self-contained file; a policy allows its style and script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import TypeVar

from builder.report.html import EMPTY, Html, join, omission, plain, tag, text

T = TypeVar("T")


@cache
def asset(name: str) -> str:
    """Returns the text of a style sheet or a script of this package."""
    return (files("builder.report") / "assets" / name).read_text(encoding="utf-8")


def policy(*, viewer: bool = False) -> str:
    """Returns the content-security policy: only this page's styles, scripts and forms."""
    styles, scripts = (" ".join(f"'{_hash(asset(name))}'" for name in names)
                       for names in _assets(viewer=viewer))  # fmt: skip
    forms = "'self'" if viewer else "'none'"
    return (
        f"default-src 'none'; style-src {styles}; script-src {scripts};"
        f" base-uri 'none'; form-action {forms}"
    )


def _assets(*, viewer: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the names of the style sheets and of the scripts."""
    if viewer:
        return ("report.css", "viewer.css"), ("report.js", "viewer.js")
    return ("report.css",), ("report.js",)


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def page(
    title: str,
    main: Html,
    links: Sequence[tuple[str, str]] = (),
    *,
    subtitle: str = "",
    keys: Sequence[tuple[str, str]] = (),
    viewer: bool = False,
) -> bytes:
    """Returns the document in UTF-8.

    `links` are (address, text) of the navigation, `keys` (key, effect) of the keyboard help. A page
    of the viewer may contain forms, and sends its address as referrer to other pages of the viewer;
    the name of its tab begins with the subtitle.
    """
    nav = [tag("a", text(name), href=address) for address, name in links]
    if keys:
        nav.append(tag("button", text("Keys"), type="button", data_keys="", hidden=""))
    styles, scripts = _assets(viewer=viewer)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", content=policy(viewer=viewer), http_equiv="Content-Security-Policy"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="same-origin" if viewer else "no-referrer"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", plain(f"{subtitle} · {title}" if viewer and subtitle else title)),
        *(Html(f"<style>{asset(name)}</style>") for name in styles),
    )
    below = tag("p", text(subtitle), class_="subtitle") if subtitle else EMPTY
    body = tag(
        "body",
        tag("a", text("Skip to the content"), class_="skip", href="#main"),
        tag("header", tag("h1", text(title), dir="auto"), below),
        tag("nav", *nav, aria_label="Sections") if nav else EMPTY,
        tag("main", main, id="main", tabindex=-1),
        _keys(keys) if keys else EMPTY,
        *(Html(f"<script>{asset(name)}</script>") for name in scripts),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n".encode()


def _keys(keys: Sequence[tuple[str, str]]) -> Html:
    """Returns the dialog that lists the keys; the script opens it."""
    rows = [
        tag("div", tag("dt", tag("kbd", text(key))), tag("dd", text(effect)))
        for key, effect in keys
    ]
    close = tag("button", text("Close"), type="button")
    title = tag("h2", text("Keys"), id="keys-title")
    return tag("dialog", title, tag("dl", *rows), close, id="keys", aria_labelledby="keys-title")


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
