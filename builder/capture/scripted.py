"""Answers requests of four APIs with a fixed text, in place of a provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from aiohttp import web

from builder.capture.job import body_of
from builder.jsonio import JsonFault, dumps, loads
from builder.readers.api.dialects import OPENAI_CHAT, dialect
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str
from builder.text import map_strings

TEXT = "This is a fixed answer of `builder capture --definitions`."
_MAX_DEPTH = 20
"""The deepest object of an answer in JSON."""
_MAX_ITEMS = 100
"""The most items and characters that a schema gets, whatever it demands."""

MODEL = "builder-definitions"
"""The model that answers name, so that nobody takes a session with them for a real one."""

Body = dict[str, Any]
_Take = Callable[[str, Body, Mapping[str, str]], object]
"""Takes the API, the body and the headers of a request."""


def handler(take: _Take) -> Callable[[web.BaseRequest], Any]:
    """Returns a handler for `builder.capture.job.serve`; `take` is called with each request."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        path = request.raw_path.partition("?")[0]
        if "Upgrade" in request.headers:
            return web.Response(status=426)  # agents then use HTTP
        if request.method != "POST":
            return web.json_response(_models() if "models" in path else {})
        try:
            body = as_dict(loads(await body_of(request)))
        except JsonFault:
            body = {}
        if path.endswith(("/count_tokens", ":countTokens")):
            return web.json_response({"input_tokens": 1, "totalTokens": 1})
        name = dialect(body, path)
        inner = as_dict(body.get("request")) if "contents" not in body else {}
        if name not in _answers():
            return web.json_response({})
        take(name, inner or body, dict(request.headers))
        text = _text_for(inner or body)
        answer = map_strings(_answers()[name], lambda one: text if one == "$text" else one)
        whole, events = as_dict(answer)["whole"], as_dicts(answer, "events")
        if inner:  # Code Assist puts Gemini's bodies into its own
            whole, events = {"response": whole}, [{"response": one} for one in events]
        if body.get("stream") is True or "streamGenerateContent" in path:
            return web.Response(text=_stream(name, events), content_type="text/event-stream")
        return web.json_response(whole)

    return handle


def _text_for(body: Body) -> str:
    """Returns the fixed text, or the smallest value of the JSON Schema that a request demands."""
    config = as_dict(body.get("generationConfig"))
    wanted = (
        as_dict(body, "response_format", "json_schema").get("schema")
        or as_dict(body, "text", "format").get("schema")
        or as_dict(body, "output_config", "format").get("schema")
        or config.get("responseJsonSchema")
        or config.get("responseSchema")
    )
    return dumps(_smallest(as_dict(wanted), 0)) if wanted else TEXT


def _smallest(schema: Body, depth: int) -> Any:
    """Returns a small value that a schema permits."""
    for name in ("anyOf", "oneOf"):
        if (parts := as_list(schema.get(name))) and depth < _MAX_DEPTH:
            return _smallest(as_dict(parts[0]), depth + 1)
    choices = as_list(schema.get("enum"))
    if choices or "const" in schema:
        return choices[0] if choices else schema["const"]
    kind = schema.get("type")
    kind = as_str(kind[0] if isinstance(kind, list) and kind else kind).lower()
    if kind == "object" and depth < _MAX_DEPTH:
        properties = as_dict(schema.get("properties"))
        names = as_list(schema.get("required")) or list(properties)
        return {
            name: _smallest(as_dict(properties.get(name)), depth + 1) for name in map(as_str, names)
        }
    if kind == "array" and depth < _MAX_DEPTH:
        return [_smallest(as_dict(schema.get("items")), depth + 1)] * _count(schema.get("minItems"))
    if kind in ("integer", "number"):
        return _number(schema)
    text = "x" * _count(schema.get("minLength"))
    return {"array": [], "object": {}, "boolean": False}.get(kind, text)


def _count(value: object) -> int:
    known = isinstance(value, int | str) and str(value).isdecimal()
    return min(int(str(value)), _MAX_ITEMS) if known else 0


def _number(schema: Body) -> float:
    """Returns 1, or the bound of a schema that is nearest to it.

    Agents demand scores from 1 on without writing the bound into the schema.
    """
    least, most = schema.get("minimum"), schema.get("maximum")
    number = max(1, least) if isinstance(least, int | float) else 1
    return min(number, most) if isinstance(most, int | float) else number


def _stream(name: str, events: list[Body]) -> str:
    kinds = [as_str(event.get("type")) for event in events]
    lines = [
        f"event: {kind}\n" * bool(kind) + f"data: {dumps(event)}\n\n"
        for kind, event in zip(kinds, events, strict=True)
    ]
    return "".join(lines) + ("data: [DONE]\n\n" if name == OPENAI_CHAT else "")


@cache
def _answers() -> Body:
    """Returns the answer of each API, whole and as a stream, with `$text` in place of its text."""
    return as_dict(loads((files(__package__) / "answers.json").read_bytes()))


def _models() -> Body:
    one = {"id": MODEL, "object": "model", "created": 0, "owned_by": "builder"}
    return {"object": "list", "data": [one], "models": [], "has_more": False}
