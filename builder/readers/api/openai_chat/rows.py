"""Reads rows of fine-tuning files: messages with tools, and preference pairs.

Source: docs/formats/openai-chat.md "Rows for fine-tuning". This project writes rows of this form,
with calls and results in the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from builder.conversation import Conversation, Event, Json, Unparsed
from builder.problem import Problem
from builder.readers.api.anthropic import rows as anthropic_rows
from builder.readers.api.capture.api import History
from builder.readers.api.capture.dialect import ROLES
from builder.readers.api.capture.envelope import is_answer
from builder.readers.api.capture.rows import row_conversation
from builder.readers.api.openai_chat.bodies import TOOL_ROLES, history
from builder.readers.toolkit.function_messages import function_messages, has_function_calls
from builder.readers.toolkit.json_text import json_in_text
from builder.readers.toolkit.marks import finish_fault
from builder.readers.toolkit.media_columns import with_media
from builder.readers.toolkit.narrow import as_dict, as_list, as_str
from builder.readers.toolkit.unknown_keys import UNKNOWN_COLUMN, system_text, unknown_names

_KEYS = frozenset({
    "role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio",
    "annotations", "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks",
    "weight", "id", "timestamp",
})  # fmt: skip
"""Keys of a message, including those added by programs that keep lists of messages."""
_CHATS = ("conversation", "conversations", "trajectory", "traj", "dialogue", "dialog", "turns")
"""Columns that hold the messages where a row has no `messages`."""
_LISTS = ("messages", *_CHATS, "prompt", "completion", "chosen", "rejected")
"""Columns of messages, which may be JSON text."""
_PROMPTS = ("prompt", "messages", "input")
_ANSWERS = ("completion", "response", "output")
"""Columns of a prompt, and of the answer to it."""
_PAIR = ("chosen", "rejected")


def is_chat(value: dict[str, Json]) -> bool:
    """Returns whether an object's `messages` are in the form of OpenAI chat."""
    messages = as_list(value.get("messages"))
    return bool(messages) and all(_is_chat_message(as_dict(item)) for item in messages)


def _halves(row: dict[str, Json]) -> tuple[list[Json], list[Json]] | None:
    """Returns the messages of a prompt and those of its answer, if a row has them in two columns.

    Either may be a text, but not both. A prompt in `messages` does not end with an answer.
    """
    for key in _PROMPTS:
        prompt = _asked(row[key]) if key in row else None
        if prompt is None or (key == "messages" and as_str(prompt[-1], "role") == "assistant"):
            continue
        for name in _ANSWERS:
            answer = _answer(row.get(name))
            if answer and not (isinstance(row[key], str) and isinstance(row[name], str)):
                return prompt, answer
    return None


def _is_preference(value: dict[str, Json]) -> bool:
    """Returns whether an object has two answers, after the messages of a prompt or with them."""
    prompt = value.get("prompt")
    if prompt is not None and not isinstance(prompt, str) and not _are_messages(prompt):
        return isinstance(prompt, list) and all(_are_messages(value.get(key)) for key in _PAIR)
    if _are_messages(prompt):
        return all(_answer(value.get(key)) for key in _PAIR)
    return all(_are_messages(value.get(key)) for key in _PAIR)


def _asked(value: Json) -> list[Json] | None:
    """Returns the messages of a prompt, or None."""
    if isinstance(value, str) and value:
        return [{"role": "user", "content": value}]
    return as_list(value) if _are_messages(value) else None


def _answer(value: Json) -> list[Json]:
    """Returns the messages of an answer: its text, its message, or several; [] for other values.

    Bodies of responses, and their streams, are no answers but captures.
    """
    if isinstance(value, str):
        is_text = value and not is_answer(value)
        return [{"role": "assistant", "content": value}] if is_text else []
    if isinstance(value, dict):
        value = [value]
    plain = _are_messages(value) and not any("type" in as_dict(item) for item in as_list(value))
    return as_list(value) if plain else []


def _are_messages(value: Json) -> bool:
    return isinstance(value, list) and is_chat({"messages": value})


def _unpacked(row: dict[str, Json]) -> dict[str, Json]:
    """Returns the row with its conversation in `messages`, which tables may hold as JSON text.

    Chat logs (LMSYS, WildChat) have messages of role and content in `conversation`, runs of
    OpenHands (SWE-rebench) in `trajectory`.
    """
    unpacked = {key: json_in_text(row[key]) for key in _LISTS if isinstance(row.get(key), str)}
    if changed := {key: value for key, value in unpacked.items() if isinstance(value, list)}:
        row = {**row, **changed}
    key = next((key for key in _CHATS if key in row), None)
    if "messages" not in row and key is not None:
        items = as_list(row[key])
        if items and all("role" in as_dict(item) and "content" in as_dict(item) for item in items):
            row = {"messages": items, **{name: row[name] for name in row if name != key}}
    return row


def _is_chat_message(message: dict[str, Json]) -> bool:
    body = message.get("content")
    if as_str(message.get("role")) not in ROLES | TOOL_ROLES or not isinstance(
        body, str | list | None
    ):
        return False
    if isinstance(body, list):
        parts = [as_dict(part) for part in body]
        if any("value" in part for part in parts):
            return False  # LLaMA-Factory's typed parts
        if message["role"] != "tool" and parts and not any("type" in part for part in parts):
            return False  # Bedrock's blocks
    return True


def is_list(values: Sequence[Json]) -> bool:
    """Returns whether values are all messages, at least one with a call or a result."""
    messages = [as_dict(value) for value in values]
    if not all(_is_chat_message(message) and message.keys() <= _KEYS for message in messages):
        return False
    return any("tool_calls" in message or message["role"] == "tool" for message in messages)


def is_row(value: Json) -> bool:
    """Returns whether a record is a row, without a model or with an answer at the end."""
    if not isinstance(value, dict):
        return False
    value = _unpacked(value)
    if "preferred_output" in value:
        return is_chat(as_dict(value.get("input")))
    if _halves(value) is not None or _is_preference(value):
        return True
    if is_answer(value.get("response")):
        return False  # a capture
    if not is_chat(value) or anthropic_rows.is_body(value):
        return False
    last = as_dict(as_list(value.get("messages"))[-1])
    return "model" not in value or (last.get("role") == "assistant" and not last.get("prefix"))


def is_worse(row: dict[str, Json]) -> bool:
    """Returns whether a row is labelled as an answer that is not preferred (KTO)."""
    return row.get("label") is False or row.get("kto_tag") is False


def read_row(where: str, row: dict[str, Json]) -> Iterator[Event]:
    """Yields the row's conversation; of a preference pair, with the preferred output.

    The other output, and an answer labelled as worse, is rejected (`dispreferred`).
    """
    for output in _outputs(where, _unpacked(row)):
        yield dispreferred(output, records=output.records) if is_worse(row) else output


def _outputs(where: str, row: dict[str, Json]) -> Iterator[Conversation | Problem]:
    if (halves := _halves(row)) is not None:
        before, after = halves
        after = after[_repeated(before, after) :]
        before = [_context(as_dict(item)) for item in before]
        whole = _conversation(where, where, {**row, "messages": before}, after)
        whole = replace(whole, recorded=True) if isinstance(whole, Conversation) else whole
        yield whole
        return
    if _is_preference(row):
        prompt = row.get("prompt")
        prior: list[Json] = as_list(prompt)
        if isinstance(prompt, str):
            prior = [{"role": "user", "content": prompt}]
        chosen, rejected = _answer(row["chosen"]), _answer(row["rejected"])
        if as_dict(chosen[0]).get("role") != "assistant":  # the answers contain their prompt
            prior = prior[: -_repeated(prior, chosen) or -len(prior)]
        prior = [_context(as_dict(item)) for item in prior]
        yield _conversation(where, where, {**row, "messages": prior}, chosen)
        worse = _conversation(f"{where} rejected", where, {**row, "messages": prior}, rejected)
        yield dispreferred(worse, records=0)
        return
    if "preferred_output" not in row:
        whole = _conversation(where, where, row, ())
        unread = unknown_names({key: row[key] for key in _ANSWERS if key in row}, ())
        if isinstance(whole, Conversation) and unread:
            counted = Counter(UNKNOWN_COLUMN + name for name in unread)
            whole = replace(whole, changes=Counter(whole.changes) + counted)
        yield whole
        return
    body = as_dict(row.get("input"))
    yield _conversation(where, where, body, as_list(row.get("preferred_output")))
    other = as_list(row.get("non_preferred_output"))
    if other:
        worse = _conversation(f"{where} not preferred", where, body, other)
        yield dispreferred(worse, records=0)


def _repeated(prompt: list[Json], output: list[Json]) -> int:
    """Returns how many messages at the end of a prompt its output repeats at its beginning.

    Rollouts of some environments (verifiers) log all messages so far as the completion.
    """

    def same(pair: tuple[Json, Json]) -> bool:
        one, other = map(as_dict, pair)
        return all(one.get(key) == other.get(key) for key in ("role", "content"))

    counts = range(min(len(prompt), len(output)), 0, -1)
    return next((n for n in counts if all(map(same, zip(prompt[-n:], output[:n], strict=True)))), 0)


def _context(message: dict[str, Json]) -> Json:
    """Returns a message of a prompt, whose answers are not trained."""
    return {**message, "weight": 0} if message.get("role") == "assistant" else message


def dispreferred(output: Conversation | Problem, *, records: int) -> Conversation | Problem:
    """Returns a conversation as one that its author marks as the worse one."""
    if isinstance(output, Problem):
        return replace(output, records=records)
    detail = "the output that was not preferred"
    problem = Problem("dispreferred", output.record, detail, records=0)
    return replace(output, records=records, problems=(*output.problems, problem))


def _history(body: dict[str, Json]) -> History:
    items = as_list(body.get("messages"))
    if not has_function_calls(items):
        return history(body)
    changes: Counter[str] = Counter()
    messages, defined = function_messages(items, changes)
    own = history({**body, "messages": []})
    return replace(own, messages=tuple(messages), tools=own.tools or defined, changes=changes)


def _conversation(
    name: str, where: str, body: dict[str, Json], output: list[Json] | tuple[()]
) -> Conversation | Problem:
    messages = [*as_list(body.get("messages")), *output]
    changes: Counter[str] = Counter()
    has_own = as_dict(messages[0]).get("role") in ("system", "developer")
    if system := system_text(body, changes, has_own=has_own):
        messages = [{"role": "system", "content": system}, *messages]
    read = _history({**body, "messages": messages})
    read = replace(read, changes=read.changes + changes)
    whole = with_media(read.messages, body)
    cut = "truncated" if body.get("is_truncated") is True else None  # verifiers
    fault = cut or finish_fault(body.get("finish_reason"))
    if fault is not None and whole and whole[-1].role == "assistant":
        whole[-1] = replace(whole[-1], parts=(*whole[-1].parts, Unparsed("", fault)))
    return row_conversation(name, where, replace(read, messages=tuple(whole)))
