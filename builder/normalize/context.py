"""Derives the context level of a conversation whose reader does not state it."""

from __future__ import annotations

from builder.conversation import Context, Conversation
from builder.normalize.tools import flat, is_name_only

UNKNOWN = Context("partial")
"""The default context of a draft."""


def derived_context(conversation: Conversation, has_system: bool) -> Context:
    """Returns the context that follows from the presence of a system prompt and logged tools.

    Definitions that consist of a name are not what the model saw: `tools` are missing.
    """
    missing = [] if has_system else ["system"]
    added = ("inferred", "supplied", "captured", "shared", "mixed")
    tools = conversation.tools
    if tools is None or conversation.tools_source in added or any(map(is_name_only, flat(tools))):
        missing.append("tools")
    return Context("partial" if missing else "logged", tuple(missing))
