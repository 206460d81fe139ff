"""Determines how well the log shows what the model saw, for a conversation and its turns."""

from __future__ import annotations

from collections.abc import Sequence

from builder.conversation import LEVELS, Context, Conversation

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


def lowest(contexts: Sequence[Context]) -> Context | None:
    """Combines contexts: the lowest level and every missing code. None if there are no contexts."""
    if not contexts:
        return None
    level = min((item.level for item in contexts), key=LEVELS.index)
    return Context(level, tuple(sorted({code for item in contexts for code in item.missing})))
