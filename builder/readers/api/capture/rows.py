"""Rows and lists: conversations in the form of an API's bodies, without a captured request.

A row is a record that contains a whole conversation; in a list, each record is one message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from builder.conversation import Conversation, Event, Json
from builder.problem import Problem
from builder.readers.api.capture.api import History
from builder.readers.toolkit.call_keys import with_request_keys
from builder.readers.toolkit.comparison import calls
from builder.sources.source import Source


def row_conversation(
    name: str, where: str, history: History, *, records: int = 1, complete: bool = True
) -> Conversation | Problem:
    """Returns the conversation of a row; a Problem if it has no assistant message.

    If it names no tools there were none, unless tools are called. `complete`: a last turn is a
    target even if it calls; in a list that a program keeps, it may have been interrupted.
    """
    if not any(message.role == "assistant" for message in history.messages):
        return Problem("no_response", where, "no assistant message", records)
    tools = history.tools
    if tools is None and not any(calls(message) for message in history.messages):
        tools = ()
    return Conversation(
        id=name,
        record=where,
        messages=with_request_keys(history.messages),
        tools=tools,
        model=history.model,
        records=records,
        problems=tuple(replace(problem, where=where) for problem in history.problems),
        changes=history.changes,
        complete=complete and history.messages[-1].role == "assistant",
    )


def read_list(source: Source, read: Callable[[list[Json]], History]) -> Iterator[Event]:
    """Yields the conversation in a file of messages; a record that cannot be read leaves a gap."""
    messages: list[Json] = []
    unread: list[Problem] = []
    holes: list[Problem] = []
    for record in source.records():
        if isinstance(record, Problem):
            yield record
            unread.append(record)
            continue
        messages.append(record.value)
        holes += [replace(problem, records=0) for problem in unread]
        unread = []
    if not messages:
        return
    history, records = read(messages), len(messages)
    found = row_conversation("file", "file", history, records=records, complete=False)
    if isinstance(found, Conversation):
        found = replace(found, problems=(*holes, *found.problems))
    yield found
