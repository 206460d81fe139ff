"""Decides which samples are written, and to which split, purely from the table and the options."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from builder.codes import DUPLICATE
from builder.conversation import session_name
from builder.options import at_least
from builder.select.conditions import SHARES, TOTAL, SelectOptions
from builder.select.table import (
    DIGEST_BYTES,
    ConversationEntry,
    ConversationRow,
    Table,
    split_digests,
)

# -- assigns conversations to splits: by session, seeded, the same in every run --------------------

_UNIQUE = re.compile(r"(?=.*\d)[0-9A-Za-z_-]{16,}")


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """Shares of the sessions for validation and test, and the seed of the draw.

    All parts of a session (sub-agents, segments, forks) stay together in one split.
    """

    validation: float = 0.0
    test: float = 0.0
    seed: int = field(default=0, metadata=at_least(0))


def session_digest(conversation: str, format: str, origin: str) -> bytes:  # noqa: A002 - the field's term
    """Returns 8 bytes that the conversations of one session share, from a conversation's id.

    A session's parts are named after it: `ID/sub-agent`, `ID#segment`, `ID~branch`. A globally
    unique id (a UUID) identifies the session in all files, any other only within its own.
    """
    root = session_name(conversation)
    place = "" if _UNIQUE.fullmatch(root) else origin
    text = "\n".join((format, place, root)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=8).digest()


def is_taken(session: bytes, weight: float, seed: int) -> bool:
    """Returns whether the session is within the share `weight` of its input, reproducibly."""
    return weight >= 1 or _number(b"weight", session, seed) < weight


def assign(groups: Sequence[tuple[bytes, bytes]], options: SplitOptions) -> list[str]:
    """Returns the split of each conversation, given as (session digest, digest of its beginning).

    Conversations that share either of them form a group. The seed and the smallest key of a group
    determine its split.
    """
    if not (options.validation or options.test):
        return ["train"] * len(groups)
    parents: dict[bytes, bytes] = {}

    def root(key: bytes) -> bytes:
        while (parent := parents.setdefault(key, key)) != key:
            parents[key] = parents[parent]
            key = parent
        return key

    for session, beginning in groups:
        one, two = sorted((root(b"s" + session), root(b"b" + beginning)))
        parents[two] = one
    return [_split(root(b"s" + session), options) for session, _ in groups]


def _split(key: bytes, options: SplitOptions) -> str:
    number = _number(b"", key, options.seed)
    if number < options.test:
        return "test"
    return "validation" if number < options.test + options.validation else "train"


def _number(purpose: bytes, key: bytes, seed: int) -> float:
    """Returns a number in [0, 1) derived from the seed and the key."""
    seeded = purpose + f"{seed}\n".encode() + key
    return int.from_bytes(hashlib.blake2b(seeded, digest_size=8).digest()) / 2**64


# -- down-samples to target shares: decides which conversations are kept ---------------------------

_REST = "\0rest"
"""The group of all values without a share of their own; no value equals this text."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A conversation: its group, its size (samples or tokens), the digest of its content."""

    group: str
    size: int
    identity: bytes


def left_out(
    candidates: Sequence[Candidate], shares: Mapping[str, float], seed: int
) -> frozenset[int]:
    """Returns the positions of the conversations to drop so that the rest has the shares."""
    groups: dict[str, list[int]] = {}
    for position, candidate in enumerate(candidates):
        name = candidate.group if candidate.group in shares else _REST
        groups.setdefault(name, []).append(position)
    target = {**shares, _REST: max(1 - sum(shares.values()), 0.0)}
    sizes = {
        name: sum(candidates[position].size for position in group) for name, group in groups.items()
    }
    met = sum(sorted(target[name] for name in groups))
    # Shares of missing groups cannot be met, so those of the present ones are scaled to one.
    total = min(
        (sizes[name] * met / target[name] for name in groups if target[name] > 1e-9), default=0
    )
    gone: set[int] = set()
    for name, group in groups.items():
        quota = int(total * target[name] / met + 1e-6) if met else 0
        for position in sorted(
            group, key=lambda position: draw(candidates[position].identity, seed)
        ):
            if candidates[position].size <= quota:
                quota -= candidates[position].size
            else:
                gone.add(position)
    return frozenset(gone)


def draw(identity: bytes, seed: int) -> bytes:
    """Returns the rank of a conversation in an order derived from the seed."""
    return hashlib.blake2b(b"%d " % seed + identity, digest_size=16).digest()


# -- applies a budget of tokens to the whole dataset: selects conversations, drawn by a seed -------


def beyond_budget(items: Sequence[Candidate], total: int, seed: int) -> frozenset[int]:
    """Returns the positions of the conversations to drop so that the tokens fit into `total`."""
    kept: set[int] = set()
    left = total
    for position in sorted(range(len(items)), key=lambda at: draw(items[at].identity, seed)):
        if items[position].size <= left:
            left -= items[position].size
            kept.add(position)
    return frozenset(range(len(items))) - kept


# -- finds exact duplicates: conversations equal to another one or to its beginning ----------------


def exact_duplicates(table: Table, left_out: Sequence[bool], *, in_pieces: bool) -> set[int]:
    """Returns the numbers of the samples that repeat others, without those in `left_out`.

    A conversation whose messages equal those of another, or the beginning of another, is a
    duplicate: the longest is kept, the first among equals. If samples may be parts of conversations
    (`in_pieces`), a turn that two conversations share is also kept only once. So is a sample that
    equals another byte for byte.
    """
    conversations: list[tuple[int, ConversationEntry]] = []
    first = 0
    for row in table:
        end = first + len(row.samples)
        if not all(left_out[first:end]):  # true for a rejected conversation, which has no samples
            conversations.append((first, row.entry))
        first = end
    whole = {entry.prefixes[-DIGEST_BYTES:] for _, entry in conversations}
    beginnings = {
        prefix
        for _, entry in conversations
        for prefix in split_digests(entry.prefixes[:-DIGEST_BYTES])
        if prefix in whole
    }
    duplicates: set[int] = set()
    kept_ends: set[bytes] = set()
    kept_lines: set[bytes] = set()
    for first, entry in conversations:
        last = entry.prefixes[-DIGEST_BYTES:]
        is_duplicate = last not in whole or last in beginnings
        chosen = [
            (number, sample.prefix)
            for number, sample in enumerate(entry.samples, start=first)
            if not left_out[number]
        ]
        duplicates.update(number for number, end in chosen if is_duplicate or end in kept_ends)
        if not is_duplicate:
            whole.discard(last)  # the next equal conversation is a duplicate
            if in_pieces:
                kept_ends.update(end for _, end in chosen)
        for number, sample in enumerate(entry.samples, start=first):
            if left_out[number] or number in duplicates or not sample.line:
                continue
            if sample.line in kept_lines:
                duplicates.add(number)
            kept_lines.add(sample.line)
    return duplicates


NEAR_DUPLICATE = "near_duplicate"

_FindNear = Callable[[Sequence[bool]], Mapping[int, int]]
"""Takes whether each sample is selected so far; returns {near duplicate: sample that is kept}."""


@dataclass(frozen=True, slots=True)
class ChoiceOptions:
    """The parameters of the selection.

    in_pieces  whether samples may be parts of conversations
    shares     the target shares by pattern (`left_out`)
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


def choose(table: Table, options: ChoiceOptions, find_near: _FindNear | None = None) -> Choice:
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
    # After duplicates, so that no copy of a rejected sample takes its place.
    for number, sample in enumerate(chain.from_iterable(row.samples for row in table)):
        codes[number] = codes[number] or sample.review
    if options.shares:  # by the pattern of the longest sample
        surplus = partial(left_out, shares=options.shares, seed=seed)
        _leave_out_surplus(
            table, codes, "mix", lambda row, its: (row.samples[its[-1]].pattern, len(its)), surplus
        )
    for shares in options.select.shares.values():
        surplus = partial(left_out, shares=shares, seed=seed)
        _leave_out_surplus(table, codes, SHARES, lambda row, its: (row.group, len(its)), surplus)
    if options.select.max_tokens_total is not None:
        surplus = partial(beyond_budget, total=options.select.max_tokens_total, seed=seed)
        _leave_out_surplus(table, codes, TOTAL, _tokens, surplus)
    return Choice(codes, _splits(table, codes, options.split), near)


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


_Measure = Callable[[ConversationRow, Sequence[int]], tuple[str, int]]
"""Takes a conversation and the positions of its written samples; returns its group and size."""


def _tokens(row: ConversationRow, chosen: Sequence[int]) -> tuple[str, int]:
    return "", sum(row.samples[position].entry.tokens for position in chosen)


def _leave_out_surplus(
    table: Table,
    codes: list[str | None],
    code: str,
    measure: _Measure,
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
    splits: list[str | None] = [None] * len(codes)
    written = list(_written(table, codes))
    groups = [(row.entry.session, row.entry.prefixes[:DIGEST_BYTES]) for row, _, _ in written]
    for (_, _, chosen), split in zip(written, assign(groups, options), strict=True):
        for number in chosen:
            splits[number] = split
    return splits
