"""Creates the reader of a provider's API: request and response captures, rows and lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from builder.conversation import Event, Json
from builder.readers import Reader
from builder.readers.api.capture.batch import is_store
from builder.readers.api.capture.captures import first_api, read_captures
from builder.sources.source import Source


def api_reader(name: str, is_row: Callable[[Json], bool], summary: str) -> Reader:
    """Returns the reader of an API. `is_row` recognises rows that are whole conversations."""

    def recognise(source: Source) -> str | None:
        """Claims sources whose first exchange or row of a known API belongs to this API."""
        api, reason = first_api(source)
        return reason if api == name else None

    def read(source: Source) -> Iterator[Event]:
        """Yields the source's conversations and the events of its other records."""
        return read_captures(source, name)

    def splits(source: Source) -> bool:
        """Returns whether lines are independent: rows are, requests continue earlier ones."""
        return source.peek.kind == "jsonl" and all(map(is_row, source.peek.records))

    return Reader(
        name=name,
        summary=summary,
        evidence=("documentation", "files"),
        recognise=recognise,
        generic=True,
        read=read,
        is_store=is_store,
        splits=splits,
    )
