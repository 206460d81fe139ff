"""Reads spans of OpenTelemetry's GenAI conventions, in all generations of attribute names.

The generations are: messages of parts, in attributes or an event; one event for each message;
OpenLLMetry's numbered attributes; and JSON texts in `gen_ai.prompt` and `gen_ai.completion`
(docs/formats/otel-genai.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from builder.conversation import Json, Message, ToolCall, ToolResult
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, first_of, name_of, name_or_none
from builder.readers.traces.any_vendor.answers import read_outcome
from builder.readers.traces.any_vendor.parts import PartNotes
from builder.readers.traces.any_vendor.requests import Request, read_request
from builder.readers.traces.otel.genai_parts import read_message, read_messages, result_content
from builder.readers.traces.otel.reading import Logged, SpanReading, request
from builder.readers.traces.otel.span_values import branch, decoded, is_cut, listed
from builder.readers.traces.otel.spans import Span

_DETAILS = "gen_ai.client.inference.operation.details"
_CHOICE = "gen_ai.choice"
_ROLES_OF_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_TEXT_EVENTS = frozenset({"gen_ai.content.prompt", "gen_ai.content.completion"})
_BODIES = (
    ("gen_ai.prompt", "gen_ai.completion"),
    ("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"),  # Google's ADK
    ("request_data", "response_data"),  # Logfire's instrumentations of clients
)
_INPUT = "gen_ai.input.messages"
_OUTPUT = "gen_ai.output.messages"
_SYSTEM = "gen_ai.system_instructions"
_SESSIONS = ("gen_ai.conversation.id", "traceloop.association.properties.session_id")
_AGENTS = frozenset({"invoke_agent", "create_agent", "invoke_workflow", "agent_step"})
_NO_CHAT = frozenset({"embeddings", "retrieval", "text_embeddings", "rerank", "image_generation"})
_ALL_MESSAGES = ("pydantic_ai.all_messages", "all_messages_events")
_ARGUMENTS = (
    "gen_ai.tool.call.arguments", "tool_arguments", "gcp.vertex.agent.tool_call_args", "input",
)  # fmt: skip
_RESULTS = (
    "gen_ai.tool.call.result", "tool_response", "gcp.vertex.agent.tool_response", "output",
)  # fmt: skip
"""The names of OpenTelemetry, Pydantic AI, Google, and of spans without a convention."""
_SCHEMAS = frozenset({"parameters", "input_schema"})


def is_message(span: Span) -> bool:
    """Returns whether a log record is one message of a request (first generation)."""
    return any(name in _ROLES_OF_EVENTS or name == _CHOICE for name, _ in span.events)


def is_choice(span: Span) -> bool:
    """Returns whether a log record is an answer."""
    return any(name == _CHOICE for name, _ in span.events)


def read_span(span: Span) -> SpanReading | None:
    """Returns the reading of a span; None if it follows none of these conventions."""
    attrs = span.attributes
    session = name_of(attrs, *_SESSIONS) or ""
    if attrs.get("logfire.span_type") == "pending_span":  # overwritten when the span ends
        return SpanReading("other", code="pending_span")
    kind = _kind(span)
    if kind == "tool":
        return _tool_run(attrs)
    if kind == "other":
        return SpanReading(kind)
    run = _whole_run(attrs) if kind == "agent" else None
    logged = run or _logged(span)
    tools = _tools(attrs)
    if logged is None:
        return SpanReading(kind, tools=tools, session=session)
    reasons = attrs.get("gen_ai.response.finish_reasons")
    history, answers = request(
        logged,
        span,
        tools=logged.tools if tools is None else tools,
        model=name_of(attrs, "gen_ai.response.model", "gen_ai.request.model"),
        reasons=as_list(decoded(reasons)),
    )
    return SpanReading(
        kind,
        history,
        answers,
        tools=tools,
        whole=run is not None or len(history.messages) > len(logged.sent),
        own=len(logged.sent) if run is None else _after_last_prompt(history.messages),
        session=session,
    )


def _kind(span: Span) -> str:
    attrs = span.attributes
    operation = as_str(attrs.get("gen_ai.operation.name"))
    entity = as_str(attrs.get("traceloop.span.kind"))
    if operation == "execute_tool" or entity == "tool" or span.name.startswith("execute_tool "):
        return "tool"
    if operation in _AGENTS or entity or "event_loop.cycle_id" in attrs:
        return "agent"
    if any(name in attrs for name in _ALL_MESSAGES):
        return "agent"
    if operation in _NO_CHAT:
        return "other"
    if operation or any(name.startswith(("gen_ai.request.", "llm.request.")) for name in attrs):
        return "model"
    return "model" if _logged(span) is not None else "other"


def _tool_run(attrs: dict[str, Json]) -> SpanReading:
    name, call_id = name_of(attrs, "gen_ai.tool.name"), name_of(attrs, "gen_ai.tool.call.id")
    arguments = first_of(attrs, *_ARGUMENTS)
    result = result_content(first_of(attrs, *_RESULTS))
    return SpanReading(
        "tool",
        call=ToolCall(name, arguments, call_id) if name else None,
        result=ToolResult(result, call_id, name) if result else None,
    )


# -- tools ---------------------------------------------------------------------------------------


def _tools(attrs: dict[str, Json]) -> tuple[Json, ...] | None:
    """Returns the span's definitions; Pydantic AI and OpenLLMetry have attributes of their own."""
    defined = decoded(attrs.get("gen_ai.tool.definitions"))
    if isinstance(defined, list):
        return tuple(defined)
    parameters = as_dict(decoded(attrs.get("model_request_parameters")))
    if isinstance(parameters.get("function_tools"), list):
        own, output = (as_list(parameters.get(f"{kind}_tools")) for kind in ("function", "output"))
        return (*own, *output)
    numbered = listed(branch(attrs, "llm.request.functions", _SCHEMAS))
    if numbered:
        return tuple(
            {name: decoded(item) if name in _SCHEMAS else item for name, item in tool.items()}
            for tool in map(as_dict, numbered)
        )
    return None


# -- messages, generation by generation ----------------------------------------------------------


def _logged(span: Span) -> Logged | None:
    """Returns the messages of a span, from the first generation of names that has any."""
    detailed = dict(span.attributes)
    for name, inner in span.events:
        if name == _DETAILS:
            detailed.update({**as_dict(inner.get("body")), **inner})
    if any(detailed.get(name) is not None for name in (_INPUT, _OUTPUT)):
        return _from_parts(detailed)
    return _from_events(span) or _from_numbered(span.attributes) or _from_texts(span)


def _from_parts(attrs: dict[str, Json]) -> Logged:
    sent = read_messages(decoded(attrs.get(_INPUT)))
    system = decoded(attrs.get(_SYSTEM))
    instructions = read_message({"role": "system", "parts": _instructions(system)})
    if instructions[0].parts and instructions != sent[:1]:
        sent = [*instructions, *sent]
    outputs = as_list(decoded(attrs.get(_OUTPUT)))
    ended = [as_dict(item).get("finish_reason") for item in outputs]
    count = attrs.get("gen_ai.request.choice.count")
    choices = isinstance(count, int) and count > 1
    cut = [side for side, name in (("input", _INPUT), ("input", _SYSTEM), ("output", _OUTPUT))
           if is_cut(attrs.get(name))]  # fmt: skip
    return Logged(sent, outputs, choices or all(ended), tuple(cut))


def _instructions(value: Json) -> Json:
    """Returns the parts of a system text: a list, a text, or (against the conventions) messages."""
    if isinstance(value, str):
        return [value]
    inner = [as_dict(item).get("parts") for item in as_list(value)]
    if inner and all(isinstance(parts, list) for parts in inner):
        return [part for parts in inner for part in as_list(parts)]
    return as_list(value)


def _from_events(span: Span) -> Logged | None:
    events = [(name, _event_body(inner)) for name, inner in span.events]
    if not any(name in _ROLES_OF_EVENTS or name == _CHOICE for name, _ in events):
        written = (as_dict(item) for item in as_list(decoded(span.attributes.get("events"))))
        events = [(as_str(item.get("event.name")), item) for item in written]
    return _from_message_events(events)


def _from_message_events(events: list[tuple[str, dict[str, Json]]]) -> Logged | None:
    """Returns the messages of first-generation events, one in each; None if there are none."""
    sent: list[Message] = []
    outputs: list[tuple[int, Json]] = []
    has_messages = silent = False
    for name, body in events:
        role = _ROLES_OF_EVENTS.get(name)
        has_messages = has_messages or role is not None or name == _CHOICE
        silent = silent or (role is not None and not _has_content(body))
        if role is not None:
            own = name_or_none(body.get("role"))
            sent += read_message({**body, "role": own if role == "system" and own else role})
        elif name == _CHOICE:
            index = body.get("index")
            outputs.append((index if isinstance(index, int) else 0, _choice(body)))
    outputs.sort(key=lambda item: item[0])
    several = len({index for index, _ in outputs}) > 1
    parts = Logged(sent, [item for _, item in outputs], several, silent=silent)
    return parts if has_messages else None


def _has_content(body: dict[str, Json]) -> bool:
    """Returns whether the content of an event's message was captured.

    If not, roles and names still are: a call without a key for its arguments did have arguments.
    """
    called = [as_dict(call, "function") for call in as_list(body.get("tool_calls"))]
    if called:
        return all("arguments" in function for function in called)
    return any(body.get(name) is not None for name in ("content", "function_call", "refusal"))


def _event_body(inner: dict[str, Json]) -> dict[str, Json]:
    """Returns the body of an event: its own, JSON text in an attribute, or the attributes."""
    for value in (inner.get("body"), inner.get("gen_ai.event.content")):
        if body := as_dict(decoded(value)):
            return body
    return inner


def _choice(body: dict[str, Json]) -> Json:
    message = body.get("message")
    if isinstance(message, str) and message.startswith("{"):
        message = decoded(message)
    item = message if isinstance(message, dict) else {"content": message}
    if body.get("tool_calls") and not item.get("tool_calls"):
        item = {**item, "tool_calls": body["tool_calls"]}
    return {**item, "role": "assistant", "finish_reason": body.get("finish_reason")}


def _from_numbered(attrs: dict[str, Json]) -> Logged | None:
    """Reads OpenLLMetry's attributes, one for each field of each message."""
    for prompt, completion in (
        ("gen_ai.prompt", "gen_ai.completion"),
        ("llm.prompts", "llm.completions"),
    ):
        if not any(name.startswith((f"{prompt}.", f"{completion}.")) for name in attrs):
            continue
        entries = listed(branch(attrs, prompt))
        outputs = [_thought(as_dict(item)) for item in listed(branch(attrs, completion))]
        ended = [as_dict(item).get("finish_reason") for item in outputs]
        legacy = any("function_call" in as_dict(item) for item in outputs)
        missing = any(as_dict(item).get("role") is None for item in entries)
        sent = read_messages([item for item in entries if item is not None])
        cut = ("input",) if missing else ()
        return Logged(sent, outputs, all(ended) and not legacy, cut)
    return None


def _thought(item: dict[str, Json]) -> Json:
    """Returns a completion; one with the role `thinking` becomes a reasoning part."""
    if item.get("role") != "thinking":
        return item
    return {"role": "assistant", "content": [{"type": "thinking", "thinking": item.get("content")}]}


def _from_texts(span: Span) -> Logged | None:
    """Reads whole bodies: JSON texts in a pair of attributes, or in separate events."""
    attrs = dict(span.attributes)
    for name, inner in span.events:
        if name in _TEXT_EVENTS:
            attrs.update(inner)
    for names in _BODIES:
        prompt, completion = (attrs.get(name) for name in names)
        if prompt is not None or completion is not None:
            return _from_bodies(prompt, completion)
    return None


def _from_bodies(prompt: Json, completion: Json) -> Logged:
    cut = [side for side, text in (("input", prompt), ("output", completion)) if is_cut(text)]
    notes = PartNotes()
    body = decoded(prompt)
    request = Request(())
    if isinstance(body, dict | list):
        request = read_request(body, notes)
    elif prompt is not None and not cut:
        notes.unreadable.append("prompt in plain text")
    outcome = read_outcome(_assembled(completion), notes)
    return Logged(
        [*request.messages, *outcome.before],
        [],
        cut=tuple(cut),
        answers=outcome.answers,
        tools=request.tools,
        unreadable=tuple(notes.unreadable),
    )


def _assembled(completion: Json) -> Json:
    """Returns the response; of a streamed one, Logfire logs only the text of its chunks."""
    text = as_dict(decoded(completion)).get("combined_chunk_content")
    return {"role": "assistant", "content": text} if isinstance(text, str) else completion


def _after_last_prompt(messages: Sequence[Message]) -> int:
    """Returns the index at which a run begins; the client sent the messages before it."""
    return max((at for at, one in enumerate(messages, 1) if one.role == "user"), default=0)


def _whole_run(attrs: dict[str, Json]) -> Logged | None:
    """Returns all messages of an agent's run as Pydantic AI logs them."""
    items = next((as_list(decoded(attrs.get(name))) for name in _ALL_MESSAGES if name in attrs), [])
    if not items:
        return None
    fields = [as_dict(item) for item in items]
    if all("event.name" in item for item in fields):
        return _from_message_events([(as_str(item["event.name"]), item) for item in fields])
    instructions = _instructions(decoded(attrs.get(_SYSTEM)))
    system: list[Json] = [{"role": "system", "parts": instructions}] if instructions else []
    return Logged([], [*system, *items])
