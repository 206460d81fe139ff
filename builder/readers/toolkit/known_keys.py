"""Finds text under keys that a reader does not know, in every record that its source decodes.

A format's keys are declared once, in `builder/readers/keys/NAME.toml` or as `Reader.keys`. The
seam is `builder.readers.read_events`: a `KeyWatch` looks at each record as the source decodes it,
and names the unknown keys in `changes` of the conversation that was made of it.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

from builder.conversation import Conversation, Event, Json
from builder.jsonio import loads_text
from builder.readers.toolkit.unknown_keys import has_words, unknown_key
from builder.sources.source import Source

MAX_NAMES = 16
"""Maximum number of unknown keys of a conversation that are named; `OTHERS` counts the rest."""
OTHERS = "*"
_NAME = re.compile(r"(?!.*\d{4})[A-Za-z_$@][\w$.@:/-]{0,39}", re.ASCII)
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
    left_out    {path of keys: patterns}: a record that has one of these texts at the path is left
                out as a whole, under a code
    """

    known: frozenset[str] = frozenset()
    free: frozenset[str] = frozenset()
    maps: frozenset[str] = frozenset()
    json: frozenset[str] = frozenset()
    inside: frozenset[str] = frozenset()
    beginnings: tuple[str, ...] = ()
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
        return cls(**names | {"known": known}, beginnings=beginnings, left_out=left_out)

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
                unknown = [key for key in item if self._is_unknown(key)]
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

    def _is_unknown(self, key: str) -> bool:
        return key not in self.known and not key.startswith(self.beginnings)

    def _is_left_out(self, value: Json) -> bool:
        return any(
            fnmatchcase(_text_at(value, path), pattern)
            for path, patterns in self.left_out.items()
            for pattern in patterns
        )


def _text_at(value: Json, path: str) -> str:
    """Returns the text at a path of keys (`payload.type`), or ""."""
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _names(listed: str | list[str]) -> frozenset[str]:
    """Returns the names in a text that separates them by spaces, or in a list."""
    return frozenset(listed.split() if isinstance(listed, str) else listed)


@cache
def shipped_keys(name: str) -> KnownKeys | None:
    """Returns the keys of a built-in reader, or None if none are declared."""
    place = files("builder.readers") / "keys" / f"{name}.toml"
    return KnownKeys.parse(place.read_text(encoding="utf-8")) if place.is_file() else None


@dataclass(frozen=True, slots=True)
class _Unknown:
    """The unknown keys of one record. `item`: the number of the item that the record is in."""

    where: str
    item: int
    names: list[str]


@dataclass(slots=True)
class KeyWatch:
    """Looks at the records of a source; names their unknown keys in its conversations.

    `is_split`: each record is a conversation of its own. Other sources may have items
    (`Source.items_of_chunk`): what an item yields does not depend on the others.
    """

    keys: KnownKeys
    is_split: bool = False
    item: int = 0
    found: list[_Unknown] = field(default_factory=list)

    def see(self, where: str, value: Json) -> None:
        """Looks at a decoded record."""
        if self.is_split:
            self.item += 1
        if names := self.keys.unknown_in(value):
            self.found.append(_Unknown(where, self.item, names))

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
    """Returns (number of the first record, one after the number of the last), if it has numbers."""
    match = _RANGE.match(place)
    if match is None:
        return None
    first, *others = (int(number) for number in match.groups() if number is not None)
    return first, (others or [first])[0] + 1


def _with_names(conversation: Conversation, names: list[str]) -> Conversation:
    """Returns the conversation with counts of the keys that its messages do not name already."""
    named = {key.rpartition(".")[2] for one in conversation.messages for key in one.unknown}
    counts = counted_names(name for name in names if name not in named)
    if not counts:
        return conversation
    changes = Counter(conversation.changes)
    changes.update({unknown_key(name): count for name, count in counts.items()})
    return replace(conversation, changes=changes)


def counted_names(names: Iterable[str]) -> dict[str, int]:
    """Returns how often each name occurs; those that cannot be shown are counted as `OTHERS`."""
    counts = Counter(names)
    shown = [name for name in counts if _NAME.fullmatch(name)][:MAX_NAMES]
    found: Counter[str] = Counter()
    for name, count in counts.items():
        found[name if name in shown else OTHERS] += count
    return dict(found)


def watch(source: Source, keys: KnownKeys | None, *, is_split: bool) -> KeyWatch | None:
    """Has the records of a source and its members looked at; None if no keys are declared."""
    if keys is None:
        return None
    key_watch = KeyWatch(keys, is_split=is_split)
    for one in (source, *source.members):
        one.watch = key_watch
    return key_watch
