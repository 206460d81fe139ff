"""Rules of Oh My Pi, OpenClaw and Letta Code's store, which descend from Pi.

Source: docs/formats/pi-forks.md, docs/formats/letta-code.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from builder.conversation import Json
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str, one_or_many

_RESET = "reset_boundary"
SETTINGS = frozenset({
    "session_init", "title", "title_change", "service_tier_change", "mode_change", "model_usage",
    "ttsr_injection", "archive", "credential_pin", _RESET,
})  # fmt: skip
"""Types of Oh My Pi's entries that are no messages."""

_MIRRORS = frozenset({"delivery-mirror", "gateway-injected"})
"""Names of models in OpenClaw's rows that repeat a text sent to a channel."""


def is_injection(entry: Mapping[str, Json]) -> bool:
    """Returns whether rules were put into the request of the next answer, in no message."""
    return entry.get("type") == "ttsr_injection"


def begins_context(entry: Mapping[str, Json]) -> bool:
    """Returns whether the context begins with an entry: a compaction, or after `/clear`."""
    return entry.get("type") in ("compaction", _RESET)


def is_unlike_log(entry: Mapping[str, Json]) -> bool:
    """Returns whether the context behind an entry differs from the log in what is not logged.

    A compaction by the provider, or one that keeps the past as pictures, is sent in that form; a
    hint to plan is taken out of the context again.
    """
    if entry.get("type") == "custom_message":
        return entry.get("customType") == "prewalk-plan"
    kept = as_dict(entry.get("preserveData")) if entry.get("type") == "compaction" else {}
    return any(key == "openaiRemoteCompaction" or "snapcompact" in key for key in kept)


def snapshot_id(entry: Mapping[str, Json]) -> str | None:
    """Returns the id of a message of Letta Code's store, which is written again when it changes."""
    name = as_str(as_dict(entry.get("message")).get("id")) if entry.get("type") == "message" else ""
    return name if name.startswith("letta-msg-") else None


def is_mirror(entry: Mapping[str, Json]) -> bool:
    """Returns whether a row of the assistant is not the model's answer."""
    return as_str(as_dict(entry.get("message")).get("model")) in _MIRRORS


def parent_of(
    parent: str, session: str, last: tuple[str, Mapping[str, Json]] | None, *, answered: bool
) -> str | None:
    """Returns the parent of an entry that names no entry; None: it is the first.

    OpenClaw may name a call of the last entry (`last`: its id and content), or the session, before
    the first answer for entries that follow one another.
    """
    if last is None:
        return None if parent == session else parent
    blocks = as_dicts(as_dict(last[1].get("message")).get("content"))
    if any(one.get("type") == "toolCall" and one.get("id") == parent for one in blocks):
        return last[0]
    if parent == session:
        return None if answered else last[0]
    return parent


def init_prompt(entry: Mapping[str, Json]) -> str | None:
    """Returns the system prompt of a sub-agent of Oh My Pi, if the entry has it."""
    if entry.get("type") != "session_init":
        return None
    blocks = one_or_many(entry.get("systemPrompt"))
    return "\n\n".join(filter(None, map(as_str, blocks))) or None
