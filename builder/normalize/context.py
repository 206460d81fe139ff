"""Derives the context level of a conversation whose reader does not state it."""

from __future__ import annotations

from builder.conversation import Context, Conversation

UNKNOWN = Context("partial")
"""The default context of a draft."""


def derived_context(conversation: Conversation, has_system: bool) -> Context:
    """Returns the context that follows from the presence of a system prompt and logged tools."""
    missing = [] if has_system else ["system"]
    added = ("inferred", "supplied", "captured", "shared", "mixed")
    if conversation.tools is None or conversation.tools_source in added:
        missing.append("tools")
    return Context("partial" if missing else "logged", tuple(missing))
