"""How the tokens that trainers would train differ from ours, counted over a dataset.

A token counts for the region of the rendering that it begins in. Rules: `builder.trainers.masks`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from builder.qwen3.parity import Spans
from builder.qwen3.render import is_response
from builder.qwen3.tokenizer import Target
from builder.sample import Sample
from builder.trainers.masks import TRAINERS, Mask, MaskRefusal, Ranges, Trainer

REGIONS = (
    "system and definitions",
    "queries",
    "tool responses",
    "turn headers",
    "empty think blocks",
    "thoughts",
    "answers",
    "newlines after turns",
)

_TURN = re.compile(r"<\|im_start\|>(system|user|assistant)\n(.*?)(<\|im_end\|>|\Z)(\n?)", re.DOTALL)
_BLOCK = re.compile(r"<think>\n(.*?)</think>\n\n", re.DOTALL)


def regions(text: str) -> Iterator[tuple[int, str]]:
    """(where it begins, name of REGIONS) for each stretch of a rendering, in order."""
    for turn in _TURN.finditer(text):
        role, content = turn[1], turn[2]
        yield turn.start(), "turn headers"
        at = turn.start(2)
        if role == "assistant":
            if block := _BLOCK.match(text, at, turn.end(2)):
                yield at, "thoughts" if block[1].strip("\n") else "empty think blocks"
                at = block.end()
            yield at, "answers"
        elif role == "user":
            yield at, "tool responses" if is_response(content) else "queries"
        else:
            yield at, "system and definitions"
        if turn[4]:
            yield turn.start(4), "newlines after turns"


@dataclass(slots=True)
class Comparison:
    """One trainer over a dataset.

    ours, theirs  tokens trained, by region
    answers_lost  tokens of ours that it does not train although it trains the sample
    same          samples of which it trains exactly our tokens of our text
    other_text    samples that it renders to another text than the proven one
    beyond        samples longer than its default length
    refused       {reason: samples}
    borders       samples in which a border of ours or of its lies inside a token
    """

    trainer: str
    samples: int = 0
    ours: Counter[str] = field(default_factory=Counter)
    theirs: Counter[str] = field(default_factory=Counter)
    answers_lost: int = 0
    same: int = 0
    other_text: int = 0
    beyond: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    borders: int = 0

    def add(self, sample: Sample, text: str, own: Trained, tokens: MaskTokens) -> None:
        """Count a proven sample: its rendering, and our tokens of it."""
        trainer = TRAINERS[self.trainer]
        self.samples += 1
        self.ours.update(own.regions)
        mask = trainer.rule(sample, text, tokens.target)
        if isinstance(mask, MaskRefusal):
            self.refused[mask.reason] += 1
            return
        found = tokens.trained(mask, trainer)
        self.borders += own.crossed or found.crossed
        same_text = mask.text.removesuffix("\n") == text.removesuffix("\n")
        self.other_text += not same_text
        if trainer.limit is not None and found.length > trainer.limit:
            self.beyond += 1
            if trainer.cut is None:
                self.refused[f"longer than {trainer.limit} tokens"] += 1
                return
            if not found.numbers:
                self.refused["nothing of it stays that is trained"] += 1
                return
        self.theirs.update(found.regions)
        self.same += same_text and own.numbers == found.numbers
        if same_text:
            self.answers_lost += len(own.numbers - found.numbers)


def compare(
    sample: Sample,
    text: str,
    spans: Spans,
    target: Target,
    comparisons: Iterable[Comparison],
) -> None:
    """Count a proven sample: its rendering, and the spans that it teaches."""
    tokens = MaskTokens(target)
    own = tokens.trained(Mask(text, spans))
    for comparison in comparisons:
        comparison.add(sample, text, own, tokens)


@dataclass(frozen=True, slots=True)
class Trained:
    """Tokens inside spans: how many the text has, their numbers, and how many of each region.

    `crossed`: a border of the spans lies inside a token.
    """

    length: int
    numbers: frozenset[int]
    regions: Counter[str]
    crossed: bool


class MaskTokens:
    """The tokens of the texts that trainers make of one sample, each text tokenised once."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._known: dict[str, tuple[list[tuple[int, int]], list[int], list[str]]] = {}

    def trained(self, mask: Mask, trainer: Trainer | None = None) -> Trained:
        """Those inside the mask's spans; of a trainer, what it keeps of them."""
        offsets, starts, names = self._marked(mask.text)
        ranges: Ranges = []
        crossed = False
        for start, end in mask.spans:
            first, last = bisect_left(starts, start), bisect_left(starts, end)
            begins_before = first > 0 and offsets[first - 1][1] > start
            crossed |= begins_before or (last > 0 and offsets[last - 1][1] > end)
            across = trainer is not None and trainer.across
            ranges.append((first - 1 if begins_before and across else first, last))
        kept = [(0, len(offsets))]
        if trainer is not None and trainer.limit is not None and trainer.limit < len(offsets):
            kept = trainer.cut(len(offsets), ranges, trainer.limit) if trainer.cut else []
        stays = {at for first, last in kept for at in range(first, last)}
        numbers = stays.intersection(at for first, last in ranges for at in range(first, last))
        return Trained(
            len(offsets), frozenset(numbers), Counter(names[at] for at in numbers), crossed
        )

    def _marked(self, text: str) -> tuple[list[tuple[int, int]], list[int], list[str]]:
        """Offsets, their beginnings, and the region of each token."""
        if text not in self._known:
            offsets = self.target.offsets(text)
            marks = list(regions(text))
            names = []
            mark = 0
            for start, _ in offsets:
                while mark + 1 < len(marks) and marks[mark + 1][0] <= start:
                    mark += 1
                names.append(marks[mark][1] if marks else REGIONS[0])
            self._known[text] = (offsets, [start for start, _ in offsets], names)
        return self._known[text]
