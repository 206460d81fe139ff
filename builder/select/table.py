"""Defines the table from which samples are selected: digests, counts and codes, never texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from builder.jsonio import loads, packed, unpacked
from builder.select.alternatives import Alternative

DIGEST_BYTES = 16
"""The length of the digests of messages, which are concatenated to save memory."""


@dataclass(frozen=True, slots=True)
class SampleEntry:
    """The description of one proven sample.

    prefix       digest of the dialogue's messages up to its end
    calls        [first, end) of the conversation's calls that it contains
    levels       number of its targets at each of LEVELS, the lowest first
    missing      (code of `MISSING`, number of its targets with this code)
    is_weighted  whether it has weights
    pairs        number of preference pairs in its meta line
    models       the models of its targets, each once; None: not logged
    recorded     how it compares with the tokens in the log (`SampleMeta.compared`)
    line         digest of its line in data/
    """

    prefix: bytes
    tokens: int
    calls: tuple[int, int] = (0, 0)
    levels: tuple[int, ...] = ()
    missing: tuple[tuple[str, int], ...] = ()
    is_weighted: bool = False
    pairs: int = 0
    models: tuple[str | None, ...] = ()
    recorded: str = ""
    line: bytes = b""


@dataclass(frozen=True, slots=True)
class ConversationEntry:
    """The outcome of one conversation.

    code         why it, or one of its samples, was rejected; None: nothing was
    samples      its proven samples, in order; empty if the conversation is rejected
    prefixes     digests of the messages up to each assistant turn, joined; the last is of all
                 messages
    calls        (call key, drop code or None) of each call (`builder.ledger.call_keys`)
    session      a digest that the conversations of one session share (`builder.select.choice`)
    format       the name of its format, if it differs from that of its source's result
    alternative  the abandoned answer that it may contribute; None: it was not abandoned
    left_out     (code, number) of corrections that are not certain preference pairs
    tools_source, license  the origin of its tool definitions, and its license
    is_recoverable   whether the option of its code would keep it
    cut          the code for which later turns of the conversation are left out, or None
    without_secrets  whether the texts of its samples were searched for secrets, and there was none
    """

    code: str | None
    samples: tuple[SampleEntry, ...] = ()
    prefixes: bytes = b""
    calls: tuple[tuple[bytes, str | None], ...] = ()
    tools_source: str = "none"
    session: bytes = b""
    license: str | None = None
    format: str | None = None
    alternative: Alternative | None = None
    left_out: tuple[tuple[str, int], ...] = ()
    is_recoverable: bool = False
    cut: str | None = None
    without_secrets: bool = False

    def to_json(self) -> bytes:
        """Encodes the entry as one line, an object with a key for each field."""
        return packed(self)

    @classmethod
    def from_json(cls, line: bytes) -> ConversationEntry:
        """Parses an entry written by `to_json`."""
        return unpacked(cls, loads(line))


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A proven sample, and what the options of the selection say of it.

    pattern  its behaviour; "" unless the options need it
    refusal  the code of the user's condition that it does not meet, or None
    review   the code with which a review leaves it out, or None
    """

    entry: SampleEntry
    pattern: str = ""
    refusal: str | None = None
    review: str | None = None


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """One conversation, and its proven samples.

    samples  its proven samples; none: the conversation is rejected
    source   the number of its source's result; keys of calls that only their position identifies
             are unique within it
    weight   the share of the sessions to select from its input
    format   the name of its format
    group           values of the field for shares
    """

    entry: ConversationEntry
    samples: tuple[SampleRow, ...]
    source: int = 0
    weight: float = 1.0
    format: str = ""
    group: str = ""


Table = Sequence[ConversationRow]
"""All conversations in the order of the sources; samples are numbered across them from 0."""


def split_digests(joined: bytes) -> list[bytes]:
    """Returns the concatenated digests as a list."""
    return [joined[at : at + DIGEST_BYTES] for at in range(0, len(joined), DIGEST_BYTES)]
