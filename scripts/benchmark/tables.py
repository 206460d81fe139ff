"""Prints aligned plain-text tables."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmark.rounds import Costs, Metric, cpu, median, ratios, seconds


def show(title: str, rows: Sequence[Sequence[str]]) -> None:
    """Prints rows, the first one as the header; the first column is left-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print(f"\n{title}")
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        cells[0] = row[0].ljust(widths[0])
        print("  ".join(cells).rstrip(), flush=True)


def number(value: float | None, digits: int = 2) -> str:
    """Formats a number; a dash if it is unknown."""
    return "-" if value is None else f"{value:.{digits}f}"


def megabytes(value: float | None) -> str:
    """Formats bytes as MB."""
    return number(None if value is None else value / 1e6, 0)


def show_costs(title: str, found: Costs) -> None:
    """Prints the medians of each command, and its peak memory over all rounds."""
    rows = [["", "seconds", "CPU s", "peak MB"]]
    for name, costs in found.items():
        most = max((cost.peak for cost in costs if cost.peak is not None), default=None)
        times = number(median(costs, seconds)), number(median(costs, cpu))
        rows.append([name, *times, megabytes(most)])
    show(title, rows)


def over(found: Costs, one: str, other: str, of: Metric = seconds) -> str:
    """Formats the quotient one / other: the median over the rounds, the lowest and the highest."""
    return spread(ratios(found[one], found[other], of))


def spread(values: Sequence[float]) -> str:
    """Formats the median, the lowest and the highest value."""
    if not values:
        return "-"
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def ratio_rows(found: Costs, wanted: Sequence[tuple[str, str, str]]) -> list[list[str]]:
    """Returns rows for the pairs that were run: one / other by wall clock and CPU, the target."""
    return [
        [f"{one} / {other}", over(found, one, other), over(found, one, other, cpu), target]
        for one, other, target in wanted
        if one in found and other in found
    ]


RATIO_HEADS = ["", "seconds", "CPU s", "target"]
