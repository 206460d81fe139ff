"""Renders a sample: its origin, its turns, and the text that the model sees."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from builder.conversation import Json
from builder.dataset.meta import SampleMeta
from builder.dataset.rows import DatasetRow
from builder.dataset.store import as_stored, content
from builder.qwen3.parity import spans as trained_spans
from builder.qwen3.parts import tokens_by_part
from builder.qwen3.render import Rendering, render_sample
from builder.qwen3.tokenizer import Target
from builder.readers.toolkit.narrow import as_dict, as_list, as_str
from builder.report.html import Html, cut, facts_list, join, shorten, tag, text
from builder.report.inserted import words_of_person
from builder.report.rendered import Limits, Rendered, Span, encode, rendered_html, tokens_html
from builder.report.row_forms import conversion_html, fault_html
from builder.report.shares import share_bar, turn_tokens
from builder.report.turns import (
    IN_A_LIST,
    DisplayOptions,
    as_written,
    failures_of,
    outline_html,
    turns_html,
)
from builder.sample import Sample
from builder.text import number
from builder.verify.verifier import MAX_CHARS

_LIMITS = Limits()

_SHOWN_FIRST = ("source", "record", "conversation", "model", "models", "format", "license")
_NOT_SHOWN = ("spans", "render_sha256")


@dataclass(frozen=True, slots=True)
class Picked:
    """A row selected for display, its number in the dataset from 0, and the reasons."""

    number: int
    row: DatasetRow
    reasons: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """Returns `file:line`, as in findings."""
        return f"{self.row.file}:{self.row.number}"


def sample_html(
    picked: Picked,
    target: Target,
    most: int,
    limits: Limits = _LIMITS,
    reading: DisplayOptions = IN_A_LIST,
) -> Html:
    """Returns origin, conversation and rendering of a sample, in at most `most` bytes.

    Reduces the limits until the sample fits.
    """
    sample = picked.row.sample
    rendered, note = None, ""
    if isinstance(sample, Sample):
        rendered, note = _render(picked, sample, target, limits)
    for _ in range(12):
        page = _body(picked, sample, rendered, note, limits, reading)
        if len(page.encode()) <= most:
            return page
        limits = limits.reduced()
    return tag("p", text("This sample is too large for this page."), class_="note")


def _render(
    picked: Picked, sample: Sample, target: Target, limits: Limits
) -> tuple[Rendered | None, str]:
    """Returns the rendering (None if it cannot be shown), and a note about it."""
    digest, count = picked.row.meta.render_sha256, picked.row.meta.tokens
    ours = render_sample(sample, target.style)
    try:
        # The template takes seconds for a long sample: it is asked only where its bytes, whose
        # digest is known, are not those of the renderer.
        is_known = bool(digest) and _digest(ours.text) == digest
        rendering = ours.text if is_known else target.render_sample(sample)
    except Exception as error:  # whatever a template raises is a fault of the sample
        reason = shorten(f"{type(error).__name__}: {error}", 200)
        return None, f"The chat template rejects it: {reason}"
    if len(rendering) > MAX_CHARS:
        return None, f"The rendering has {number(len(rendering))} characters: too long to show."
    note, same = "", False
    if digest:
        same = is_known or _digest(rendering) == digest
        are = "are" if same else "are NOT"
        note = f"Rendered again for this page: these {are} the bytes that the build verified."
    known = ours if ours.text == rendering else Rendering(rendering, (), ())
    control = [(offset, offset + len(token)) for offset, token in known.control]
    proven = count if same and known is ours and count else None
    spans = _spans(picked, known, sample, target)
    shown = encode(rendering, spans, target, limits, control, proven)
    return _with_parts(shown, known, picked.row.meta, target, is_built=same), note


def _with_parts(
    shown: Rendered, known: Rendering, meta: SampleMeta, target: Target, *, is_built: bool
) -> Rendered:
    """Returns it with the tokens of its parts, those of meta/ if it is the text that was built."""
    if is_built and meta.tokens_by_part:
        return replace(shown, parts=meta.tokens_by_part, trained=meta.trained_tokens)
    if not shown.count or not known.parts:
        return shown
    tokens = target.encode(shown.text)
    trained = tokens.inside(shown.spans)
    return replace(shown, parts=tokens_by_part(known, tokens), trained=trained)


def _digest(rendering: str) -> str:
    return hashlib.sha256(rendering.encode("utf-8", "surrogatepass")).hexdigest()


def _spans(picked: Picked, rendering: Rendering, sample: Sample, target: Target) -> list[Span]:
    """Returns the trained spans in meta/, or else those of the row's trained turns."""
    if picked.row.meta.spans:
        return list(picked.row.meta.spans)
    spans = trained_spans(
        rendering, target.generation_prompts["non-thinking"], target.style.assistant
    )
    trained = set(picked.row.targets(sample))
    return [span for at, span in enumerate(spans) if at in trained]


def _body(
    picked: Picked,
    sample: Sample | object,
    rendered: Rendered | None,
    note: str,
    limits: Limits,
    reading: DisplayOptions,
) -> Html:
    parts = [conversion_html(picked.row)]
    parts.insert(len(parts) if reading.outline else 0, _source(picked, is_folded=reading.outline))
    if not isinstance(sample, Sample):
        row = cut(as_written(as_stored(picked.row)), limits.content)
        stored = tag("section", tag("pre", row, dir="auto", class_="rendered"), class_="raw")
        return join((*parts, fault_html(picked.row), stored))
    trained = len(rendered.spans) if rendered is not None else 0
    failures = failures_of(sample, picked.row.failed_calls)
    turns = turns_html(sample, trained, limits, reading, failures)
    if not reading.outline:
        text_side = tag("div", _rendered(rendered, note, limits))
        conversation = tag("section", tag("h3", text("Conversation")), turns)
        return join((*parts, tag("div", conversation, text_side, class_="sides")))
    tokens, estimated = turn_tokens(sample, rendered, picked.row.meta.tokens)
    if rendered is not None and rendered.parts:
        parts.append(share_bar(rendered))
    outline = outline_html(sample, trained, limits, failures, tokens, estimated)
    side = reading.alongside
    if side is None and reading.rendered:
        side = join((reading.above, _rendered(rendered, note, limits)))
    scrolls = 0 if side is not None else None  # boxes that scroll must be reachable by keyboard
    talk = tag("section", turns, aria_label="Conversation", class_="talk", tabindex=scrolls)
    columns = [outline, talk]
    if side is not None:
        columns.append(tag("section", side, aria_label="Beside", class_="beside", tabindex=0))
    style = "reading" if side is None else "reading split"
    return join((*parts, tag("div", *columns, class_=style)))


def _rendered(rendered: Rendered | None, note: str, limits: Limits) -> Html:
    """Returns the template's rendering with its tokens."""
    parts = [tag("h3", text("Rendered text"))]
    if note:
        parts.append(tag("p", text(note), class_="note"))
    if rendered is not None:
        count = f" ({number(rendered.count)})" if rendered.count else ""
        head = tag("summary", text(f"Token ids{count}"))
        tokens = tag("details", head, tokens_html(rendered, limits))
        parts += [rendered_html(rendered, limits), tokens]
    return tag("section", *parts)


_TITLES = {"parity": "match inference", "assistant_turns": "trained turns"}
"""What keys of meta/ are called on the pages, where it is not their name."""


def _source(picked: Picked, *, is_folded: bool) -> Html:
    """Returns the sample's origin and meta/ data; the raw record is named, not shown."""
    meta, values = picked.row.meta, picked.row.meta_values
    pairs: list[tuple[str, str]] = [("row", f"#{picked.number} · {picked.where}")]
    names = [*_SHOWN_FIRST, *(name for name in values if name not in (*_SHOWN_FIRST, *_NOT_SHOWN))]
    stated = [(name, values[name]) for name in names[:47] if values.get(name) is not None]
    pairs += [(name, _display_text(value)) for name, value in stated]
    titled = [(_TITLES.get(key, key.replace("_", " ")), value) for key, value in pairs]
    facts = facts_list(titled, limit=300)
    if not is_folded:
        return facts
    where = " · ".join(filter(None, (meta.source, meta.record)))
    place = tag("span", text(f": {shorten(where or picked.where, 160)}"))
    head = tag("summary", text("Origin and facts"), place)
    return tag("details", head, facts, class_="facts-of")


def _display_text(value: Json) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(value)
    if isinstance(value, dict):
        items = list(value.items())[:20]
        value = ", ".join(f"{key} {_display_text(item)}" for key, item in items)
    elif isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = ", ".join(map(str, value[:20]))
    return shorten(as_written(value), 300)


def request_of(row: DatasetRow) -> str:
    """Returns the first words of a person; else the first user message, or "".

    A sample of one question or turn shares its beginning with others: its last question counts.
    """
    messages = map(as_dict, as_list(content(row), "messages"))
    asked = (as_str(item.get("content")) for item in messages if item.get("role") == "user")
    own = (text for text in asked if not text.startswith("<tool_response>"))
    return words_of_person(reversed([*own]) if row.meta.unit in ("query", "turn") else own)


def headline(picked: Picked) -> tuple[str, str]:
    """Returns (the first words of a person, format · model · tokens) for lists."""
    request = request_of(picked.row)
    row, meta = picked.row, picked.row.meta
    form = row.reading.form if row.foreign else ""
    pieces = [meta.format or form, ", ".join(filter(None, meta.every_model))]
    pieces += [f"{number(meta.tokens)} tokens"] if meta.tokens else []
    fault = row.reading.code if row.foreign else ""
    nothing = "(not a sample)" if fault else "(no request)"
    return shorten(request, 140) or nothing, " · ".join(filter(None, (*pieces, fault)))
