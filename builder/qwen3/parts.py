"""Counts the tokens of each part of a rendering; the counts of the parts add up to all tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from builder.qwen3.render import Rendering
from builder.qwen3.tokens import TokenSequence

PARTS = ("system", "tools", "user", "results", "thoughts", "answers", "calls", "template")
"""The parts of a rendering, in the order in which they are shown.

tools     the block of the definitions, with its instructions
results   the turns of tool responses, with their tags
thoughts  the blocks that have a thought
calls     of assistant turns, from the first call on
template  everything else: the markers of turns, empty think blocks
"""


def tokens_by_part(rendering: Rendering, tokens: TokenSequence) -> dict[str, int]:
    """Returns {part: tokens that begin in it}, without the parts that have none."""
    spans = [(start, end) for _, start, end in rendering.parts]
    names = (name for name, _, _ in rendering.parts)
    return _complete(names, tokens.inside_each(spans), len(tokens))


def characters_by_part(rendering: Rendering) -> dict[str, int]:
    """Returns {part: code points}, without the parts that have none."""
    names = (name for name, _, _ in rendering.parts)
    sizes = [end - start for _, start, end in rendering.parts]
    return _complete(names, sizes, len(rendering.text))


def _complete(names: Iterable[str], sizes: Sequence[int], whole: int) -> dict[str, int]:
    counts: Counter[str] = Counter(template=whole - sum(sizes))
    for name, size in zip(names, sizes, strict=True):
        counts[name] += size
    return {name: counts[name] for name in PARTS if counts[name]}
