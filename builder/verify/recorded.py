"""Compares the tokens of a sample with those that a server or a trainer recorded.

The ids in a log are what the model read and wrote, so they prove more than any rendering: each
trained turn is compared with the ids of its answer, and everything before the last one with the ids
of its prompt. Causes of a difference are found from the text on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from builder.conversation import TokenIds
from builder.qwen3.parity import Spans
from builder.qwen3.tokens import TokenSequence

_LOOK = 64
"""Tokens from a difference on that are decoded to find its cause."""

_SAME = 8
"""Characters after white space that must agree for it to be the only difference."""

Ids = NDArray[np.uint32]
Decode = Callable[[list[int]], str]


@dataclass(frozen=True, slots=True)
class TokenComparison:
    """The result of comparing a sample: equal, or the first token that differs.

    at        its position in the sample; None: all are equal
    cause     the first probable cause that applies (docs/parity.md), or ""
    sample    the text of the token in the sample, "" at its end
    recorded  the text of the recorded token, "" at its end or if the tokenizer does not have it
    """

    at: int | None = None
    cause: str = ""
    sample: str = ""
    recorded: str = ""


def compare(
    turns: Sequence[tuple[int, TokenIds]],
    tokens: TokenSequence,
    answers: Spans,
    tails: Collection[str],
    decode: Decode,
) -> TokenComparison:
    """Compares a sample with recorded ids and returns the first difference.

    `turns` are the trained turns with ids: (index in `answers`, ids). `answers` are the positions
    of the assistant turns without their headers, `tails` what the generation prompts of the modes
    have after the header. `decode` returns the text of ids.
    """
    differences: list[tuple[int, Ids]] = []
    last, ids = turns[-1]
    if ids.prompt is not None:
        whole = np.array(ids.prompt + ids.answer, dtype=np.uint32)
        position = _difference(tokens, 0, whole, answers[last][1])
        differences += [(position, whole[position:])] if position is not None else []
        turns = turns[:-1]
    for turn, ids in turns:
        differences += _of_answer(ids, tokens, answers[turn], tails)
    if not differences:
        return TokenComparison()
    position, recorded = min(differences, key=lambda item: item[0])
    return _explained(tokens, position, recorded, decode)


def _of_answer(
    ids: TokenIds, tokens: TokenSequence, span: tuple[int, int], tails: Collection[str]
) -> list[tuple[int, Ids]]:
    """Returns position and recorded ids of the first difference in a turn; [] without one.

    The mode of inference is not recorded, so the answer may begin after any of the `tails`; the
    one with the longest agreement counts.
    """
    answer = np.array(ids.answer, dtype=np.uint32)
    begin, end = span
    agreements: list[tuple[int, int]] = []
    for tail in sorted({"", *tails}):
        if not tokens.text.startswith(tail, begin):
            continue
        start = tokens.count_before(begin + len(tail))
        position = _difference(tokens, start, answer, end)
        if position is None:
            return []
        agreements.append((position - start, position))
    agreed, position = max(agreements)
    return [(position, answer[agreed:])]


def _difference(tokens: TokenSequence, start: int, recorded: Ids, end: int) -> int | None:
    """Returns the first position from `start` on where ids differ; None: up to `end` none does.

    The token that ends the turn may be missing from the recorded ids.
    """
    ours = tokens.numbers[start : start + len(recorded)]
    different = np.flatnonzero(ours != recorded[: len(ours)])
    if len(different):
        return start + int(different[0])
    stop = tokens.count_before(end)
    reached = start + len(recorded)
    return None if stop - 1 <= reached <= stop else min(reached, stop)


def _explained(
    tokens: TokenSequence, position: int, recorded: Ids, decode: Decode
) -> TokenComparison:
    numbers = tokens.ids
    ours, theirs = numbers[position : position + _LOOK], recorded[:_LOOK].tolist()
    first, other = decode(ours[:1]), decode(theirs[:1])
    before = decode(numbers[:position])
    codes = _causes(position, before, (decode(ours), decode(theirs)), (first, other))
    return TokenComparison(position, next(codes, "text"), first, other)


def _causes(
    position: int, before: str, rest: tuple[str, str], first: tuple[str, str]
) -> Iterator[str]:
    ours, theirs = rest
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False))))
    differs_in_space = any(text[same : same + 1].isspace() for text in rest)
    following = [text[same:].lstrip() for text in rest]
    if position == 0 or (theirs and not first[1]):
        yield "tokenizer"
    begins = any(text.lstrip().startswith(("<think>", "</think>")) for text in rest)
    if begins or before.rfind("<think>") > before.rfind("</think>"):
        yield "thought"
    if first[0] and first[1] and same >= max(map(len, first)):
        yield "retokenised"
    if before.count("<|im_start|>") == 1 and before.startswith("<|im_start|>system"):
        yield "system"
    if before.rfind("<tool_call>") > before.rfind("</tool_call>"):
        yield "call"
    if not ours or not theirs:
        yield "end"
    if differs_in_space and following[0][:_SAME] == following[1][:_SAME]:
        yield "whitespace"
