"""Prints aligned plain-text tables."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmark.cost import Cost
from benchmark.rounds import Costs, Metric, cpu, ratios, seconds


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
    """Prints the medians of each command with their spread, and its peak memory in all rounds."""
    rows = [["", "CPU s", "seconds", "peak MB"]]
    for name, costs in found.items():
        most = max((cost.peak for cost in costs if cost.peak is not None), default=None)
        times = (_costs(costs, of) for of in (cpu, seconds))
        rows.append([name, *times, megabytes(most)])
    show(title, rows)


def _costs(costs: Sequence[Cost], of: Metric) -> str:
    return spread([value for cost in costs if (value := of(cost)) is not None])


def over(found: Costs, one: str, other: str, of: Metric = seconds) -> str:
    """Formats the quotient one / other: the median over the rounds, the lowest and the highest."""
    return spread(ratios(found[one], found[other], of))


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Formats the median, the lowest and the highest value."""
    if not values:
        return "-"
    middle, low, high = (
        number(value, digits) for value in (statistics.median(values), min(values), max(values))
    )
    return f"{middle} ({low} to {high})"


def ratio_rows(found: Costs, wanted: Sequence[tuple[str, str, str]]) -> list[list[str]]:
    """Returns rows for the pairs that were run: one / other by CPU and wall clock, the target."""
    return [
        [f"{one} / {other}", over(found, one, other, cpu), over(found, one, other), target]
        for one, other, target in wanted
        if one in found and other in found
    ]


RATIO_HEADS = ["", "CPU s", "seconds", "target of CPU"]
