"""Parses Gemini bodies (docs/formats/gemini-api.md).

Keys are in the API's camelCase or the Python SDK's snake_case. Dumps of the SDK have everything but
`model` and `contents` in `config`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from builder.conversation import (
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.problem import Problem
from builder.readers.api.capture.api import Api, ApiAnswer, History
from builder.readers.api.capture.dialect import GEMINI, is_interaction, path_of, request_dialect
from builder.readers.api.capture.envelope import Exchange
from builder.readers.api.gemini import interactions
from builder.readers.api.gemini.contents import content_messages, part_list
from builder.readers.api.gemini.links import complete
from builder.readers.api.gemini.stream import whole_response
from builder.readers.toolkit.call_keys import CallKeys
from builder.readers.toolkit.marks import finish_fault
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, name_or_none, tuple_or_none

_NUMBERS: dict[Json, str] = {1: "STOP", 3: "SAFETY", 4: "RECITATION"}
"""Finish reasons that older SDKs write as numbers."""
_MODEL = re.compile(r"/models/([^/:]+):[A-Za-z]+$")


def is_generate_row(value: Json) -> bool:
    """Returns whether a record is a generateContent body that ends with content of the model.

    Rows of tuning files have this form: docs/formats/gemini-api.md "Tuning files".
    """
    if not isinstance(value, dict) or request_dialect(value) != GEMINI:
        return False
    contents = as_list(value.get("contents"))
    return bool(contents) and as_dict(contents[-1]).get("role") == "model"


def history(body: dict[str, Json]) -> History:
    """Returns the history of a request."""
    if "contents" not in body and "input" in body:
        kept = interactions.history(body)
        return replace(kept, messages=tuple(map(_joined, kept.messages)))
    keys = CallKeys("")
    messages: list[Message] = []
    system = _field(body, "systemInstruction", "system_instruction")
    if system is not None:
        system_messages = content_messages(_content(system), keys)
        # Its role, if it has one, has no meaning (docs/formats/gemini-api.md "Request").
        messages += [replace(message, role="system") for message in system_messages]
    for item in contents(body):
        messages += map(_joined, content_messages(item, keys))
    problems: tuple[Problem, ...] = ()
    if _field(body, "cachedContent", "cached_content"):
        detail = "part of what the model saw is in the service's cache"
        problems = (Problem("cached_content", "request", detail, records=0),)
    return History(tuple(messages), _tools(body), _model(body), problems)


def contents(body: dict[str, Json]) -> list[Json]:
    """Returns the contents of a request: a list, a single content, or text or parts of one."""
    value = body.get("contents")
    if isinstance(value, list) and any("parts" in as_dict(item) for item in value):
        return [_content(item) for item in value]
    return [_content(value)] if value else []


def _content(value: Json) -> Json:
    """Returns a content in its full form; SDKs accept text, a part or a list of either."""
    if isinstance(value, dict) and "parts" in value:
        return {**value, "parts": part_list(value["parts"])}
    return {"parts": part_list(value)}


def _field(body: dict[str, Json], *names: str) -> Json:
    """Returns the first of the fields that is set, in the body or its `config`."""
    places = (body, as_dict(body.get("config")))
    values = (place[name] for place in places for name in names if place.get(name) is not None)
    return next(values, None)


def _tools(body: dict[str, Json]) -> tuple[Json, ...] | None:
    tools = _field(body, "tools")
    # SDKs accept a single group instead of a list.
    return (tools,) if isinstance(tools, dict) else tuple_or_none(tools)


def _model(body: dict[str, Json]) -> str | None:
    model = name_or_none(body.get("model"))
    return model.rpartition("/")[2] if model else None


def _joined(message: Message) -> Message:
    """Joins adjacent texts and adjacent thoughts of a model's message, which a stream splits."""
    if message.role != "assistant" or len(message.parts) < 2:
        return message
    parts: list[Part] = []
    for kind, run in groupby(message.parts, key=_kind):
        if kind in ("text", "harness", "thought"):
            text = "".join(part.text for part in run if isinstance(part, Text | Reasoning))
            whole = Text(text, harness=kind == "harness")
            parts.append(Reasoning(text) if kind == "thought" else whole)
        else:
            parts += run
    return replace(message, parts=tuple(parts))


def _kind(part: Part) -> str:
    if isinstance(part, Text):
        return "harness" if part.harness else "text"
    return "thought" if isinstance(part, Reasoning) else "other"


# -- answers -------------------------------------------------------------------------------------


def answers(exchange: Exchange) -> Sequence[ApiAnswer]:
    """Returns the candidates of a response by index; () if it is an error or blocked."""
    if (exchange.status or 0) >= 400:
        return ()
    first = as_dict((exchange.events or (exchange.response,))[0])
    if is_interaction(first):
        answered = interactions.answers(exchange)
        return [replace(answer, message=_joined(answer.message)) for answer in answered]
    chunks = exchange.events if exchange.events is not None else (exchange.response or {},)
    body = whole_response(chunks)
    named = _MODEL.search(path_of(exchange.url))
    model = name_or_none(body.get("modelVersion")) or (named[1] if named else None)
    return [_answer(candidate, model) for candidate in as_dicts(body.get("candidates"))]


def _answer(candidate: dict[str, Json], model: str | None) -> ApiAnswer:
    messages = content_messages({"role": "model", "parts": candidate.get("parts")}, CallKeys(""))
    kept = tuple(
        unknown_part("functionResponse") if isinstance(part, ToolResult) else part
        for message in messages
        for part in message.parts
    )
    if candidate.get("grounded"):
        kept = (*kept, Unparsed("grounding", "server_tool"))
    return ApiAnswer(
        _joined(Message("assistant", kept)),
        fault=finish_fault(_reason(candidate), unknown="truncated"),
        model=model,
    )


def _reason(candidate: dict[str, Json]) -> Json:
    value = candidate.get("finishReason")
    return _NUMBERS.get(value) if isinstance(value, int) else value


def continues(before: Json, after: Json) -> bool:
    """Returns whether a chunk belongs to the same response as the previous one, by their ids.

    Without ids (older servers) a response continues until its finishReason.
    """
    if is_interaction(as_dict(before)) or is_interaction(as_dict(after)):
        return interactions.continues(before, after)
    one, other = (
        as_dict(body).get("responseId") or as_dict(body).get("response_id")
        for body in (before, after)
    )
    if one or other:
        return one == other
    candidates = as_dicts(before, "candidates")
    return not any(c.get("finishReason") or c.get("finish_reason") for c in candidates)


GENERATE = Api(GEMINI, history, answers, continues, complete)
