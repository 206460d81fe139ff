"""Finds the records of a source of unknown format, and the lists of messages in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from builder.conversation import Json
from builder.problem import Problem
from builder.readers.mapping.calls import decoded, definitions, find_calls, has_ids, part
from builder.readers.mapping.check import key_paths
from builder.readers.mapping.names import NAMES, is_usual
from builder.readers.mapping.read import mapped_records
from builder.readers.mapping.results import result_beside
from builder.readers.mapping.roles import Sure, role_path
from builder.readers.mapping.spec import MappingSpec, MessagePaths, value_at
from builder.readers.toolkit.narrow import as_dict, as_list
from builder.sources.source import Source
from builder.sources.sqlite_file import tables

_RECORDS = 100
"""Records that are examined."""


def first_records(source: Source) -> tuple[str | None, str | None, list[Json]]:
    """Returns (query, path of the records, the first records) of a source."""
    if source.peek.kind == "sqlite":
        names = tables(source)
        likely = sorted(names, key=lambda name: (-_likeness(names[name]), name))
        if not likely:
            return None, None, []
        query = f'SELECT * FROM "{likely[0]}"'  # noqa: S608 - shown to the user, who runs it
        return query, None, _first(source, MappingSpec(MessagePaths(), query=query))
    if source.peek.kind == "json":
        document = source.document()
        if isinstance(document, dict) and (by_name := _by_name(document)) is not None:
            return None, by_name, as_list(value_at(by_name, document))[:_RECORDS]
        if isinstance(document, dict) and not message_lists(document, depth=0):
            for path in key_paths(document):
                items = value_at(path, document)
                if (
                    path.endswith("[]")
                    and isinstance(items, list)
                    and message_lists(items[0], depth=0)
                ):
                    return None, path, items[:_RECORDS]
    return None, None, _first(source, MappingSpec(MessagePaths()))


def _by_name(document: dict[str, Json]) -> str | None:
    """Returns the path of records, one for each list of messages in an object that has many."""
    for key, value in (("", document), *document.items()):
        lists = [*value.values()] if isinstance(value, dict) else []
        if len(lists) < 2 or not (has_ids(as_dict(value)) or is_usual("id", key.removesuffix("s"))):
            continue
        if all(isinstance(one, list) and _is_messages(one, "sure") for one in lists):
            return f"values({part(key) if key else '@'})[*].{{messages: @}}"
    return None


def _first(source: Source, spec: MappingSpec) -> list[Json]:
    records = mapped_records(spec, source.unread_copy())
    return [item.value for item in islice(records, _RECORDS) if not isinstance(item, Problem)]


def _likeness(columns: Iterable[str]) -> int:
    return sum(any(name in NAMES[key] for name in columns) for key in ("role", "text", "id"))


def message_lists(
    record: Json, depth: int = 2, *, sure: Sure = "sure", names: Collection[str] = ()
) -> dict[str, list[Json]]:
    """Returns {path: items} of the lists of messages in a record.

    `sure`: the messages have roles for the user and for the assistant. Else they may be steps
    without a role that have calls; `names` are those of defined tools.
    """
    found: dict[str, list[Json]] = {}
    if not isinstance(record, dict):
        return found
    for key, value in record.items():
        items, path = decoded(value, part(key))
        if isinstance(items, list) and _is_messages(items, sure, names):
            found[path] = items
        elif isinstance(items, dict) and depth:
            inner = message_lists(items, depth - 1, sure=sure, names=names)
            found |= {f"{path}.{rest}": value for rest, value in inner.items()}
    return found


def _is_messages(items: Sequence[Json], sure: Sure, names: Collection[str] = ()) -> bool:
    if not items or not all(isinstance(item, dict) for item in items) or definitions([*items]):
        return False
    if role_path(items, sure) is not None:
        return True
    if sure == "sure":
        return False
    shape = find_calls(items, names, role="", followed=False)
    if shape is None or shape.evidence < 2:
        return False
    # A list of nothing but calls is those of one message.
    return shape.path is not None or result_beside(shape) is not None
