"""Proposes a mapping for a file of unknown format, from the names and values of its keys.

The proposal is a beginning that its user checks: it is written to a file, with the first
conversation that it gives shown next to it. What it leaves open, it says in a line each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from builder.conversation import Json
from builder.readers.mapping.calls import (
    find_tools,
    objects_in,
    scalar_paths,
)
from builder.readers.mapping.check import key_paths
from builder.readers.mapping.columns import propose_pairs, propose_two_texts
from builder.readers.mapping.documents import Records, first_records, lists_by_step, message_lists
from builder.readers.mapping.doubts import characters_read, doubts
from builder.readers.mapping.encoded import decoded_rows, with_json
from builder.readers.mapping.names import OUTCOMES, is_usual, meaning, rank
from builder.readers.mapping.order import places_of
from builder.readers.mapping.parts import propose
from builder.readers.mapping.proposal import Proposal, usual_path
from builder.readers.mapping.read import listed, role_of, unmapped
from builder.readers.mapping.reading import KeyPlace, reading_of
from builder.readers.mapping.roles import Sure, has_user, role_path
from builder.readers.mapping.rows import propose_rows
from builder.readers.mapping.sample import sample_of
from builder.readers.mapping.spec import (
    CallPaths,
    ConversationPaths,
    MappingSpec,
    MessagePaths,
    ResultPaths,
    value_at,
)
from builder.readers.mapping.structure import plain
from builder.readers.toolkit.narrow import as_dict, as_list
from builder.readers.toolkit.unknown_keys import counted_names, has_words
from builder.sources.source import Source


def suggest(source: Source) -> str | None:
    """Returns a mapping for the source as YAML; None if nothing in it looks like a conversation."""
    best: _Suggested | None = None
    for records in first_records(source):
        found = _suggested(records)
        if found is not None and (best is None or found.characters > best.characters):
            best = found
    if best is None:
        return None
    import yaml  # noqa: PLC0415 - all modules of readers are imported to find the readers

    spec, rows = best.spec, best.rows
    head: dict[str, Any] = {"query": spec.query} if spec.query else {}
    head |= {"records": spec.records} if spec.records else {}
    head |= {"conversation": best.conversation, "message": best.message.section}
    text = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=100)
    lines = [f"# Proposed for {source.name}: check it (docs/mapping.md)."]
    open_lines = [*best.message.decisions, *doubts(spec, rows)]
    lines += [f"# Decide: {line}" for line in open_lines]
    if unread := _unread(spec, rows):
        lines.append(f"# Not read, name it if the model saw it: {', '.join(unread)}")
    if other := _other_keys(spec, rows, unread):
        lines.append(f"# Other keys: {', '.join(other)}")
    return "\n".join([*lines, text])


class _Suggested(NamedTuple):
    """A proposal for records, and how much of their text it reads."""

    spec: MappingSpec
    conversation: dict[str, Any]
    message: Proposal
    rows: list[dict[str, Json]]
    characters: int


def _suggested(records: Records) -> _Suggested | None:
    rows = sample_of([record for record in records.rows if isinstance(record, dict)])
    if not rows:
        return None
    plain_rows, encoded = decoded_rows(rows)
    found = _found(sample_of(plain_rows) if encoded else plain_rows)
    if found is None:
        return None
    conversation, message = found
    message.decisions += records.decisions
    conversation, message.section = (
        with_json(section, encoded) for section in (conversation, message.section)
    )
    spec = replace(_spec(conversation, message.section), query=records.query, records=records.path)
    return _Suggested(spec, conversation, message, rows, characters_read(spec, rows))


def examined_keys(source: Source) -> list[str]:
    """Returns the keys of the records that `suggest` examines, at most 16 and `*`.

    One whose text is a JSON object is `json(key)`, as a mapping reads it.
    """
    records = next(first_records(source), Records([]))
    keys = dict.fromkeys(key for one in records.rows for key in as_dict(one))
    _, encoded = decoded_rows([one for one in records.rows if isinstance(one, dict)])
    return [f"json({key})" if key in encoded else key for key in counted_names([*keys])]


def _spec(conversation: dict[str, Any], message: dict[str, Any]) -> MappingSpec:
    call, result = CallPaths(**message.get("call", {})), ResultPaths(**message.get("result", {}))
    paths = MessagePaths(**message | {"call": call, "result": result})
    return MappingSpec(paths, ConversationPaths(**conversation))


def _unread(spec: MappingSpec, rows: Sequence[Json]) -> dict[str, int]:
    """Returns the keys with text or calls that the proposal does not read, and how often."""
    found = [key for place, value in _read_values(spec, rows) for key in unmapped(place, value)]
    return counted_names(found)


def _other_keys(spec: MappingSpec, rows: Sequence[Json], unread: Collection[str]) -> list[str]:
    """Returns the other keys of records, messages, calls and results that no path reads."""
    found = dict.fromkeys(
        path
        for place, value in _read_values(spec, rows)
        for path, item in place.unread(value)
        if item not in (None, "", [], {})
    )
    return [key for key in counted_names([*found]) if key not in unread]


def _read_values(spec: MappingSpec, rows: Sequence[Json]) -> Iterator[tuple[KeyPlace, Json]]:
    """Yields (what a mapping reads of it, value) of each record and of each message in it."""
    reading = reading_of(spec)
    for row in rows:
        if not spec.are_messages or role_of(spec.message, row) != "skip":
            yield reading.record, row
        for item in () if spec.are_messages else listed(value_at(spec.conversation.messages, row)):
            yield reading.message, item


def _found(rows: Sequence[dict[str, Json]]) -> tuple[dict[str, Any], Proposal] | None:
    """Returns the sections of the mapping: the likeliest shape of the records."""
    return (
        _in_records(rows, "sure")
        or _as_records(rows, "sure")
        or _in_turns(rows)
        or _in_records(rows, "likely")
        or _as_records(rows, "likely")
        or _with_top(rows, propose_rows(rows))
        or _in_records(rows, "structure")
        or _as_records(rows, "structure")
        or _with_top(rows, propose_pairs(rows))
        or _with_top(rows, propose_two_texts(rows))
    )


def _in_records(
    rows: Sequence[dict[str, Json]], sure: Sure
) -> tuple[dict[str, Any], Proposal] | None:
    """Returns the mapping of records with a list of messages each."""
    counts: Counter[str] = Counter()
    tools, names = find_tools(rows)
    for row in rows:
        for name, items in message_lists(row, sure=sure, names=names).items():
            counts[name] += len(items)
    by_step = lists_by_step(rows, sure)
    if not counts and by_step is None:
        return None
    path = by_step or counts.most_common(1)[0][0]
    found = (value_at(path, row) for row in rows)
    lists = [items for items in found if isinstance(items, list)]
    logged = [one for items in lists for one in items]
    if tools is None:
        inner, names = find_tools(logged)
        tools = None if inner is None else f"{path}[].{inner} | [0]"
    head = _top(rows, tools)
    prompt = None
    if not has_user(logged) and by_step is None:
        prompt = usual_path(rows, "prompt", inside=(path, *filter(None, [tools])))
        asked = [value_at(prompt, row) for row in rows]
        prompt = prompt if any(isinstance(one, list) or has_words(one) for one in asked) else None
    messages = path
    reply = None if prompt is not None else _reply(rows, path, lists, tools)
    made = ""
    if prompt is not None and any(isinstance(value_at(prompt, row), list) for row in rows):
        messages = f"[{prompt}, {path}][]"
    elif prompt is not None:
        made = f"[{{role: 'user', text: {prompt}}}]"
        messages = f"[{made}, {path}][]"
    elif reply is not None and reply[1]:
        messages = f"[{path}, [{reply[0]}]][]"
    elif reply is not None:
        made = f"[{{role: 'assistant', text: {reply[0]}}}]"
        messages = f"[{path}, {made}][]"
    read = lists if made else [as_list(value_at(messages, row)) for row in rows]
    message = propose(read, names)
    for key in ("role", "text") if made else ():
        own = message.section.get(key)
        if own != key:
            message.section[key] = key if own is None else _either(own, key)
    conversation: dict[str, Any] = {"messages": messages}
    own_id = usual_path(rows, "id", inside=(path,))
    if own_id is not None and _are_parts(rows, own_id, path):
        conversation["session"] = own_id
        if (order := usual_path(rows, "order", inside=(path,))) is not None:
            conversation["order"] = order
        message.decisions.append(
            f"conversation.session: are records with one {own_id!r} parts of one conversation?"
        )
    elif own_id is not None:
        conversation["id"] = own_id
    elif by_step is not None:
        conversation["session"] = "'conversation'"
        message.decisions.append("conversation.session: is the whole file one conversation?")
    return conversation | head, message


def _are_parts(rows: Sequence[Json], own_id: str, path: str) -> bool:
    """Returns whether records with one id have other messages each, and not all of them again."""
    last: dict[str, list[Json]] = {}
    shared = 0
    for row in rows:
        name, items = str(value_at(own_id, row)), as_list(value_at(path, row))
        before = last.get(name)
        if before is not None and (not items or before[:1] == items[:1]):
            return False
        shared += before is not None
        last[name] = items
    return shared > 0


def _reply(
    rows: Sequence[dict[str, Json]], path: str, lists: Sequence[Sequence[Json]], tools: str | None
) -> tuple[str, bool] | None:
    """Returns the path of the answers to lists of messages, and whether they are messages.

    None if a list ends with an answer itself, or if there are no others.
    """
    taken = Proposal(taken=[path, *filter(None, [tools])])
    paths = dict.fromkeys(one for row in rows for one in key_paths(row) if one.count(".") < 2)
    for one in sorted(paths, key=lambda one: (rank("answer", one), one.count("."))):
        values = [value for row in rows if (value := value_at(one, row)) not in (None, "")]
        is_inside = taken.is_taken(one) or path.startswith(f"{one}.") or "[" in one
        if is_inside or len(values) < len(rows):
            continue
        are_messages = all(isinstance(value, dict) for value in values)
        are_texts = is_usual("answer", one) and all(isinstance(value, str) for value in values)
        logged = [message for items in lists for message in items]
        role = role_path(
            [*logged, *values] if are_messages else logged, "sure" if are_messages else "likely"
        )
        last = (
            {meaning(str(value_at(role, items[-1]))) for items in lists if items} if role else set()
        )
        if "assistant" in last or not (are_messages or are_texts):
            continue
        if are_texts or {meaning(str(value_at(role, value))) for value in values} == {"assistant"}:
            return one, are_messages
    return None


def _either(path: str, other: str) -> str:
    """Returns the path that finds what one of two finds; a constant is the last one."""
    return f"{other} || {path}" if path.startswith("'") else f"{path} || {other}"


def _as_records(
    rows: Sequence[dict[str, Json]], sure: Sure
) -> tuple[dict[str, Any], Proposal] | None:
    """Returns the mapping of records that are messages, grouped by a key."""
    if role_path(rows, sure) is None:
        return None
    name = usual_path(rows, "id", shared=True, whole=True)
    is_by_values = name is None
    if name is None and sure != "likely":
        name = _group_by_values(rows, role_path(rows, sure) or "")
    if name is None and sure == "likely":
        return None
    conversation: dict[str, Any] = {"id": name if name is not None else "'conversation'"}
    order = usual_path(rows, "order")
    if order is not None and all(value_at(order, record) is not None for record in rows):
        conversation["order"] = order
    groups: dict[str, list[Json]] = {}
    for row in _ordered(rows, conversation.get("order")):
        groups.setdefault(str(value_at(conversation["id"], row)), []).append(row)
    tools, names = find_tools(rows)
    head = _top(rows, tools)
    apart = [path for path in (name, conversation.get("order")) if path is not None]
    message = propose([*groups.values()], names, apart)
    if name is None:
        message.decisions.append("conversation.id: is the whole file one conversation?")
    elif is_by_values:
        message.decisions.append(f"conversation.id: are records with one {name!r} a conversation?")
    own = message.section.get("model")
    if own is not None and head.get("model") == own:
        del head["model"]
    if head.get("system") in str(message.section.get("text", "")).split(" || "):
        del head["system"]  # it is that of a message
    return conversation | head, message


def _group_by_values(rows: Sequence[dict[str, Json]], role: str) -> str | None:
    """Returns a path whose values group the records into several conversations, or None.

    Each has a message of the user, and an answer that follows it; if the names of the roles are
    unknown, each has the two that are most frequent.
    """
    roles = [plain(value_at(role, row)) for row in rows]
    usual = [value for value, _ in Counter(roles).most_common(2)]
    known = {*map(meaning, roles)} >= {"user", "assistant"}
    for path in scalar_paths(rows):
        groups: dict[str, list[str]] = {}
        for row, value in zip(rows, roles, strict=True):
            groups.setdefault(str(value_at(path, row)), []).append(
                meaning(value) if known else value
            )
        whole = all(value_at(path, row) not in (None, "") for row in rows)
        if path == role or not whole or not 1 < len(groups) < len(rows):
            continue
        first, second = ("user", "assistant") if known else usual
        if all(first in one and second in one[known * one.index(first) :]
               for one in groups.values()):  # fmt: skip
            return path
    return None


def _ordered(rows: Sequence[Json], order: str | None) -> Sequence[Json]:
    """Returns the rows as `conversation.order` orders them."""
    places = None if order is None else places_of([value_at(order, row) for row in rows])
    if places is None:
        return rows
    return [rows[at] for at in sorted(range(len(rows)), key=places.__getitem__)]


def _with_top(
    rows: Sequence[dict[str, Json]], found: tuple[dict[str, Any], Proposal] | None
) -> tuple[dict[str, Any], Proposal] | None:
    """Returns the mapping of rows with what a conversation has once."""
    if found is None:
        return None
    conversation, message = found
    return conversation | _top(rows, find_tools(rows)[0]), message


def _in_turns(rows: Sequence[dict[str, Json]]) -> tuple[dict[str, Any], Proposal] | None:
    """Returns the mapping of records with a list whose items hold a question and its answer."""
    lists: dict[str, list[dict[str, Json]]] = {}
    for row in rows:
        for path, items in objects_in(row):
            if isinstance(value_at(path, row), list):
                lists.setdefault(path, []).extend(map(as_dict, items))
    for path, turns in lists.items():
        found = propose_rows(turns)
        if found is None or "role: 'assistant', text: " not in found[0]["messages"]:
            continue
        own, message = found
        turn, _, condition = own["messages"].rpartition("][?")
        messages = f"{path}[].{turn}][] | [?{condition}" if turn else f"{path}[].{condition}[]"
        conversation = {"messages": messages}
        if (own_id := usual_path(rows, "id", inside=(path,))) is not None:
            conversation["id"] = own_id
        return conversation | _top(rows, find_tools(rows)[0]), message
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
