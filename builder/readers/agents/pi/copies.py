"""Finds the answers that a branched session copied from the file of its parent session."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import PurePosixPath

from builder.conversation import Json
from builder.jsonio import dumps
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.siblings import from_sibling
from builder.sources.source import Source


def answer_digest(entry: dict[str, Json]) -> bytes:
    """Returns a digest of an answer, which a branch repeats unchanged, with its time."""
    return hashlib.blake2b(dumps(entry.get("message")).encode("utf-8", "replace")).digest()


def answers_of_parent(source: Source, header: dict[str, Json]) -> Collection[bytes]:
    """Returns the digests of the answers in the session that a header names as the parent.

    The header has the parent's path; the file must be in the folder of this one.
    """
    named = as_str(header.get("parentSession") or header.get("branchedFrom"))
    return from_sibling(source, PurePosixPath(named.replace("\\", "/")).name, _answers) or ()


def _answers(parent: Source) -> Collection[bytes]:
    entries = (
        record[1] for record in objects(parent.json_lines(), "") if isinstance(record, tuple)
    )
    return frozenset(
        answer_digest(entry)
        for entry in entries
        if as_dict(entry.get("message")).get("role") == "assistant"
    )
