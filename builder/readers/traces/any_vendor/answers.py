"""Reads answers of models of any API, as platforms log them.

An answer is a message, a whole response, a list of parts or calls, or a text.
Sources: docs/formats/langfuse.md, docs/formats/langsmith.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from builder.conversation import Data, Json, Message, Part, Reasoning, Text, ToolCall, Unparsed
from builder.readers.api.capture.api import ApiAnswer
from builder.readers.toolkit.json_text import json_in_text
from builder.readers.toolkit.marks import finish_fault
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_of, name_or_none
from builder.readers.traces.any_vendor.messages import read_messages
from builder.readers.traces.any_vendor.parts import (
    MAX_DECODED,
    PartNotes,
    decoded,
    read_parts,
    without_missing,
)
from builder.readers.traces.any_vendor.requests import system_text, tools_of
from builder.readers.traces.langchain.messages import as_fields, is_message

_WRAPPERS = ("output", "result", "response", "outputs")
_TEXTS = ("completion", "text", "output_text", "generated_text", "response", "answer", "output")
_FINISH = (
    "finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason", "unified",
)  # fmt: skip
_MESSAGE_FIELDS = frozenset(
    {
        "role", "content", "parts", "message", "messages", "choices", "candidates", "generations",
        "tool_calls", "toolCalls", "function_call", "lc", "additional_kwargs",
    }
)  # fmt: skip
"""Fields of messages and responses: an object with one of them is not an answer in JSON."""
_MAX_WRAPPERS = 4
_CUT_MESSAGE = re.compile(
    r'\s*"?\s*(?:\[\s*)?\{[^{}]{0,400}?\\?"'
    r'(?:role|choices|candidates|tool_calls|toolCalls|generations)\\?"\s*:'
)
"""The beginning of a message or response, for text that is not whole JSON: a limit cut it off."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The logged output of a request.

    before        turns before the answer, if the output has all turns of an agent's loop
    instructions  system text, if the response repeats it (Responses API), else ""
    tools         definitions, if the response repeats them, else None
    id            of the response, or None
    previous      id of the response that the request continues without repeating it, or None
    """

    answers: tuple[ApiAnswer, ...] = ()
    before: tuple[Message, ...] = ()
    instructions: str = ""
    tools: tuple[Json, ...] | None = None
    id: str | None = None
    previous: str | None = None


def fault_of(reason: Json) -> str | None:
    """Returns the code of the fault that a finish reason (or its object) describes, or None."""
    if isinstance(reason, dict):
        reason = next((reason[key] for key in _FINISH if key in reason), None)
    return finish_fault(reason)


def _fault(value: dict[str, Json]) -> str | None:
    """Returns the fault in any of an object's finish reasons."""
    return next((code for key in _FINISH if (code := fault_of(value.get(key)))), None)


def _cut(value: Json) -> str | None:
    """Returns the fault of a text that is the beginning of a message in JSON, else None."""
    return "truncated" if isinstance(value, str) and _CUT_MESSAGE.match(value) else None


def read_outcome(value: Json, notes: PartNotes) -> Outcome:
    """Returns the outcome that a logged output describes."""
    return _outcome(value, notes, 0)


def _outcome(raw: Json, notes: PartNotes, depth: int) -> Outcome:
    value = decoded(raw)
    if value is None or value == "" or depth > _MAX_WRAPPERS:
        return Outcome()
    if not isinstance(value, dict | list):
        return _answer([Text(_unquoted(raw, value))], _cut(value))
    if isinstance(value, list):
        has_objects = any(isinstance(decoded(item), dict) for item in value)
        return _from_list(value, notes) if has_objects else _from_json(raw, value)
    for read in (_from_response, _from_choices, _from_generations, _from_message):
        outcome = read(value, notes)
        if outcome is not None:
            return outcome
    return _from_wrapper(raw, value, notes, depth)


def _from_wrapper(raw: Json, value: dict[str, Json], notes: PartNotes, depth: int) -> Outcome:
    if isinstance(value.get("messages"), list):
        return _from_list(as_list(value["messages"]), notes)
    calls = as_list(value.get("toolCalls"))
    if calls or "finishReason" in value:  # the AI SDK's result of one step
        thought = as_str(value.get("reasoning")) or as_str(value.get("reasoningText"))
        parts: list[Part] = [Reasoning(thought)] if thought else []
        text = as_str(value.get("text"))
        parts += [Text(text)] if text else []
        parts += read_parts([{"type": "tool-call", **as_dict(call)} for call in calls])
        return _answer(parts, _fault(value))
    if not _MESSAGE_FIELDS.isdisjoint(value):
        notes.unreadable.append("output")
        return Outcome()
    for key in _WRAPPERS:
        if isinstance(value.get(key), dict | list):
            return _outcome(value[key], notes, depth + 1)
    for key in _TEXTS:
        if isinstance(value.get(key), str):
            return _answer([Text(as_str(value[key]))], _fault(value) or _cut(decoded(value[key])))
    return Outcome() if "error" in value else _from_json(raw, value)


def _from_json(raw: Json, value: Json) -> Outcome:
    """Returns an answer in JSON: as text if it was logged as text."""
    if not value:
        return Outcome()
    return _answer([Text(_unquoted(raw, value)) if isinstance(raw, str) else Data(value)])


def _unquoted(raw: Json, value: Json) -> str:
    """Returns a logged text without the JSON quotes that platforms put around it."""
    text = json_in_text(raw, beginnings='"', levels=MAX_DECODED)
    return text if isinstance(text, str) else str(value)


def _answer(parts: Sequence[Part], fault: str | None = None) -> Outcome:
    """Returns one answer of these parts; no answer if there are none or none was logged."""
    parts = without_missing(parts)
    if not parts or any(isinstance(p, Unparsed) and p.code == "no_output" for p in parts):
        return Outcome()
    return Outcome((ApiAnswer(Message("assistant", tuple(parts)), fault=fault),))


def _from_list(items: list[Json], notes: PartNotes) -> Outcome:
    """Returns messages, parts, calls, or generations, whichever the list contains."""
    values = [decoded(item) for item in items]
    first = as_dict(values[0] if values else None)
    if isinstance(first.get("generation_info"), dict) or first.get("type") == "ChatGeneration":
        return _from_generations({"generations": [values]}, notes) or Outcome()
    named = any(key in first for key in ("toolName", "function")) and "role" not in first
    if named or (_is_part(first) and not is_message(first)):
        calls = [{"type": "tool-call", **as_dict(value)} if named else value for value in values]
        return _answer(read_parts(list(calls)))
    choices = [as_dict(value) for value in values]
    if len(choices) > 1 and all(_is_choice(choice) for choice in choices):
        answers = [_from_message(choice, notes) for choice in choices]
        return Outcome(tuple(answer for one in answers if one for answer in one.answers))
    messages = read_messages(list(values), notes)
    return _last_turn(messages, _fault(choices[-1]) if choices else None)


def _is_part(item: dict[str, Json]) -> bool:
    kind = as_str(item.get("type"))
    if "role" in item or kind in ("message", "function_call", "reasoning", "function_call_output"):
        return False  # a message, or an item of the Responses API
    return bool(kind) or "text" in item or "functionCall" in item or "function_call" in item


def _is_choice(item: dict[str, Json]) -> bool:
    """Returns whether an item of a list is one of several answers: each has a finish reason."""
    if item.get("role") != "assistant" or not any(item.get(key) for key in _FINISH):
        return False
    return not as_str(item.get("content")).startswith('[{"')  # Koog: each call is a message


def _last_turn(messages: list[Message], fault: str | None) -> Outcome:
    """Returns the last consecutive assistant messages as one answer, and the messages before."""
    end = len(messages)
    while end and messages[end - 1].role != "assistant":
        end -= 1
    start = end
    while start and messages[start - 1].role == "assistant":
        start -= 1
    if start == end:
        return Outcome()
    parts = [part for message in messages[start:end] for part in message.parts]
    return replace(_answer(parts, fault), before=tuple(messages[:start]))


def _from_response(value: dict[str, Json], notes: PartNotes) -> Outcome | None:
    """Reads a response of the Responses API, including what it repeats of its request."""
    items = value.get("output")
    if not isinstance(items, list) or not ("status" in value or value.get("object") == "response"):
        return None
    reason = as_dict(value.get("incomplete_details")).get("reason")
    fault = fault_of(reason) or fault_of(value.get("status"))
    fault = fault or ("truncated" if value.get("error") else None)
    return replace(
        _last_turn(read_messages(items, notes), fault),
        instructions=system_text(value.get("instructions")),
        tools=tools_of(value),
        id=name_of(value, "id"),
        previous=name_of(value, "previous_response_id"),
    )


def _from_choices(value: dict[str, Json], notes: PartNotes) -> Outcome | None:
    """Returns the choices of a chat completion, or the candidates of Gemini."""
    for key, inner in (("choices", "message"), ("candidates", "content")):
        listed = value.get(key)
        if isinstance(listed, list):
            answers: list[ApiAnswer] = []
            for choice in map(as_dict, listed):
                message = as_dict(choice.get(inner)) or as_dict(choice.get("delta"))
                if not message and isinstance(choice.get("text"), str):
                    message = {"content": choice["text"]}
                answer = _from_message({**message, "role": "assistant"}, notes) if message else None
                answers += _with_fault(answer, _fault(choice))
            return Outcome(tuple(answers), id=name_of(value, "id"))
    return None


def _with_fault(outcome: Outcome | None, fault: str | None) -> list[ApiAnswer]:
    """Returns the answers of an outcome, with the fault of the choice that contains them."""
    answers = outcome.answers if outcome is not None else ()
    return [replace(answer, fault=fault or answer.fault) for answer in answers]


def _from_generations(value: dict[str, Json], notes: PartNotes) -> Outcome | None:
    """Reads LangChain's LLMResult: lists of generations, one for each prompt of the batch."""
    batches = value.get("generations")
    if not isinstance(batches, list):
        return None
    first = batches[0] if batches else None
    answers: list[ApiAnswer] = []
    for generation in map(as_dict, first if isinstance(first, list) else batches):
        if isinstance(generation.get("message"), dict):
            answer = _from_message(as_dict(generation["message"]), notes)
        else:
            text = as_str(generation.get("text"))
            answer = _answer([Text(text)] if text else [])
        answers += _with_fault(answer, _fault(as_dict(generation.get("generation_info"))))
    return Outcome(tuple(answers))


def _from_message(value: dict[str, Json], notes: PartNotes) -> Outcome | None:
    """Reads a message of any API, bare or in the field `message` or `content`, else None."""
    output = as_dict(value.get("output"))  # Bedrock
    places = ((value, "message"), (value, "content"), (output, "message"))
    message = next((fields for one, key in places if (fields := _message_in(one, key))), None)
    fault = _fault(value)
    if message is None:
        if not (
            is_message(value)
            or isinstance(value.get("parts"), list)
            or value.get("tool_calls")
            or value.get("function_call")
            or isinstance(value.get("content"), str | list)
            or ("content" in value and "role" in value)
        ):
            return None
        message = value
    if is_message(message):
        fields = as_fields(message)
        fault = fault or _fault(as_dict(fields.get("response_metadata")))
    else:
        message = {**message, "role": "assistant"}
        message.pop("type", None)
    messages = read_messages([message], notes)
    parts = [part for one in messages if one.role == "assistant" for part in one.parts]
    return _answer(parts, fault)


def _message_in(value: dict[str, Json], key: str) -> dict[str, Json] | None:
    inner = as_dict(value.get(key))
    is_inner = "role" in inner or is_message(inner) or isinstance(inner.get("parts"), list)
    return inner if is_inner else None


def calls_by_columns(calls: Json, names: Json) -> list[Part]:
    """Returns calls logged separately from the output: a list of calls and a list of names.

    The calls are objects or their JSON texts, whose own names take precedence.
    """
    found: list[Part] = []
    named = as_list(decoded(names))
    for number, item in enumerate(as_list(decoded(calls))):
        call = as_dict(decoded(item))
        name = name_of(call, "name")
        if name is None and number < len(named):
            name = name_or_none(named[number])
        if name is not None:
            found.append(ToolCall(name, call.get("arguments"), id=name_of(call, "id")))
    return found
