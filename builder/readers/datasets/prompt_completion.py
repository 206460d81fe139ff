"""Reads rows of text for language models: prompt and completion, or rendered ChatML.

A `text`, or a `prompt` with its `completion`, may be a conversation as a chat template rendered it
(`<|im_start|>role … <|im_end|>`); its messages are read as those of rows (openai-chat). Answers
within the prompt are context. Without these tokens a prompt is the user's message and the
completion the answer.

Rows of Alpaca (instruction, input, output) and of ms-swift (query, response) are the same in other
columns; both may have a system prompt and earlier turns in `history`, pairs of question and answer,
which their trainers train as well. Other rows have all rounds in `conversation`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import Conversation, Event, Json, Unparsed
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.api.openai_chat import dispreferred, is_worse
from builder.readers.datasets.chat_rows import read_chat
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, json_in_text
from builder.readers.toolkit.rows import read_rows, row_name, splits
from builder.readers.toolkit.unknown_keys import system_text
from builder.sources.source import Source

_COLUMNS = (
    ("instruction", "output"), ("query", "response"), ("prompt", "response"),
    ("instruction", "response"), ("text_input", "output"),
)  # fmt: skip
"""Columns of question and answer: Alpaca's, ms-swift's, OpenRLHF's, Dolly's, Gemini's."""
_ROUNDS = (("human", "assistant"), ("input", "output"))
"""Keys of question and answer in the items of `conversation`: ms-swift's and XTuner's."""
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
        if (columns := _round_columns(row)) is not None:
            return f"rounds of {' and '.join(columns)}"
    return None


def _question_columns(row: dict[str, Json]) -> tuple[str, str] | None:
    """Returns the columns of question and answer, if the row has them as texts."""
    return next(
        (pair for pair in _COLUMNS if all(isinstance(row.get(key), str) for key in pair)), None
    )


def _round_columns(row: dict[str, Json]) -> tuple[str, str] | None:
    """Returns the keys of question and answer, if `conversation` is a list of rounds."""
    rounds = as_list(json_in_text(row.get("conversation")))
    for pair in _ROUNDS:
        if rounds and all(isinstance(as_dict(one).get(key), str) for one in rounds for key in pair):
            return pair
    return None


def _is_rendered(text: str) -> bool:
    opening = _BEFORE.match(text)
    return opening is not None and text.startswith(_START, opening.end())


def read(source: Source) -> Iterator[Event]:
    """Yields a conversation for each row, and one for the rejected completion of a preference."""
    columns = {"text", "prompt", "completion", "history", "rejected_response", "context"}
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
    if isinstance(prompt, str) and completion is None:
        completion = row.get("response")
    if "prompt" not in row and (columns := _question_columns(row)) is not None:
        return read_chat(name, where, _question_and_answer(row, columns), row.get("tools"))
    if "prompt" not in row and (columns := _round_columns(row)) is not None:
        return read_chat(name, where, _rounds(row, columns), row.get("tools"))
    if isinstance(prompt, str) and isinstance(completion, str):
        if not _is_rendered(prompt):
            messages = [*_system(row), _message("user", prompt), _answer(completion)]
            return read_chat(name, where, messages, row.get("tools"))
        closed = completion if _END in completion else f"{completion}{_END}"
        text, context = prompt + closed, prompt.count(_END)
    else:
        context = 0
    if not isinstance(text, str) or not _is_rendered(text):
        return Problem("unknown_shape", where, "neither prompt and completion nor a text in ChatML")
    messages, is_cut = _messages(text, context)
    if not messages:
        return Problem("unknown_shape", where, "text between the messages")
    conversation = read_chat(name, where, messages, row.get("tools"))
    if is_cut and isinstance(conversation, Conversation):
        last = conversation.messages[-1]
        parts = (*last.parts, Unparsed("", "truncated"))
        conversation = replace(
            conversation, messages=(*conversation.messages[:-1], replace(last, parts=parts))
        )
    if context and isinstance(conversation, Conversation):
        conversation = replace(conversation, recorded=True)
    return conversation


def _question_and_answer(row: dict[str, Json], columns: tuple[str, str]) -> list[Json]:
    """Returns the messages of a row with a question, its answer and the turns before them."""
    question, answer = columns
    messages = _system(row)
    for pair in as_list(json_in_text(row.get("history"))):
        earlier, reply = (*as_list(pair), None, None)[:2]
        messages += [_message("user", as_str(earlier)), _answer(as_str(reply))]
    more = (as_str(row.get(key)) for key in ("input", "context") if question == "instruction")
    texts = (as_str(row[question]), *more)
    return [
        *messages,
        _message("user", "\n".join(filter(None, texts))),
        _answer(as_str(row[answer])),
    ]


def _system(row: dict[str, Json]) -> list[Json]:
    text = system_text(row, Counter(), has_own=False)
    return [_message("system", text)] if text else []


def _rounds(row: dict[str, Json], columns: tuple[str, str]) -> list[Json]:
    """Returns the messages of a row with rounds of question and answer."""
    messages = _system(row)
    for number, one in enumerate(as_list(json_in_text(row.get("conversation")))):
        question, answer = (as_str(one, key) for key in columns)
        system = as_str(one, "system")
        messages += [_message("system", system)] if system and number == 0 and not messages else []
        messages += [_message("user", question)] if question else []
        messages += [_answer(answer)] if answer else []
    return messages


def _messages(text: str, context: int) -> tuple[list[Json], bool]:
    """Returns the messages of a rendered text, and whether the last one lacks its end.

    Answers among the first `context` messages have weight 0. Returns no messages if there is text
    between them.
    """
    messages: list[Json] = []
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
        if role == "assistant" and len(messages) < context:
            item = {**item, "weight": 0}
        messages.append(item)
    return (messages, not closed) if _AFTER.match(text, at) else ([], False)


def _message(role: str, content: str) -> dict[str, Json]:
    return {"role": role, "content": content}


def _answer(text: str) -> Json:
    return _message("assistant", text)


READER = Reader(
    name="prompt-completion",
    summary=(
        "rows of prompt and completion (or response) as texts, of instruction and output (Alpaca),"
        " of query and response (ms-swift), of rounds, and rows with a text in ChatML"
    ),
    evidence=("documentation",),
    recognise=recognise,
    generic=True,
    read=read,
    splits=splits,
)
