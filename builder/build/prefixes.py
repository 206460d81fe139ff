"""Computes digests of a conversation's prefixes, which identify duplicates."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from builder.conversation import Json
from builder.jsonio import dumps
from builder.select.table import DIGEST_BYTES


def prefix_digests(
    messages: Iterable[tuple[str, str, bool]], definitions: Sequence[Json] | None
) -> tuple[bytes, ...]:
    """Returns a digest of the messages up to each assistant turn.

    A message is (role, content, whether it is trained): a continuation in which a turn is not a
    target does not replace the conversation in which it is one. `definitions` are those that count;
    None if they depend on the calls (inferred, or only the called ones), since they then differ
    between a conversation and its continuation.
    """
    seed = dumps(list(definitions)) if definitions is not None else ""
    digest = hashlib.blake2b(seed.encode("utf-8"), digest_size=DIGEST_BYTES).digest()
    prefixes = []
    for role, content, trained in messages:
        text = f"{role}\n{content}" if trained else f"{role} untrained\n{content}"
        digest = hashlib.blake2b(digest + text.encode(), digest_size=DIGEST_BYTES).digest()
        if role == "assistant":
            prefixes.append(digest)
    return tuple(prefixes)


def counted_definitions(
    definitions: Sequence[Json], tools_source: str, tools: str
) -> Sequence[Json] | None:
    """Returns the definitions that count for `prefix_digests`; `tools` is `normalize.tools`."""
    return definitions if tools_source in ("logged", "supplied") and tools == "all" else None
