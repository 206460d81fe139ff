"""Reads When2Call: rows for fine-tuning and for preferences, and the benchmark's questions.

Source: docs/formats/when2call.md; NVIDIA/When2Call README @5ada7c9e. A row is a
single turn: calls in <TOOLCALL> tags, or a text that explains why there is none. Definitions are
JSON texts in a list. The test's questions come from BFCL and are evaluation data as well; one of
their four answers is right. The rejected response of a pair becomes a separate conversation that is
not trained on (`dispreferred`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import Conversation, Event, Json, Message, Part, Text, Unparsed
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.datasets.chat_rows import read_chat
from builder.readers.toolkit import tags
from builder.readers.toolkit.narrow import as_dict, as_list, as_str
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import read_rows, row_name, splits
from builder.sources.source import Source

_ANSWERS = ("chosen_response", "rejected_response")
_COLUMNS = frozenset(
    {
        *_ANSWERS,
        "question",
        "answers",
        "correct_answer",
        "target_tool",
        "orig_tools",
        "orig_question",
    }
)
_KINDS = frozenset({"direct", "tool_call", "request_for_info", "cannot_answer"})
"""The kinds of the test's answers."""
_TAG, _END = "<TOOLCALL>", "</TOOLCALL>"


def recognise(source: Source) -> str | None:
    """Claims rows with the dataset's answers, responses, tags or definitions."""
    is_row = any(map(_is_row, source.peek.objects))
    return "rows of tools with questions, responses or calls of When2Call" if is_row else None


def _is_row(row: dict[str, Json]) -> bool:
    """Returns whether a row is a question with answers, a pair, or in the dataset's dialect.

    Rows for plain fine-tuning have only messages and tools. Their definitions are JSON texts in a
    list, or have `required` next to parameters of type "dict"; calls are in <TOOLCALL> tags.
    """
    if {"question", "answers", "correct_answer"} <= row.keys():
        return not _KINDS.isdisjoint(as_dict(row["answers"]))
    if "messages" not in row or "tools" not in row:
        return False
    if all(isinstance(row.get(name), dict) for name in _ANSWERS):
        return True
    if any("tool_calls" in as_dict(message) for message in as_list(row["messages"])):
        return False
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
    return item.get("role") == "assistant" and _TAG in as_str(item.get("content"))


def read(source: Source) -> Iterator[Event]:
    """Yields a conversation for each row, and one for the rejected response of a pair."""
    return read_rows(source, _row, _COLUMNS)


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
    if "correct_answer" in row:
        yield _question(where, row, names)
        return
    asked = as_list(row.get("messages"))
    chosen, rejected = row.get("chosen_response"), row.get("rejected_response")
    name = row_name(where, row.get("uuid"), names)
    yield _conversation(name, where, [*asked, *_response(chosen)], row.get("tools"))
    if isinstance(rejected, dict):
        name = unique_name(f"{name} not preferred", names)
        other = _conversation(name, where, [*asked, rejected], row.get("tools"))
        if isinstance(other, Conversation):
            problem = Problem("dispreferred", where, "the response that was rejected", records=0)
            yield replace(other, records=0, problems=(problem, *other.problems))


def _response(value: Json) -> list[Json]:
    return [value] if isinstance(value, dict) else []


def _question(where: str, row: dict[str, Json], names: Counter[str]) -> Event:
    """Returns the conversation of a test question and its right answer."""
    right = as_str(row.get("correct_answer"))
    answer = as_dict(row.get("answers")).get(right)
    asked: list[Json] = [{"role": "user", "content": row.get("question")}]
    if isinstance(answer, str):
        text = f"{_TAG}{answer}{_END}" if right == "tool_call" else answer
        asked.append({"role": "assistant", "content": text})
    name = row_name(where, row.get("uuid"), names)
    conversation = _conversation(name, where, asked, row.get("tools"))
    if isinstance(conversation, Problem):
        return conversation
    return replace(conversation, evaluation=True, outcome={"benchmark": "When2Call"})


def _conversation(
    name: str, where: str, messages: list[Json], tools: Json
) -> Conversation | Problem:
    conversation = read_chat(name, where, messages, tools)
    if isinstance(conversation, Problem):
        return conversation
    changes = Counter(conversation.changes)
    parts = tuple(_with_calls(message, changes) for message in conversation.messages)
    return replace(conversation, messages=parts, changes=changes)


def _with_calls(message: Message, changes: Counter[str]) -> Message:
    """Returns the message with the calls that its text contains in tags."""
    parts: list[Part] = []
    for part in message.parts:
        text = part.text if isinstance(part, Text) and message.role == "assistant" else ""
        words, tag, body = text.partition(_TAG)
        if not tag:
            parts.append(part)
            continue
        parts += [Text(words)] if words.strip() else []
        inner, _, after = body.rpartition(_END) if _END in body else (body, "", "")
        calls = tags.read_calls(inner.strip(), changes)
        if calls is not None and _END not in body:
            changes["unclosed_call"] += 1
        parts += [Unparsed(inner, "bad_call")] if calls is None else calls
        parts += [Text(after)] if after.strip() else []
    return replace(message, parts=tuple(parts))


READER = Reader(
    name="when2call",
    summary="When2Call rows: messages and tools, pairs of responses, and the test's questions",
    evidence=("documentation", "files"),
    recognise=recognise,
    read=read,
    splits=splits,
)
