"""Finds exact duplicates: conversations equal to another one or to its beginning."""

from __future__ import annotations

from collections.abc import Sequence

from builder.select.table import DIGEST_BYTES, ConversationEntry, Table, split_digests


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
