"""Reads single spans of the OpenAI Agents SDK: model calls, and runs of tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from builder.conversation import Json, Message, ToolCall, ToolResult
from builder.problem import Problem
from builder.readers.toolkit.chat_messages import text_or_data
from builder.readers.toolkit.json_text import json_in_text
from builder.readers.toolkit.narrow import as_dict, as_str, first_of, name_of
from builder.readers.toolkit.unknown_tools import says_unknown
from builder.readers.traces.any_vendor.answers import read_outcome
from builder.readers.traces.any_vendor.parts import PartNotes
from builder.readers.traces.any_vendor.requests import read_request
from builder.readers.traces.platforms.model_call import ModelCall

_CUT = "... [truncated]"
"""The end of a text that the SDK's exporter cut at 100,000 bytes."""
_MAX_DEPTH = 8


@dataclass(slots=True)
class ToolRun:
    """A run of a tool, as its function span logs it."""

    where: str
    trace: str
    call: ToolCall
    result: ToolResult
    known: bool = False

    def fits(self, call: ToolCall) -> bool:
        """Returns whether a call may be the one that was run."""
        same = json_in_text(self.call.arguments) == json_in_text(call.arguments)
        return self.call.name == call.name and same


def run_of(where: str, trace: str, data: dict[str, Json], error: dict[str, Json]) -> ToolRun:
    """Returns the run that a function span logs."""
    name = as_str(data.get("name"))
    content = text_or_data(data.get("output"))
    result = ToolResult(content, name=name, is_error=bool(error))
    return ToolRun(where, trace, ToolCall(name, data.get("input")), result)


def is_unknown_tool(message: str, name: str) -> bool:
    """Returns whether a span's error is that the agent has no such tool, which ends the run."""
    return message == "Tool not found" or says_unknown(message, name)


def with_errors(
    message: Message, made: dict[str | None, ToolCall], failed: Sequence[ToolRun]
) -> Message:
    """Returns the message, results that are those of failed runs marked as errors."""
    parts = tuple(
        replace(part, is_error=True)
        if isinstance(part, ToolResult)
        and any(
            run.result.content == part.content and run.fits(made[part.call_id])
            for run in failed
            if part.call_id in made
        )
        else part
        for part in message.parts
    )
    return replace(message, parts=parts)


def model_call(where: str, data: dict[str, Json], error: dict[str, Json]) -> ModelCall | None:
    """Returns the model call that a span logs; None if it has neither request nor answer."""
    response = as_dict(data.get("response"))
    sent, answered = data.get("input"), first_of(data, "output", "response")
    if sent is None and answered is None:
        return None
    notes, answer_notes = PartNotes(), PartNotes()
    body: dict[str, Json] = {key: response.get(key) for key in ("instructions", "tools")}
    body["input"] = sent
    request, outcome = read_request(body, notes), read_outcome(answered, answer_notes)
    problems: tuple[Problem, ...] = ()
    if _is_cut(sent) or _is_cut(answered):
        detail = "the exporter cut a text at its limit"
        problems = (Problem("partial_history", where, detail, records=0),)
    return ModelCall(
        messages=request.messages,
        outcome=outcome,
        notes=notes,
        answer_notes=answer_notes,
        tools=request.tools,
        model=name_of(data, "model") or name_of(response, "model"),
        failed=bool(error),
        error=as_str(error.get("message")),
        response=outcome.id or name_of(data, "response_id"),
        previous=outcome.previous,
        problems=problems,
    )


def _is_cut(value: Json, depth: int = 0) -> bool:
    """Returns whether the exporter cut a value or something in it."""
    if isinstance(value, str):
        return value.endswith(_CUT)
    if isinstance(value, dict) and value.get("truncated") is True and "preview" in value:
        return True
    inner = value if isinstance(value, list) else [*as_dict(value).values()]
    return depth < _MAX_DEPTH and any(_is_cut(one, depth + 1) for one in inner)
