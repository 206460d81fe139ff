"""Reads OpenInference spans: messages flattened into numbered attributes, in three layouts.

Flat dotted names, nested objects, and lists of objects (docs/formats/openinference.md).
"""

from __future__ import annotations

from dataclasses import replace

from builder.conversation import Json, Message, Text
from builder.readers.api.codec import History
from builder.readers.toolkit.chat_messages import has_unknown_parts
from builder.readers.toolkit.marks import is_removed
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_of, name_or_none
from builder.readers.traces.any_vendor import Outcome, read_outcome, read_request, tools_of
from builder.readers.traces.otel_genai import Logged, SpanReading, read_messages, request
from builder.readers.traces.parts import PartNotes
from builder.readers.traces.spans import Span, branch, decoded, is_cut, listed

_KINDS = {"LLM": "model", "AGENT": "agent", "CHAIN": "agent", "TOOL": "tool"}
INPUT = "llm.input_messages"
_OUTPUT = "llm.output_messages"
_LEAVES = frozenset(
    {"content", "text", "arguments", "json_schema", "parameters", "function_call_arguments_json"}
)


def read_span(span: Span) -> SpanReading | None:
    """Returns the reading of a span; None if it does not follow these conventions."""
    attrs = span.attributes
    named = as_str(_one(attrs, "openinference.span.kind"))
    inputs, outputs = entries(attrs, INPUT), entries(attrs, _OUTPUT)
    if not named and not inputs and not outputs:
        return None
    kind = _KINDS.get(named, "other") if named else "model"
    if kind == "tool":
        return _tool_run(span)
    if kind == "other":
        return SpanReading(kind, code=f"other_span:{named[:40]}")
    session = as_str(_one(attrs, "session.id"))
    tools = tools_in(attrs)
    if kind == "agent" and not inputs and not outputs:  # no request
        return SpanReading(kind, tools=tools, session=session)
    return _request(span, inputs, outputs, SpanReading(kind, tools=tools, session=session))


def _one(attrs: dict[str, Json], path: str) -> Json:
    return branch(attrs, path, frozenset({path.rpartition(".")[2]}))


def entries(attrs: dict[str, Json], path: str) -> list[Json]:
    """Returns the entries of a list in numbered attributes; None for a number that is left out."""
    tree = branch(attrs, path, _LEAVES)
    if isinstance(tree, str):  # a column of a table
        tree = branch({path: decoded(tree)}, path, _LEAVES)
    return listed(tree)


def tools_in(attrs: dict[str, Json]) -> tuple[Json, ...] | None:
    """Returns the definitions in numbered attributes, else in the parameters of the call."""
    tools: list[Json] = []
    for entry in entries(attrs, "llm.tools"):
        tool = as_dict(entry, "tool") or as_dict(entry)
        tools.append(decoded(tool["json_schema"]) if "json_schema" in tool else tool)
    if tools:
        return tuple(tools)
    return tools_of(as_dict(decoded(_one(attrs, "llm.invocation_parameters"))))


def _tool_run(span: Span) -> SpanReading:
    attrs = span.attributes
    name = name_or_none(_one(attrs, "tool.name")) or name_or_none(span.name)
    call_id = name_or_none(_one(attrs, "tool_call.id")) or name_or_none(_one(attrs, "tool.id"))
    answer = _one(attrs, "output.value")
    result = (Text(answer),) if isinstance(answer, str) and answer else ()
    return SpanReading.of_tool(name, _one(attrs, "input.value"), call_id, result)


# -- requests ------------------------------------------------------------------------------------


def _request(
    span: Span, inputs: list[Json], outputs: list[Json], reading: SpanReading
) -> SpanReading:
    attrs = span.attributes
    raw_input, raw_output = (
        None if is_removed(value) else value
        for value in (_one(attrs, "input.value"), _one(attrs, "output.value"))
    )
    notes = PartNotes()
    lost = any(
        one.get("role") == "user" and one.get("tool_call_id") for one in map(_message, inputs)
    )
    raw = _raw_request(raw_input, notes) if lost or not inputs else History(())
    answer_notes = PartNotes()
    outcome = read_outcome(raw_output, answer_notes) if raw_output is not None else Outcome()
    if not inputs and not outputs and not raw.messages and raw_input is None:
        return reading
    cut: list[str] = []
    if raw.messages and not notes.unreadable and not has_unknown_parts(raw.messages):
        sent = list(raw.messages)
    else:
        missing = any(entry is None for entry in inputs) or (not inputs and is_cut(raw_input))
        cut += ["input"] if missing else []
        if not inputs and isinstance(raw_input, str) and raw_input and not missing:
            notes.unreadable = notes.unreadable or ["prompt in plain text"]
        else:
            notes = PartNotes()
        sent = read_entries(inputs, notes)
    outputs = [_item(entry) for entry in outputs if entry is not None]
    if not outputs and is_cut(raw_output):
        cut.append("output")
    several = len(as_list(decoded(raw_output), "choices")) > 1
    tools = reading.tools if reading.tools is not None else raw.tools
    if tools is None:
        tools = _raw_request(raw_input, PartNotes()).tools
    model = name_or_none(_one(attrs, "llm.model_name")) or raw.model
    history, answers = request(
        Logged(sent, outputs, several, tuple(cut), notes=notes), span, tools=tools, model=model
    )
    if not answers or (outcome.whole and outcome.answers):
        history = replace(
            history,
            messages=(*history.messages, *outcome.before),
            changes=history.changes + answer_notes.changes,
        )
        answers = tuple(replace(answer, model=model) for answer in outcome.answers)
    elif len(answers) == len(outcome.answers):  # only the raw response contains the finish reason
        pairs = zip(answers, outcome.answers, strict=True)
        answers = tuple(answer.with_fault(read.fault) for answer, read in pairs)
    return replace(reading, history=history, answers=answers)


def read_entries(logged: list[Json], notes: PartNotes) -> list[Message]:
    """Returns the messages of entries."""
    return read_messages([_item(entry) for entry in logged if entry is not None], notes)


def _raw_request(value: Json, notes: PartNotes) -> History:
    """Returns the raw request; an empty one for plain text, which has no role."""
    body = decoded(value)
    return read_request(body, notes) if isinstance(body, dict | list) else History(())


def _message(entry: Json) -> dict[str, Json]:
    return as_dict(entry, "message") or as_dict(entry)


def _item(entry: Json) -> Json:
    """Returns a message as a message of parts; calls logged in both fields are taken once."""
    message = _message(entry)
    contents = [_content(as_dict(item)) for item in listed(message.get("contents"))]
    text = message.get("content")
    if text and not any(part.get("type") == "text" for part in contents):
        contents.insert(0, {"type": "text", "content": text})
    called = [_call(as_dict(item)) for item in listed(message.get("tool_calls"))]
    placed = [part for part in contents if part.get("type") == "tool_call"]
    if called and len(placed) != len(called):
        contents = [part for part in contents if part.get("type") != "tool_call"] + called
    legacy = name_of(message, "function_call_name")
    if legacy and not called:
        arguments = message.get("function_call_arguments_json")
        contents.append({"type": "tool_call", "name": legacy, "arguments": arguments})
    role = message.get("role")
    call_id = message.get("tool_call_id")
    if role in ("tool", "function") or call_id:
        value: Json = text if text is not None else list(contents)
        name = message.get("name")
        contents = [{"type": "tool_call_response", "id": call_id, "name": name, "response": value}]
    parts: list[Json] = list(contents)
    return {"role": role, "parts": parts} if role else {"parts": parts}


def _content(entry: dict[str, Json]) -> dict[str, Json]:
    inner = as_dict(entry.get("message_content")) or entry
    kind = as_str(inner.get("type"))
    if kind == "tool_use":
        return _call(entry if "tool_call" in entry else inner)
    if kind in ("reasoning", "thinking"):
        return {"type": "reasoning", "content": inner.get("text")}
    if kind == "text" or (not kind and "text" in inner):
        return {"type": "text", "content": inner.get("text")}
    media = next((name for name in ("image", "audio", "video", "file") if name in inner), kind)
    return {"type": media or "content"}


def _call(entry: dict[str, Json]) -> dict[str, Json]:
    call = as_dict(entry.get("tool_call")) or entry
    function = as_dict(call.get("function"))
    return {
        "type": "tool_call",
        "id": call.get("id"),
        "name": function.get("name"),
        "arguments": function.get("arguments"),
    }
