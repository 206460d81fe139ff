"""Defines what a trainer's loss covers: the types, and the rules that several trainers share.

The rules follow the sources of the versions in docs/parity.md; TRL's run in the conformance tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from builder.qwen3.render import Spans, tools_block
from builder.qwen3.tokenizer import Target
from builder.sample import Sample

Ranges = list[tuple[int, int]]
"""[first, last) of token positions."""


@dataclass(frozen=True, slots=True)
class Mask:
    """A trainer's version of a sample: its text, and [start, end) of the parts with loss."""

    text: str
    spans: Spans


@dataclass(frozen=True, slots=True)
class MaskRefusal:
    """Why a trainer does not train the sample at all."""

    reason: str


_Rule = Callable[[Sample, str, Target], Mask | MaskRefusal]
"""Maps (sample, its proven rendering, target) to the trainer's version of it."""

Cut = Callable[[int, Ranges, int], Ranges]
"""Maps (tokens of the text, those inside spans, the limit) to the tokens that remain."""


def keep_start(length: int, trained: Ranges, limit: int) -> Ranges:
    """Returns the first `limit` tokens."""
    return [(0, min(length, limit))]


def keep_pairs(length: int, trained: Ranges, limit: int) -> Ranges:
    """Cuts like LLaMA-Factory: each prompt and its answer get a share of the remaining length.

    If the answer is shorter than half of the remaining length, the end of the prompt is cut; if the
    prompt is, the end of the answer; otherwise both are cut in proportion.
    """
    kept: Ranges = []
    before = 0
    for first, last in trained:
        if limit <= 0:
            break
        prompt, answer = first - before, last - first
        room = limit
        if answer * 2 >= limit:
            fits = prompt * 2 < limit
            room = limit - prompt if fits else int(limit * (answer / (prompt + answer)))
        answer = min(room, answer)
        prompt = min(max(limit - answer, 0), prompt)
        kept += [(before, before + prompt), (first, first + answer)]
        limit -= prompt + answer
        before = last
    return kept


@dataclass(frozen=True, slots=True)
class MaskRule:
    """The mask of one setting of a trainer.

    summary  the setting and what it trains, in one line
    limit    tokens that it accepts; None: no default limit
    cut      returns what it keeps of a longer sample; None: it refuses the sample
    across   whether a token that crosses the border of a trained span is trained as well
    """

    summary: str
    rule: _Rule
    limit: int | None = None
    cut: Cut | None = keep_start
    across: bool = False


def render_turns(
    sample: Sample, default: str | None, gap: str, answer: Callable[[str], str]
) -> Mask:
    """Renders the turns one by one; answers are trained through the newline after them.

    `answer` returns what follows the header of an assistant turn. `default` is the system text of a
    sample that has none; if it is None as well, `gap` precedes the tools block.
    """
    text = ""
    spans: list[tuple[int, int]] = []
    block = tools_block(sample.definitions).text if sample.tools else ""
    messages = list(sample.messages)
    has_system = bool(messages) and messages[0][0] == "system"
    system = messages.pop(0)[1] if has_system else default
    if system is not None or block:
        lead = gap if system is None else system + "\n\n" if block else system
        text = f"<|im_start|>system\n{lead}{block}<|im_end|>\n"
    for role, content in messages:
        text += f"<|im_start|>{role}\n"
        start = len(text)
        text += answer(content) if role == "assistant" else content
        text += "<|im_end|>\n"
        if role == "assistant":
            spans.append((start, len(text)))
    return Mask(text, tuple(spans))


def merged(spans: Sequence[tuple[int, int]]) -> Spans:
    """Returns the spans in order, with overlapping ones joined."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
