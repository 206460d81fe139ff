"""Finds exact duplicates: conversations equal to another one or to its beginning."""

from __future__ import annotations

from collections.abc import Sequence

from builder.select.table import DIGEST_BYTES, Table, split_digests


def exact_duplicates(table: Table, left_out: Sequence[bool], *, in_pieces: bool) -> set[int]:
    """Returns the numbers of the samples that repeat others, without those in `left_out`.

    A conversation whose messages equal those of another, or the beginning of another, is a
    duplicate: the longest is kept, the first among equals. If samples may be parts of conversations
    (`in_pieces`), a turn that two conversations share is also kept only once.
    """
    conversations: list[tuple[range, bytes, bytes]] = []
    number = 0
    for row in table:
        own = range(number, number + row.samples)
        number = own.stop
        if not all(left_out[at] for at in own):  # true for a rejected conversation, which has none
            conversations.append((own, row.prefixes, row.ends))
    whole = {prefixes[-DIGEST_BYTES:] for _, prefixes, _ in conversations}
    beginnings = {
        prefix
        for _, prefixes, _ in conversations
        for prefix in split_digests(prefixes[:-DIGEST_BYTES])
        if prefix in whole
    }
    found: set[int] = set()
    kept_ends: set[bytes] = set()
    for own, prefixes, ends in conversations:
        last = prefixes[-DIGEST_BYTES:]
        is_duplicate = last not in whole or last in beginnings
        chosen = [
            (at, end) for at, end in zip(own, split_digests(ends), strict=True) if not left_out[at]
        ]
        found.update(at for at, end in chosen if is_duplicate or end in kept_ends)
        if not is_duplicate:
            whole.discard(last)  # the next equal conversation is a duplicate
            if in_pieces:
                kept_ends.update(end for _, end in chosen)
    return found
