"""Reads rows of text for language models: prompt and completion, or rendered ChatML.

A `text`, or a `prompt` with its `completion`, may be a conversation as a chat template rendered it
(`<|im_start|>role … <|im_end|>`); its messages are read as those of rows (openai-chat). Answers
within the prompt are context. Without these tokens a prompt is the user's message and the
completion the answer.

Rows of Alpaca (instruction, input, output) and of ms-swift (query, response) are the same in other
columns; both may have a system prompt and earlier turns in `history`, pairs of question and answer,
which their trainers train as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import Conversation, Event, Json, Unparsed
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.api.openai_chat.rows import dispreferred, is_worse
from builder.readers.datasets.chat_rows import read_chat
from builder.readers.toolkit.json_text import json_in_text
from builder.readers.toolkit.narrow import as_list, as_str
from builder.readers.toolkit.rows import read_rows, row_name, splits
from builder.sources.source import Source

_COLUMNS = (("instruction", "output"), ("query", "response"))
"""Columns of question and answer: Alpaca's and ms-swift's."""
_START, _END = "<|im_start|>", "<|im_end|>"
_MESSAGE = re.compile(r"\s*<\|im_start\|>(\w+)\n(.*?)(<\|im_end\|>|\Z)", re.DOTALL)
_AFTER = re.compile(r"\s*(?:<\|endoftext\|>|</s>)?\s*\Z")
_BEFORE = re.compile(r"\s*(?:<s>|<\|endoftext\|>|<bos>)?\s*")


def recognise(source: Source) -> str | None:
    """Claims rows with a prompt and a completion that are texts, or with a text in ChatML."""
    for row in source.peek.objects:
        if "messages" in row or "conversations" in row:
            continue
        halves = (row.get("prompt"), row.get("completion", row.get("chosen")))
        if all(isinstance(half, str) and not half.startswith('[{"') for half in halves):
            return "texts of prompt and completion"
        text = row.get("text")
        if isinstance(text, str) and _is_rendered(text):
            return "texts in ChatML"
        if (columns := _question_columns(row)) is not None:
            return f"texts of {' and '.join(columns)}"
    return None


def _question_columns(row: dict[str, Json]) -> tuple[str, str] | None:
    """Returns the columns of question and answer, if the row has them as texts."""
    return next(
        (pair for pair in _COLUMNS if all(isinstance(row.get(key), str) for key in pair)), None
    )


def _is_rendered(text: str) -> bool:
    found = _BEFORE.match(text)
    return found is not None and text.startswith(_START, found.end())


def read(source: Source) -> Iterator[Event]:
    """Yields a conversation for each row, and one for the rejected completion of a preference."""
    columns = {"text", "prompt", "completion", "history", "rejected_response"}
    return read_rows(source, _events, columns.union(*_COLUMNS))


def _events(where: str, row: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
    if isinstance(row.get("chosen"), str):
        yield _row(where, {**row, "completion": row["chosen"]}, names)
        if isinstance(row.get("rejected"), str):
            other = _row(where, {**row, "completion": row["rejected"]}, names)
            yield dispreferred(other, records=0)
        return
    found = _row(where, row, names)
    yield dispreferred(found, records=1) if is_worse(row) else found
    if isinstance(row.get("rejected_response"), str):
        other = _row(where, {**row, "response": row["rejected_response"]}, names)
        yield dispreferred(other, records=0)


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    prompt, completion, text = (row.get(key) for key in ("prompt", "completion", "text"))
    name = row_name(where, row.get("id"), names)
    if "prompt" not in row and (columns := _question_columns(row)) is not None:
        return read_chat(name, where, _question_and_answer(row, columns), row.get("tools"))
    if isinstance(prompt, str) and isinstance(completion, str):
        if not _is_rendered(prompt):
            return read_chat(name, where, [_message("user", prompt), _answer(completion)])
        closed = completion if _END in completion else f"{completion}{_END}"
        text, context = prompt + closed, prompt.count(_END)
    else:
        context = 0
    if not isinstance(text, str) or not _is_rendered(text):
        return Problem("unknown_shape", where, "neither prompt and completion nor a text in ChatML")
    messages, is_cut = _messages(text, context)
    if not messages:
        return Problem("unknown_shape", where, "text between the messages")
    found = read_chat(name, where, messages, row.get("tools"))
    if is_cut and isinstance(found, Conversation):
        last = found.messages[-1]
        parts = (*last.parts, Unparsed("", "truncated"))
        found = replace(found, messages=(*found.messages[:-1], replace(last, parts=parts)))
    if context and isinstance(found, Conversation):
        found = replace(found, recorded=True)
    return found


def _question_and_answer(row: dict[str, Json], columns: tuple[str, str]) -> list[Json]:
    """Returns the messages of a row with a question, its answer and the turns before them."""
    question, answer = columns
    system = row.get("system")
    found: list[Json] = [_message("system", system)] if isinstance(system, str) and system else []
    for pair in as_list(json_in_text(row.get("history"))):
        earlier, reply = (*as_list(pair), None, None)[:2]
        found += [_message("user", as_str(earlier)), _answer(as_str(reply))]
    texts = (as_str(row[question]), as_str(row.get("input")) if question == "instruction" else "")
    return [*found, _message("user", "\n".join(filter(None, texts))), _answer(as_str(row[answer]))]


def _messages(text: str, context: int) -> tuple[list[Json], bool]:
    """Returns the messages of a rendered text, and whether the last one lacks its end.

    Answers among the first `context` messages have weight 0. Returns no messages if there is text
    between them.
    """
    found: list[Json] = []
    start = _BEFORE.match(text)
    at = start.end() if start is not None else 0
    closed = True
    while message := _MESSAGE.match(text, at):
        role, body, end = message.groups()
        at = message.end()
        if not end and not body.strip():  # where a prompt ends
            break
        closed = bool(end)
        item = _message(role, body)
        if role == "assistant" and len(found) < context:
            item = {**item, "weight": 0}
        found.append(item)
    return (found, not closed) if _AFTER.match(text, at) else ([], False)


def _message(role: str, content: str) -> dict[str, Json]:
    return {"role": role, "content": content}


def _answer(text: str) -> Json:
    return _message("assistant", text)


READER = Reader(
    name="prompt-completion",
    summary=(
        "rows of prompt and completion as texts, of instruction and output (Alpaca), of query and"
        " response (ms-swift), and rows with a text in ChatML"
    ),
    evidence=("documentation",),
    recognise=recognise,
    generic=True,
    read=read,
    splits=splits,
)
