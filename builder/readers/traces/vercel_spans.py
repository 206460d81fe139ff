"""Reads spans of the AI SDK's telemetry: one for each model call, inside one for the whole loop.

Without a context manager, each has a trace of its own (docs/formats/vercel-ai-otel.md).
"""

from __future__ import annotations

from builder.conversation import Json, Message, Part, Reasoning, Text, Unparsed
from builder.readers.api.codec import ApiAnswer
from builder.readers.toolkit.chat_messages import text_or_data
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    first_of,
    name_of,
    name_or_none,
)
from builder.readers.traces.any_vendor import definitions, fault_of, read_messages, read_request
from builder.readers.traces.otel_genai import SpanReading, history_of
from builder.readers.traces.parts import PartNotes, read_call
from builder.readers.traces.spans import Span, decoded, is_cut

_PROMPT = "ai.prompt.messages"
_SESSIONS = tuple(
    f"ai.telemetry.metadata.{name}"
    for name in ("sessionId", "threadId", "conversationId", "chatId", "session_id", "thread_id")
)
_CONVERSATIONS = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")


def read_span(span: Span) -> SpanReading | None:
    """Returns the reading of a span; None if it is not one of the AI SDK's."""
    attrs = span.attributes
    operation = as_str(attrs.get("ai.operationId")) or span.name
    if operation == "ai.toolCall" or "ai.toolCall.name" in attrs:
        return _tool_run(attrs)
    if not operation.startswith("ai.") and _PROMPT not in attrs and "ai.prompt" not in attrs:
        return None
    if operation.startswith("ai.") and not operation.startswith(_CONVERSATIONS):
        return SpanReading("other")
    session = as_str(first_of(attrs, *_SESSIONS))
    inner = operation.endswith((".doGenerate", ".doStream")) or _PROMPT in attrs
    return _request(span, "model" if inner else "agent", session)


def _tool_run(attrs: dict[str, Json]) -> SpanReading:
    name, call_id = name_of(attrs, "ai.toolCall.name"), name_of(attrs, "ai.toolCall.id")
    value = decoded(attrs.get("ai.toolCall.result"))
    result = text_or_data(value, compact=True)
    return SpanReading.of_tool(name, attrs.get("ai.toolCall.args"), call_id, result)


def _request(span: Span, kind: str, session: str) -> SpanReading:
    attrs = span.attributes
    notes = PartNotes()
    prompt = first_of(attrs, _PROMPT, "ai.prompt")
    sent: list[Message] = []
    if _PROMPT in attrs:
        for item in as_list(decoded(prompt)):
            is_ran = as_str(item, "role") == "assistant" and any(
                part.get("type") == "tool-result" or part.get("providerExecuted") is True
                for part in as_dicts(item, "content")
            )
            placeholder = Message("assistant", (Unparsed("", "server_tool"),))
            sent += [placeholder] if is_ran else read_messages([item], notes)
    elif isinstance(prompt, str):
        sent += read_request(prompt, notes).messages
    model = name_or_none(
        first_of(attrs, "ai.response.model", "ai.model.id", "gen_ai.request.model")
    )
    answers = _answers(span, model)
    listed = decoded(attrs.get("ai.prompt.tools"))
    tools = tuple(definitions(listed)) if listed is not None else None
    if tools is None and sent and kind == "model":
        parts = [*sent, *(answer.message for answer in answers)]
        tools = None if any(map(calls, parts)) else ()  # tools would be logged with the prompt
    if prompt is None and not answers:
        return SpanReading(kind, session=session)
    history = history_of(sent, span, tools=tools, model=model, notes=notes, cut=is_cut(prompt))
    return SpanReading(
        kind, history, tuple(answers), session=session, is_exchange=bool(sent and answers)
    )


def _answers(span: Span, model: str | None) -> list[ApiAnswer]:
    attrs = span.attributes
    parts: list[Part] = []
    thought = attrs.get("ai.response.reasoning")
    if isinstance(thought, str) and thought:
        parts.append(Reasoning(thought))
    text = first_of(attrs, "ai.response.text", "ai.response.object", "ai.result.text")
    if isinstance(text, str) and text:
        parts.append(Text(text))
    called = first_of(attrs, "ai.response.toolCalls", "ai.result.toolCalls")
    for item in as_list(decoded(called)):
        own = as_dict(item).get("providerExecuted") is not True
        parts.append(read_call(item) if own else Unparsed("", "server_tool"))
    reason = first_of(attrs, "ai.response.finishReason", "ai.finishReason")
    fault = fault_of(reason)
    if is_cut(called) or (span.failed and reason is None):
        fault = "truncated"
    if not parts and not is_cut(called):
        return []
    return [ApiAnswer(Message("assistant", tuple(parts)), fault=fault, model=model)]
