"""Defines the ledger: the outcome of every record, conversation, sample and call."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from builder.codes import DUPLICATE, is_loss, is_on_request
from builder.conversation import Conversation, Json, ToolCall
from builder.jsonio import dumps, loads_text
from builder.keys import COUNT, COUNTS, OBJECT
from builder.problem import BuilderError

Key = TypeVar("Key", str, tuple[str, str])


def ranked(counts: Mapping[Key, int]) -> tuple[tuple[Key, int], ...]:
    """Returns the (key, count) pairs, the highest count first, equal counts sorted by key."""
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


class LedgerFault(BuilderError):
    """The sums do not agree: something was lost or counted twice. This is a bug in the program."""


@dataclass(frozen=True, slots=True)
class Account:
    """What became of the records, conversations, samples or calls; docs/output.md has the words.

    unit        "records", "conversations", "samples" or "calls"
    used        in the dataset
    duplicates  in the dataset already, by another copy
    ignored     nothing to train, or left out on request, by code
    rejected    lost although it could have been trained, by code
    """

    unit: str
    found: int
    used: int
    duplicates: int = 0
    ignored: Mapping[str, int] = field(default_factory=dict)
    rejected: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, unit: str, found: int, used: int, left_out: Mapping[str, int]) -> Account:
        """Makes an account from what was left out, by code."""
        others = {code: n for code, n in left_out.items() if n and code != DUPLICATE}
        return cls(
            unit,
            found,
            used,
            left_out.get(DUPLICATE, 0),
            {code: count for code, count in others.items() if not is_loss(code)},
            {code: count for code, count in others.items() if is_loss(code)},
        )

    @property
    def lost(self) -> int:
        """The number of those that were rejected."""
        return sum(self.rejected.values())

    @property
    def wanted(self) -> int:
        """The number of those that could be trained: used, rejected, or left out on request."""
        requested = sum(n for code, n in self.ignored.items() if is_on_request(code))
        return self.used + self.lost + requested


@dataclass(slots=True)
class Ledger:
    """Counts of records, conversations, samples and calls; those that were not used by code.

    `accounts` has them in the words that people read. `samples` counts the samples of the dataset,
    `samples_left_out` those that were left out, duplicates too.
    `recoverable` counts the rejected conversations that the option of their code would keep
    (`builder.codes`), `cut` the built ones whose last turns are left out.
    """

    read: int = 0
    used: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    found: int = 0
    built: int = 0
    duplicates: int = 0
    conversations_rejected: Counter[str] = field(default_factory=Counter)
    recoverable: Counter[str] = field(default_factory=Counter)
    cut: Counter[str] = field(default_factory=Counter)
    calls_logged: int = 0
    calls_kept: int = 0
    calls_dropped: Counter[str] = field(default_factory=Counter)
    samples: int = 0
    samples_found: int = 0
    samples_left_out: Counter[str] = field(default_factory=Counter)

    @property
    def accounts(self) -> tuple[Account, ...]:
        """Records, conversations, samples and calls, in one vocabulary."""
        conversations = self.conversations_rejected + Counter({DUPLICATE: self.duplicates})
        return (
            Account("records", self.read, self.used, 0, self.ignored, self.rejected),
            Account.of("conversations", self.found, self.built, conversations),
            Account.of("samples", self.samples_found, self.samples, self.samples_left_out),
            Account.of("calls", self.calls_logged, self.calls_kept, self.calls_dropped),
        )

    def add(self, other: Ledger) -> None:
        """Adds all counts of another ledger."""
        for item in fields(self):
            mine, more = getattr(self, item.name), getattr(other, item.name)
            if isinstance(mine, Counter):
                mine.update(more)
            else:
                setattr(self, item.name, mine + more)

    def leave_out(self, code: str) -> None:
        """Counts a sample that is left out under the code."""
        self.samples_found += 1
        self.samples_left_out[code] += 1

    def check(self) -> None:
        """Raises LedgerFault unless every sum holds."""
        sums = (
            ("records", self.read, self.used + self.ignored.total() + self.rejected.total()),
            (
                "conversations",
                self.found,
                self.built + self.conversations_rejected.total() + self.duplicates,
            ),
            ("samples", self.samples_found, self.samples + self.samples_left_out.total()),
            ("calls", self.calls_logged, self.calls_kept + self.calls_dropped.total()),
        )
        for name, whole, parts in sums:
            if whole != parts:
                raise LedgerFault(f"{name}: {whole} found, {parts} accounted for")

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> Ledger:
        """Returns a ledger in the form of `to_json`; counts that cannot be read are 0."""
        read: dict[str, Any] = {}
        for name, section, key in _keys(cls):
            counts = OBJECT.read(value.get(section)) if section else value
            is_of_codes = isinstance(getattr(cls(), name), Counter)
            read[name] = (COUNTS if is_of_codes else COUNT).read(counts.get(key))
            read[name] = Counter(read[name]) if is_of_codes else read[name]
        return cls(**read)

    def to_json(self) -> dict[str, Json]:
        """Returns the `ledger` of the manifest (docs/output.md), codes in alphabetical order."""
        written: dict[str, Any] = {}
        for name, section, key in _keys(Ledger):
            value = getattr(self, name)
            if isinstance(value, Counter):
                value = {code: value[code] for code in sorted(value) if value[code]}
            (written.setdefault(section, {}) if section else written)[key] = value
        return written


_SECTIONS = {
    **dict.fromkeys(("read", "used", "ignored", "rejected"), "records"),
    **dict.fromkeys(("found", "built", "duplicates"), "conversations"),
    **dict.fromkeys(("conversations_rejected", "recoverable", "cut"), "conversations"),
    **dict.fromkeys(("calls_logged", "calls_kept", "calls_dropped"), "calls"),
}
"""{field of a ledger: the object of the manifest that has it}; the others stand above these."""


def _keys(kind: type[Ledger]) -> Iterator[tuple[str, str, str]]:
    """Yields (field, section, key) of each count, in the order of the manifest."""
    for item in fields(kind):
        section = _SECTIONS.get(item.name, "")
        yield item.name, section, item.name.removeprefix(f"{section}_")


PLACED = 0
"""The first byte of the digest of a call that only its position identifies."""


def call_keys(conversation: Conversation, *, format: str, source: str) -> list[bytes]:  # noqa: A002 - the field's term
    """Returns a digest of 16 bytes for each call, in order. Equal digests mean the same call.

    The key that a reader gave to a call identifies it in all files of the format. Any other call is
    identified by its position; its digest starts with the byte PLACED.
    """
    keys = []
    calls = (
        part
        for message in conversation.messages
        for part in message.parts
        if isinstance(part, ToolCall)
    )
    for ordinal, call in enumerate(calls):
        identity: list[Json] = [source, conversation.id, ordinal]
        if call.key is not None:
            # The arguments may be text in a response and an object in a later request.
            identity = [format, call.key, call.name, loads_text(call.arguments)]
        text = dumps(identity).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(text, digest_size=15).digest()
        keys.append(bytes([call.key is not None]) + digest)
    return keys


class CallOutcomes:
    """The outcome of each call of a run: kept if any copy is kept, else its first drop code.

    A call identified by its position cannot recur in another source, so those are counted and
    discarded at the end of each source (`end_source`).
    """

    def __init__(self) -> None:
        self._outcomes: dict[bytes, str | None] = {}
        self._placed: dict[bytes, str | None] = {}
        self._logged = 0
        self._dropped: Counter[str] = Counter()

    def add(self, outcomes: Iterable[tuple[bytes, str | None]]) -> None:
        """Adds (key, drop code or None if kept) for each call, in the order of the sources."""
        for key, code in outcomes:
            known = self._placed if key[0] == PLACED else self._outcomes
            if code is None or key not in known:
                known[key] = code

    def end_source(self) -> None:
        """Marks the end of a source."""
        self._logged += len(self._placed)
        self._dropped.update(code for code in self._placed.values() if code is not None)
        self._placed.clear()

    def count(self, ledger: Ledger) -> None:
        """Adds the counts of calls to the ledger."""
        self.end_source()
        dropped = self._dropped + Counter(
            code for code in self._outcomes.values() if code is not None
        )
        logged = self._logged + len(self._outcomes)
        ledger.calls_logged += logged
        ledger.calls_dropped.update(dropped)
        ledger.calls_kept += logged - dropped.total()
