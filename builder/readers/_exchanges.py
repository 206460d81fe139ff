"""Request and response as middleware logs them, whatever the envelope's keys are called.

References: http-captures.md ("pair lines", "OpenAI Batch files"), openai-chat.md ("Shapes in the
wild"). Headers, cookies and keys in envelopes are never looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from builder.conversation import Json
from builder.jsonio import JsonFault, loads
from builder.readers._narrow import as_dict, as_list, as_str

_REQUESTS = ("request", "req", "input", "body", "request_body")
_RESPONSES = ("response", "res", "output", "response_body")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request with its answer. `stream` is the text of a streamed answer."""

    where: str
    url: str = ""
    status: int | None = None
    request: dict[str, Json] | None = None
    response: dict[str, Json] | None = None
    stream: str | None = None

    @property
    def failed(self) -> bool:
        """Did the server refuse? An error may come with status 200."""
        error = self.response is not None and bool(self.response.get("error"))
        return error or (self.status is not None and self.status >= 400)

    @property
    def path(self) -> str:
        """The path of the URL, without the query."""
        try:
            return urlsplit(self.url).path
        except ValueError:
            return ""


def read_exchange(where: str, value: dict[str, Json]) -> Exchange:
    """The exchange that a logged object is: an envelope, a bare request or a bare response."""
    request = value if isinstance(value.get("messages"), list) else _body(value, _REQUESTS)
    response = _body(value, _RESPONSES)
    if request is value and response is None and "response_stream" not in value:
        return Exchange(where, request=value)
    if request is None and response is None and "response_stream" not in value:
        is_response = "choices" in value or "candidates" in value or "error" in value
        is_response = is_response or value.get("object") in ("response", "chat.completion")
        if is_response:
            return Exchange(where, response=value)
        return Exchange(where, request=value)
    inner = as_dict(value.get("request")) or as_dict(value.get("req"))
    answer = as_dict(value.get("response")) or as_dict(value.get("res"))
    status = _first(value.get("status"), value.get("status_code"), answer.get("status_code"))
    status = _first(status, answer.get("status"))
    stream = _first(value.get("response_stream"), value.get("stream"))
    if response is None and isinstance(answer.get("body"), str):
        stream = _first(stream, answer.get("body"))
    for key in _RESPONSES:
        if response is None and isinstance(value.get(key), str):
            stream = _first(stream, value.get(key))
    return Exchange(
        where,
        as_str(value.get("url")) or as_str(inner.get("url")) or as_str(value.get("path")),
        status if isinstance(status, int) else None,
        request,
        response,
        stream if isinstance(stream, str) else None,
    )


def _first(*values: Json) -> Json:
    return next((value for value in values if value is not None), None)


def _body(value: dict[str, Json], keys: tuple[str, ...]) -> dict[str, Json] | None:
    """The JSON body under one of the keys, opened where it stands in a `body` of its own."""
    for key in keys:
        body = _decoded(value.get(key))
        if body is None:
            continue
        inner = _decoded(body.get("body"))
        if inner is not None:
            return inner
        if "headers" in body and "body" in body:
            return None  # an envelope whose body is no JSON object
        return body
    return None


def _decoded(value: Json) -> dict[str, Json] | None:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = loads(value)
        except JsonFault:
            return None
    return value if isinstance(value, dict) else None


def dialect(exchange: Exchange) -> str:
    """Which API an exchange is of: chat, responses, anthropic, gemini, bedrock, or "" (none)."""
    path = exchange.path
    for end, name in (
        ("/chat/completions", "chat"),
        ("/messages", "anthropic"),
        ("/responses", "responses"),
        ("/converse", "bedrock"),
        ("/converse-stream", "bedrock"),
        ("/invoke", "bedrock"),
    ):
        if path.endswith(end):
            return name
    if "enerateContent" in path:
        return "gemini"
    request = exchange.request or {}
    if isinstance(request.get("messages"), list):
        return _messages_dialect(request, exchange.response)
    if "contents" in request:
        return "gemini"
    if "model" in request and isinstance(request.get("input"), str | list):
        return "responses"
    response = exchange.response or {}
    if _is_chat_response(response):
        return "chat"
    if response.get("type") == "message" and isinstance(response.get("content"), list):
        return "anthropic"
    return ""


def _is_chat_response(response: dict[str, Json]) -> bool:
    choices = [as_dict(choice) for choice in as_list(response.get("choices"))]
    known = response.get("object") in ("chat.completion", "chat.completion.chunk")
    return known or any({"message", "delta"} & set(choice) for choice in choices)


def _messages_dialect(request: dict[str, Json], response: dict[str, Json] | None) -> str:
    """chat, anthropic or bedrock, of a body with `messages`."""
    if {"inferenceConfig", "toolConfig", "additionalModelRequestFields"} & set(request):
        return "bedrock"
    if "anthropic_version" in request or isinstance(request.get("system"), str | list):
        return "anthropic"
    if response is not None and response.get("type") == "message" and "choices" not in response:
        return "anthropic"
    for tool in as_list(request.get("tools")):
        if "input_schema" in as_dict(tool):
            return "anthropic"
    for message in as_list(request.get("messages")):
        for block in as_list(as_dict(message).get("content")):
            item = as_dict(block)
            if item.get("type") in ("tool_use", "tool_result"):
                return "anthropic"
            if item and "type" not in item:
                return "bedrock"
    return "chat"


def events(stream: str) -> Iterator[dict[str, Json]]:
    """The JSON objects of a stream: lines `data: {…}`, or one object a line."""
    for line in stream.splitlines():
        text = line.removeprefix("data:").strip()
        if text.startswith("{"):
            try:
                value = loads(text)
            except JsonFault:
                continue  # a piece that is cut: the stream then lacks its end
            if isinstance(value, dict):
                yield value
