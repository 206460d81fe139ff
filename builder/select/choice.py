"""Decides which samples are written, and to which split, purely from the table and the options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from builder.codes import DUPLICATE
from builder.select.budget import beyond_budget
from builder.select.conditions import SHARES, TOTAL, SelectOptions
from builder.select.duplicates import exact_duplicates
from builder.select.mix import Candidate, left_out
from builder.select.splits import SplitOptions, assign, is_taken
from builder.select.table import DIGEST_BYTES, ConversationRow, Table

NEAR_DUPLICATE = "near_duplicate"

FindNear = Callable[[Sequence[bool]], Mapping[int, int]]
"""Takes whether each sample is selected so far; returns {near duplicate: sample that is kept}."""


@dataclass(frozen=True, slots=True)
class ChoiceOptions:
    """The parameters of the selection.

    in_pieces  whether samples may be parts of conversations
    shares     the target shares by pattern (`builder.select.mix`)
    select     the user's conditions, shares by another field, and the budget of tokens
    split      the shares of the splits, and the seed of all draws
    """

    in_pieces: bool = False
    shares: Mapping[str, float] = field(default_factory=dict)
    select: SelectOptions = field(default_factory=SelectOptions)
    split: SplitOptions = field(default_factory=SplitOptions)


@dataclass(frozen=True, slots=True)
class Choice:
    """The decision on each sample, by its number in the table.

    codes   the reason why it is left out; None: it is written
    splits  the split that it is written to; None: it is left out
    near    {near duplicate: the sample that is kept in its place}
    """

    codes: Sequence[str | None]
    splits: Sequence[str | None]
    near: Mapping[int, int]

    def by_conversation(
        self, table: Table
    ) -> Iterator[tuple[ConversationRow, Sequence[str | None]]]:
        """Yields each conversation with the codes of its samples."""
        number = 0
        for row in table:
            yield row, self.codes[number : number + len(row.samples)]
            number += len(row.samples)


def choose(table: Table, options: ChoiceOptions, find_near: FindNear | None = None) -> Choice:
    """Decides on every sample; `find_near` None keeps near duplicates."""
    codes: list[str | None] = []
    seed = options.split.seed
    for row in table:
        is_within = is_taken(row.entry.session, row.weight, seed)
        codes += [sample.refusal if is_within else "weight" for sample in row.samples]
    repeats = exact_duplicates(
        table, [code is not None for code in codes], in_pieces=options.in_pieces
    )
    _leave_out(codes, repeats, DUPLICATE)
    near = find_near([code is None for code in codes]) if find_near is not None else {}
    _leave_out(codes, near, NEAR_DUPLICATE)
    _review(table, codes)
    if options.shares:
        surplus = partial(left_out, shares=options.shares, seed=seed)
        _leave_out_surplus(table, codes, "mix", _samples_by_pattern, surplus)
    for shares in options.select.shares.values():
        surplus = partial(left_out, shares=shares, seed=seed)
        _leave_out_surplus(table, codes, SHARES, _samples_by_group, surplus)
    if options.select.max_tokens_total is not None:
        surplus = partial(beyond_budget, total=options.select.max_tokens_total, seed=seed)
        _leave_out_surplus(table, codes, TOTAL, _tokens_by_stratum, surplus)
    return Choice(codes, _splits(table, codes, options.split), near)


def _review(table: Table, codes: list[str | None]) -> None:
    """Leaves out samples that a review excludes.

    This comes after duplicates, so that no copy of a rejected sample takes its place.
    """
    samples = chain.from_iterable(row.samples for row in table)
    for number, sample in enumerate(samples):
        codes[number] = codes[number] or sample.review


def _leave_out(codes: list[str | None], numbers: Iterable[int], code: str) -> None:
    for number in numbers:
        codes[number] = code


def _written(
    table: Table, codes: Sequence[str | None]
) -> Iterator[tuple[ConversationRow, int, list[int]]]:
    """Yields (conversation, number of its first sample, numbers of its samples to be written).

    Conversations without such samples are skipped.
    """
    number = 0
    for row in table:
        first, number = number, number + len(row.samples)
        if chosen := [sample for sample in range(first, number) if codes[sample] is None]:
            yield row, first, chosen


Measure = Callable[[ConversationRow, Sequence[int]], tuple[str, int]]
"""Takes a conversation and the positions of its written samples; returns its group and size."""


def _samples_by_pattern(row: ConversationRow, chosen: Sequence[int]) -> tuple[str, int]:
    return row.samples[chosen[-1]].pattern, len(chosen)  # the pattern of the longest sample


def _samples_by_group(row: ConversationRow, chosen: Sequence[int]) -> tuple[str, int]:
    return row.group, len(chosen)


def _tokens_by_stratum(row: ConversationRow, chosen: Sequence[int]) -> tuple[str, int]:
    return row.stratum, sum(row.samples[position].entry.tokens for position in chosen)


def _leave_out_surplus(
    table: Table,
    codes: list[str | None],
    code: str,
    measure: Measure,
    surplus: Callable[[Sequence[Candidate]], Iterable[int]],
) -> None:
    """Leaves out conversations; `surplus` returns their positions among all that are written."""
    written = list(_written(table, codes))
    candidates = [
        Candidate(
            *measure(row, [number - first for number in chosen]), row.entry.prefixes[-DIGEST_BYTES:]
        )
        for row, first, chosen in written
    ]
    for position in surplus(candidates):
        _leave_out(codes, written[position][2], code)


def _splits(
    table: Table, codes: Sequence[str | None], options: SplitOptions
) -> Sequence[str | None]:
    """Returns the split of each sample."""
    splits: list[str | None] = [None] * len(codes)
    written = list(_written(table, codes))
    groups = [(row.entry.session, row.entry.prefixes[:DIGEST_BYTES]) for row, _, _ in written]
    for (_, _, chosen), split in zip(written, assign(groups, options), strict=True):
        for number in chosen:
            splits[number] = split
    return splits
