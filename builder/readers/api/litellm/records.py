"""Extracts requests and responses from LiteLLM's records (docs/formats/litellm.md).

Source: litellm 1.109.1, `litellm_core_utils/litellm_logging.py` (the callbacks' payload),
`proxy/schema.prisma` and `proxy/spend_tracking/spend_tracking_utils.py` (rows of SpendLogs, and how
they are truncated), `litellm_core_utils/redact_messages.py`, `proxy/pass_through_endpoints/`.
"""

from __future__ import annotations

from builder.conversation import Json
from builder.readers.api.capture.dialect import (
    ANTHROPIC,
    GEMINI,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    request_dialect,
)
from builder.readers.toolkit.json_text import json_in_text
from builder.readers.toolkit.narrow import as_dict, as_str

LITELLM = "litellm"

_CALL_TYPES = {
    "completion": OPENAI_CHAT,
    "acompletion": OPENAI_CHAT,
    "anthropic_messages": ANTHROPIC,
    "aanthropic_messages": ANTHROPIC,
    "responses": OPENAI_RESPONSES,
    "aresponses": OPENAI_RESPONSES,
    "generate_content": GEMINI,
    "agenerate_content": GEMINI,
    "generate_content_stream": GEMINI,
    "agenerate_content_stream": GEMINI,
}
_PASSED = frozenset({"pass_through_endpoint", "allm_passthrough_route", "llm_passthrough_route"})
"""Call types whose bodies have the form of the provider's own API."""
_SIGNS = frozenset({
    "litellm_call_id", "custom_llm_provider", "model_group", "hidden_params", "litellm_params",
    "request_tags", "spend", "response_cost", "standard_logging_object",
})  # fmt: skip
_MESSAGE_KEYS = {OPENAI_RESPONSES: "input", GEMINI: "contents"}
"""The key of the messages in requests of APIs that do not call it `messages`."""
_PARAMETERS = ("tools", "functions", "instructions", "systemInstruction", "config")
"""Settings that are part of the model's context."""
_SEEN = frozenset(
    {*_PARAMETERS, "messages", "input", "contents", "system", "system_instruction", "toolConfig"}
)
"""Keys of a request whose texts the model saw. Elsewhere LiteLLM also redacts API keys."""
_STREAMED = ("complete_streaming_response", "async_complete_streaming_response")
"""Arguments of a callback that contain the complete answer of a stream."""


def fields(value: dict[str, Json]) -> dict[str, Json] | None:
    """Returns the fields of a payload, a callback's arguments or a row; None for other objects."""
    if isinstance(value.get("kwargs"), dict):
        value = {**as_dict(value["kwargs"]), "response": value.get("response_obj")}
    inner = value.get("standard_logging_object")
    payload = inner if isinstance(inner, dict) and inner else value
    if not isinstance(payload.get("call_type"), str) or _SIGNS.isdisjoint(payload):
        return None
    return payload


def is_chat(kind: str) -> bool:
    """Returns whether calls of this type are requests to a model with messages."""
    return kind in _CALL_TYPES or kind in _PASSED


def api(payload: dict[str, Json], request: dict[str, Json]) -> str | None:
    """Returns the API of a record's request; None if only its body shows it.

    A row of a chat completion contains the body as the client sent it, perhaps in Anthropic's form.
    The model's name is ignored, since it may be of any provider.
    """
    named = _CALL_TYPES.get(as_str(payload.get("call_type")))
    if named == OPENAI_CHAT and not json_in_text(payload.get("messages")):
        body = {key: value for key, value in request.items() if key != "model"}
        return ANTHROPIC if request_dialect(body) == ANTHROPIC else named
    return named


def request(payload: dict[str, Json]) -> dict[str, Json]:
    """Returns the request that the proxy received, with the record's own messages and settings.

    Returns {} without messages. In a row `messages` is {} if only the proxy's request has them.
    """
    kind = as_str(payload.get("call_type"))
    sent = as_dict(json_in_text(payload.get("proxy_server_request")))
    if not sent:  # older rows keep it as text in their metadata
        metadata = as_dict(json_in_text(payload.get("metadata")))
        sent = as_dict(json_in_text(metadata.get("proxy_server_request")))
    body = dict(as_dict(json_in_text(sent.get("body"))) or sent)
    messages = json_in_text(payload.get("messages"))
    if kind in _PASSED and (passed := _passed_body(messages)):
        return passed
    key = _MESSAGE_KEYS.get(_CALL_TYPES.get(kind, ""), "messages")
    if isinstance(messages, dict):
        body |= messages
    elif messages and isinstance(messages, list):
        body[key] = messages
        if as_dict(messages[0]).get("role") == "system":  # a copy of `system`
            body.pop("system", None)
    elif messages and isinstance(messages, str) and key != "messages":
        body[key] = messages
    for settings in ("optional_params", "model_parameters"):
        given = as_dict(json_in_text(payload.get(settings)))
        for name in _PARAMETERS:  # in the form of the chosen provider
            if body.get(name) is None and given.get(name) is not None:
                body[name] = given[name]
    return body if key in body or "messages" in body else {}


def _passed_body(messages: Json) -> dict[str, Json]:
    """Returns a body that was passed through, logged as the text of a single user message."""
    only = as_dict(messages[0]) if isinstance(messages, list) and len(messages) == 1 else {}
    return as_dict(json_in_text(only.get("content")))


def response(payload: dict[str, Json]) -> Json:
    """Returns the answer in OpenAI's form, or in the provider's own form or as text."""
    value = json_in_text(payload.get("response"))
    if isinstance(value, dict) and set(value) == {"response"}:  # passed through
        value = json_in_text(value["response"])
    for name in _STREAMED:
        value = value or payload.get(name)
    return value or None


def seen(request: dict[str, Json]) -> list[Json]:
    """Returns the values of a request whose texts the model saw."""
    return [value for key, value in request.items() if key in _SEEN]
