"""Renders the frame of a page: one self-contained file; a policy allows its style and script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import TypeVar

from builder.report.html import EMPTY, Html, join, omission, render, tag

T = TypeVar("T")


@cache
def asset(name: str) -> str:
    """Returns the text of a style sheet or a script of this package."""
    return (files("builder.report") / "assets" / name).read_text(encoding="utf-8")


def policy(*, viewer: bool = False) -> str:
    """Returns the content-security policy: only this page's styles, scripts, forms and pages."""
    styles, scripts = (
        " ".join(f"'{_hash(asset(f'{name}.{kind}'))}'" for name in _assets(viewer=viewer))
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
        styles=[Html(asset(f"{name}.css")) for name in names],
        scripts=[Html(asset(f"{name}.js")) for name in names],
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
