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
    at = 0
    for start, end in spans:
        while at < len(ids) and offsets[at][1] <= start:
            at += 1
        if at < len(ids) and offsets[at][0] < start:
            raise BorderFault(f"a token crosses the beginning of the span at {start}")
        while at < len(ids) and offsets[at][0] < end:
            if offsets[at][1] > end:
                raise BorderFault(f"a token crosses the end of the span at {end}")
            labelled[at] = ids[at]
            at += 1
    return labelled
