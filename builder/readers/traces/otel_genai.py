"""Reads spans of OpenTelemetry's GenAI conventions, in all generations of attribute names.

Also the form of a span that all instrumentations share (docs/formats/otel-genai.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Content,
    Json,
    Message,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.problem import Problem
from builder.readers.api.codec import ApiAnswer, History
from builder.readers.toolkit.chat_messages import (
    compact_result,
    unreadable_messages,
    with_compact_results,
)
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, first_of, name_of, name_or_none
from builder.readers.traces.any_vendor import fault_of, read_outcome, read_request
from builder.readers.traces.any_vendor import read_message as read_logged
from builder.readers.traces.parts import ROLES, PartNotes, result_content
from builder.readers.traces.spans import Span, branch, decoded, is_cut, listed

_BEDROCK = (
    "text", "toolUse", "toolResult", "reasoningContent", "cachePoint", "image", "audio", "video",
)  # fmt: skip


def read_messages(value: Json, notes: PartNotes) -> list[Message]:
    """Returns the messages of a list."""
    return [message for item in as_list(value) for message in _read_message(item, notes)]


def _read_message(item: Json, notes: PartNotes) -> list[Message]:
    """Returns the messages in one logged message.

    Results in an answer come from the provider, which ran its tools inside it; the client never
    answered those calls.
    """
    fields = as_dict(item)
    role = as_str(fields.get("role"))
    if not role:
        return [Message("user", (unknown_part("message without a role"),))]
    if not isinstance(fields.get("parts"), list):
        fields = {**fields, "content": _as_parts(fields.get("content"))}
    if role == "tool" and not fields.get("tool_call_id"):
        fields = {**fields, "tool_call_id": fields.get("id")}
    messages = [*read_logged(fields, notes)]
    if len(messages) > 1 and messages[0].role == "assistant":
        parts = [
            Unparsed("", "server_tool") if isinstance(part, ToolCall | ToolResult) else part
            for message in messages
            for part in message.parts
        ]
        return [replace(messages[0], parts=tuple(parts))]
    return messages or [Message(ROLES.get(role, role)[:40], ())]


def _as_parts(content: Json) -> Json:
    """Returns the parts of a content: as logged, or of a JSON text or Gemini's content."""
    if isinstance(content, str) and content.startswith('[{"'):
        inner = decoded(content)
        marks = ("type", *_BEDROCK)
        if isinstance(inner, list) and all(
            any(mark in as_dict(item) for mark in marks) for item in inner
        ):
            return inner
    inner = as_dict(content).get("parts")
    return inner if isinstance(inner, list) else content


@dataclass(frozen=True, slots=True)
class SpanReading:
    """The content of one span, or of the events of one request.

    kind     model: a request and its answer; agent: a run that repeats its requests;
             tool: a run of a tool; other: none of these
    history  None: the content was not captured
    call     the call that a tool span executed, if captured; `result` likewise
    tools    definitions that an agent's span lists
    whole    an agent's span contains all turns of its run, not only the first and the last
    is_exchange  an agent's span contains what was asked and the last answer
    own      index in the history: assistant turns from here on are outputs of the span
    session  the logged id of the span's conversation, or ""
    code     the code under which a span of kind other is ignored
    """

    kind: str
    history: History | None = None
    answers: tuple[ApiAnswer, ...] = ()
    call: ToolCall | None = None
    result: ToolResult | None = None
    tools: tuple[Json, ...] | None = None
    whole: bool = False
    is_exchange: bool = False
    own: int | None = None
    session: str = ""
    code: str = "other_span"

    @classmethod
    def of_tool(
        cls, name: str | None, arguments: Json, call_id: str | None, result: tuple[Content, ...]
    ) -> SpanReading:
        """Returns the reading of a tool's run, as far as it was captured."""
        call = ToolCall(name, arguments, call_id) if name else None
        answer = ToolResult(result, call_id, name) if result else None
        return cls("tool", call=call, result=answer)

    def with_compact_results(self) -> SpanReading:
        """Returns the reading of a program that sends values in results as compact JSON text."""
        history = self.history
        if history is not None:
            history = replace(history, messages=tuple(with_compact_results(history.messages)))
        result = None if self.result is None else compact_result(self.result)
        return replace(self, history=history, result=result)


@dataclass(frozen=True, slots=True)
class Logged:
    """The messages of a span, sent and received, each as logged.

    choices     several outputs are alternative answers, not one turn in pieces
    cut         the truncated sides: "input", "output"
    answers     answers that have already been parsed
    silent      only the roles of some messages were captured
    tools       definitions logged with the messages
    notes       findings while the messages were read
    """

    sent: list[Message]
    outputs: list[Json]
    choices: bool = False
    cut: tuple[str, ...] = ()
    answers: tuple[ApiAnswer, ...] = ()
    silent: bool = False
    tools: tuple[Json, ...] | None = None
    notes: PartNotes = field(default_factory=PartNotes)


def request(
    logged: Logged,
    span: Span,
    *,
    tools: tuple[Json, ...] | None,
    model: str | None,
    reasons: Sequence[Json] = (),
) -> tuple[History, tuple[ApiAnswer, ...]]:
    """Returns the request that a span logs, and its answers.

    `reasons` are the finish reasons that the span logs separately from the outputs.
    """
    sent = list(logged.sent)
    answers = [replace(answer, model=model) for answer in logged.answers]
    outputs = [
        (item, _read_message({**item, "role": item.get("role") or "assistant"}, logged.notes))
        for item in map(as_dict, logged.outputs)
    ]
    answered = all(message.role == "assistant" for _, found in outputs for message in found)
    if answered and (logged.choices or len(outputs) == 1):
        for number, (item, messages) in enumerate(outputs):
            reason = as_dict(item).get("finish_reason") or _at(reasons, number)
            answers += _answer(messages, reason, span, model)
    else:
        flat = [message for _, messages in outputs for message in messages]
        end = len(flat)
        while end and flat[end - 1].role == "assistant":
            end -= 1
        sent += flat[:end]
        reason = next((as_dict(i).get("finish_reason") for i, _ in reversed(outputs)), None)
        answers += _answer(flat[end:], reason or _at(reasons, 0), span, model)
    if "output" in logged.cut:
        answers = [ApiAnswer(Message("assistant", ()), fault="truncated", model=model)]
    history = history_of(
        sent, span, tools=tools, model=model, notes=logged.notes, cut="input" in logged.cut
    )
    if logged.silent:
        problem = Problem("no_content", span.where, "only the roles were captured", records=0)
        history = replace(history, problems=(*history.problems, problem))
    return history, tuple(answers)


def history_of(
    sent: Sequence[Message],
    span: Span,
    *,
    tools: tuple[Json, ...] | None,
    model: str | None,
    notes: PartNotes,
    cut: bool = False,
) -> History:
    """Returns a request with these messages, and with its problems.

    `cut`: the sent messages are truncated.
    """
    problems = [replace(one, where=span.where) for one in notes.problems]
    if span.dropped:
        detail = f"{span.dropped} attributes were dropped by a limit"
        problems.append(Problem("truncated", span.where, detail, records=0))
    problems += unreadable_messages(notes.unreadable, span.where)
    if cut:
        detail = "the messages that were sent are truncated"
        problems.append(Problem("truncated", span.where, detail, records=0))
    return History(tuple(sent), tools, model, tuple(problems), notes.changes)


def _at(reasons: Sequence[Json], number: int) -> Json:
    return reasons[number] if number < len(reasons) else None


def _answer(
    messages: Sequence[Message], reason: Json, span: Span, model: str | None
) -> list[ApiAnswer]:
    parts = tuple(part for message in messages for part in message.parts)
    if not parts:
        return []
    fault = fault_of(reason) or ("truncated" if span.failed and not reason else None)
    return [ApiAnswer(Message("assistant", parts), fault=fault, model=model)]


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
_RUN_RESULTS = (
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
    tools = tools_in(attrs)
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
    prompts = (at for at, one in enumerate(history.messages, 1) if one.role == "user")
    return SpanReading(
        kind,
        history,
        answers,
        tools=tools,
        whole=run is not None or len(history.messages) > len(logged.sent),
        own=len(logged.sent) if run is None else max(prompts, default=0),
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
    result = result_content(first_of(attrs, *_RUN_RESULTS))
    return SpanReading.of_tool(name, first_of(attrs, *_ARGUMENTS), call_id, result)


# -- tools ---------------------------------------------------------------------------------------


def tools_in(attrs: dict[str, Json]) -> tuple[Json, ...] | None:
    """Returns the definitions in attributes, those of Pydantic AI and OpenLLMetry too."""
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
    events: list[tuple[str, dict[str, Json]]] = []
    for name, inner in span.events:  # its body, JSON text in an attribute, or the attributes
        bodies = (as_dict(decoded(inner.get(key))) for key in ("body", "gen_ai.event.content"))
        events.append((name, next(filter(None, bodies), inner)))
    if not any(name in _ROLES_OF_EVENTS or name == _CHOICE for name, _ in events):
        written = (as_dict(item) for item in as_list(decoded(span.attributes.get("events"))))
        events = [(as_str(item.get("event.name")), item) for item in written]
    from_events = _from_message_events(events)
    return from_events or _from_numbered(span.attributes) or _from_texts(span)


def _from_parts(attrs: dict[str, Json]) -> Logged:
    notes = PartNotes()
    sent = read_messages(decoded(attrs.get(_INPUT)), notes)
    system = decoded(attrs.get(_SYSTEM))
    instructions = _read_message({"role": "system", "parts": _instructions(system)}, notes)
    if instructions and instructions[0].parts and instructions != sent[:1]:
        sent = [*instructions, *sent]
    outputs = as_list(decoded(attrs.get(_OUTPUT)))
    ended = [as_dict(item).get("finish_reason") for item in outputs]
    count = attrs.get("gen_ai.request.choice.count")
    choices = isinstance(count, int) and count > 1
    cut = [side for side, name in (("input", _INPUT), ("input", _SYSTEM), ("output", _OUTPUT))
           if is_cut(attrs.get(name))]  # fmt: skip
    return Logged(sent, outputs, choices or all(ended), tuple(cut), notes=notes)


def _instructions(value: Json) -> Json:
    if isinstance(value, str):
        return [value]
    inner = [as_dict(item).get("parts") for item in as_list(value)]
    if inner and all(isinstance(parts, list) for parts in inner):
        return [part for parts in inner for part in as_list(parts)]
    return as_list(value)


def _from_message_events(events: list[tuple[str, dict[str, Json]]]) -> Logged | None:
    """Returns the messages of first-generation events, one in each; None if there are none."""
    notes = PartNotes()
    sent: list[Message] = []
    outputs: list[tuple[int, Json]] = []
    has_messages = silent = False
    for name, body in events:
        role = _ROLES_OF_EVENTS.get(name)
        has_messages = has_messages or role is not None or name == _CHOICE
        silent = silent or (role is not None and not _has_content(body))
        if role is not None:
            own = name_or_none(body.get("role"))
            own = own if role == "system" and own else role
            sent += _read_message({**body, "role": own}, notes)
        elif name == _CHOICE:
            index = body.get("index")
            outputs.append((index if isinstance(index, int) else 0, _choice(body)))
    outputs.sort(key=lambda item: item[0])
    several = len({index for index, _ in outputs}) > 1
    parts = Logged(sent, [item for _, item in outputs], several, silent=silent, notes=notes)
    return parts if has_messages else None


def _has_content(body: dict[str, Json]) -> bool:
    """Returns whether the content of an event's message was captured.

    If not, roles and names still are: a call without a key for its arguments did have arguments.
    """
    called = [as_dict(call, "function") for call in as_list(body.get("tool_calls"))]
    if called:
        return all("arguments" in function for function in called)
    return any(body.get(name) is not None for name in ("content", "function_call", "refusal"))


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
        notes = PartNotes()
        sent = read_messages([item for item in entries if item is not None], notes)
        cut = ("input",) if missing else ()
        return Logged(sent, outputs, all(ended) and not legacy, cut, notes=notes)
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
    request = History(())
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
        notes=notes,
    )


def _assembled(completion: Json) -> Json:
    """Returns the response; of a streamed one, Logfire logs only the text of its chunks."""
    text = as_dict(decoded(completion)).get("combined_chunk_content")
    return {"role": "assistant", "content": text} if isinstance(text, str) else completion


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
