"""Checks a mapping against the logs that it is for: each path must find something."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from builder.conversation import Json
from builder.problem import Problem, UsageError, nearest
from builder.readers.mapping.calls import part
from builder.readers.mapping.read import listed, mapped_records
from builder.readers.mapping.spec import MappingSpec, value_at
from builder.sources.copies import local_copy
from builder.sources.source import Source

MAX_DEPTH = 4
_PLACES = 200
"""Records whose keys are listed for the hint about a path that finds nothing."""


def check_mapping(name: str, spec: MappingSpec, sources: Iterable[Source]) -> None:
    """Reads the sources until each path of the mapping has found something.

    Raises UsageError with a line for each path that finds nothing in any record.
    """
    missing = dict(spec.paths())
    missing.pop("records", None)
    known: dict[str, dict[str, None]] = {}
    records = 0
    for source in sources:
        with local_copy(source.unread_copy()) as copy:
            for record in mapped_records(spec, copy):
                if isinstance(record, Problem):
                    continue
                records += 1
                for key, value in contexts(spec, record.value):
                    if records <= _PLACES:
                        known.setdefault(key, {}).update(dict.fromkeys(key_paths(value)))
                    for path in [path for path in missing if path.rpartition(".")[0] == key]:
                        if value_at(missing[path], value) is not None:
                            del missing[path]
                if not missing:
                    return
    if records:
        lines = []
        for key, path in missing.items():
            places = known.get(key.rpartition(".")[0], {})
            hint = nearest(path, places) if places else ""
            lines.append(
                f"{name}: {key}: {path!r} finds nothing in any of {records:,} records{hint}"
            )
        if lines:
            raise UsageError("\n".join(lines))


def contexts(spec: MappingSpec, record: Json) -> Iterator[tuple[str, Json]]:
    """Yields (section of the mapping, value) of each value that the section's paths start from."""
    yield "conversation", record
    yield "conversation.outcome", record
    messages = (
        [record] if spec.are_messages else listed(value_at(spec.conversation.messages, record))
    )
    for message in messages:
        yield "message", message
        paths = spec.message
        calls = [message] if paths.calls is None else listed(value_at(paths.calls, message))
        results = [message] if paths.results is None else listed(value_at(paths.results, message))
        yield from (("message.call", call) for call in calls)
        yield from (("message.result", result) for result in results)


def key_paths(value: Json, prefix: str = "", depth: int = 0) -> Iterator[str]:
    """Yields the paths of keys, at most `MAX_DEPTH` deep; of a list, those of its first item."""
    if isinstance(value, dict):
        for key, item in islice(value.items(), 100):
            path = f"{prefix}{part(key)}"
            yield path
            if depth < MAX_DEPTH:
                yield from key_paths(item, f"{path}.", depth + 1)
    elif isinstance(value, list) and value and prefix:
        yield f"{prefix[:-1]}[]"
        yield from key_paths(value[0], f"{prefix[:-1]}[].", depth + 1)
