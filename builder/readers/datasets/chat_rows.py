"""Makes conversations of the rows of published datasets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from builder.conversation import Conversation, Json, Message
from builder.problem import Problem
from builder.readers.api.openai_chat import history
from builder.readers.api.rows import row_conversation
from builder.readers.toolkit.function_text import with_function_calls
from builder.readers.toolkit.made_up import end_at_made_up


def published(
    name: str,
    where: str,
    messages: Iterable[Message],
    tools: tuple[Json, ...] | None,
    changes: Counter[str],
    problems: Sequence[Problem] = (),
    *,
    complete: bool = True,
) -> Conversation:
    """Returns the conversation of a row, whose last turn is a target even if it calls a tool."""
    return Conversation(
        id=name,
        record=where,
        messages=end_at_made_up(with_function_calls(messages, tools, changes)),
        tools=tools,
        records=1,
        problems=tuple(problems),
        changes=changes,
        complete=complete,
    )


def read_chat(
    name: str, where: str, messages: list[Json], tools: Json = None
) -> Conversation | Problem:
    """Returns the conversation of chat messages; `tools` is a list of definitions or its text."""
    return row_conversation(name, where, history({"messages": messages, "tools": tools}))
