"""Proposes a mapping for a file of unknown format, from the names and values of its keys.

The proposal is a beginning that its user checks: it is written to a file, with the first
conversation that it gives shown next to it. What it leaves open, it says in a line each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from builder.conversation import Json
from builder.problem import Problem
from builder.readers.mapping.calls import decoded, definitions, find_calls, find_tools, part
from builder.readers.mapping.check import key_paths
from builder.readers.mapping.names import NAMES, OUTCOMES, PAIRS
from builder.readers.mapping.parts import has_user, propose, role_path
from builder.readers.mapping.proposal import Proposal, usual_path
from builder.readers.mapping.read import listed, mapped_records, role_of, unmapped
from builder.readers.mapping.spec import (
    CallPaths,
    ConversationPaths,
    MappingSpec,
    MessagePaths,
    ResultPaths,
    value_at,
)
from builder.readers.toolkit.known_keys import counted_names
from builder.readers.toolkit.narrow import as_list
from builder.sources.source import Source
from builder.sources.sqlite_file import tables

_RECORDS = 100
"""Records that are examined."""


def suggest(source: Source) -> str | None:
    """Returns a mapping for the source as YAML; None if nothing in it looks like a conversation."""
    query, records_path, records = _records(source)
    rows = [record for record in records if isinstance(record, dict)]
    if not rows:
        return None
    found = _found(rows)
    if found is None:
        return None
    import yaml  # noqa: PLC0415 - all modules of readers are imported to find the readers

    conversation, message = found
    head: dict[str, Any] = {"query": query} if query else {}
    head |= {"records": records_path} if records_path else {}
    head |= {"conversation": conversation, "message": message.section}
    text = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=100)
    lines = [f"# Proposed for {source.name}: check it (docs/mapping.md)."]
    lines += [f"# Decide: {line}" for line in message.decisions]
    if unread := _unread(_spec(conversation, message.section), rows):
        lines.append(f"# Not read, name it if the model saw it: {', '.join(unread)}")
    return "\n".join([*lines, text])


def _spec(conversation: dict[str, Any], message: dict[str, Any]) -> MappingSpec:
    call, result = CallPaths(**message.get("call", {})), ResultPaths(**message.get("result", {}))
    paths = MessagePaths(**message | {"call": call, "result": result})
    return MappingSpec(paths, ConversationPaths(**conversation))


def _unread(spec: MappingSpec, rows: Sequence[Json]) -> dict[str, int]:
    """Returns the keys with text or calls that the proposal does not read, and how often."""
    keys = spec.known_keys()
    found: list[str] = []
    for row in rows:
        if not spec.is_grouped or role_of(spec.message, row) != "skip":
            found += unmapped(keys, row)
        for item in () if spec.is_grouped else listed(value_at(spec.conversation.messages, row)):
            found += unmapped(keys, item)
    return counted_names(found)


def _found(rows: Sequence[dict[str, Json]]) -> tuple[dict[str, Any], Proposal] | None:
    """Returns the sections of the mapping: the likeliest shape of the records."""
    return (
        _in_records(rows, is_certain=True)
        or _as_records(rows, is_certain=True)
        or _in_records(rows, is_certain=False)
        or _as_records(rows, is_certain=False)
        or _pairs(rows)
    )


def _records(source: Source) -> tuple[str | None, str | None, list[Json]]:
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
        if isinstance(document, dict) and not _lists(document, depth=0):
            for path in key_paths(document):
                items = value_at(path, document)
                if path.endswith("[]") and isinstance(items, list) and _lists(items[0], depth=0):
                    return None, path, items[:_RECORDS]
    return None, None, _first(source, MappingSpec(MessagePaths()))


def _first(source: Source, spec: MappingSpec) -> list[Json]:
    records = mapped_records(spec, source.unread_copy())
    return [item.value for item in islice(records, _RECORDS) if not isinstance(item, Problem)]


def _likeness(columns: Iterable[str]) -> int:
    return sum(any(name in NAMES[key] for name in columns) for key in ("role", "text", "id"))


def _lists(record: Json, depth: int = 2, *, is_certain: bool = True) -> dict[str, list[Json]]:
    """Returns {path: items} of the lists of messages in a record.

    `is_certain`: the messages have roles for the user and for the assistant. Else they may be steps
    without a role that have calls.
    """
    found: dict[str, list[Json]] = {}
    if not isinstance(record, dict):
        return found
    for key, value in record.items():
        items, path = decoded(value, part(key))
        if isinstance(items, list) and _is_messages(items, is_certain=is_certain):
            found[path] = items
        elif isinstance(items, dict) and depth:
            inner = _lists(items, depth - 1, is_certain=is_certain)
            found |= {f"{path}.{rest}": value for rest, value in inner.items()}
    return found


def _is_messages(items: Sequence[Json], *, is_certain: bool) -> bool:
    if not items or not all(isinstance(item, dict) for item in items) or definitions([*items]):
        return False
    if role_path(items, is_certain=is_certain) is not None:
        return True
    if is_certain:
        return False
    shape = find_calls(items, (), role="", followed=False)
    return shape is not None and shape.evidence > 1


def _in_records(
    rows: Sequence[dict[str, Json]], *, is_certain: bool
) -> tuple[dict[str, Any], Proposal] | None:
    """Returns the mapping of records with a list of messages each."""
    counts: Counter[str] = Counter()
    for row in rows:
        for name, items in _lists(row, is_certain=is_certain).items():
            counts[name] += len(items)
    if not counts:
        return None
    path = counts.most_common(1)[0][0]
    found = (value_at(path, row) for row in rows)
    lists = [items for items in found if isinstance(items, list)]
    logged = [one for items in lists for one in items]
    tools, names = find_tools(rows)
    if tools is None:
        inner, names = find_tools(logged)
        tools = None if inner is None else f"{path}[].{inner} | [0]"
    head = _top(rows, tools)
    prompt = None
    if not has_user(logged):
        prompt = usual_path(rows, "prompt", inside=(path, *filter(None, [tools])))
    messages = path
    if prompt is None:
        message = propose(lists, names)
    elif any(isinstance(value_at(prompt, row), list) for row in rows):
        messages = f"[{prompt}, {path}][]"
        message = propose([as_list(value_at(messages, row)) for row in rows], names)
    else:
        messages = f"[[{{role: 'user', text: {prompt}}}], {path}][]"
        message = propose(lists, names)
        for key, value in (("role", "role"), ("text", "text")):
            own = message.section.get(key)
            if own != value:
                message.section[key] = value if own is None else _either(own, value)
    conversation: dict[str, Any] = {"messages": messages}
    if (own_id := usual_path(rows, "id", inside=(path,))) is not None:
        conversation["id"] = own_id
    return conversation | head, message


def _either(path: str, other: str) -> str:
    """Returns the path that finds what one of two finds; a constant is the last one."""
    return f"{other} || {path}" if path.startswith("'") else f"{path} || {other}"


def _as_records(
    rows: Sequence[dict[str, Json]], *, is_certain: bool
) -> tuple[dict[str, Any], Proposal] | None:
    """Returns the mapping of records that are messages, grouped by a key."""
    if role_path(rows, is_certain=is_certain) is None:
        return None
    name = usual_path(rows, "id", shared=True)
    if name is None and not is_certain:
        return None
    conversation: dict[str, Any] = {"id": name if name is not None else "'conversation'"}
    order = usual_path(rows, "order")
    if order is not None and all(value_at(order, record) is not None for record in rows):
        conversation["order"] = order
    groups: dict[str, list[Json]] = {}
    ordered = sorted(rows, key=_key(order, rows)) if "order" in conversation else rows
    for row in ordered:
        groups.setdefault(str(value_at(conversation["id"], row)), []).append(row)
    tools, names = find_tools(rows)
    head = _top(rows, tools)
    message = propose([*groups.values()], names)
    if name is None:
        message.decisions.append("conversation.id: is the whole file one conversation?")
    own = message.section.get("model")
    if own is not None and head.get("model") == own:
        del head["model"]
    return conversation | head, message


def _key(order: str | None, rows: Sequence[Json]) -> Callable[[Json], Any]:
    """Returns the key by which records are sorted: numbers, or else texts."""
    are_numbers = all(isinstance(value_at(order, row), int | float) for row in rows)
    return lambda row: value_at(order, row) if are_numbers else str(value_at(order, row))


def _pairs(rows: Sequence[dict[str, Json]]) -> tuple[dict[str, Any], Proposal] | None:
    """Returns the mapping of records with a question and an answer under two keys."""
    for question, answer in PAIRS:
        if any(isinstance(row.get(question), str) and row.get(answer) for row in rows):
            messages = (
                f"[{{role: 'user', text: {question}}}, {{role: 'assistant', text: {answer}}}]"
            )
            conversation: dict[str, Any] = {"messages": messages}
            if (name := usual_path(rows, "id")) is not None:
                conversation["id"] = name
            head = _top(rows, find_tools(rows)[0])
            return conversation | head, Proposal({"role": "role", "text": "text"})
    return None


def _top(rows: Sequence[dict[str, Json]], tools: str | None) -> dict[str, Any]:
    """Returns the paths of what a conversation has once."""
    found: dict[str, Any] = {}
    for key in ("system", "model", "license"):
        if (path := usual_path(rows, key)) is not None:
            found[key] = path
    if tools is not None:
        found["tools"] = tools
    outcome: dict[str, str] = {}
    for path in dict.fromkeys(path for row in rows for path in key_paths(row)):
        name = OUTCOMES.get(path.rpartition(".")[2])
        if name is not None and path.count(".") < 2 and "[" not in path:
            outcome.setdefault(name, path)
    return found | ({"outcome": outcome} if outcome else {})
