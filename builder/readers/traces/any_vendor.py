"""Messages, calls and answers in every form that traces contain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from builder.conversation import (
    Content,
    Data,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.problem import Problem
from builder.readers.api import anthropic
from builder.readers.api.captures import APIS
from builder.readers.api.codec import ApiAnswer, History
from builder.readers.api.dialects import (
    ANTHROPIC,
    BEDROCK,
    GEMINI,
    OPENAI_RESPONSES,
    is_event,
    request_dialect,
    response_dialect,
)
from builder.readers.api.exchanges import Exchange
from builder.readers.api.openai_chat import searched
from builder.readers.api.openai_responses import ITEMS, ItemReading, item_type
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.marks import finish_fault
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    json_in_text,
    name_of,
    name_or_none,
    one_or_many,
)
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted
from builder.readers.traces.parts import (
    MAX_DECODED,
    ROLES,
    PartNotes,
    as_fields,
    assistant_parts,
    decoded,
    is_message,
    lc_message,
    read_call,
    read_parts,
    read_result,
    result_content,
    without_missing,
)

_SCHEMAS = frozenset({"parameters", "input_schema", "inputSchema"})
_RESULT_PARTS = frozenset({"tool-result", "tool_result", "tool_call_response"})
_KNOWN_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_KEYS = MESSAGE_KEYS | {"parts", "blocks", "additional_kwargs"}
"""Keys of a message that are known."""
_PREFIX = r"(?:system|developer|user|assistant|human|ai|model|tool|function): "
_FLAT = re.compile(rf"({_PREFIX})[^\n]*\n+(?s:.*\n)?{_PREFIX}", re.IGNORECASE)
"""A whole conversation as one text."""
_FLAT_SYSTEM = re.compile(rf"((?:system|developer): )[^\n]*\n+(?s:.*\n)?{_PREFIX}", re.IGNORECASE)
"""A whole conversation as one text that begins with a system text, which no user writes."""
_REPR = re.compile(r"(?:\w*Message\()?(?:role|content)=['\"]|\[object Object\]", re.IGNORECASE)
"""The repr of a message (Agno, LangChain), or the text that JavaScript writes for an object."""


def read_messages(value: Json, notes: PartNotes) -> list[Message]:
    """Returns the messages of a list, a batch of one list (LangChain), one message or a text."""
    value = decoded(value)
    items = one_or_many(value)
    if len(items) == 1 and isinstance(items[0], list) and not is_message(items[0]):
        items = items[0]
    items = [decoded(item) for item in items]
    if _are_items(items):
        return _read_items(items, notes)
    messages: list[Message] = []
    for item in items:
        for message in read_message(item, notes):
            messages.append(_as_result(message, messages, notes))
    if len(messages) == 1 and messages[0].role == "user":
        texts = [part.text for part in messages[0].parts if isinstance(part, Text)]
        if len(texts) == 1 and _FLAT_SYSTEM.match(texts[0]):  # a whole conversation
            notes.unreadable.append("flattened")
            return []
    return [message for message in messages if message.parts]


def _are_items(items: Sequence[Json]) -> bool:
    """Returns whether values are items of the Responses API, not messages of another one."""
    kinds = {item_type(item) if isinstance(item, dict) else "" for item in items}
    if not kinds <= ITEMS or kinds <= {"message", "item_reference"}:
        return False
    return not any(
        "tool_calls" in item or item.get("role") == "tool" for item in map(as_dict, items)
    )


def _read_items(items: Sequence[Json], notes: PartNotes) -> list[Message]:
    reading = ItemReading().read(items)
    notes.tools += reading.tools
    return reading.messages


def _as_result(message: Message, before: Sequence[Message], notes: PartNotes) -> Message:
    """Returns a result for a message whose role is the name of a tool that was just called.

    LangGraph's instrumentation for JavaScript logs a tool message's name as its role.
    """
    if message.role in _KNOWN_ROLES:
        return message
    last = next((one for one in reversed(before) if one.role != "tool"), None)
    called = calls(last) if last is not None and last.role == "assistant" else []
    content = tuple(part for part in message.parts if isinstance(part, Content))
    if message.role not in {call.name for call in called} or len(content) != len(message.parts):
        return message
    notes.changes["tool_name_as_role"] += 1
    return Message("tool", (ToolResult(content, name=message.role),))


def read_message(item: Json, notes: PartNotes) -> Sequence[Message]:
    """Returns the messages in one logged message, or none of what cannot be told apart."""
    if isinstance(item, str):
        if _FLAT.match(item) or _REPR.match(item):  # its messages cannot be distinguished
            notes.unreadable.append("flattened" if _FLAT.match(item) else "repr")
            return []
        return [Message("user", (Text(item),))] if item else []
    if is_message(item):
        message = lc_message(as_fields(item))
        return [] if message is None else _split(message)
    fields = as_dict(item)
    kind = as_str(fields.get("type"))
    if "role" not in fields and _are_items([fields]):
        return _read_items([fields], notes)
    role = name_or_none(fields.get("role"))
    if role is None:
        if isinstance(fields.get("parts"), list):
            role = "user"
        elif isinstance(fields.get("message"), dict):  # a generation, or an event of a choice
            return read_message(fields["message"], notes)
        else:
            return [Message("user", (unknown_part(kind or "message"),))]
    role = ROLES.get(role, role)[:40]
    return noted(_with_role(fields, role, notes), fields, _KEYS)


def _with_role(fields: dict[str, Json], role: str, notes: PartNotes) -> Sequence[Message]:
    listed = (fields[key] for key in ("parts", "blocks") if isinstance(fields.get(key), list))
    body = next(listed, fields.get("content"))
    is_result = role == "tool" and "parts" not in fields
    defined = as_dict(decoded(body)) if is_result else {}
    defined = as_dict(defined.get("function")) or defined
    if isinstance(defined.get("name"), str) and not _SCHEMAS.isdisjoint(defined):
        notes.tools.append(body)  # Langfuse's LangChain callback appends the tools this way
        return []
    # Koog gives its calls the role of their results.
    if (is_result or role == "assistant") and (called := _calls_in_content(body)):
        notes.changes["calls_in_text"] += 1
        return [Message("assistant", tuple(called))]
    if role == "assistant":
        own = assistant_parts(fields, body)
        own += [Unparsed("search", "server_tool")] if searched(fields, {}) else []
        return _split(Message(role, tuple(own)))
    if is_result and not any(
        as_str(part, "type") in _RESULT_PARTS or "toolResult" in as_dict(part)
        for part in as_list(body)
    ):
        more = as_dict(fields.get("additional_kwargs"))  # LlamaIndex
        call_id = name_or_none(fields.get("tool_call_id", more.get("tool_call_id")))
        result = replace(read_result(fields), content=result_content(body), call_id=call_id)
        return [Message("tool", (result,))]
    return _split(Message(role, tuple(read_parts(body))))


def _split(message: Message) -> list[Message]:
    """Returns the message with its results in separate messages of role tool.

    A client's results come before its text; a provider's stay where the model saw them.
    """
    parts = message.parts
    if message.role != "assistant":
        parts = tuple(sorted(parts, key=lambda part: not isinstance(part, ToolResult)))
    runs = groupby(parts, lambda part: "tool" if isinstance(part, ToolResult) else message.role)
    return [Message(role, tuple(run)) for role, run in runs]


def _calls_in_content(value: Json) -> list[Part]:
    """Returns the calls in a message's content (Koog), which platforms may have decoded."""
    is_list = isinstance(value, list) or as_str(value).startswith('[{"')
    items = as_dicts(decoded(value)) if is_list else []
    is_call = (item.get("type") == "function" and as_dict(item.get("function")) for item in items)
    return [read_call(item) for item in items] if all(is_call) else []


_LISTS = ("messages", "contents", "input", "prompt", "prompts")
_SYSTEMS = ("system", "instructions", "system_instruction", "systemInstruction", "system_prompt")
_TOOLS = ("tools", "functions", "function_declarations", "functionDeclarations")
_DEFINES = (*_TOOLS, "function", "toolSpec", "json_schema")
"""Fields that mark an object as a definition or a group of definitions, not a map of them."""
_PARAMETERS = (
    "config", "model_parameters", "optional_params", "invocation_params", "kwargs", "toolConfig",
)  # fmt: skip
"""Fields of a body in which tools may be nested: Gemini, LiteLLM, LangChain, Bedrock."""
_MAX_WRAPPERS = 4


def read_request(value: Json, notes: PartNotes) -> History:
    """Returns the request in a logged input; it has no messages if the input is not a request.

    What is found in it otherwise is in `notes`.
    """
    value = decoded(value)
    body = _unwrapped(value)
    if not isinstance(body, dict):
        return History(tuple(read_messages(body, notes)))
    if as_str(body, "prompt", "id"):
        detail = "the prompt is stored at the service"
        notes.problems.append(Problem("missing_history", "request", detail, records=0))
    config = as_dict(body.get("config"))
    model = name_of(body, "model") or name_of(config, "model")
    tools = tools_of(body)
    for place in _PARAMETERS:
        tools = tools_of(as_dict(decoded(body.get(place)))) if tools is None else tools
    system = next(
        (text for one in (body, config) for key in _SYSTEMS if (text := system_text(one.get(key)))),
        "",
    )
    key = next((key for key in _LISTS if body.get(key) not in (None, "", [])), None)
    if "role" in body or is_message(body) or isinstance(body.get("parts"), list):
        listed: Json = [body]
    elif key is None:
        return History((), tools, model)
    else:
        listed = decoded(body[key])
    if isinstance(listed, dict) and "role" not in listed and not is_message(listed):
        inner = read_request(listed, notes)  # {"input": {"messages": …}}
        messages, tools = list(inner.messages), inner.tools if tools is None else tools
    elif (history := _history(body)) is not None:
        notes.changes += history.changes
        notes.problems += history.problems
        return History(history.messages, tools, model)
    else:
        messages = read_messages(listed, notes)
    return History(with_system(messages, system), tools, model)


def _history(body: dict[str, Json]) -> History | None:
    """Returns the history of a whole request that only one provider's API has in this form."""
    name = request_dialect(body)
    if any("tool_calls" in item or is_message(item) for item in as_dicts(body.get("messages"))):
        return None
    if name == ANTHROPIC and anthropic.is_body(body):
        return anthropic.read_body(body)
    own = name == BEDROCK or (name == GEMINI and "contents" in body)
    return APIS[name].history(body) if own and name is not None else None


def _unwrapped(value: Json) -> Json:
    """Returns the body in the logged arguments of a function: `{"args": […], "kwargs": {…}}`."""
    for _ in range(_MAX_WRAPPERS):
        body = as_dict(value)
        named, positional = as_dict(body.get("kwargs")), as_list(body.get("args"))
        if not (named or positional) or any(key in body for key in _LISTS) or "lc" in body:
            break
        value = positional[0] if positional and not any(key in named for key in _LISTS) else named
    return value


def with_system(messages: Sequence[Message], text: str) -> tuple[Message, ...]:
    """Prepends a system text that is logged separately, unless a message has it already."""
    parts = (message for message in messages if message.role in ("system", "developer"))
    if not text or not messages or any(message.parts == (Text(text),) for message in parts):
        return tuple(messages)
    return (Message("system", (Text(text),)), *messages)


def system_text(value: Json) -> str:
    """Returns the system text in a field: a text, parts, a content, or the JSON text of these."""
    value = decoded(value)
    if isinstance(value, dict) and isinstance(value.get("parts"), list):
        value = value["parts"]
    elif isinstance(value, dict) and "content" in value:
        value = value["content"]
    if isinstance(value, str):
        return value
    texts = [
        part.text
        for item in one_or_many(value)
        for part in read_parts(
            as_dict(item)["content"] if {"role", "content"} <= as_dict(item).keys() else item
        )
        if isinstance(part, Text)
    ]
    return "\n\n".join(text for text in texts if text)


def tools_of(body: dict[str, Json]) -> tuple[Json, ...] | None:
    """Returns the tool definitions of a body; None if it has no such field."""
    tools: list[Json] = []
    known = False
    for key in _TOOLS:
        if body.get(key) is not None:
            known = True
            tools += definitions(body[key])
    return tuple(tools) if known else None


def definitions(value: Json) -> list[Json]:
    """Returns the definitions in a list of any form: JSON texts, {name: definition}, groups."""
    value = decoded(value)
    if isinstance(value, dict):
        if not isinstance(value.get("name"), str) and not any(key in value for key in _DEFINES):
            # {name: definition}: the AI SDK's tools, Langfuse's column of JSON texts without a name
            listed = ((name, decoded(one)) for name, one in value.items())
            return [{"name": name, **one} for name, one in listed if isinstance(one, dict)]
        value = [value]
    tools: list[Json] = []
    for item in as_list(value):
        tool = decoded(item)
        fields = as_dict(tool)
        grouped = next((fields[key] for key in _TOOLS if isinstance(fields.get(key), list)), None)
        if grouped is not None:
            tools += [decoded(one) for one in as_list(grouped)]
        elif "json_schema" in fields:  # OpenInference: {"json_schema": "<definition>"}
            tools.append(decoded(fields["json_schema"]))
        elif "parameters_json_schema" in fields:  # pydantic-ai
            named = {key: item for key, item in fields.items() if key in ("name", "description")}
            tools.append({**named, "parameters": fields["parameters_json_schema"]})
        elif fields:
            tools.append(tool)
    return tools


_WRAPPERS = ("output", "result", "response", "outputs")
_TEXTS = ("completion", "text", "output_text", "generated_text", "response", "answer", "output")
_FINISH = (
    "finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason", "unified",
)  # fmt: skip
_MESSAGE_FIELDS = frozenset({
    "role", "content", "parts", "message", "messages", "choices", "candidates", "generations",
    "tool_calls", "toolCalls", "function_call", "lc", "additional_kwargs",
})  # fmt: skip
"""Fields of messages and responses: an object with one of them is not an answer in JSON."""
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
    whole         it was logged as the body of a provider's response
    """

    answers: tuple[ApiAnswer, ...] = ()
    before: tuple[Message, ...] = ()
    instructions: str = ""
    tools: tuple[Json, ...] | None = None
    id: str | None = None
    previous: str | None = None
    whole: bool = False


def fault_of(reason: Json) -> str | None:
    """Returns the code of the fault that a finish reason (or its object) describes, or None."""
    if isinstance(reason, dict):
        reason = next((reason[key] for key in _FINISH if key in reason), None)
    return finish_fault(reason)


def _fault(value: dict[str, Json]) -> str | None:
    return next((code for key in _FINISH if (code := fault_of(value.get(key)))), None)


def _cut(value: Json) -> str | None:
    return "truncated" if isinstance(value, str) and _CUT_MESSAGE.match(value) else None


def read_outcome(raw: Json, notes: PartNotes, depth: int = 0) -> Outcome:
    """Returns the outcome that a logged output describes, at a depth inside of others."""
    value = _body_in(decoded(raw))
    if value is None or value == "" or depth > _MAX_WRAPPERS:
        return Outcome()
    if not isinstance(value, dict | list):
        return _answer([Text(_unquoted(raw, value))], _cut(value))
    if isinstance(value, list):
        listed = [decoded(item) for item in value]
        items = [item for item in listed if isinstance(item, dict)]
        is_stream = bool(items) and len(items) == len(listed) and all(map(is_event, items))
        name = response_dialect(items[0]) if is_stream else None
        if name is not None:  # a whole stream
            answers = APIS[name].answers(Exchange("", events=tuple(items)))
            return Outcome(tuple(answers), whole=True)
        return _from_list(value, notes) if items else _from_json(raw, value)
    for read in (_from_response, _from_body, _from_choices, _from_generations, _from_message):
        outcome = read(value, notes)
        if outcome is not None:
            return outcome
    return _from_wrapper(raw, value, notes, depth)


def _body_in(value: Json) -> Json:
    """Returns the only provider's response in a list or under a key; other values unchanged."""
    if isinstance(value, list):
        values = [decoded(item) for item in value]
    else:
        values = [decoded(item) for item in as_dict(value).values()]
    bodies = [one for one in values if isinstance(one, dict) and response_dialect(one) is not None]
    has_own = isinstance(value, dict) and response_dialect(value) is not None
    alone = len(bodies) == 1 and not has_own and (isinstance(value, dict) or len(values) == 1)
    return bodies[0] if alone and not is_event(bodies[0]) else value


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
            return read_outcome(value[key], notes, depth + 1)
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
    parts = without_missing(parts)
    if not parts or any(isinstance(p, Unparsed) and p.code == "no_output" for p in parts):
        return Outcome()
    return Outcome((ApiAnswer(Message("assistant", tuple(parts)), fault=fault),))


def _from_list(items: list[Json], notes: PartNotes) -> Outcome:
    """Returns messages, parts, calls, choices or generations, whichever the list contains."""
    values = [decoded(item) for item in items]
    first = as_dict(values[0] if values else None)
    if isinstance(first.get("message"), dict) and "finish_reason" in first:
        return _from_choices({"choices": values}, notes) or Outcome()
    if isinstance(first.get("generation_info"), dict) or first.get("type") == "ChatGeneration":
        return _from_generations({"generations": [values]}, notes) or Outcome()
    named = any(key in first for key in ("toolName", "function")) and "role" not in first
    if named or (_is_part(first) and not is_message(first)):
        calls = [{"type": "tool-call", **as_dict(value)} if named else value for value in values]
        return _answer(read_parts(list(calls)))
    choices = [as_dict(value) for value in values]
    ended = (c.get("role") == "assistant" and any(c.get(key) for key in _FINISH) for c in choices)
    is_koog = any(_calls_in_content(choice.get("content")) for choice in choices)
    if len(choices) > 1 and all(ended) and not is_koog:  # whose calls are messages
        answers = [_from_message(choice, notes) for choice in choices]
        return Outcome(tuple(answer for one in answers if one for answer in one.answers))
    messages = read_messages(list(values), notes)
    return _last_turn(messages, _fault(choices[-1]) if choices else None)


def _is_part(item: dict[str, Json]) -> bool:
    kind = as_str(item.get("type"))
    if "role" in item or kind in ("message", "function_call", "reasoning", "function_call_output"):
        return False  # a message, or an item of the Responses API
    return bool(kind) or "text" in item or "functionCall" in item or "function_call" in item


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
        whole=True,
    )


def _from_body(value: dict[str, Json], notes: PartNotes) -> Outcome | None:
    """Reads a whole response of a provider, whose codec knows what may not be trained."""
    name = response_dialect(value)
    ends = [*as_dicts(value.get("choices")), *as_dicts(value.get("candidates"))]
    if name in (None, OPENAI_RESPONSES) or (ends and not all(map(_ended, ends))):
        return None
    answers = APIS[str(name)].answers(Exchange("", response=value))
    return Outcome(tuple(answers), id=name_of(value, "id", "responseId"), whole=True)


def _ended(choice: dict[str, Json]) -> bool:
    return "delta" not in choice and any(choice.get(key) for key in _FINISH)


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
                if message and (one := _from_message({**message, "role": "assistant"}, notes)):
                    answers += [answer.with_fault(_fault(choice)) for answer in one.answers]
            return Outcome(tuple(answers), id=name_of(value, "id"))
    return None


def _from_generations(value: dict[str, Json], notes: PartNotes) -> Outcome | None:
    """Reads LangChain's LLMResult: lists of generations, one for each prompt of the batch."""
    batches = value.get("generations")
    if not isinstance(batches, list):
        return None
    first = batches[0] if batches else None
    answers: list[ApiAnswer] = []
    for generation in map(as_dict, first if isinstance(first, list) else batches):
        text, outcome = as_str(generation.get("text")), None
        if isinstance(generation.get("message"), dict):
            outcome = _from_message(as_dict(generation["message"]), notes)
        elif text:
            outcome = _answer([Text(text)])
        fault = _fault(as_dict(generation.get("generation_info")))
        answers += [one.with_fault(fault) for one in outcome.answers] if outcome else []
    return Outcome(tuple(answers))


def _from_message(value: dict[str, Json], notes: PartNotes) -> Outcome | None:
    """Reads a message of any API, bare or in the field `message` or `content`, else None."""
    places = [as_dict(value.get(key)) for key in ("message", "content")]
    places.append(as_dict(value, "output", "message"))  # Bedrock
    inner = (
        one
        for one in places
        if "role" in one or is_message(one) or isinstance(one.get("parts"), list)
    )
    message = next(inner, None)
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
