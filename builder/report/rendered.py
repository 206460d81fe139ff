"""Renders the text that the model sees, with trained text and control tokens marked, and ids."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from builder.qwen3.tokenizer import Target
from builder.report.html import Html, join, omission, plain, tag, text

Span = tuple[int, int]

MAX_ENCODED = 400_000
"""Code points of the longest text that is tokenised to show its ids."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a sample a page shows.

    trained, other        code points of a trained, and of any other piece of the rendering
    content               code points of a message
    turns, tools, tokens  how many of each
    """

    trained: int = 6_000
    other: int = 1_600
    content: int = 4_000
    turns: int = 40
    tools: int = 24
    tokens: int = 400

    def reduced(self) -> Limits:
        """Returns limits of about half the size."""
        return Limits(
            self.trained // 2 + 20,
            self.other // 2 + 20,
            self.content // 2 + 20,
            self.turns // 2 + 2,
            self.tools // 2 + 1,
            self.tokens // 2,
        )


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendering with its trained spans, control tokens and tokens.

    tokens  (index, id, span) of the tokens to show
    count   the number of all tokens; 0 if the text was not tokenised
    parts   {part: tokens} (`builder.qwen3.render`), {} if they are not known
    trained  the number of tokens of the spans; 0 if it is not known
    """

    text: str
    spans: tuple[Span, ...] = ()
    control: tuple[Span, ...] = ()
    tokens: tuple[tuple[int, int, Span], ...] = ()
    count: int = 0
    parts: Mapping[str, int] = field(default_factory=dict)
    trained: int = 0


def encode(
    rendering: str,
    spans: Sequence[Span],
    target: Target,
    limits: Limits,
    control: Sequence[Span] = (),
    count: int | None = None,
) -> Rendered:
    """Returns the rendering with its tokens; omits invalid spans.

    `control` are the known control tokens. `count` is the number of all tokens if the text is the
    proven one; then only its ends are tokenised.
    """
    good = []
    at = 0
    for start, end in spans:
        if at <= start < end <= len(rendering):
            good.append((start, end))
            at = end
    known = Rendered(rendering, tuple(good), tuple(control))
    try:
        if count is not None and (ends := _ends(rendering, control, target, limits, count)):
            return replace(known, tokens=ends, count=count)
        if len(rendering) > MAX_ENCODED:
            return known
        tokens = _tokens(rendering, 0, len(rendering), target)
    except UnicodeEncodeError:  # lone surrogates: no tokenizer accepts them
        return known
    added = target.tokenizer.added_tokens_decoder
    places = tuple(place for number, place in tokens if number in added)
    numbered = tuple((at, number, place) for at, (number, place) in enumerate(tokens))
    return replace(known, control=places, tokens=numbered, count=len(tokens))


def _ends(
    rendering: str, control: Sequence[Span], target: Target, limits: Limits, count: int
) -> tuple[tuple[int, int, Span], ...]:
    """Returns the first and last tokens, enough for the limits.

    Tokenises the text between control tokens separately, because no other token contains them.
    Returns () if such a piece is too long, or if `count` cannot be right.
    """
    borders = [0, *(start for start, _ in control if start), len(rendering)]
    pieces = list(pairwise(borders))
    if any(end - start > MAX_ENCODED for start, end in pieces):
        return ()
    head: list[tuple[int, Span]] = []
    tail: list[tuple[int, Span]] = []
    first, last = 0, len(pieces)
    while first < last and len(head) < (limits.tokens + 1) // 2:
        head += _tokens(rendering, *pieces[first], target)
        first += 1
    while first < last and len(tail) < (limits.tokens + 1) // 2:
        last -= 1
        tail = _tokens(rendering, *pieces[last], target) + tail
    between = count - len(head) - len(tail)
    if between < 0 or (between and first == last):
        return ()
    numbers = (*range(len(head)), *range(count - len(tail), count))
    both = zip(numbers, head + tail, strict=True)
    return tuple((at, number, place) for at, (number, place) in both)


def _tokens(rendering: str, start: int, end: int, target: Target) -> list[tuple[int, Span]]:
    """Returns (id, offsets in the rendering) of each token of [start, end)."""
    backend = target.tokenizer.backend_tokenizer
    encoding = backend.encode(rendering[start:end], add_special_tokens=False)
    return [
        (number, (start + first, start + last))
        for number, (first, last) in zip(encoding.ids, encoding.offsets, strict=True)
    ]


def rendered_html(rendered: Rendered, limits: Limits) -> Html:
    """Returns the text in a `pre`: trained pieces in `mark`, control tokens in `kbd`."""
    kept = _pieces(rendered)
    if len(kept) > 2 * limits.turns:
        kept = kept[: limits.turns] + kept[-limits.turns :]
    html: list[Html] = []
    for before, (start, end, is_trained) in zip([(0, 0, False), *kept], kept, strict=False):
        if start > before[1]:
            html.append(omission(start - before[1]))
        limit = limits.trained if is_trained else limits.other
        ranges = [(start, end)]
        if end - start > limit * 5 // 4:
            stop = _before_token(rendered.control, start + limit * 2 // 3)
            ranges = [(start, stop), (_before_token(rendered.control, end - limit // 3), end)]
        inside = [_with_control(rendered, *ranges[0])]
        for left, right in pairwise(ranges):
            inside += [omission(right[0] - left[1]), _with_control(rendered, *right)]
        html.append(tag("mark", *inside) if is_trained else join(inside))
    return tag("pre", *html, class_="rendered", dir="auto")


def _before_token(control: Sequence[Span], offset: int) -> int:
    """Returns the position; if it is inside a control token, the beginning of the token."""
    known = bisect_left(control, (offset, 0)) - 1
    return control[known][0] if known >= 0 and control[known][1] > offset else offset


def _pieces(rendered: Rendered) -> list[tuple[int, int, bool]]:
    """Returns (start, end, is trained) of consecutive pieces of the whole text."""
    pieces = []
    done = 0
    for start, end in rendered.spans:
        if done < start:
            pieces.append((done, start, False))
        pieces.append((start, end, True))
        done = end
    if done < len(rendered.text):
        pieces.append((done, len(rendered.text), False))
    return pieces


def _with_control(rendered: Rendered, start: int, end: int) -> Html:
    """Returns the text of [start, end) with control tokens in `kbd`, except one cut by the end."""
    pieces = []
    done = start
    for first, last in rendered.control[bisect_left(rendered.control, (start, 0)) :]:
        if last > end:
            break
        pieces += [text(rendered.text[done:first]), tag("kbd", text(rendered.text[first:last]))]
        done = last
    return join([*pieces, text(rendered.text[done:end])])


def tokens_html(rendered: Rendered, limits: Limits) -> Html:
    """Returns each token above its id; a token that is part of a character shows all of it."""
    if not rendered.count:
        return tag("p", text("No token ids: too long, or no valid text."), class_="note")
    trained = list(rendered.spans)
    pieces: list[Html] = []
    half = limits.tokens // 2
    count = rendered.count
    before = -1
    for at, number, (start, end) in rendered.tokens:
        if count > limits.tokens and half <= at < count - half:
            continue
        if at != before + 1:
            pieces.append(omission(at - before - 1, "tokens"))
        while trained and trained[0][1] <= start:
            trained.pop(0)
        is_trained = bool(trained) and trained[0][0] <= start
        part = plain(_piece(rendered.text[start : min(end, start + 40)]))
        ident = tag("small", plain(str(number)))
        pieces.append(tag("span", part, ident, class_="t" if is_trained else None))
        before = at
    return tag("div", *pieces, class_="tokens")


def _piece(token: str) -> str:
    return token.replace(" ", "·").replace("\n", "↵").replace("\t", "⇥") or "…"
