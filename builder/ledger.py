"""Defines the ledger: the outcome of every record, conversation, sample and call."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

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

    def add_records(self, other: Ledger) -> None:
        """Adds the record counts of one result."""
        self.read += other.read
        self.used += other.used
        self.ignored.update(other.ignored)
        self.rejected.update(other.rejected)

    def leave_out(self, code: str) -> None:
        """Counts a sample that is left out under the code."""
        self.samples_found += 1
        self.samples_left_out[code] += 1

    @property
    def conversations_lost(self) -> Counter[str]:
        """The rejected conversations that could have been trained, by code."""
        rejected = self.conversations_rejected.items()
        return Counter({code: count for code, count in rejected if count and is_loss(code)})

    @property
    def conversations_ignored(self) -> Counter[str]:
        """The rejected conversations with nothing to train, or left out on request, by code."""
        return self.conversations_rejected - self.conversations_lost

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
        records, conversations, calls = (
            OBJECT.read(value.get(name)) for name in ("records", "conversations", "calls")
        )

        def number(counts: Mapping[str, Json], name: str) -> int:
            return COUNT.read(counts.get(name))

        def codes(counts: Mapping[str, Json], name: str) -> Counter[str]:
            return Counter(COUNTS.read(counts.get(name)))

        return cls(
            read=number(records, "read"),
            used=number(records, "used"),
            ignored=codes(records, "ignored"),
            rejected=codes(records, "rejected"),
            found=number(conversations, "found"),
            built=number(conversations, "built"),
            duplicates=number(conversations, "duplicates"),
            conversations_rejected=codes(conversations, "rejected"),
            recoverable=codes(conversations, "recoverable"),
            cut=codes(conversations, "cut"),
            calls_logged=number(calls, "logged"),
            calls_kept=number(calls, "kept"),
            calls_dropped=codes(calls, "dropped"),
            samples=number(value, "samples"),
            samples_found=number(value, "samples_found") or number(value, "samples"),
            samples_left_out=codes(value, "samples_left_out"),
        )

    def to_json(self) -> dict[str, Json]:
        """Returns the `ledger` of the manifest (docs/output.md), codes in alphabetical order."""
        return {
            "records": {
                "read": self.read,
                "used": self.used,
                "ignored": _sorted(self.ignored),
                "rejected": _sorted(self.rejected),
            },
            "conversations": {
                "found": self.found,
                "built": self.built,
                "duplicates": self.duplicates,
                "rejected": _sorted(self.conversations_rejected),
                "recoverable": _sorted(self.recoverable),
                "cut": _sorted(self.cut),
            },
            "calls": {
                "logged": self.calls_logged,
                "kept": self.calls_kept,
                "dropped": _sorted(self.calls_dropped),
            },
            "samples": self.samples,
            "samples_found": self.samples_found,
            "samples_left_out": _sorted(self.samples_left_out),
        }


def _sorted(counts: Counter[str]) -> dict[str, Json]:
    return {code: counts[code] for code in sorted(counts) if counts[code]}


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
