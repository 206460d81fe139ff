"""Defines the table from which samples are selected: digests, counts and codes, never texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from builder.select.alternatives import Alternative

DIGEST_BYTES = 16
"""The length of the digests of messages, which are concatenated to save memory."""


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """One conversation, and its proven samples.

    source    the number of its source's result; keys of calls that only their position identifies
              are unique within it
    code      why it, or one of its samples, was rejected; None: nothing was
    weight    the share of the sessions to select from its input
    session   a digest that the conversations of one session share (`builder.select.splits`)
    prefixes  digests of the messages up to each assistant turn, joined; the last is of all messages
    ends      for each sample the digest of the messages up to its end, joined
    tokens    for each sample its tokens
    calls     for each sample its calls: the number of the first, and the one after the last
    levels    for each sample the number of its targets at each level of context (`LEVELS`)
    missing   for each sample (code of `MISSING`, number of its targets whose context lacks it)
    weighted  for each sample whether it has weights
    recorded  for each sample how it compares with the tokens in the log (`SampleMeta.compared`)
    patterns  for each sample its behaviour; empty unless the options need it
    refusals  for each sample the code of the user's condition that it does not meet, or None;
              empty without conditions
    reviews   for each sample the code with which a review leaves it out, or None; empty without a
              review
    group, stratum  values of the fields for shares and budget
    call_keys    the keys of its calls, each of 16 bytes (`builder.ledger.call_keys`)
    call_codes   for each call why it was dropped, or None
    tools_source, format, model, license  the origins of the tool definitions and the conversation
    alternative  the abandoned answer that it may contribute; None: it was not abandoned
    left_out     (code, number) of corrections that are not certain pairs
    pairs        for each sample the number of preference pairs within it
    without_secrets  whether the texts of its samples were searched for secrets, and there was none
    """

    source: int
    code: str | None
    weight: float
    session: bytes
    prefixes: bytes
    ends: bytes
    tokens: tuple[int, ...]
    calls: tuple[tuple[int, int], ...]
    levels: tuple[tuple[int, ...], ...]
    missing: tuple[tuple[tuple[str, int], ...], ...]
    weighted: tuple[bool, ...]
    recorded: tuple[str, ...]
    patterns: tuple[str, ...]
    refusals: tuple[str | None, ...]
    reviews: tuple[str | None, ...]
    group: str
    stratum: str
    call_keys: tuple[bytes, ...]
    call_codes: tuple[str | None, ...]
    tools_source: str
    format: str
    models: tuple[str, ...]
    license: str
    alternative: Alternative | None = None
    left_out: tuple[tuple[str, int], ...] = ()
    pairs: tuple[int, ...] = ()
    without_secrets: bool = False

    @property
    def samples(self) -> int:
        """The number of its proven samples; 0: the conversation is rejected."""
        return len(self.tokens)


Table = Sequence[ConversationRow]
"""All conversations in the order of the sources; samples are numbered across them from 0."""


def split_digests(joined: bytes) -> list[bytes]:
    """Returns the concatenated digests as a list."""
    return [joined[at : at + DIGEST_BYTES] for at in range(0, len(joined), DIGEST_BYTES)]
