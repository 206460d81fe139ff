"""Reads MLflow spans: inputs and outputs of any function, each attribute a JSON text.

They are the bodies that the autologged client received and returned (docs/formats/mlflow.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from builder.conversation import Json, Message, ToolCall, ToolResult
from builder.problem import Problem
from builder.readers.api.codec import ApiAnswer
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str, name_of, name_or_none
from builder.readers.toolkit.rows import logged_outcome
from builder.readers.traces.any_vendor import (
    Outcome,
    definitions,
    read_messages,
    read_outcome,
    read_request,
    tools_of,
)
from builder.readers.traces.otel_genai import SpanReading, history_of
from builder.readers.traces.parts import PartNotes, decoded, result_content
from builder.readers.traces.spans import Span, is_cut

_KINDS = {"CHAT_MODEL": "model", "LLM": "model", "TOOL": "tool", "AGENT": "agent", "CHAIN": "agent"}
_ASSESSED = ("score", "labels", "evaluator", "feedback")
_SESSION = "mlflow.trace.session"


def read_span(span: Span) -> SpanReading | None:
    """Returns the reading of a span; None if it is not one of MLflow's."""
    attrs = span.attributes
    named = as_str(_text(attrs.get("mlflow.spanType")))
    if not named and "mlflow.spanInputs" not in attrs and "mlflow.chat.messages" not in attrs:
        return None
    info = as_dict(attrs.get("trace_info"))
    session = _session(attrs, info)
    kind = _KINDS.get(named, "model" if "mlflow.chat.messages" in attrs else "other")
    if kind == "tool":
        return _tool_run(span)
    if kind == "other":
        return SpanReading(kind, code=f"other_span:{named[:40] or 'UNKNOWN'}")
    return _request(span, SpanReading(kind, tools=_tools(attrs), session=session), info)


def _text(value: Json) -> Json:
    inner = decoded(value)
    return inner.strip('"') if isinstance(inner, str) else inner


def _session(attrs: dict[str, Json], info: dict[str, Json]) -> str:
    places = (attrs, *(as_dict(info.get(key)) for key in ("trace_metadata", "request_metadata")))
    return next((name for one in places if (name := as_str(_text(one.get(_SESSION))))), "")


def _tools(attrs: dict[str, Json]) -> tuple[Json, ...] | None:
    """Returns the tool definitions: MLflow's own list, or the `tools` among the arguments."""
    own = decoded(attrs.get("mlflow.chat.tools"))
    if isinstance(own, list):
        return tuple(definitions(own))
    for fields in (attrs, as_dict(decoded(attrs.get("invocation_params")))):
        tools = tools_of({"tools": decoded(fields.get("tools"))})
        if tools is not None:
            return tools
    return None


def _tool_run(span: Span) -> SpanReading:
    attrs = span.attributes
    output = decoded(attrs.get("mlflow.spanOutputs"))
    message = as_dict(output)  # LangChain's tool message has the id of its call
    call_id = name_of(message, "tool_call_id")
    result = result_content(message.get("content") if call_id else output)
    arguments = decoded(attrs.get("mlflow.spanInputs"))
    return SpanReading(
        "tool",
        call=ToolCall(span.name, arguments, call_id) if span.name else None,
        result=ToolResult(result, call_id) if result else None,
    )


# -- requests ------------------------------------------------------------------------------------


def _request(span: Span, reading: SpanReading, info: dict[str, Json]) -> SpanReading:
    attrs = span.attributes
    inputs, outputs = decoded(attrs.get("mlflow.spanInputs")), attrs.get("mlflow.spanOutputs")
    notes = PartNotes()
    request = read_request(inputs, notes) if isinstance(inputs, dict | list) else None
    outcome = read_outcome(outputs, notes) if outputs is not None else Outcome()
    sent: Sequence[Message] = request.messages if request is not None else ()
    answers: Sequence[ApiAnswer] = outcome.answers
    if isinstance(as_dict(inputs).get("prompt"), str):  # not a chat: the text has no role
        notes.unreadable.append("prompt in plain text")
    own = len(sent)
    if not sent:  # the one list in which MLflow 2 logs what was sent and the answer
        logged = attrs.get("mlflow.chat.messages")
        sent = read_messages(logged, notes) if logged is not None else []
        if sent and sent[-1].role == "assistant":
            sent, answers = sent[:-1], answers or (ApiAnswer(sent[-1]),)
    elif outcome.before:
        # The output of an agent's graph repeats the input before the new messages.
        repeats = outcome.before[: len(sent)] == tuple(sent)
        sent = outcome.before if repeats else (*sent, *outcome.before)
    cut = is_cut(attrs.get("mlflow.spanInputs"))
    if is_cut(outputs):
        answers = [ApiAnswer(Message("assistant", ()), fault="truncated")]
    if not sent and not answers and not cut:
        return reading
    if span.failed:
        answers = [answer.with_fault("truncated") for answer in answers]
    model, tools = _model(attrs), reading.tools
    if request is not None:
        model, tools = model or request.model, request.tools if tools is None else tools
    answers = [replace(answer, model=model) for answer in answers]
    history = history_of(sent, span, tools=tools, model=model, notes=notes, cut=cut)
    state = as_str(info.get("state")) or as_str(info.get("status"))
    if state == "ERROR":
        failed = Problem("failed_trace", span.where, "the trace ended with an error", records=0)
        history = replace(history, problems=(*history.problems, failed))
    return replace(
        reading,
        history=replace(history, outcome=_outcome(info)),
        answers=tuple(answers),
        whole=bool(outcome.before),
        own=own if outcome.before else len(sent),
    )


def _outcome(info: dict[str, Json]) -> dict[str, Json] | None:
    """Returns a trace's outcome: its assessments by name, with value, author and rationale.

    Expectations are labels. Source: mlflow entities/assessment.py; rows of datasets contain the
    same objects.
    """
    assessments: dict[str, dict[str, Json]] = {key: {} for key in _ASSESSED}
    for item in as_dicts(decoded(info.get("assessments"))):
        name = as_str(item.get("assessment_name")) or as_str(item.get("name"))
        values: dict[str, Json] = {
            "score": as_dict(item.get("feedback")).get("value"),
            "labels": as_dict(item.get("expectation")).get("value"),
            "evaluator": as_dict(item.get("source")).get("source_type"),
            "feedback": item.get("rationale"),
        }
        for key, value in values.items():
            if name and value is not None:
                assessments[key].setdefault(name, value)
    return logged_outcome(**assessments)


def _model(attrs: dict[str, Json]) -> str | None:
    response = as_dict(decoded(attrs.get("mlflow.spanOutputs"))).get("model")
    parameters = as_dict(decoded(attrs.get("invocation_params"))).get("model")
    fields = (response, attrs.get("mlflow.llm.model"), attrs.get("model"), parameters)
    return next((name for one in fields if (name := name_or_none(_text(one)))), None)
