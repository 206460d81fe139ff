"""How well the log shows what the model saw: the context of a conversation and of its turns."""

from __future__ import annotations

from collections.abc import Sequence

from builder.conversation import LEVELS, Context, Conversation

UNKNOWN = Context("partial")
"""The context of a conversation of which nothing is known."""


def derived_context(conversation: Conversation, has_system: bool) -> Context:
    """The context of a conversation whose reader says nothing of it: what is there, or missing."""
    missing = [] if has_system else ["system"]
    if conversation.tools is None or conversation.tools_source in ("inferred", "supplied", "mixed"):
        missing.append("tools")
    return Context("partial" if missing else "logged", tuple(missing))


def lowest(contexts: Sequence[Context]) -> Context | None:
    """The lowest level of the contexts with everything that any of them misses; None of none."""
    if not contexts:
        return None
    level = min((item.level for item in contexts), key=LEVELS.index)
    return Context(level, tuple(sorted({code for item in contexts for code in item.missing})))
