"""Rows: whole conversations as an API's bodies say them, without a request that was sent."""

from __future__ import annotations

from dataclasses import replace

from builder.conversation import Conversation
from builder.problem import Problem
from builder.readers._comparison import calls, with_keys
from builder.readers._histories import History


def row_conversation(
    name: str, where: str, said: History, *, records: int = 1
) -> Conversation | Problem:
    """The conversation of a row; a Problem if the assistant says nothing in it.

    Where no tools are named there were none, unless tools were called.
    """
    if not any(message.role == "assistant" for message in said.messages):
        return Problem("no_response", where, "no message of the assistant", records)
    tools = said.tools
    if tools is None and not any(calls(message) for message in said.messages):
        tools = ()
    return Conversation(
        id=name,
        record=where,
        messages=with_keys(said.messages),
        tools=tools,
        model=said.model,
        records=records,
        problems=tuple(replace(problem, where=where) for problem in said.problems),
        changes=said.changes,
        complete=said.messages[-1].role == "assistant",
    )
