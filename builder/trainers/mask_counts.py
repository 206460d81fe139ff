"""Compares the tokens that each trainer trains in a dataset with the intended ones.

The intended tokens ("ours") are those of `meta.spans`. A token counts for the region of the
rendering in which it starts. `builder.trainers.masks` defines the trainers' masks.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields

from builder.problem import OptionError, nearest
from builder.qwen3.render import Spans, is_response
from builder.qwen3.tokenizer import Target
from builder.sample import Sample
from builder.trainers.masks import MASKS, Mask, MaskRefusal, MaskRule, Ranges

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
    """Yields (start, name from REGIONS) for each region of a rendering, in order."""
    for turn in _TURN.finditer(text):
        role, content = turn[1], turn[2]
        yield turn.start(), "turn headers"
        start = turn.start(2)
        if role == "assistant":
            if block := _BLOCK.match(text, start, turn.end(2)):
                yield start, "thoughts" if block[1].strip("\n") else "empty think blocks"
                start = block.end()
            yield start, "answers"
        elif role == "user":
            yield start, "tool responses" if is_response(content) else "queries"
        else:
            yield start, "system and definitions"
        if turn[4]:
            yield turn.start(4), "newlines after turns"


@dataclass(slots=True)
class Comparison:
    """Counts for one trainer over a dataset.

    ours, theirs  tokens trained, by region
    answers_lost  intended tokens that the trainer leaves untrained where it trains the proven text
    same          samples in which it trains exactly the intended tokens of the proven text
    other_text    samples that it renders to another text than the verified one
    beyond        samples longer than its default length
    refused       {reason: samples}
    borders       samples in which a trained span, ours or the trainer's, has an edge inside a token
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

    def merge(self, other: Comparison) -> None:
        """Adds the counts over other samples."""
        for item in fields(self):
            mine, theirs = getattr(self, item.name), getattr(other, item.name)
            if isinstance(mine, Counter):
                mine.update(theirs)
            elif isinstance(mine, int):
                setattr(self, item.name, mine + theirs)

    def add(self, sample: Sample, text: str, own: _Trained, tokens: MaskTokens) -> None:
        """Counts one proven sample, given its rendering and the tokens intended to be trained."""
        trainer = MASKS[self.trainer]
        self.samples += 1
        self.ours.update(own.regions)
        mask = trainer.rule(sample, text, tokens.target)
        if isinstance(mask, MaskRefusal):
            self.refused[mask.reason] += 1
            return
        trained = tokens.trained(mask, trainer)
        self.borders += own.crossed or trained.crossed
        same_text = mask.text.removesuffix("\n") == text.removesuffix("\n")
        self.other_text += not same_text
        if trainer.limit is not None and trained.length > trainer.limit:
            self.beyond += 1
            if trainer.cut is None:
                self.refused[f"longer than {trainer.limit} tokens"] += 1
                return
            if not trained.numbers:
                self.refused["no trained token is left after the cut"] += 1
                return
        self.theirs.update(trained.regions)
        if same_text:
            self.same += own.numbers == trained.numbers
            self.answers_lost += len(own.numbers - trained.numbers)


_ALL = "all"


def trainers_named(names: Sequence[str]) -> list[str]:
    """Returns the named trainers in the order of MASKS. Raises UsageError for an unknown name."""
    for name in names:
        if name not in (*MASKS, _ALL):
            raise OptionError("masks", f" {name!r}: no such trainer{nearest(name, (*MASKS, _ALL))}")
    return [name for name in MASKS if _ALL in names or name in names]


def compared(
    trainers: Sequence[str], sample: Sample, text: str, spans: Spans, target: Target
) -> dict[str, Comparison]:
    """Returns {trainer: the comparison of one proven sample}."""
    comparisons = {name: Comparison(name) for name in trainers}
    compare(sample, text, spans, target, comparisons.values())
    return comparisons


def compare(
    sample: Sample, text: str, spans: Spans, target: Target, comparisons: Iterable[Comparison]
) -> None:
    """Adds one proven sample (its rendering, its trained spans) to each comparison."""
    tokens = MaskTokens(target)
    own = tokens.trained(Mask(text, spans))
    for comparison in comparisons:
        comparison.add(sample, text, own, tokens)


@dataclass(frozen=True, slots=True)
class _Trained:
    """The tokens inside the trained spans of a text.

    length   tokens of the whole text
    numbers  positions of the trained tokens
    regions  number of trained tokens that start in each region
    crossed  whether a span has an edge inside a token
    """

    length: int
    numbers: frozenset[int]
    regions: Counter[str]
    crossed: bool


class MaskTokens:
    """The tokens of all texts that trainers render one sample to; tokenises each text once."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._known: dict[str, tuple[list[tuple[int, int]], list[int], list[str]]] = {}

    def trained(self, mask: Mask, trainer: MaskRule | None = None) -> _Trained:
        """Returns the tokens inside the mask's spans; for a trainer, those that survive its cut."""
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
        remaining = {at for first, last in kept for at in range(first, last)}
        numbers = remaining.intersection(at for first, last in ranges for at in range(first, last))
        return _Trained(
            len(offsets), frozenset(numbers), Counter(names[at] for at in numbers), crossed
        )

    def _marked(self, text: str) -> tuple[list[tuple[int, int]], list[int], list[str]]:
        """Returns the offsets, the start and the region of each token."""
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
