"""Finds the records of a source of unknown format, and the lists of messages in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from builder.conversation import Json
from builder.problem import Problem
from builder.readers.mapping.calls import decoded, definitions, find_calls, has_ids, part
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
_PLACES, _DEPTH = 8, 4
"""Lists of a document that are examined, and how deep they are looked for."""


class Records(NamedTuple):
    """The first records of a source, and the query or the path in the document that finds them.

    decisions  what is open about the query
    """

    rows: list[Json]
    path: str | None = None
    query: str | None = None
    decisions: Sequence[str] = ()


def first_records(source: Source) -> Iterator[Records]:
    """Yields the records that a source may hold: of a JSON document, those of each list in it."""
    if source.peek.kind == "sqlite":
        if (query := query_of(source)) is not None:
            rows = _first(source, MappingSpec(MessagePaths(), query=query))
            yield Records(rows, query=query, decisions=[*_other_tables(source, query)])
        return
    document = source.unread_copy().document() if source.peek.kind == "json" else None
    if isinstance(document, dict) and (by_name := _by_name(document)) is not None:
        yield Records(as_list(value_at(by_name, document))[:_RECORDS], by_name)
        return
    if isinstance(document, list) and document and _is_list_of_lists(document):
        path = "[*].{messages: @}"
        yield Records(as_list(value_at(path, document[:_RECORDS])), path)
        return
    if isinstance(document, dict) and _are_lists_by_id(document):
        yield Records(as_list(value_at("values(@)[]", document))[:_RECORDS], "values(@)[]")
        return
    yield Records(_first(source, MappingSpec(MessagePaths())))
    if isinstance(document, dict):
        for path in islice(_nested(document), _PLACES):
            yield Records(as_list(value_at(path, document))[:_RECORDS], path)


def _other_tables(source: Source, query: str) -> Iterator[str]:
    """Yields a doubt if other tables of a database have columns that conversations have."""
    usual = ("text", "calls", "arguments", "result_text", "system", "answer")
    others = [
        f"{name!r} ({', '.join(sorted(columns))})"
        for name, columns in tables(source).items()
        if f'"{name}"' not in query
        and any(is_usual(key, column) for key in usual for column in columns)
    ]
    if others:
        yield f"query: did the model see what is in {', '.join(others[:5])}? Then join it"


def _is_list_of_lists(items: Sequence[Json]) -> bool:
    return all(isinstance(one, list) and all(isinstance(i, dict) for i in one) for one in items)


def _nested(document: Json) -> Iterator[str]:
    """Yields the paths of lists of objects in a document, the outer ones first.

    An object that has objects by ids, or by other names that none of them shares, is such a list.
    """
    pending: list[tuple[str, list[Json], int]] = [("", [document], 0)]
    while pending:
        path, items, depth = pending.pop(0)
        for key in dict.fromkeys(key for one in items for key in as_dict(one)):
            full = f"{path}.{part(key)}" if path else part(key)
            values = [as_dict(one)[key] for one in items if key in as_dict(one)]
            if all(isinstance(one, list) for one in values):
                inner = [one for value in values for one in as_list(value)][:_RECORDS]
                full = f"{full}[]"
            elif all(_are_lists_by_id(one) for one in values):
                inner = [i for value in values for one in as_dict(value).values()
                         for i in as_list(one)][:_RECORDS]  # fmt: skip
                full = f"{path}.values({part(key)})[]" if path else f"values({part(key)})[]"
            elif all(_is_by_name(one) for one in values):
                inner = [one for value in values for one in as_dict(value).values()][:_RECORDS]
                full = f"{path}.values({part(key)})[]" if path else f"values({part(key)})[]"
            else:
                inner = [one for one in values if isinstance(one, dict)]
            if not inner or not all(isinstance(one, dict) for one in inner):
                continue
            if full.endswith("[]"):
                yield full
            if depth < _DEPTH:
                pending.append((full, inner, depth + 1))


def _are_lists_by_id(value: Json) -> bool:
    """Returns whether an object has lists of objects by ids, e.g. by days."""
    lists = [*as_dict(value).values()]
    return has_ids(as_dict(value)) and _is_list_of_lists(lists)


def _is_by_name(value: Json) -> bool:
    """Returns whether an object has objects that are alike, by their ids."""
    inner = [*as_dict(value).values()]
    if not inner or not all(isinstance(one, dict) for one in inner):
        return False
    shared = set.intersection(*({*as_dict(one)} for one in inner))
    return has_ids(as_dict(value)) or (len(inner) > 1 and bool(shared))


def query_of(source: Source) -> str | None:
    """Returns a SELECT of the likeliest table, with what another table has once for its rows."""
    columns = tables(source)
    likely = sorted(columns, key=lambda name: (-_likeness(columns[name]), name))
    if not likely:
        return None
    main = likely[0]
    for other in likely[1:]:
        links = [one for one in columns[main] if one.lower() in (
            f"{other}_id".lower(), f"{other.removesuffix('s')}_id".lower())]  # fmt: skip
        once = sorted(name for name in columns[other] - columns[main]
                      if any(is_usual(key, name) for key in ("system", "model")))  # fmt: skip
        if links and once and "id" in columns[other]:
            more = ", ".join(f'c."{name}"' for name in once)
            return (  # shown to the user, who runs it
                f'SELECT m.*, {more} FROM "{main}" AS m LEFT JOIN "{other}" AS c'  # noqa: S608
                f' ON c."id" = m."{links[0]}"'
            )
    return f'SELECT * FROM "{main}"'  # noqa: S608 - as above


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


def lists_by_step(rows: Sequence[Json], sure: Sure) -> str | None:
    """Returns the path of messages in records that have them by the name of a step, or None.

    E.g. `{"update": {"agent": {"messages": […]}}}`: the name differs from record to record.
    """
    places = ["@", *dict.fromkeys(part(key) for row in rows for key in as_dict(row))]
    for place in places:
        steps = [as_dict(value_at(place, row)) for row in rows]
        names = {key for step in steps for key in step}
        if len(names) < 2 or any(len(step) != 1 for step in steps):
            continue
        inner = dict.fromkeys(
            key for step in steps for one in step.values() for key in as_dict(one)
        )
        for key in inner:
            path = f"values({place})[].{part(key)}[]"
            items = [one for row in rows for one in as_list(value_at(path, row))]
            if _is_messages(items, sure):
                return path
    return None


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
