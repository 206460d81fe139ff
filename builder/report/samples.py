"""Renders a sample: its origin, its turns, and the text that the model sees."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from builder.codes import explain, meaning_of_change
from builder.conversation import Json
from builder.dataset.meta import SampleMeta
from builder.dataset.rows import DatasetRow
from builder.dataset.store import as_stored, content
from builder.qwen3.render import Rendering, render_sample, tokens_by_part
from builder.qwen3.render import spans as trained_spans
from builder.qwen3.tokenizer import Target
from builder.readers.toolkit.narrow import as_dict, as_list, as_str
from builder.report.charts import share_bar
from builder.report.html import EMPTY, Html, cut, join, macro, omission, plain, tag, text
from builder.report.turns import (
    IN_A_LIST,
    DisplayOptions,
    Limits,
    ShownTurns,
    as_written,
    failures_of,
    words_of_person,
)
from builder.sample import Sample
from builder.text import number, shorten
from builder.verify.verifier import MAX_CHARS

# -- renders the text that the model sees ----------------------------------------------------------

_Span = tuple[int, int]

_MAX_ENCODED = 100_000
"""Code points of the longest text that is tokenised to show its ids."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendering with its trained spans, control tokens and tokens.

    tokens  (index, id, span) of the tokens to show
    count   the number of all tokens; 0 if the text was not tokenised
    parts   {part: tokens} (`builder.qwen3.render.tokens_by_part`), {} if they are not known
    trained  the number of tokens of the spans; 0 if it is not known
    """

    text: str
    spans: tuple[_Span, ...] = ()
    control: tuple[_Span, ...] = ()
    tokens: tuple[tuple[int, int, _Span], ...] = ()
    count: int = 0
    parts: Mapping[str, int] = field(default_factory=dict)
    trained: int = 0


def encode(
    rendering: str,
    spans: Sequence[_Span],
    target: Target,
    control: Sequence[_Span] = (),
    count: int = 0,
) -> Rendered:
    """Returns the rendering with its tokens; omits invalid spans.

    `control` are the known control tokens. `count` is the number of all tokens if it is known; a
    long text is not tokenised.
    """
    good = []
    at = 0
    for start, end in spans:
        if at <= start < end <= len(rendering):
            good.append((start, end))
            at = end
    known = Rendered(rendering, tuple(good), tuple(control), count=count)
    if len(rendering) > _MAX_ENCODED:
        return known
    try:
        encoded = target.encode(rendering)
    except UnicodeEncodeError:  # lone surrogates: no tokenizer accepts them
        return known
    if not encoded.are_exact:  # not NFC
        return known
    tokens = tuple(zip(range(len(encoded)), encoded.ids, encoded.offsets, strict=True))
    places = tuple((at, at + len(token)) for at, token in encoded.control)
    return replace(known, control=places, tokens=tokens, count=len(tokens))


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


def _before_token(control: Sequence[_Span], offset: int) -> int:
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
    if not rendered.tokens:
        return tag("p", text("No token ids: too long, or no valid text."), class_="note")
    trained = list(rendered.spans)
    pieces: list[Html] = []
    half = limits.tokens // 2
    count = rendered.count
    before = -1
    for at, ident, (start, end) in rendered.tokens:
        if count > limits.tokens and half <= at < count - half:
            continue
        if at != before + 1:
            pieces.append(omission(at - before - 1, "tokens"))
        while trained and trained[0][1] <= start:
            trained.pop(0)
        is_trained = bool(trained) and trained[0][0] <= start
        part = plain(_piece(rendered.text[start : min(end, start + 40)]))
        shown = tag("small", plain(str(ident)))
        pieces.append(tag("span", part, shown, class_="t" if is_trained else None))
        before = at
    return tag("div", *pieces, class_="tokens")


def _piece(token: str) -> str:
    return token.replace(" ", "·").replace("\n", "↵").replace("\t", "⇥") or "…"


LEGEND = macro("sample", "legend")
"""What the marks of a rendering mean."""
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
    spans = _spans(picked, known, sample, target)
    shown = encode(rendering, spans, target, control, count if same else 0)
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


def _spans(picked: Picked, rendering: Rendering, sample: Sample, target: Target) -> list[_Span]:
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
    parts = [_origin(picked), _conversion(picked.row)]
    if not isinstance(sample, Sample):
        row = cut(as_written(as_stored(picked.row)), limits.content)
        stored = tag("section", tag("pre", row, dir="auto", class_="rendered"), class_="raw")
        return join((*parts, _fault(picked.row), stored))
    trained = len(rendered.spans) if rendered is not None else 0
    failures = failures_of(sample, picked.row.failed_calls)
    turns = ShownTurns(sample, trained, limits, reading, failures)
    shown = EMPTY
    if not reading.outline or (reading.rendered and reading.alongside is None):
        shown = macro(
            "sample", "rendered", note=note, count=rendered.count if rendered else 0,
            text=rendered_html(rendered, limits) if rendered else EMPTY,
            tokens=tokens_html(rendered, limits) if rendered else EMPTY,
        )  # fmt: skip
    if not reading.outline:
        return join((*parts, macro("sample", "sides", turns=turns.html(), text=shown)))
    tokens, estimated = _turn_tokens(sample, rendered, picked.row.meta.tokens)
    if rendered is not None and rendered.parts:
        length = len(rendered.text)
        bar = share_bar(rendered.parts, rendered.spans, length, rendered.trained)
        parts.append(bar)
    outline = turns.outline(tokens, estimated=estimated)
    beside = reading.alongside or (join((LEGEND, shown)) if shown else EMPTY)
    talk = macro("sample", "reading", outline=outline, turns=turns.html(), beside=beside)
    return join((*parts, talk))


def _turn_tokens(
    sample: Sample, rendered: Rendered | None, tokens: int
) -> tuple[tuple[int, ...], bool]:
    """Returns the tokens of each message, and whether they are estimated from their characters.

    They are exact where all tokens of the sample are known. Returns () if neither is possible.
    """
    if rendered is None or not (tokens or rendered.count):
        return (), False
    begins = [
        start for start, end in rendered.control if rendered.text[start:end] == "<|im_start|>"
    ]
    roles = [role for role, _ in sample.messages]
    if len(begins) == len(roles) + 1 and roles[0] != "system":
        begins = begins[1:]  # the template wrote a system turn for the tools
    if len(begins) != len(roles):
        return (), False
    ends = [*begins[1:], len(rendered.text)]
    if len(rendered.tokens) == rendered.count:
        counts = [0] * len(roles)
        reached = 0
        for _, _, (start, _) in rendered.tokens:
            while reached < len(ends) - 1 and start >= ends[reached]:
                reached += 1
            counts[reached] += start >= begins[0]
        return tuple(counts), False
    per = (rendered.count or tokens) / max(len(rendered.text), 1)
    return tuple(round((end - start) * per) for start, end in zip(begins, ends, strict=True)), True


# -- origin ----------------------------------------------------------------------------------------

_TITLES = {"parity": "match inference", "assistant_turns": "trained turns"}
"""What keys of meta/ are called on the pages, where it is not their name."""
_FORMS = {
    "messages-str": "its tool definitions were decoded from JSON text",
    "tools-in-system": "its tool definitions were read from the system message",
    "prompt-completion": "prompt and completion were joined",
    "prompt-completion-text": "the rendered text was parsed",
    "text": "the rendered text was parsed",
}
"""{form: how rows are converted without a reader}"""


def _conversion(row: DatasetRow) -> Html:
    """Returns how a row was converted, from which form and with which changes, or nothing."""
    if row.converted is None:
        return EMPTY
    reading = row.reading
    how = _FORMS.get(reading.form, "converted")
    if reading.reader is not None:
        how = f"converted by the reader `{reading.reader}`"
    changes = "; ".join(
        f"{meaning_of_change(code) or code} ({number(n)})"
        for code, n in sorted(reading.changes.items())
    )
    return macro("sample", "conversion", form=reading.form, how=how, changes=changes)


def _fault(row: DatasetRow) -> Html:
    """Returns why a row is not a sample: the code of the problem, and the findings."""
    reading = row.reading
    assert not isinstance(reading.sample, Sample), "a row without a sample"
    form = f" of the form `{reading.form}`" if reading.form else ""
    faults = [shorten(finding.message, 400) for finding in reading.sample[:20]]
    known = explain(reading.code)
    return macro("sample", "fault", code=reading.code, form=form, faults=faults, known=known)


def _origin(picked: Picked) -> Html:
    """Returns the sample's origin and meta/ data, folded; the raw record is named, not shown."""
    meta, values = picked.row.meta, picked.row.meta_values
    pairs: list[tuple[str, str]] = [("row", f"#{picked.number} · {picked.where}")]
    names = [*_SHOWN_FIRST, *(name for name in values if name not in (*_SHOWN_FIRST, *_NOT_SHOWN))]
    stated = [(name, values[name]) for name in names[:47] if values.get(name) is not None]
    pairs += [(name, _display_text(value)) for name, value in stated]
    titled = [(_TITLES.get(key, key.replace("_", " ")), value) for key, value in pairs if value]
    where = " · ".join(filter(None, (meta.source, meta.record))) or picked.where
    return macro("sample", "origin", place=where, pairs=titled)


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
