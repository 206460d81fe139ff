"""Rows of published datasets whose `messages` are those of chat: told apart, and read.

Reference: function-calling-datasets.md. Their rows have the shape of fine-tuning rows, so the
reader of those asks here first whether a row has an owner of its own.
"""

from __future__ import annotations

from collections import Counter

from builder.conversation import Conversation, Json
from builder.problem import Problem
from builder.readers._chat_bodies import history
from builder.readers._messages import unique
from builder.readers._narrow import as_dict, as_list, as_str
from builder.source import Source

_CALL_TAG = "<TOOLCALL>"
_ANSWERS = ("chosen_response", "rejected_response")


def is_owned(row: dict[str, Json]) -> bool:
    """Whether a row belongs to one of the datasets that are told apart here."""
    return is_nemotron(row) or is_toucan(row) or is_when2call(row)


def is_nemotron(row: dict[str, Json]) -> bool:
    """Nemotron: a uuid and a licence beside the messages, and what the row was made for."""
    named = {"uuid", "license", "messages"} <= row.keys()
    return named and ("used_in" in row or "category" in row or "reasoning" in row)


def is_toucan(row: dict[str, Json]) -> bool:
    """Toucan: a uuid and messages (JSON text), beside a subset or the tools that were meant."""
    return {"uuid", "messages"} <= row.keys() and ("subset_name" in row or "target_tools" in row)


def is_when2call(row: dict[str, Json]) -> bool:
    """When2Call: questions with four answers, pairs of responses, or rows in its own dialect.

    Rows for plain fine-tuning have messages and tools alone. Their definitions are JSON texts in a
    list, or have `required` beside parameters of type "dict"; calls stand in <TOOLCALL> tags.
    """
    if {"question", "answers", "correct_answer"} <= row.keys():
        return isinstance(row["answers"], dict) and ("target_tool" in row or "orig_tools" in row)
    if "messages" not in row or "tools" not in row:
        return False
    if all(isinstance(row.get(name), dict) for name in _ANSWERS):
        return True
    return row.keys() == {"messages", "tools"} and (
        any(map(_is_definition, as_list(row["tools"])))
        or any(map(_is_tagged, as_list(row["messages"])))
    )


def _is_definition(tool: Json) -> bool:
    flat = as_dict(tool)
    kind = as_dict(flat.get("parameters")).get("type")
    return isinstance(tool, str) or (kind == "dict" and "required" in flat)


def _is_tagged(message: Json) -> bool:
    said = as_dict(message)
    return said.get("role") == "assistant" and _CALL_TAG in as_str(said.get("content"))


def splits(source: Source) -> bool:
    """A line is a row, and rows know nothing of one another."""
    return source.peek.kind == "jsonl"


def row_name(where: str, name: Json, names: Counter[str]) -> str:
    """The name of a row's conversation: the row's own id, or where it stands."""
    named = isinstance(name, str | int) and not isinstance(name, bool) and str(name)
    return unique(str(name) if named else where, names)


def read_chat(
    name: str, where: str, messages: list[Json], tools: Json = None, *, records: int = 1
) -> Conversation | Problem:
    """The conversation of chat messages; `tools` is a list of definitions or the text of one."""
    said = history({"messages": messages, "tools": tools})
    if not said.messages:
        return Problem("no_messages", where, "the row has no messages", records=records)
    problems = [Problem(fault.code, where, fault.detail, records=0) for fault in said.problems]
    if not any(message.role == "assistant" for message in said.messages):
        detail = "no message of the assistant"
        problems.append(Problem("no_response", where, detail, records=0))
    return Conversation(
        id=name,
        record=where,
        messages=said.messages,
        tools=said.tools,
        records=records,
        problems=tuple(problems),
        changes=said.changes,
        complete=said.messages[-1].role == "assistant",
    )
