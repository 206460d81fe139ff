"""When2Call: rows for fine-tuning and for preferences, and the benchmark's questions.

Reference: function-calling-datasets.md "When2Call"; NVIDIA/When2Call README @5ada7c9e. A row is one
turn to be learnt: calls between <TOOLCALL> tags, or words that say why there is none. Definitions
are JSON texts in a list. The questions of the test are BFCL's and evaluation data like them; of
their four answers one is right. The response that a pair rejects is a conversation of its own that
is not trained on (`dispreferred`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import Conversation, Event, Json, Message, Part, Text, Unparsed
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.datasets.chat_rows import is_when2call, read_chat
from builder.readers.toolkit import tags as text_tags
from builder.readers.toolkit.narrow import as_dict, as_list, as_str
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import read_rows, row_name, splits
from builder.sources.source import Source

_TAG, _END = "<TOOLCALL>", "</TOOLCALL>"


def recognise(source: Source) -> str | None:
    """Claims rows in the dialect of the dataset.

    Its answers, its responses, its tags or definitions.
    """
    found = any(map(is_when2call, source.peek.objects))
    return "rows of tools with questions, responses or calls of When2Call" if found else None


def read(source: Source) -> Iterator[Event]:
    """Yields a conversation for each row, and one for the response that a pair rejects."""
    return read_rows(source, _row)


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
    """Returns a question of the test with its right answer."""
    right = as_str(row.get("correct_answer"))
    answer = as_dict(row.get("answers")).get(right)
    asked: list[Json] = [{"role": "user", "content": row.get("question")}]
    if isinstance(answer, str):
        text = f"{_TAG}{answer}{_END}" if right == "tool_call" else answer
        asked.append({"role": "assistant", "content": text})
    name = row_name(where, row.get("uuid"), names)
    made = _conversation(name, where, asked, row.get("tools"))
    if isinstance(made, Problem):
        return made
    return replace(made, evaluation=True, outcome={"benchmark": "When2Call"})


def _conversation(
    name: str, where: str, messages: list[Json], tools: Json
) -> Conversation | Problem:
    made = read_chat(name, where, messages, tools)
    if isinstance(made, Problem):
        return made
    changes = Counter(made.changes)
    parts = tuple(_with_calls(message, changes) for message in made.messages)
    return replace(made, messages=parts, changes=changes)


def _with_calls(message: Message, changes: Counter[str]) -> Message:
    """Returns the message with the calls that its text holds between tags."""
    parts: list[Part] = []
    for part in message.parts:
        text = part.text if isinstance(part, Text) and message.role == "assistant" else ""
        words, tag, body = text.partition(_TAG)
        if not tag:
            parts.append(part)
            continue
        parts += [Text(words)] if words.strip() else []
        inner, _, after = body.rpartition(_END) if _END in body else (body, "", "")
        calls = text_tags.read_calls(inner.strip(), changes)
        if calls is not None and _END not in body:
            changes["unclosed_call"] += 1
        parts += [Unparsed(inner, "bad_call")] if calls is None else calls
        parts += [Text(after)] if after.strip() else []
    return replace(message, parts=tuple(parts))


READER = Reader(
    name="when2call",
    summary="When2Call rows: messages and tools, pairs of responses, and the test's questions",
    recognise=recognise,
    read=read,
    splits=splits,
)
