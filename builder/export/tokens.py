"""Token ids with labels: what is trained is what `meta.spans` says, nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from builder.qwen3.tokenizer import Target

if TYPE_CHECKING:
    from builder.export.variants import Item

IGNORED = -100
"""The label that the loss functions of all trainers leave out."""


class BorderFault(Exception):
    """A span does not begin or end where a token does: its tokens cannot be told."""


def labels(
    ids: Sequence[int],
    offsets: Sequence[tuple[int, int]],
    spans: Sequence[tuple[int, int]],
) -> list[int]:
    """The ids inside the spans, IGNORED elsewhere. Offsets and spans are code points.

    Raises BorderFault: a token lies across a border of a span.
    """
    made = [IGNORED] * len(ids)
    at = 0
    for start, end in spans:
        while at < len(ids) and offsets[at][1] <= start:
            at += 1
        if at < len(ids) and offsets[at][0] < start:
            raise BorderFault(f"a token lies across the beginning of the span at {start}")
        while at < len(ids) and offsets[at][0] < end:
            if offsets[at][1] > end:
                raise BorderFault(f"a token lies across the end of the span at {end}")
            made[at] = ids[at]
            at += 1
    return made


def token_rows(item: Item, target: Target) -> Iterator[tuple[dict[str, Any], str]]:
    """The row of a sample. Raises BorderFault."""
    ids = target.encode(item.text).ids
    row = {
        "input_ids": ids,
        "attention_mask": [1] * len(ids),
        "labels": labels(ids, target.offsets(item.text), item.spans),
        "length": len(ids),
    }
    yield row, item.text
