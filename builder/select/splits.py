"""Assigns conversations to splits: by session, seeded, the same in every run.

Conversations of one session (sub-agents, segments, forks with a common beginning) go to the same
split, so that evaluation data is never trained.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from builder.conversation import session_name
from builder.options import at_least

SPLITS = ("train", "validation", "test")

_UNIQUE = re.compile(r"(?=.*\d)[0-9A-Za-z_-]{16,}")


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """Shares of the sessions for validation and test, and the seed of the draw.

    All parts of a session (sub-agents, segments, forks) stay together in one split.
    """

    validation: float = 0.0
    test: float = 0.0
    seed: int = field(default=0, metadata=at_least(0))


def session_digest(conversation: str, format: str, origin: str) -> bytes:  # noqa: A002 - the field's term
    """Returns 8 bytes that the conversations of one session share, from a conversation's id.

    A session's parts are named after it: `ID/sub-agent`, `ID#segment`, `ID~branch`. A globally
    unique id (a UUID) identifies the session in all files, any other only within its own.
    """
    root = session_name(conversation)
    place = "" if _UNIQUE.fullmatch(root) else origin
    text = "\n".join((format, place, root)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=8).digest()


def is_taken(session: bytes, weight: float, seed: int) -> bool:
    """Returns whether the session is within the share `weight` of its input, reproducibly."""
    return weight >= 1 or _number(b"weight", session, seed) < weight


def assign(groups: Sequence[tuple[bytes, bytes]], options: SplitOptions) -> list[str]:
    """Returns the split of each conversation, given as (session digest, digest of its beginning).

    Conversations that share either of them form a group. The seed and the smallest key of a group
    determine its split.
    """
    if not (options.validation or options.test):
        return ["train"] * len(groups)
    parents: dict[bytes, bytes] = {}

    def root(key: bytes) -> bytes:
        while (parent := parents.setdefault(key, key)) != key:
            parents[key] = parents[parent]
            key = parent
        return key

    for session, beginning in groups:
        one, two = sorted((root(b"s" + session), root(b"b" + beginning)))
        parents[two] = one
    return [_split(root(b"s" + session), options) for session, _ in groups]


def _split(key: bytes, options: SplitOptions) -> str:
    number = _number(b"", key, options.seed)
    if number < options.test:
        return "test"
    return "validation" if number < options.test + options.validation else "train"


def _number(purpose: bytes, key: bytes, seed: int) -> float:
    """Returns a number in [0, 1) derived from the seed and the key."""
    seeded = purpose + f"{seed}\n".encode() + key
    return int.from_bytes(hashlib.blake2b(seeded, digest_size=8).digest()) / 2**64
