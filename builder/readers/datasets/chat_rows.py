"""Reads rows of published datasets whose `messages` are those of OpenAI chat.

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
    """Returns the conversation of chat messages.

    `tools` is a list of definitions or the text of one.
    """
    made = row_conversation(name, where, history({"messages": messages, "tools": tools}))
    return (
        made if isinstance(made, Problem) else replace(made, messages=end_at_made_up(made.messages))
    )
