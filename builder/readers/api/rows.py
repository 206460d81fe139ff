"""Reads rows and lists: conversations in the form of an API's bodies, not captured requests.

A row is a record with a whole conversation. In a list, each record is a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from builder.conversation import Conversation, Event, Json
from builder.problem import Problem
from builder.readers.api.codec import History
from builder.readers.toolkit.comparison import with_request_keys
from builder.readers.toolkit.function_text import with_function_calls
from builder.readers.toolkit.made_up import end_at_made_up
from builder.sources.source import Source


def row_conversation(
    name: str, where: str, history: History, *, records: int = 1, complete: bool = True
) -> Conversation | Problem:
    """Returns the conversation of a row; a Problem if it has no assistant message.

    `complete`: the last turn is a target even if its calls are unanswered. A list that a program
    maintains may end with an interrupted turn.
    """
    if not any(message.role == "assistant" for message in history.messages):
        return Problem("no_response", where, "no assistant message", records)
    changes = Counter(history.changes)
    messages = with_function_calls(history.messages, history.tools, changes)
    return Conversation(
        id=name,
        record=where,
        messages=with_request_keys(end_at_made_up(messages)),
        tools=history.tools_offered(messages),
        model=history.model,
        records=records,
        problems=tuple(replace(problem, where=where) for problem in history.problems),
        changes=changes,
        complete=complete and history.messages[-1].role == "assistant",
    )


def read_list(source: Source, read: Callable[[list[Json]], History]) -> Iterator[Event]:
    """Yields the conversation of a file of messages, with the problems of unreadable records.

    Problems after the last message do not affect the conversation.
    """
    messages: list[Json] = []
    unread: list[Problem] = []
    gaps: list[Problem] = []
    for record in source.records():
        if isinstance(record, Problem):
            yield record
            unread.append(record)
            continue
        messages.append(record.value)
        gaps += [replace(problem, records=0) for problem in unread]
        unread = []
    if not messages:
        return
    history, records = read(messages), len(messages)
    conversation = row_conversation("file", "file", history, records=records, complete=False)
    if isinstance(conversation, Conversation):
        conversation = replace(conversation, problems=(*gaps, *conversation.problems))
    yield conversation
