"""Defines the common form of a span: a model request, an agent run or a tool run.

Each instrumentation's attribute names are handled in its own module, which returns this form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from builder.conversation import Json, Message, Reasoning, Text, ToolCall, ToolResult
from builder.problem import Problem
from builder.readers.api.capture.api import ApiAnswer, History
from builder.readers.toolkit.chat_messages import (
    compact_result,
    unreadable_messages,
    with_compact_results,
)
from builder.readers.toolkit.marks import is_removed
from builder.readers.toolkit.narrow import as_dict
from builder.readers.traces.any_vendor.answers import fault_of
from builder.readers.traces.otel.genai_parts import read_message
from builder.readers.traces.otel.spans import Span


@dataclass(frozen=True, slots=True)
class SpanReading:
    """The content of one span, or of the events of one request.

    kind     model: a request and its answer; agent: a run that repeats its requests;
             tool: a run of a tool; other: none of these
    history  None: the content was not captured
    call     the call that a tool span executed, if captured; `result` likewise
    tools    definitions that an agent's span lists
    whole    an agent's span contains all turns of its run, not only the first and the last
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
    own: int | None = None
    session: str = ""
    code: str = "other_span"

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
    unreadable  descriptions of what was logged in place of messages
    """

    sent: list[Message]
    outputs: list[Json]
    choices: bool = False
    cut: tuple[str, ...] = ()
    answers: tuple[ApiAnswer, ...] = ()
    silent: bool = False
    tools: tuple[Json, ...] | None = None
    unreadable: tuple[str, ...] = ()


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
    outputs = [(item, read_message(_as_answer(item))) for item in logged.outputs]
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
        sent,
        answers,
        span,
        tools=tools,
        model=model,
        unreadable=logged.unreadable,
        cut="input" in logged.cut,
    )
    if logged.silent:
        problem = Problem("no_content", span.where, "only the roles were captured", records=0)
        history = replace(history, problems=(*history.problems, problem))
    return history, tuple(answers)


def history_of(
    sent: Sequence[Message],
    answers: Sequence[ApiAnswer],
    span: Span,
    *,
    tools: tuple[Json, ...] | None,
    model: str | None,
    unreadable: Sequence[str] = (),
    cut: bool = False,
) -> History:
    """Returns a request with these messages, and with the problems of the request and its answers.

    `cut`: the sent messages are truncated.
    """
    problems = [*_problems(sent, answers, span), *unreadable_messages(unreadable, span.where)]
    if cut:
        detail = "the messages that were sent are truncated"
        problems.append(Problem("truncated", span.where, detail, records=0))
    return History(tuple(sent), tools, model, tuple(problems))


def _as_answer(item: Json) -> Json:
    return item if as_dict(item).get("role") else {**as_dict(item), "role": "assistant"}


def _at(reasons: Sequence[Json], number: int) -> Json:
    return reasons[number] if number < len(reasons) else None


def _answer(
    messages: Sequence[Message], reason: Json, span: Span, model: str | None
) -> list[ApiAnswer]:
    """Returns the messages of one answer merged into one; [] if they have no parts."""
    parts = tuple(part for message in messages for part in message.parts)
    if not parts:
        return []
    fault = fault_of(reason) or ("truncated" if span.failed and not reason else None)
    return [ApiAnswer(Message("assistant", parts), fault=fault, model=model)]


def _problems(sent: Sequence[Message], answers: Sequence[ApiAnswer], span: Span) -> list[Problem]:
    problems = []
    if span.dropped:
        detail = f"{span.dropped} attributes were dropped by a limit"
        problems.append(Problem("truncated", span.where, detail, records=0))
    texts = [
        part.text
        for message in (*sent, *(answer.message for answer in answers))
        for part in message.parts
        if isinstance(part, Text | Reasoning)
    ]
    if any(map(is_removed, texts)):
        problems.append(Problem("redacted", span.where, "texts were hidden by the log", records=0))
    return problems
