"""Reads Langfuse observations as steps, and the model calls of its generations.

Source: docs/formats/langfuse.md. Newer instrumentations log the messages
as input and output, and everything else as OpenTelemetry attributes in the metadata. Fields have
names in camel case in the API, in snake case in exports.
"""

from __future__ import annotations

import re
from dataclasses import replace

from builder.conversation import Json, Message
from builder.readers.api.capture.api import ApiAnswer
from builder.readers.toolkit.chat_messages import has_unknown_parts
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, first_of, name_of, name_or_none
from builder.readers.traces.any_vendor.answers import (
    Outcome,
    calls_by_columns,
    fault_of,
    read_outcome,
)
from builder.readers.traces.any_vendor.messages import read_messages
from builder.readers.traces.any_vendor.parts import PartNotes, decoded, is_empty
from builder.readers.traces.any_vendor.requests import (
    Request,
    definitions,
    read_request,
    system_text,
    tools_of,
    with_system,
)
from builder.readers.traces.otel.span_values import branch, listed
from builder.readers.traces.platforms.model_call import ModelCall, Step

_ENCLOSING = frozenset({"SPAN", "CHAIN"})
"""Types of enclosing steps that may log a model call's answer as their own output."""
_SYSTEMS = ("gen_ai.system_instructions", "gen_ai.request.instructions", "instructions")
_LEAVES = frozenset({"content", "arguments"})
_TOOL = re.compile(r"llm\.tools\.\d+\.tool\.json_schema")


def read_step(where: str, row: dict[str, Json], code: str) -> Step:
    """Returns an observation as a step."""
    kind = as_str(row.get("type"))
    called = kind == "GENERATION"
    agent = kind == "AGENT"
    metadata = as_dict(decoded(row.get("metadata"))) if called or agent else {}
    attributes = as_dict(decoded(metadata.get("attributes")))
    call = _call(row, metadata, attributes) if called else None
    texts = (system_text(attributes.get(key)) for key in _SYSTEMS)
    return Step(
        where=where,
        id=name_of(row, "id"),
        parent=name_or_none(first_of(row, "parentObservationId", "parent_observation_id")),
        order=as_str(first_of(row, "startTime", "start_time")),
        code=code,
        nests=agent or kind == "TOOL",
        agent=agent,
        system=next((text for text in texts if text), ""),
        call=call,
        output=row.get("output") if kind in _ENCLOSING else None,
    )


def _call(
    row: dict[str, Json], metadata: dict[str, Json], attributes: dict[str, Json]
) -> ModelCall:
    notes, answer_notes = PartNotes(), PartNotes()
    parameters = as_dict(decoded(first_of(row, "modelParameters", "model_parameters")))
    request = read_request(row.get("input"), notes)
    readable = request.messages and not notes.unreadable
    if (not readable or has_unknown_parts(request.messages)) and (
        flat := _flat_messages(attributes)
    ):
        notes = PartNotes()
        whole: list[Json] = [message for message in flat if message is not None]
        request = replace(request, messages=tuple(read_messages(whole, notes)))
        if len(whole) < len(flat):
            notes.unreadable.append("a message that was not logged")
    outcome = read_outcome(row.get("output"), answer_notes)
    answers = outcome.answers
    if not answers:
        names = first_of(row, "toolCallNames", "tool_call_names")
        made = calls_by_columns(first_of(row, "toolCalls", "tool_calls"), names)
        answers = (ApiAnswer(Message("assistant", tuple(made))),) if made else ()
    ends = decoded(attributes.get("gen_ai.response.finish_reasons"))
    reasons = list(ends) if isinstance(ends, list) else [ends]
    reasons += [attributes.get("ai.response.finishReason"), parameters.get("finishReason")]
    fault = next((code for reason in reasons if (code := fault_of(reason))), None)
    failed = row.get("level") == "ERROR"
    fault = fault or ("error" if failed else None)
    answers = tuple(replace(answer, fault=answer.fault or fault) for answer in answers)
    return ModelCall(
        messages=with_system(request.messages, outcome.instructions),
        outcome=replace(outcome, answers=answers),
        notes=notes,
        answer_notes=answer_notes,
        tools=_tools(row, metadata, attributes, request, outcome, notes, answer_notes),
        model=name_of(row, "model", "provided_model_name") or request.model,
        failed=failed,
        error=as_str(first_of(row, "statusMessage", "status_message")) if failed else "",
        is_empty=is_empty(row.get("output")),
        response=outcome.id or name_of(attributes, "gen_ai.response.id"),
        previous=outcome.previous or name_of(attributes, "gen_ai.conversation.id"),
    )


def _flat_messages(attributes: dict[str, Json]) -> list[dict[str, Json] | None]:
    """Returns a request's messages from OpenInference's numbered attributes, in OpenAI's form.

    Instrumentations that log a Python repr as input (Agno) also log these attributes. A number that
    is left out is None: an answer with calls only, which such an instrumentation does not log.
    """
    messages: list[dict[str, Json] | None] = []
    for entry in listed(branch(attributes, "llm.input_messages", _LEAVES)):
        message = as_dict(entry, "message")
        entries = map(as_dict, listed(message.get("tool_calls")))
        made = [call for item in entries if (call := as_dict(item.get("tool_call")))]
        messages.append({**message, "tool_calls": list(made)} if message else None)
    return messages


def _tools(
    row: dict[str, Json],
    metadata: dict[str, Json],
    attributes: dict[str, Json],
    request: Request,
    outcome: Outcome,
    notes: PartNotes,
    answer_notes: PartNotes,
) -> tuple[Json, ...] | None:
    """Returns the tool definitions, from the first field that has any."""
    logged = as_dict(decoded(attributes.get("model_request_parameters")))
    pydantic = [*as_list(logged.get("function_tools")), *as_list(logged.get("output_tools"))]
    numbered = sorted(
        (key for key in attributes if _TOOL.fullmatch(key)), key=lambda key: (len(key), key)
    )
    parameters = as_dict(decoded(first_of(row, "modelParameters", "model_parameters")))
    offer: Json
    for offer in (
        list(request.tools or ()),
        [*notes.tools, *answer_notes.tools],
        list(outcome.tools or ()),
        metadata.get("tools"),
        attributes.get("gen_ai.tool.definitions"),
        attributes.get("ai.prompt.tools"),
        pydantic,
        [attributes[key] for key in numbered],
        first_of(row, "toolDefinitions", "tool_definitions"),
    ):
        if tools := definitions(offer):
            return tuple(tools)
    none = request.tools if request.tools is not None else outcome.tools
    return tools_of(parameters) or none
