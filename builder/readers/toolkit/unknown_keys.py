"""Finds what a reader does not know: keys of messages, columns of rows, types of records.

They are read past, and named in `meta.changes`, so that nothing with text is lost silently.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

from builder.conversation import (
    PREAMBLE,
    Conversation,
    Event,
    Json,
    Message,
    Reasoning,
    Text,
    ToolCall,
    unknown_part,
)
from builder.jsonio import loads_text
from builder.readers.toolkit.marks import (
    CUT_KEYS,
    cut_code,
    excludes,
    is_history,
    is_trained,
    trains,
)
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_of, unknown_code
from builder.readers.toolkit.tables import words
from builder.readers.toolkit.thoughts import THOUGHT_KEYS, THOUGHT_TEXTS
from builder.sources.source import Source

_UNKNOWN_KEY = "unknown_key:"
"""The beginning of the code of a key; the rest is its name."""
UNKNOWN_COLUMN = "unknown_column:"
"""The beginning of the code of a column; the rest is its name."""

_LONG = 20
"""A text without a space that is no longer is an id, a name or a state."""
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]{4}")
"""Words of scripts that put no spaces between words."""
_MAX_DEPTH = 8
"""Maximum depth at which text is looked for in the value of an unknown key."""
_NAME = re.compile(r"[\w.:/+=%~@-]*|\d{4}-\d\d-\d\d \d\d:\d\d[\d:.+ A-Z]*", re.ASCII)
"""An id, a path, an address, encoded bytes or a time, which are no words."""

MESSAGE_KEYS = THOUGHT_KEYS | CUT_KEYS | words("unknown_keys", "message")

_MODEL = ("model", "_model", "model_name", "model_id", "modelId", "model_slug")
"""Keys of an answer that name the model that gave it."""
_SPEAKER = ("name", "speaker", "agent_name")
"""Keys of an answer that name the participant who gave it, where several agents talk."""

_KIND_KEYS = ("phase", "text_type", "message_type", "kind", "content_kind")
"""Keys of an answer that may say what its text is, beside `channel` (`phase`: OpenAI)."""
_LISTENERS = frozenset({"", "all", "assistant", "user"})
"""Recipients of a text that are no tools."""
_THOUGHT_KINDS = frozenset({"analysis", "thought", "thoughts", "thinking", "reasoning", "cot"})
_OTHER_KINDS = words("unknown_keys", "other_kinds")
_MEDIUMS = words("unknown_keys", "mediums")

_LISTS = ("content", "parts", "blocks", "tool_calls", "toolCalls")
"""Keys of a message that hold its parts and calls."""
PART_KEYS = MESSAGE_KEYS | words("unknown_keys", "part")

ROW_COLUMNS = words("unknown_keys", "row")


_CALL_NAMES = ("name", "tool", "tool_name", "toolName", "function_name", "function")
_CALL_ARGUMENTS = (
    "arguments", "args", "input", "parameters", "params", "kwargs", "tool_input", "toolInput",
)  # fmt: skip
_CALL_DEPTH = 3
_CALL_KEY = re.compile(
    r"(?:tool|function|called)_?(?:calls?|uses?|invocations?|actions?)|calls?|actions?|commands?",
    re.IGNORECASE,
)
"""Names of keys whose value is what an answer did, in whatever form."""

_SYSTEM_COLUMNS = ("system", "system_prompt", "system_message")


def system_text(row: Mapping[str, Json], changes: Counter[str], *, has_own: bool) -> str:
    """Returns the system prompt in a column of a row, or "".

    Of a row whose messages have one, the column is counted as not read, unless it is `system`.
    """
    for name in _SYSTEM_COLUMNS:
        text = row.get(name)
        if isinstance(text, str) and text:
            if not has_own:
                return text
            if name != "system":
                changes[UNKNOWN_COLUMN + name] += 1
    return ""


def noted(
    messages: Iterable[Message], item: Json, known: Collection[str] = MESSAGE_KEYS
) -> list[Message]:
    """Returns the messages read from one logged message, the first with its unknown keys.

    An answer has the model and the participant that its keys name. It is untrained if its marks
    (`toolkit.marks`) say that it was cut or repeated from an earlier run, or that the author of a
    dataset excludes it. Its text is a thought, or ends the turn as an unknown part, if a key says
    so (`channel`). If the messages have no content at all, that of the unknown key becomes an
    unknown part; so do calls of an answer under an unknown key: without them, it would not be the
    whole answer.
    """
    message = as_dict(item)
    messages = [
        _answer(one, message, known) if one.role == "assistant" else one for one in messages
    ]
    is_answer = bool(messages) and messages[0].role == "assistant"
    names = (*unknown_names(message, known), *_unread_thoughts(message, messages))
    if is_answer:
        names += tuple(key for key in message if key not in known and _is_flag(key, message[key]))
        names += ("channel",) if _is_odd_channel(as_str(message, "channel").lower()) else ()
    inside = _unknown_inside(message)
    if inside and messages:
        messages[0] = replace(messages[0], unknown=(*messages[0].unknown, *inside))
    unread = next((key for key in message if key not in known and _acts(key, message[key])), "")
    if unread and is_answer:
        first = messages[0]
        messages[0] = replace(first, parts=(*first.parts, unknown_part(unread)))
    if not names:
        return messages
    if not any(message.parts for message in messages):
        role = messages[0].role if messages else str(as_dict(item).get("role") or "user")[:40]
        return [Message(role, (unknown_part(names[0]),), unknown=names)]
    return [replace(messages[0], unknown=(*messages[0].unknown, *names)), *messages[1:]]


def _answer(answer: Message, logged: dict[str, Json], known: Collection[str]) -> Message:
    untrained, speaker = answer.untrained, name_of(logged, *_SPEAKER)
    if untrained is None and (is_history(logged) or not is_trained(logged)):
        untrained = "zero_weight"
    elif untrained is None:
        untrained = cut_code(logged)
    keys = (key for key in _KIND_KEYS if key not in known and key in logged)
    key = "channel" if "channel" in logged else next(keys, "")
    parts, kind = answer.parts, as_str(logged, key).lower()
    if not kind and as_str(logged, "type") in _THOUGHT_KINDS:
        kind = as_str(logged, "type")
    words = [part for part in parts if isinstance(part, Text)]
    called = as_str(logged, "recipient") if len(words) == 1 else ""
    if called not in _LISTENERS:
        name = called.removeprefix("functions.")
        parts = tuple(ToolCall(name, one.text) if one is words[0] else one for one in parts)
    elif kind in _THOUGHT_KINDS:
        parts = tuple(Reasoning(part.text) if isinstance(part, Text) else part for part in parts)
    elif kind == PREAMBLE:
        speaker = PREAMBLE
    elif kind in _OTHER_KINDS and words and len(words) == len(parts):
        parts = (*parts, unknown_part(f"{key} {kind}"))
    elif key in ("channel", "phase"):
        speaker = speaker or kind
    return replace(
        answer,
        parts=parts,
        untrained=untrained,
        model=answer.model or name_of(logged, *_MODEL),
        speaker=speaker or answer.speaker,
    )


def _is_odd_channel(kind: str) -> bool:
    return kind not in ("", "final", PREAMBLE, *_THOUGHT_KINDS, *_OTHER_KINDS, *_MEDIUMS)


def _is_flag(key: str, value: Json) -> bool:
    """Returns whether a key may say something about the training of an answer that is not read."""
    is_flag = isinstance(value, bool) or (type(value) is int and value in (0, 1))
    return is_flag and trains(key, value) is None


def _unread_thoughts(message: Mapping[str, Json], messages: Sequence[Message]) -> tuple[str, ...]:
    """Returns the keys of thoughts with a text that no part of the messages contains."""
    keys = tuple(key for key in message if key in THOUGHT_TEXTS and has_words(message[key]))
    if not keys:
        return ()
    parts = (part for one in messages for part in one.parts)
    known = " ".join(
        " ".join(part.text.split()) for part in parts if isinstance(part, Text | Reasoning)
    )
    return tuple(
        key
        for key in keys
        if isinstance(text := message[key], str) and " ".join(text.split()) not in known
    )


def _acts(key: str, value: Json) -> bool:
    """Returns whether a key of an answer holds what the model did.

    Its name shows it, if its value has any text, or its value looks like calls.
    """
    return (_CALL_KEY.fullmatch(key) is not None and _has_text(value)) or _has_calls(value)


def _has_text(value: Json, depth: int = 0) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    if not isinstance(value, list | dict) or depth > _CALL_DEPTH:
        return False
    inner: Iterable[Json] = value if isinstance(value, list) else value.values()
    return any(_has_text(one, depth + 1) for one in inner)


def _has_calls(value: Json, depth: int = 0) -> bool:
    """Returns whether a value looks like calls of tools: names beside arguments, at any level.

    A name with parameters and a description is the definition of a tool.
    """
    if isinstance(value, dict):
        is_named = any(isinstance(value.get(key), str) for key in _CALL_NAMES)
        if is_named and any(key in value for key in _CALL_ARGUMENTS):
            return "description" not in value
    elif not isinstance(value, list):
        return False
    inner: Iterable[Json] = value if isinstance(value, list) else value.values()
    return depth < _CALL_DEPTH and any(_has_calls(one, depth + 1) for one in inner)


def unknown_in(item: Json, known: Collection[str] = MESSAGE_KEYS) -> tuple[str, ...]:
    """Returns the unknown keys of a logged message, then those of its parts and calls."""
    message = as_dict(item)
    return (*unknown_names(message, known), *_unknown_inside(message))


def _unknown_inside(message: Mapping[str, Json]) -> tuple[str, ...]:
    """Returns the unknown keys of the parts and calls of a message, as `content.NAME`."""
    names: dict[str, None] = {}
    for name in _LISTS:
        items = message.get(name)
        for part in items if isinstance(items, list) else ():
            function = part.get("function") if isinstance(part, dict) else None
            for value in (part, function):
                if isinstance(value, dict) and not value.keys() <= PART_KEYS:
                    keys = unknown_names(value, PART_KEYS)
                    names.update((f"{name}.{key}", None) for key in keys)
    return tuple(names)


def unknown_names(value: Mapping[str, Json], known: Collection[str]) -> tuple[str, ...]:
    """Returns the keys that are not known and whose values contain text."""
    return tuple(key for key, item in value.items() if key not in known and has_words(item))


def unknown_key(name: str) -> str:
    """Returns the code of an unknown key."""
    return unknown_code(name).replace("unknown:", _UNKNOWN_KEY, 1)


def count_columns(
    events: Iterable[Event], row: Mapping[str, Json], known: Collection[str]
) -> Iterable[Event]:
    """Yields the events of a row; its conversations count its unknown columns.

    So they do columns that say which messages are trained (`loss_mask: [0, 1]`). A column that
    repeats a text of the conversation is read.
    """
    names = unknown_names(row, known)
    names += tuple(key for key, value in row.items() if key not in known and excludes(key, value))
    for event in events:
        if names and isinstance(event, Conversation):
            parts = (part for message in event.messages for part in message.parts)
            texts = {part.text for part in parts if isinstance(part, Text)}
            unread = [name for name in names if not (as_str(row[name]) and row[name] in texts)]
            codes = (unknown_code(name).replace("unknown:", UNKNOWN_COLUMN, 1) for name in unread)
            event = replace(event, changes=Counter(event.changes) + Counter(codes))  # noqa: PLW2901 - completed
        yield event


def has_words(item: Json, depth: int = 0) -> bool:
    """Returns whether a value contains text in a language, not only ids, names and numbers."""
    if isinstance(item, str):
        text = item.strip()
        is_long = len(text) > _LONG or " " in text or _UNSPACED.search(text) is not None
        return is_long and _NAME.fullmatch(text) is None
    if not isinstance(item, list | dict) or depth > _MAX_DEPTH:
        return False
    inner: Sequence[Json] = item if isinstance(item, list) else [*item.values()]
    return any(has_words(one, depth + 1) for one in inner)


# -- records of unknown types: content until shown otherwise --------------------------------------

_CONTENT = (
    "content", "text", "parts", "message", "output", "result", "thinking", "tool_calls", "body",
    "prompt",
)  # fmt: skip
_ARGUMENTS = ("arguments", "input", "args")
_INSIDE = ("message", "payload", "data", "entry", "item", "event")
_RECORD_LISTS = ("items", "messages", "blocks")


def carries_content(record: dict[str, Json]) -> bool:
    """Returns whether a record of an unknown type carries text, a message, a call or a result.

    Such a record may have been part of what the model saw. A record without, such as a changed
    setting, is bookkeeping.
    """
    values = (record, *(as_dict(record.get(key)) for key in _INSIDE))
    listed = (
        item for value in values for key in _RECORD_LISTS for item in as_dicts(value.get(key))
    )
    values = (*values, *listed)
    return any(value.get(key) for value in values for key in _CONTENT) or any(
        "name" in value and not value.keys().isdisjoint(_ARGUMENTS) for value in values
    )


def unknown_message(kind: Json) -> Message:
    """Returns a message in the place of a record of an unknown type that carries content.

    It separates the answers around it, and answers after it lack `unknown_part`. Count the record
    as ignored with its `unknown_code`.
    """
    return Message("user", (unknown_part(kind if isinstance(kind, str) else "record"),))


# -- text under unknown keys of every record, declared in readers/keys/NAME.toml ------------------

MAX_NAMES = 16
"""Maximum number of unknown keys of a conversation that are named; `_OTHERS` counts the rest."""
_OTHERS = "*"
_SHOWN_NAME = re.compile(r"(?!.*\d{4})[A-Za-z_$@][\w$.@:/-]{0,39}", re.ASCII)
"""A name that a program gave. Ids, paths and addresses that are keys are data, and not shown."""
_RANGE = re.compile(
    r"(?:line|row)s? (\d+)(?:(?:-| to (?:line|row) )(\d+))?|\[(\d+)\](?:(?:-| to )\[(\d+)\])?$"
)
"""The numbers of the first and the last record in `Conversation.record`, or of one record."""


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """Declares the keys that the records of a format may hold, at any depth.

    known       names of the keys that are read, or that hold nothing of a conversation
    free        keys, known too, whose values are free-form and not looked into: arguments, schemas
    maps        keys, known too, whose objects have ids or names as keys and are looked into
    json        keys, known too, whose text is JSON that is looked into
    inside      keys by which an object under a free key is one that is looked into
    beginnings  each name that begins so is known too (`NAME.*` in a declaration)
    bodies      its records hold requests and responses of any API
    left_out    {path of keys: patterns}: a record that has one of these texts at the path is left
                out as a whole, under a code
    message     keys of a message, or of a step, beside `MESSAGE_KEYS`
    row         columns of a row beside `ROW_COLUMNS`
    """

    known: frozenset[str] = frozenset()
    free: frozenset[str] = frozenset()
    maps: frozenset[str] = frozenset()
    json: frozenset[str] = frozenset()
    inside: frozenset[str] = frozenset()
    beginnings: tuple[str, ...] = ()
    bodies: bool = False
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    message: frozenset[str] = frozenset()
    row: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> KnownKeys:
        """Reads a declaration in TOML: lists of names, or texts of names with spaces between."""
        table = tomllib.loads(text)
        left_out = {key: tuple(values) for key, values in table.get("left_out", {}).items()}
        names = {
            key: _names(table.get(key, "")) for key in ("known", "free", "maps", "json", "inside")
        }
        beginnings = tuple(sorted(name[:-1] for name in names["known"] if name.endswith("*")))
        known = frozenset().union(*names.values())
        return cls(
            **names | {"known": known},
            beginnings=beginnings,
            bodies=table.get("bodies") is True,
            left_out=left_out,
            message=_names(table.get("message", "")),
            row=_names(table.get("row", "")),
        )

    def unknown_in(self, value: Json) -> list[str]:
        """Returns the unknown keys with text in a record, one for each object that has it."""
        known, free = self.known, self.free
        unknown_keys: list[str] = []
        pending: list[Json] = [value]
        while pending:
            item = pending.pop()
            if type(item) is list:
                pending += [one for one in item if type(one) is dict or type(one) is list]
                continue
            if type(item) is not dict:
                continue
            inner = item
            if not item.keys() <= known:
                unknown = [
                    key for key in item if key not in known and not key.startswith(self.beginnings)
                ]
                unknown_keys += (key for key in unknown if has_words(item[key]))
                inner = {key: item[key] for key in item if key not in unknown}
            for key, one in inner.items():
                if type(one) is str:
                    if key in self.json:
                        pending.append(loads_text(one))
                elif type(one) is list:
                    if key not in free:
                        pending.append(one)
                elif type(one) is dict and (key not in free or not self.inside.isdisjoint(one)):
                    pending += [*one.values()] if key in self.maps else [one]
        return unknown_keys if unknown_keys and not self._is_left_out(value) else []

    def _is_left_out(self, value: Json) -> bool:
        return any(
            fnmatchcase(_text_at(value, path), pattern)
            for path, patterns in self.left_out.items()
            for pattern in patterns
        )


def _text_at(value: Json, path: str) -> str:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _names(listed: str | list[str]) -> frozenset[str]:
    return frozenset(listed.split() if isinstance(listed, str) else listed)


_APIS = (
    "anthropic-messages", "bedrock-converse", "gemini-api", "openai-chat", "openai-responses",
)  # fmt: skip


@cache
def shipped_keys(name: str, *, is_alone: bool = False) -> KnownKeys | None:
    """Returns the keys of a built-in reader, or None if none are declared.

    A format that holds bodies of any API has the keys of all APIs, unless it `is_alone`.
    """
    place = files("builder.readers") / "keys" / f"{name}.toml"
    if not place.is_file():
        return None
    own = KnownKeys.parse(place.read_text(encoding="utf-8"))
    if not own.bodies or is_alone:
        return own
    others = [keys for one in _APIS if (keys := shipped_keys(one, is_alone=True)) is not None]
    known = own.known.union(*(keys.known for keys in others))
    free = frozenset(name for keys in others for name in keys.free if name not in own.known)
    return replace(own, known=known, free=own.free | free)


@cache
def message_keys(name: str) -> frozenset[str]:
    """Returns the keys that messages of a built-in format may have."""
    return MESSAGE_KEYS | (shipped_keys(name) or KnownKeys()).message


@cache
def row_columns(name: str) -> frozenset[str]:
    """Returns the columns that rows of a built-in format may have."""
    return ROW_COLUMNS | (shipped_keys(name) or KnownKeys()).row


@dataclass(frozen=True, slots=True)
class _Unknown:
    """The unknown keys of one record. `item`: the number of the item that the record is in."""

    where: str
    item: int
    names: list[str]


@dataclass(slots=True)
class _KeyWatch:
    """Looks at the records of a source; names their unknown keys in its conversations.

    `is_split`: each record is a conversation of its own. Other sources may have items
    (`Source.items_of_chunk`): what an item yields does not depend on the others.
    """

    keys: KnownKeys
    is_split: bool = False
    item: int = 0
    found: list[_Unknown] = field(default_factory=list)

    def see(self, where: str, value: Json) -> None:
        """Looks at a decoded record, or at the items of a document that is a list."""
        if self.is_split:
            self.item += 1
        is_list = isinstance(value, list) and _range(where) is None
        items = [(f"[{at}]", one) for at, one in enumerate(as_list(value))]
        for place, one in items if is_list else [(where, value)]:
            if names := self.keys.unknown_in(one):
                self.found.append(_Unknown(place, self.item, names))

    def begin_item(self) -> None:
        """Begins an item of the source."""
        self.item += 1

    def complete(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yields the events; conversations count the unknown keys of the records before them.

        A conversation is held back until the next one, so that it can count what follows it.
        """
        held: list[Event] = []
        item = 0
        for event in events:
            if held and (isinstance(event, Conversation) or item != self.item):
                yield from self._released(held, item, is_last=item != self.item)
                held = []
            if isinstance(event, Conversation):
                held, item = [event], self.item
            elif held:
                held.append(event)
            else:
                yield event
        yield from self._released(held, item, is_last=True)

    def _released(self, held: list[Event], item: int, *, is_last: bool) -> list[Event]:
        """Returns the events, the first of which is a conversation, with its unknown keys."""
        if not held or not self.found or not isinstance(held[0], Conversation):
            return held
        conversation, *others = held
        assert isinstance(conversation, Conversation)
        covered = _range(conversation.record)
        names: list[str] = []
        rest: list[_Unknown] = []
        for one in self.found:
            place = _range(one.where)
            # A document belongs to all of its conversations, a record apart to the last one.
            is_apart = place and covered and place[0] not in range(*covered)
            if one.item == item and (is_last or not is_apart):
                names += one.names
                rest += [one] if place is None else []
            elif one.item >= item:
                rest.append(one)
        self.found = rest
        return [_with_names(conversation, names), *others]


def _range(place: str) -> tuple[int, int] | None:
    match = _RANGE.match(place)
    if match is None:
        return None
    first, *others = (int(number) for number in match.groups() if number is not None)
    return first, (others or [first])[0] + 1


def _with_names(conversation: Conversation, names: list[str]) -> Conversation:
    """Returns the conversation with counts of the keys that it does not name already."""
    named = {key.rpartition(".")[2] for one in conversation.messages for key in one.unknown}
    named |= {code.removeprefix(UNKNOWN_COLUMN) for code in conversation.changes}
    counts = counted_names(name for name in names if name not in named)
    if not counts:
        return conversation
    changes = Counter(conversation.changes)
    changes.update({unknown_key(name): count for name, count in counts.items()})
    return replace(conversation, changes=changes)


def counted_names(names: Iterable[str]) -> dict[str, int]:
    """Returns how often each name occurs; those that cannot be shown are counted as `_OTHERS`."""
    counts = Counter(names)
    shown = [name for name in counts if _SHOWN_NAME.fullmatch(name)][:MAX_NAMES]
    found: Counter[str] = Counter()
    for name, count in counts.items():
        found[name if name in shown else _OTHERS] += count
    return dict(found)


def watch(source: Source, keys: KnownKeys | None, *, is_split: bool) -> _KeyWatch | None:
    """Has the records of a source and its members looked at; None if no keys are declared."""
    if keys is None:
        return None
    key_watch = _KeyWatch(keys, is_split=is_split)
    for one in (source, *source.members):
        one.watch = key_watch
    return key_watch
