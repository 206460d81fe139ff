"""Reads rows of published datasets with messages of OpenAI chat.

Reference: function-calling-datasets.md.
"""

from __future__ import annotations

from dataclasses import replace

from builder.conversation import Conversation, Json
from builder.problem import Problem
from builder.readers.api.capture.rows import row_conversation
from builder.readers.api.openai_chat.bodies import history
from builder.readers.toolkit.made_up import end_at_made_up


def read_chat(
    name: str, where: str, messages: list[Json], tools: Json = None
) -> Conversation | Problem:
    """Returns the conversation of chat messages; `tools` is a list of definitions or its text."""
    found = row_conversation(name, where, history({"messages": messages, "tools": tools}))
    if isinstance(found, Problem):
        return found
    return replace(found, messages=end_at_made_up(found.messages))
