"""Computes labels for token ids, so that exactly the tokens of `meta.spans` are trained."""

from __future__ import annotations

from collections.abc import Sequence

IGNORED = -100
"""The label that the loss functions of all trainers ignore."""


class BorderFault(Exception):
    """A span does not begin or end at a token boundary, so its tokens cannot be assigned."""


def labels(
    ids: Sequence[int], offsets: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]]
) -> list[int]:
    """Returns the ids inside the spans, IGNORED elsewhere. Offsets and spans are code points.

    Raises BorderFault if a token crosses a border of a span.
    """
    labelled = [IGNORED] * len(ids)
    position = 0
    for start, end in spans:
        while position < len(ids) and offsets[position][1] <= start:
            position += 1
        if position < len(ids) and offsets[position][0] < start:
            raise BorderFault(f"a token crosses the beginning of the span at {start}")
        while position < len(ids) and offsets[position][0] < end:
            if offsets[position][1] > end:
                raise BorderFault(f"a token crosses the end of the span at {end}")
            labelled[position] = ids[position]
            position += 1
    return labelled
