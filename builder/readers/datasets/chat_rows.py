"""Recognises and reads rows of published datasets whose `messages` are those of OpenAI chat.

Reference: function-calling-datasets.md.
"""

from __future__ import annotations

from dataclasses import replace

from builder.conversation import Conversation, Json
from builder.problem import Problem
from builder.readers.api.capture.rows import row_conversation
from builder.readers.api.openai_chat.bodies import history
from builder.readers.toolkit.made_up import end_at_made_up
from builder.readers.toolkit.narrow import as_dict, as_list, as_str

_CALL_TAG = "<TOOLCALL>"
_ANSWERS = ("chosen_response", "rejected_response")


def is_nemotron(row: dict[str, Json]) -> bool:
    """Nemotron: messages with a uuid and a licence, and the purpose of the row."""
    named = {"uuid", "license", "messages"} <= row.keys()
    return named and ("used_in" in row or "category" in row or "reasoning" in row)


def is_toucan(row: dict[str, Json]) -> bool:
    """Toucan: a uuid and messages (JSON text), with a subset or the tools that were meant."""
    return {"uuid", "messages"} <= row.keys() and ("subset_name" in row or "target_tools" in row)


def is_when2call(row: dict[str, Json]) -> bool:
    """When2Call: questions with four answers, pairs of responses, or rows in its own dialect.

    Rows for plain fine-tuning have messages and tools alone. Their definitions are JSON texts in a
    list, or have `required` next to parameters of type "dict"; calls are in <TOOLCALL> tags.
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
    item = as_dict(message)
    return item.get("role") == "assistant" and _CALL_TAG in as_str(item.get("content"))


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
