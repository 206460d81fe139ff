"""Finds the samples of a build that nearly equal one of another session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from builder.conversation import Json
from builder.dataset.meta import SampleMeta
from builder.jsonio import loads
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str
from builder.select.table import Table


def near_duplicates(
    samples: Callable[[], Iterable[tuple[bytes, bytes]]], table: Table, chosen: Sequence[bool]
) -> Mapping[int, int]:
    """Returns {near duplicate: the sample that is kept in its place} among the chosen ones.

    `samples` yields the line and the meta line of each sample of the table.
    """
    from builder.audit.duplicates import compared_text, near_repeats  # noqa: PLC0415 - numpy

    def texts() -> Iterator[str]:
        for number, (line, meta) in enumerate(samples()):
            if chosen[number]:
                items = as_dicts(as_dict(loads(line)).get("messages"))
                unit = SampleMeta.read(as_dict(loads(meta))).unit
                messages = [(as_str(item, "role"), as_str(item, "content")) for item in items]
                yield compared_text(messages, unit, [*map(_is_trained, items)])

    numbers = [number for number, is_chosen in enumerate(chosen) if is_chosen]
    sessions = [row.entry.session for row in table for _ in row.samples]
    found = near_repeats(texts(), [sessions[number] for number in numbers])
    return {numbers[again]: numbers[kept] for again, kept in found.items()}


def _is_trained(message: dict[str, Json]) -> bool:
    return message.get("role") == "assistant" and message.get("weight") != 0
