"""Rows and lists: conversations as an API's bodies say them, without a request that was sent.

A row is a record that is a whole conversation; of a list each record is one of its messages.
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
    name: str, where: str, said: History, *, records: int = 1, complete: bool = True
) -> Conversation | Problem:
    """The conversation of a row; a Problem if the assistant says nothing in it.

    Where no tools are named there were none, unless tools were called. `complete`: a turn at its
    end is what is to be learnt; of a list that a program kept it may be one that broke off.
    """
    if not any(message.role == "assistant" for message in said.messages):
        return Problem("no_response", where, "no message of the assistant", records)
    tools = said.tools
    if tools is None and not any(calls(message) for message in said.messages):
        tools = ()
    return Conversation(
        id=name,
        record=where,
        messages=with_request_keys(said.messages),
        tools=tools,
        model=said.model,
        records=records,
        problems=tuple(replace(problem, where=where) for problem in said.problems),
        changes=said.changes,
        complete=complete and said.messages[-1].role == "assistant",
    )


def read_list(source: Source, said: Callable[[list[Json]], History]) -> Iterator[Event]:
    """The one conversation of a file of messages. A record that cannot be read is a hole in it."""
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
    history, records = said(messages), len(messages)
    found = row_conversation("file", "file", history, records=records, complete=False)
    if isinstance(found, Conversation):
        found = replace(found, problems=(*holes, *found.problems))
    yield found
