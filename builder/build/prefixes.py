"""Computes digests of a conversation's prefixes, which identify duplicates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from builder.conversation import Json
from builder.jsonio import dumps
from builder.sample import Sample
from builder.select.table import DIGEST_BYTES


def prefix_digests(
    messages: Iterable[tuple[str, str, bool]], definitions: Sequence[Json] | None
) -> tuple[bytes, ...]:
    """Returns a digest of the messages up to each assistant turn.

    `messages` are (role, content, whether it is trained). The third is part of the digest, so that
    a continuation that does not train a turn cannot replace the conversation that does.
    `definitions` are the result of `digested_definitions`.
    """
    seed = dumps(list(definitions)) if definitions is not None else ""
    digest = hashlib.blake2b(seed.encode(), digest_size=DIGEST_BYTES).digest()
    prefixes = []
    for role, content, trained in messages:
        text = f"{role}{'' if trained else ' untrained'}\n{content}"
        digest = hashlib.blake2b(digest + text.encode(), digest_size=DIGEST_BYTES).digest()
        if role == "assistant":
            prefixes.append(digest)
    return tuple(prefixes)


def line_digest(sample: Sample) -> bytes:
    """Returns a digest of the sample's line: equal samples have equal digests."""
    return bytes.fromhex(sample.id)[:DIGEST_BYTES]


def digested_definitions(
    definitions: Sequence[Json], tools_source: str, tools: str
) -> Sequence[Json] | None:
    """Returns the definitions for `prefix_digests`. `tools` is the option `normalize.tools`.

    None if they depend on the calls (inferred, or only the called ones): a conversation and its
    continuation then have different definitions.
    """
    return (
        definitions
        if tools_source in ("logged", "supplied", "captured") and tools == "all"
        else None
    )
