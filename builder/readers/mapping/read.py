"""Reads logs through a mapping: JSON, JSONL, CSV, Parquet, Arrow and SQLite."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby, takewhile
from typing import Any

from builder.conversation import (
    Conversation,
    Data,
    Event,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.jsonio import dumps, loads_text
from builder.problem import Problem, UsageError, nearest
from builder.readers import Reader
from builder.readers.mapping.names import columns, is_call
from builder.readers.mapping.spec import MappingSpec, MessagePaths, search_tree, value_at
from builder.readers.toolkit.chat_messages import content
from builder.readers.toolkit.marks import finish_fault
from builder.readers.toolkit.narrow import as_dict, as_str, name_or_none, one_or_many
from builder.readers.toolkit.rows import logged_outcome, not_object, row_name, splits
from builder.readers.toolkit.thoughts import read_thoughts
from builder.readers.toolkit.unknown_keys import counted_names, has_words, noted
from builder.sources.listing import local_copy
from builder.sources.source import Record, Source
from builder.sources.sqlite_file import SQLITE_ERRORS, open_sqlite, rows

# -- which keys of a record the paths read, by their places and not by their names -----------------

_SAME = frozenset({"merge", "max_by", "min_by", "not_null", "reverse", "sort", "sort_by",
                   "to_array"})  # fmt: skip
"""Functions that return their arguments, or items of them."""


@dataclass(slots=True)
class KeyPlace:
    """A value of a record that paths lead to, or past. A list is at the place of its items.

    is_whole   a path ends here: all inside is read
    is_tested  a filter compares it: it is known, and what is inside is not
    is_json    its text is decoded, and looked into
    keys       the places of its keys that paths name; `others` is that of any other key
    """

    is_whole: bool = False
    is_tested: bool = False
    is_json: bool = False
    keys: dict[str, KeyPlace] = field(default_factory=dict)
    others: KeyPlace | None = None

    def unread(self, value: Json) -> Iterator[tuple[str, Json]]:
        """Yields (path of keys, value) of each value of a record that no path reads."""
        pending: list[tuple[str, KeyPlace, Json]] = [("", self, value)]
        while pending:
            path, place, item = pending.pop()
            if place.is_whole or item is None:
                continue
            if place.is_json and isinstance(item, str):
                item = loads_text(item)
            if isinstance(item, list):
                pending += [(path, place, one) for one in item]
            elif isinstance(item, dict):
                before = f"{path}." if path else ""
                for key, one in item.items():
                    if (inner := place.keys.get(key)) is not None:
                        pending.append((before + key, inner, one))
                    elif place.others is not None:
                        pending.append((path, place.others, one))  # the key is an id
                    else:
                        yield before + key, one
            elif path and not place.is_tested:
                yield path, item  # where other records have an object, into which a path leads


_Value = KeyPlace | dict[str, list[Any]]
"""What a path finds: a place in the record, or an object that the path makes of such places."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a mapping reads of a record, and of a message. Both are one if records are messages."""

    record: KeyPlace
    message: KeyPlace


def reading_of(spec: MappingSpec) -> Reading:
    """Returns what the paths of a mapping read."""
    record = KeyPlace()
    message = record
    made: list[_Value] = []
    if spec.conversation.messages is not None:
        found = _follow(search_tree(spec.conversation.messages), [record])
        made = [one for one in found if isinstance(one, dict)]
        logged = [one for one in found if isinstance(one, KeyPlace)]
        _mark(logged, "is_whole")  # messages are compared one by one
        # What made messages are made of is compared in the record.
        message = KeyPlace(is_whole=not logged)
    messages = [message, *made]
    is_call = "call" in spec.message.roles.values()
    are_calls = is_call or spec.message.calls is None
    calls = _items(spec.message.calls, messages, are_items=are_calls)
    results = _items(spec.message.results, messages, are_items=spec.message.results is None)
    starts = {"message": messages, "message.call": calls, "message.result": results}
    for key, path in spec.paths():
        if key.startswith("conversation."):
            if key != "conversation.messages":
                _read_whole(path, [record])
        elif key not in ("records", "message.calls", "message.results"):
            _read_whole(path, starts[key.rpartition(".")[0]])
    for name in ("name", "arguments", "id") if is_call or spec.message.calls is not None else ():
        if getattr(spec.message.call, name) is None:
            _read_whole(name, calls)
    if spec.message.result.text is None and spec.message.text is not None:
        _read_whole(spec.message.text, results)
    return Reading(record, message)


def _items(path: str | None, messages: Sequence[_Value], *, are_items: bool) -> list[_Value]:
    """Returns where calls, or results, stand; `are_items`: messages may be such themselves."""
    found = [] if path is None else _follow(search_tree(path), messages)
    _mark(found, "is_json")  # a list may be JSON text; what is none is kept as it is
    _mark(found, "is_tested")
    return [*found, *(messages if are_items else [])]


def _read_whole(path: str, values: Sequence[_Value]) -> None:
    _mark(_follow(search_tree(path), values), "is_whole")


def _follow(node: Mapping[str, Any], values: Sequence[_Value], *, test: bool = False) -> list[Any]:
    children: Sequence[Mapping[str, Any]] = node["children"]
    match node["type"]:
        case "field":
            return [found for one in values for found in _key(one, node["value"])]
        case "subexpression" | "index_expression" | "pipe" | "projection" | "flatten":
            for child in children:
                values = _follow(child, values, test=test)
            return [*values]
        case "identity" | "current" | "index" | "slice":
            return [*values]
        case "value_projection":
            return _follow(children[1], _others(_follow(children[0], values)), test=test)
        case "filter_projection":
            found = _follow(children[0], values)
            _mark(_follow(children[2], found, test=True), "is_tested")
            return _follow(children[1], found, test=test)
        case "multi_select_dict":
            return [{one["value"]: _follow(one["children"][0], values) for one in children}]
        case "multi_select_list" | "or_expression":
            return [found for one in children for found in _follow(one, values, test=test)]
        case "and_expression":
            _mark(_follow(children[0], values, test=True), "is_tested")
            return _follow(children[1], values, test=test)
        case "comparator" | "not_expression":
            for child in children:
                _mark(_follow(child, values, test=True), "is_tested")
            return []
        case "function_expression":
            return _function(node["value"], children, values, test=test)
        case _:
            return []


def _function(
    name: str, children: Sequence[Mapping[str, Any]], values: Sequence[_Value], *, test: bool
) -> list[Any]:
    """Returns what a function finds; one that makes a value of its arguments reads them whole."""
    expressions = [one["children"][0] for one in children if one["type"] == "expref"]
    found = [one for child in children for one in _follow(child, values, test=test)]
    if name == "map":
        return [one for inner in expressions for one in _follow(inner, found, test=test)]
    for inner in expressions:
        _mark(_follow(inner, found, test=True), "is_tested")
    if name == "json":
        _mark(found, "is_json")
        return found
    if name == "values":
        return _others(found)
    if name in _SAME:
        return found
    _mark(found, "is_tested" if test else "is_whole")
    return []


def _key(value: _Value, key: str) -> list[Any]:
    if isinstance(value, dict):
        return value.get(key, [])
    return [value.keys.setdefault(key, KeyPlace())]


def _others(values: Iterable[_Value]) -> list[Any]:
    """Returns what stands under all keys of the values."""
    found: list[Any] = []
    for one in values:
        if isinstance(one, dict):
            found += [inner for item in one.values() for inner in item]
        else:
            one.others = one.others or KeyPlace()
            found += [one.others, *one.keys.values()]
    return found


def _mark(values: Iterable[_Value], flag: str) -> None:
    pending = [*values]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            pending += [inner for item in one.values() for inner in item]
        else:
            setattr(one, flag, True)


# -- orders the records of a conversation by numbers, times or numbered names ----------------------

_NUMBER = re.compile(r"\s*-?\d{1,15}(?:\.\d{1,15})?\s*", re.ASCII)
"""A number in a text: a table in CSV has nothing else."""
_DIGITS = re.compile(r"(\d+)", re.ASCII)
_HALF = re.compile(r"\b[ap]m\b|(?<=\d)[ap]m\b", re.IGNORECASE)
_DAY_OR_MONTH = re.compile(r"\s*(\d{1,2})([./])(\d{1,2})\2(\d{4})(.*)", re.ASCII | re.DOTALL)
"""A date whose year is last: with dots, the day is first; with slashes, the day or the month."""


def places_of(values: Sequence[Json]) -> list[Any] | None:
    """Returns keys by which values are sorted: numbers, times, or texts with numbers in them.

    Numbers and times may be texts. None if a value is neither a number nor a text, or if it is not
    clear which part of their dates is the day.
    """
    if all(isinstance(value, int | float) for value in values):
        return [*values]
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < len(values):
        return None
    if all(map(_NUMBER.fullmatch, texts)):
        return [*map(float, texts)]
    dates = [_DAY_OR_MONTH.fullmatch(text) for text in texts]
    found = [date for date in dates if date is not None]
    if len(found) == len(texts):
        return _days(found)
    times = [_time(text) for text in texts]
    return [_natural(text) for text in texts] if None in times else times


def ordered(items: Sequence[Any], values: Sequence[Json]) -> list[Any] | None:
    """Returns items in the order of their values; None if these have none (`places_of`)."""
    places = places_of(values)
    if places is None:
        return None
    return [items[at] for at in sorted(range(len(items)), key=places.__getitem__)]


def _days(dates: Sequence[re.Match[str]]) -> list[Any] | None:
    """Returns the keys of dates whose year is last."""
    firsts, seconds = ({int(date[at]) for date in dates} for at in (1, 3))
    is_day_first = {date[2] for date in dates} == {"."} or max(firsts) > 12
    is_clear = is_day_first or max(seconds) > 12 or len(firsts) == 1 or len(seconds) == 1
    if not is_clear or (is_day_first and max(seconds) > 12):
        return None
    day, month = (1, 3) if is_day_first else (3, 1)
    return [(int(date[4]), int(date[month]), int(date[day]), *_clock(date[5])) for date in dates]


def _clock(text: str) -> tuple[tuple[int, str], list[Any]]:
    """Returns a key for the time of day: the hour of a clock of 12 hours counts from midnight."""
    parts = _natural(text)
    hour = parts[1] if len(parts) > 1 else _number("")
    if (half := _HALF.search(text)) is not None and hour[0] <= 2:
        hour = _number(str(int(hour[1] or 0) % 12 + 12 * (half[0].lower() == "pm")))
    return hour, parts[2:]


def _time(text: str) -> datetime | None:
    """Returns the time of a text in ISO 8601, in UTC if it names no zone."""
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _natural(text: str) -> list[Any]:
    return [_number(one) if at % 2 else one for at, one in enumerate(_DIGITS.split(text))]


def _number(digits: str) -> tuple[int, str]:
    """Returns a key that sorts numbers of any length; `int` refuses those of many digits."""
    significant = digits.lstrip("0")
    return len(significant), significant


NAME = "mapping"
"""The format of samples that were read through a mapping."""

UNMAPPED = "unmapped_key:"
"""The beginning of the code of a key that no path reads; the rest is its name."""
UNMAPPED_SKIP = "unmapped_skip"
"""The code of skipped records with text between a call without a result and what follows it."""
UNMAPPED_CALL = "unmapped_call"
"""The code of results without a call."""

_SHOWN = 40
"""Maximum number of characters in the path of a key that is counted."""

_ROLES = {
    "human": "user", "customer": "user", "ai": "assistant", "bot": "assistant",
    "gpt": "assistant", "model": "assistant", "agent": "assistant", "function": "tool",
    "observation": "tool",
}  # fmt: skip
"""What well-known role names mean if the mapping does not say it."""


_KINDS = ("text_type", "message_type", "content_kind")
"""Keys of an answer that may say what its text is, beside `channel`."""


def mapped_reader(spec: MappingSpec) -> Reader:
    """Returns the reader of logs that a mapping describes."""
    return Reader(
        name=NAME,
        summary="logs of one's own, read through a mapping file (docs/mapping.md)",
        recognise=lambda source: "named by a mapping",
        read=partial(read_mapped, spec),
        splits=None if spec.group or spec.records or spec.query else splits,
    )


def read_mapped(spec: MappingSpec, source: Source) -> Iterator[Event]:
    """Yields the conversations of a source, and a Problem or Ignored for each other record."""
    yield from conversations(spec, mapped_records(spec, source))


def conversations(spec: MappingSpec, records: Iterable[Record | Problem]) -> Iterator[Event]:
    """Yields the conversations of records, as `read_mapped` does."""
    names: Counter[str] = Counter()
    groups: dict[str, list[Record]] = {}
    reading, order = reading_of(spec), spec.conversation.order
    for record in records:
        if isinstance(record, Problem):
            yield record
        elif not isinstance(record.value, dict):
            yield not_object(record, "the record is ")
        elif spec.group is None:
            yield _conversation(spec, [record], names, reading)
        elif (name := value_at(spec.group, record.value)) in (None, ""):
            key = "id" if spec.are_messages else "session"
            yield Problem("no_id", record.where, f"conversation.{key} finds nothing in the record")
        else:
            groups.setdefault(dumps(name), []).append(record)
    for group in groups.values():
        values = [value_at(order, record.value) for record in group]
        found = group if order is None else ordered(group, values)
        if found is None:
            detail = "conversation.order finds no number, time or text that orders the records"
            yield Problem("no_order", group[0].where, detail, records=len(group))
        else:
            yield _conversation(spec, found, names, reading)


def mapped_records(spec: MappingSpec, source: Source) -> Iterator[Record | Problem]:
    """Yields the records that a mapping names in a source, and counts them."""
    if source.peek.kind == "sqlite":
        yield from _database(spec, source)
    elif spec.records is not None and source.peek.kind == "json":
        document = source.document()
        found = document if isinstance(document, Problem) else value_at(spec.records, document)
        if isinstance(found, Problem):
            source.count_records()
            yield found
        elif isinstance(found, list):
            yield from source.counted(found)
        else:
            source.count_records()
            yield Problem("no_records", "file", "records finds no list in the document")
    elif source.is_csv:
        yield from source.csv_rows()
    else:
        yield from source.records()


def _database(spec: MappingSpec, source: Source) -> Iterator[Record | Problem]:
    if spec.query is None:
        source.count_records()
        yield Problem("no_query", "file", "a database needs the mapping's key query")
        return
    try:
        with open_sqlite(source) as connection:
            connection.execute("PRAGMA query_only = ON")
            for number, row in enumerate(rows(connection, spec.query), 1):
                source.count_records()
                yield Record(f"row {number}", row)
    except SQLITE_ERRORS as error:
        source.count_records()
        yield Problem("bad_database", "query", str(error))


def _conversation(
    spec: MappingSpec, records: Sequence[Record], names: Counter[str], reading: Reading
) -> Event:
    """Returns the conversation of one or more records; `reading`: what the mapping reads."""
    first, last = records[0].where, records[-1].where
    where = first if first == last else f"{first} to {last}"
    paths = spec.conversation
    values = [record.value for record in records]
    items = values
    if not spec.are_messages:
        items = [one for value in values for one in listed(value_at(paths.messages, value))]
    changes: Counter[str] = Counter()
    runs: list[list[Message]] = []  # of one message, or of the fragments of one
    unread: list[str] = []
    for value in () if spec.are_messages else values:
        unread += unmapped(reading.record, value)
    if system := _first(paths.system, values):
        runs.append([Message("system", content(system))])
    skipped = 0
    was_fragment = is_open = False
    pieces: set[int] = set()  # runs of fragments
    for item in items:
        role = role_of(spec.message, item)
        if role == "skip":
            changes["mapped_skip"] += 1
            skipped += is_open and has_words(item)
            continue
        found = [*_messages(spec.message, item, changes)]
        if role != "fragment" and found and found[0].role == "assistant":
            found[0] = _marked(found[0], spec.message, as_dict(item), reading.message)
        if skipped and found and found[0].role != "tool":
            changes[UNMAPPED_SKIP] += skipped
        skipped = 0
        is_fragment = role == "fragment"
        if was_fragment and is_fragment:
            runs[-1].append(found.pop(0))
            is_open = is_open or _has_calls(runs[-1][-1])
        if found:
            runs += [[one] for one in found]
            is_open = _has_calls(found[-1])
        was_fragment = is_fragment and runs[-1][0].role == "assistant"
        pieces |= {len(runs) - 1} if was_fragment else set()
        unread += unmapped(reading.message, item)
    messages = [*_without_pieces([_joined(run) for run in runs], pieces)]
    changes["mapped_skip"] += len(runs) - len(messages)
    changes.update({f"{UNMAPPED}{name}": n for name, n in counted_names(unread).items()})
    changes[UNMAPPED_CALL] += _without_calls(messages)
    tools = _first(paths.tools, values)
    tools = loads_text(tools) if isinstance(tools, str) else tools
    if isinstance(tools, dict):
        tools = _by_name(tools)
    outcome = {name: _first(path, values) for name, path in paths.outcome.items()}
    if not messages:
        detail = "the mapping finds no message"
        return Problem("no_messages", where, detail, records=len(records))
    return Conversation(
        id=row_name(where, _first(paths.id or paths.session, values), names),
        record=where,
        messages=tuple(messages),
        tools=tuple(tools) if isinstance(tools, list) else None,
        model=name_or_none(_first(paths.model, values)),
        license=name_or_none(_first(paths.license, values)),
        records=len(records),
        outcome=logged_outcome(**outcome),
        changes=+changes,
    )


def _by_name(tools: dict[str, Json]) -> list[Json]:
    if not all(isinstance(item, dict) for item in tools.values()) or "function" in tools:
        return [tools]
    return [{"name": name, **item} for name, item in tools.items() if isinstance(item, dict)]


def unmapped(place: KeyPlace, value: Json) -> Iterator[str]:
    """Yields the paths of keys with text, or with calls, that no path reads."""
    for path, item in place.unread(value):
        key = path.rpartition(".")[2]
        if has_words(item) or is_call(item):
            yield path if len(path) <= _SHOWN else key  # a longer name could not be shown


def _has_calls(message: Message) -> bool:
    return any(isinstance(part, ToolCall) for part in message.parts)


def _joined(fragments: Sequence[Message]) -> Message:
    """Returns the answer of its fragments: a text continues the text that it follows."""
    if len(fragments) == 1:
        return fragments[0]
    parts: list[Part] = []
    for kind, group in groupby((part for one in fragments for part in one.parts), key=type):
        same = [*group]
        if kind in (Text, Reasoning):
            texts = [one.text for one in same if isinstance(one, Text | Reasoning)]
            same = [kind("".join(texts))]
        parts += same
    return replace(fragments[0], parts=tuple(parts))


def _marked(answer: Message, paths: MessagePaths, item: dict[str, Json], read: KeyPlace) -> Message:
    """Returns an answer with what its marks say: cut, not trained, a channel, an unknown flag."""
    logged = {key: value for key, value in item.items() if key not in str(paths.role)}
    switches = {key for key, value in logged.items() if value in (0, 1) and key not in read.keys}
    return noted([answer], logged, logged.keys() - switches - {*_KINDS})[0]


def _without_pieces(messages: Sequence[Message], pieces: Collection[int]) -> Iterator[Message]:
    """Yields the messages but those of fragments whose whole the log has too, around them."""
    for at, message in enumerate(messages):
        after = takewhile(lambda one: one.role == "assistant", messages[at + 1 :])
        before = takewhile(lambda one: one.role == "assistant", reversed(messages[:at]))
        parts = [_stripped(one) for one in message.parts]
        wholes = ([*map(_stripped, other.parts)] for other in (*after, *before))
        if at not in pieces or not any(all(one in whole for one in parts) for whole in wholes):
            yield message


def _stripped(one: Part) -> Part:
    return replace(one, text=one.text.strip()) if isinstance(one, Text | Reasoning) else one


def _without_calls(messages: Sequence[Message]) -> int:
    """Returns the number of results that follow no call."""
    count = 0
    has_calls = False
    for message in messages:
        results = sum(isinstance(part, ToolResult) for part in message.parts)
        if message.role == "assistant":
            has_calls = any(isinstance(part, ToolCall | Unparsed) for part in message.parts)
        elif not has_calls:
            count += results
    return count


def _messages(paths: MessagePaths, item: Json, changes: Counter[str]) -> Iterator[Message]:
    """Yields the messages that a mapped message stands for.

    Results in an answer are those of its calls and follow it; in any other message they come first.
    """
    role = role_of(paths, item)
    items = [item] if role == "tool" and paths.results is None else ()
    if paths.results is not None:
        items = listed(value_at(paths.results, item))
    results = [Message("tool", tuple(_result(paths, one) for one in items))] if items else []
    if role in ("assistant", "call", "thought", "fragment"):
        yield _answer(paths, item, changes, role)
        yield from results
        return
    yield from results
    if role != "tool":
        parts = content(value_at(paths.text, item))
        if parts or not results:
            yield Message(role, parts)


def _answer(paths: MessagePaths, item: Json, changes: Counter[str], role: str) -> Message:
    """Returns an answer; `role` call or thought: the mapped message is itself a part of it."""
    answer: list[Part] = []
    thought = value_at(paths.reasoning, item)
    if role == "thought":
        thought = thought or value_at(paths.text, item)
    if thought:
        answer.append(Reasoning(thought if isinstance(thought, str) else dumps(thought)))
    if role in ("assistant", "fragment"):
        answer += content(value_at(paths.text, item))
    calls = listed(value_at(paths.calls, item)) if paths.calls is not None else []
    answer += [_call(paths, one) for one in ([item] if role == "call" and not calls else calls)]
    if fault := finish_fault(value_at(paths.stop, item)):
        answer.append(Unparsed(as_str(value_at(paths.stop, item)), fault))
    turn = value_at(paths.turn, item)
    return Message(
        "assistant",
        tuple(read_thoughts(answer, changes)),
        turn=None if turn is None else str(turn),
        model=name_or_none(value_at(paths.model, item)),
    )


def _call(paths: MessagePaths, item: Json) -> Part:
    name = name_or_none(value_at(paths.call.name or "name", item))
    if name is None:
        return Unparsed(dumps(item), "bad_call")
    arguments = value_at(paths.call.arguments or "arguments", item)
    return ToolCall(name, arguments, id=_id(value_at(paths.call.id or "id", item)))


def _result(paths: MessagePaths, item: Json) -> ToolResult:
    result = paths.result
    error, text = value_at(result.error, item), value_at(result.text or paths.text, item)
    is_value = isinstance(text, list) and len(text) > 1 and not any(map(as_dict, text))
    return ToolResult(
        (Data(text),) if is_value else content(text),
        call_id=_id(value_at(result.id, item)),
        name=name_or_none(value_at(result.name, item)),
        is_error=None if error is None else error not in (False, "", 0, [], {}, "false", "0"),
    )


def _id(value: Json) -> str | None:
    return None if value is None or value == "" else str(value)


def role_of(paths: MessagePaths, item: Json) -> str:
    """Returns the role of a message, translated; an unknown one is kept and later rejected."""
    value = value_at(paths.role, item)
    name = dumps(value) if isinstance(value, bool | int | float) else as_str(value)
    return paths.roles.get(name) or _ROLES.get(name.lower(), name.lower()[:40])


def listed(value: Json) -> list[Json]:
    """Returns the items of a list, of JSON text of a list, or one value as a list."""
    value = loads_text(value)
    return [] if value is None else one_or_many(value)


def _first(path: str | None, values: Sequence[Json]) -> Json:
    found = (value_at(path, value) for value in values) if path is not None else ()
    return next((value for value in found if value is not None and value != ""), None)


# -- checks a mapping against the logs that it is for: each path must find something ---------------

_DEPTH = 4
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
                        known.setdefault(key, {}).update(dict.fromkeys(columns([value], _DEPTH)))
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
