"""Determines how well the log shows what the model saw, for a conversation and its turns."""

from __future__ import annotations

from builder.conversation import Context, Conversation

UNKNOWN = Context("partial")
"""The default context of a draft: nothing is known."""


def derived_context(conversation: Conversation, has_system: bool) -> Context:
    """Derives the context of a conversation for which its reader gives none."""
    missing = [] if has_system else ["system"]
    if conversation.tools is None or conversation.tools_source in (
        "inferred",
        "supplied",
        "shared",
        "mixed",
    ):
        missing.append("tools")
    return Context("partial" if missing else "logged", tuple(missing))
