"""Decides which samples are written, and to which split, purely from the table and the options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from builder.select.budget import BudgetItem, beyond_budget
from builder.select.conditions import SHARES, TOTAL, SelectOptions
from builder.select.duplicates import exact_duplicates
from builder.select.mix import Candidate, left_out
from builder.select.splits import SplitOptions, assign, is_taken
from builder.select.table import DIGEST_BYTES, ConversationRow, Table

DUPLICATE = "duplicate"
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
            yield row, self.codes[number : number + row.samples]
            number += row.samples


def choose(table: Table, options: ChoiceOptions, find_near: FindNear | None = None) -> Choice:
    """Decides on every sample; `find_near` None keeps near duplicates."""
    codes: list[str | None] = []
    seed = options.split.seed
    for row in table:
        is_within = is_taken(row.session, row.weight, seed)
        refusals = row.refusals or (None,) * row.samples
        codes += refusals if is_within else ["weight"] * row.samples
    repeats = exact_duplicates(
        table, [code is not None for code in codes], in_pieces=options.in_pieces
    )
    _leave_out(codes, repeats, DUPLICATE)
    near = find_near([code is None for code in codes]) if find_near is not None else {}
    _leave_out(codes, near, NEAR_DUPLICATE)
    _review(table, codes)
    if options.shares:
        gone = _beyond_shares(table, codes, options.shares, seed, lambda row, at: row.patterns[at])
        _leave_out(codes, gone, "mix")
    for shares in options.select.shares.values():
        gone = _beyond_shares(table, codes, shares, seed, lambda row, _: row.group)
        _leave_out(codes, gone, SHARES)
    if options.select.max_tokens_total is not None:
        _leave_out(codes, _beyond_total(table, codes, options.select.max_tokens_total, seed), TOTAL)
    return Choice(codes, _splits(table, codes, options.split), near)


def _review(table: Table, codes: list[str | None]) -> None:
    """Leaves out samples that a review excludes.

    This comes after duplicates, so that no copy of a rejected sample takes its place.
    """
    number = 0
    for row in table:
        for at, code in enumerate(row.reviews, start=number):
            codes[at] = codes[at] or code
        number += row.samples


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
        first, number = number, number + row.samples
        if chosen := [at for at in range(first, number) if codes[at] is None]:
            yield row, first, chosen


def _beyond_shares(
    table: Table,
    codes: Sequence[str | None],
    shares: Mapping[str, float],
    seed: int,
    group_of: Callable[[ConversationRow, int], str],
) -> Iterator[int]:
    """Yields the samples to leave out so that the others have the shares.

    A conversation counts for the group of its longest sample that is written.
    """
    conversations: list[list[int]] = []
    candidates: list[Candidate] = []
    for row, first, chosen in _written(table, codes):
        group = group_of(row, chosen[-1] - first)
        conversations.append(chosen)
        candidates.append(Candidate(group, len(chosen), row.prefixes[-DIGEST_BYTES:]))
    for at in left_out(candidates, shares, seed):
        yield from conversations[at]


def _beyond_total(
    table: Table, codes: Sequence[str | None], total: int, seed: int
) -> Iterator[int]:
    """Yields the samples to leave out so that the others have at most `total` tokens."""
    conversations: list[list[int]] = []
    items: list[BudgetItem] = []
    for row, first, chosen in _written(table, codes):
        tokens = sum(row.tokens[at - first] for at in chosen)
        conversations.append(chosen)
        items.append(BudgetItem(row.stratum, tokens, row.prefixes[-DIGEST_BYTES:]))
    for at in beyond_budget(items, total, seed):
        yield from conversations[at]


def _splits(
    table: Table, codes: Sequence[str | None], options: SplitOptions
) -> Sequence[str | None]:
    """Returns the split of each sample."""
    splits: list[str | None] = [None] * len(codes)
    written = list(_written(table, codes))
    groups = [(row.session, row.prefixes[:DIGEST_BYTES]) for row, _, _ in written]
    for (_, _, chosen), split in zip(written, assign(groups, options), strict=True):
        for at in chosen:
            splits[at] = split
    return splits
