"""Reads rows of texts: prompt and completion, question and answer, preferences, rendered ChatML.

A `text`, or a `prompt` with its `completion`, may be a conversation as a chat template rendered it
(`<|im_start|>role … <|im_end|>`); its messages are read as those of rows (openai-chat). Answers
within the prompt are context. Alpaca and ms-swift also have a system prompt and earlier turns in
`history`, which their trainers train as well. Two columns of which one is named as the worse are a
preference; both may be whole transcripts of `Human:` and `Assistant:` (Anthropic's hh-rlhf).
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
    ("prompt", "completion"), ("instruction", "output"), ("query", "response"),
    ("prompt", "response"), ("instruction", "response"), ("text_input", "output"),
)  # fmt: skip
"""Columns of question and answer: TRL's, Alpaca's, ms-swift's, OpenRLHF's, Dolly's, Gemini's."""
_QUESTIONS = ("prompt", "question", "instruction", "query", "input")
_PREFERENCES = (
    ("chosen", "rejected"), ("chosen_response", "rejected_response"),
    ("response_chosen", "response_rejected"), ("preferred", "dispreferred"), ("better", "worse"),
    ("winner", "loser"), ("good", "bad"),
)  # fmt: skip
"""Columns of the better and the worse answer."""
_ANSWERS = ("completion", "response", "output")
_WORSE = ("rejected", "rejected_response")
"""Columns of a worse answer beside one that is not named as the better."""
_ROUNDS = (("human", "assistant"), ("input", "output"))
"""Keys of question and answer in the items of `conversation`: ms-swift's and XTuner's."""
_START, _END = "<|im_start|>", "<|im_end|>"
_MESSAGE = re.compile(r"\s*<\|im_start\|>(\w+)\n(.*?)(<\|im_end\|>|\Z)", re.DOTALL)
_AFTER = re.compile(r"\s*(?:<\|endoftext\|>|</s>)?\s*\Z")
_BEFORE = re.compile(r"\s*(?:<s>|<\|endoftext\|>|<bos>)?\s*")
_TURN = re.compile(r"(?:\A\s*|\n\n)(Human|Assistant): ?")


def _recognise(source: Source) -> str | None:
    for row in source.peek.objects:
        if "messages" in row or "conversations" in row:
            continue
        if (pair := _preference(row)) is not None:
            return f"texts of {' and '.join(pair)}"
        halves = [row.get(key) for key in ("prompt", "completion")]
        if all(isinstance(half, str) and not half.startswith('[{"') for half in halves):
            return "texts of prompt and completion"
        text = row.get("text")
        if isinstance(text, str) and _is_rendered(text):
            return "texts in ChatML"
        if (columns := _texts(row, _COLUMNS[1:])) is not None:
            return f"texts of {' and '.join(columns)}"
        if (columns := _round_columns(row)) is not None:
            return f"rounds of {' and '.join(columns)}"
    return None


def _texts(row: dict[str, Json], pairs: tuple[tuple[str, str], ...]) -> tuple[str, str] | None:
    found = (pair for pair in pairs if all(isinstance(row.get(key), str) for key in pair))
    return next(found, None)


def _preference(row: dict[str, Json]) -> tuple[str, str] | None:
    """Returns the columns of the better and the worse answer to a question, as texts."""
    pair = _texts(row, _PREFERENCES)
    if pair is None:
        chosen = isinstance(row.get("prompt"), str) and isinstance(row.get("chosen"), str)
        pair = ("chosen", "rejected") if chosen else None
    if pair is None or as_str(row, pair[0]).startswith('[{"'):
        return None
    has_question = any(isinstance(row.get(key), str) for key in _QUESTIONS)
    whole = all(len(_TURN.findall(as_str(row, key))) > 1 for key in pair)
    return pair if has_question or whole else None


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


def _events(where: str, row: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
    if (pair := _preference(row)) is not None:
        for number, column in enumerate(pair):
            text = row.get(column)
            if isinstance(text, str):
                answered = _answered(where, row, text, names)
                yield dispreferred(answered, records=0) if number else answered
        return
    found = _row(where, row, names)
    yield dispreferred(found, records=1) if is_worse(row) else found
    for column in _WORSE:
        if isinstance(text := row.get(column), str):
            yield dispreferred(_answered(where, row, text, names), records=0)


def _answered(
    where: str, row: dict[str, Json], answer: str, names: Counter[str]
) -> Conversation | Problem:
    """Returns the conversation of a question, or a transcript, and one of the answers to it."""
    marks = [*_TURN.finditer(answer)]
    if len(marks) < 2:
        question = next((key for key in _QUESTIONS if isinstance(row.get(key), str)), "prompt")
        given = "output" if question == "instruction" else "completion"
        plain = {name: value for name, value in row.items() if name not in _ANSWERS}
        asked = question if question == "instruction" else "prompt"
        return _row(where, {**plain, asked: row.get(question), given: answer}, names)
    ends = [*(mark.start() for mark in marks[1:]), len(answer)]
    roles = {"Human": "user", "Assistant": "assistant"}
    messages = [
        _message(roles[mark[1]], answer[mark.end() : end].strip(), is_context=end < len(answer))
        for mark, end in zip(marks, ends, strict=True)
    ]
    name = row_name(where, row.get("id"), names)
    whole = read_chat(name, where, [*_system(row), *messages], row.get("tools"))
    return replace(whole, recorded=True) if isinstance(whole, Conversation) else whole


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    prompt, completion, text = (row.get(key) for key in ("prompt", "completion", "text"))
    name = row_name(where, row.get("id"), names)
    if isinstance(prompt, str) and completion is None:
        completion = row.get("response")
    if "prompt" not in row and (columns := _texts(row, _COLUMNS)) is not None:
        return read_chat(name, where, _question_and_answer(row, columns), row.get("tools"))
    if "prompt" not in row and (columns := _round_columns(row)) is not None:
        return read_chat(name, where, _rounds(row, columns), row.get("tools"))
    if isinstance(prompt, str) and isinstance(completion, str):
        if not _is_rendered(prompt):
            messages = [
                *_system(row), _message("user", prompt), _message("assistant", completion),
            ]  # fmt: skip
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
        *before, last = conversation.messages
        last = replace(last, parts=(*last.parts, Unparsed("", "truncated")))
        conversation = replace(conversation, messages=(*before, last))
    if context and isinstance(conversation, Conversation):
        conversation = replace(conversation, recorded=True)
    return conversation


def _question_and_answer(row: dict[str, Json], columns: tuple[str, str]) -> list[Json]:
    question, answer = columns
    messages = _system(row)
    for pair in as_list(json_in_text(row.get("history"))):
        earlier, reply = (*as_list(pair), None, None)[:2]
        messages += [_message("user", as_str(earlier)), _message("assistant", as_str(reply))]
    more = (as_str(row.get(key)) for key in ("input", "context") if question == "instruction")
    asked = "\n".join(filter(None, (as_str(row[question]), *more)))
    return [*messages, _message("user", asked), _message("assistant", as_str(row[answer]))]


def _system(row: dict[str, Json]) -> list[Json]:
    text = system_text(row, Counter(), has_own=False)
    return [_message("system", text)] if text else []


def _rounds(row: dict[str, Json], columns: tuple[str, str]) -> list[Json]:
    messages = _system(row)
    for number, one in enumerate(as_list(json_in_text(row.get("conversation")))):
        texts = [as_str(one, key) for key in ("system", *columns)]
        if number or messages:
            texts[0] = ""
        roles = zip(("system", "user", "assistant"), texts, strict=True)
        messages += [_message(role, text) for role, text in roles if text]
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
        messages.append(_message(role, body, is_context=len(messages) < context))
    return (messages, not closed) if _AFTER.match(text, at) else ([], False)


def _message(role: str, content: str, *, is_context: bool = False) -> Json:
    weight: dict[str, Json] = {"weight": 0} if is_context and role == "assistant" else {}
    return {"role": role, "content": content, **weight}


READER = Reader(
    name="prompt-completion",
    summary=(
        "rows of prompt and completion (or response) as texts, of instruction and output (Alpaca),"
        " of query and response (ms-swift), of preferences, of rounds, and rows with a text in"
        " ChatML"
    ),
    evidence=("documentation",),
    recognise=_recognise,
    generic=True,
    read=lambda source: read_rows(
        source,
        _events,
        {"text", "history", "context"}.union(_QUESTIONS, _WORSE, *_COLUMNS, *_PREFERENCES),
    ),
    splits=splits,
)
