"""Token ids with labels: what is trained is what `meta.spans` says, nothing else."""

from __future__ import annotations

from collections.abc import Sequence

IGNORED = -100
"""The label that the loss functions of all trainers leave out."""


class BorderFault(Exception):
    """A span does not begin or end where a token does: its tokens cannot be assigned."""


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
