"""Opens the envelopes in which recorders store HTTP exchanges (docs/formats/http-captures.md).

Headers are not read, since they contain keys and cookies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from builder.conversation import Ignored, Json
from builder.jsonio import JsonFault
from builder.problem import Problem
from builder.readers.api.bodies import Body, content_encoding, read_body, stream_events
from builder.readers.api.dialects import (
    ANTHROPIC,
    BEDROCK,
    GEMINI,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    dialect,
    is_event,
    is_plain,
    request_dialect,
    response_dialect,
)
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    first_of,
    json_in_text,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.rows import not_object
from builder.sources.source import Record

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


def _litellm_fields(value: dict[str, Json]) -> dict[str, Json] | None:
    """Returns the fields of a payload, a callback's arguments or a row; None for other objects."""
    if isinstance(value.get("kwargs"), dict):
        value = {**as_dict(value["kwargs"]), "response": value.get("response_obj")}
    inner = value.get("standard_logging_object")
    payload = inner if isinstance(inner, dict) and inner else value
    if not isinstance(payload.get("call_type"), str) or _SIGNS.isdisjoint(payload):
        return None
    return payload


def _litellm_api(payload: dict[str, Json], request: dict[str, Json]) -> str | None:
    """Returns the API of a record's request; None if only its body shows it.

    A row of a chat completion contains the body as the client sent it, perhaps in Anthropic's form.
    The model's name is ignored, since it may be of any provider.
    """
    named = _CALL_TYPES.get(as_str(payload.get("call_type")))
    if named == OPENAI_CHAT and not json_in_text(payload.get("messages")):
        body = {key: value for key, value in request.items() if key != "model"}
        return ANTHROPIC if request_dialect(body) == ANTHROPIC else named
    return named


def _litellm_request(payload: dict[str, Json]) -> dict[str, Json]:
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
    only = messages[0] if isinstance(messages, list) and len(messages) == 1 else None
    if kind in _PASSED and (passed := as_dict(json_in_text(as_dict(only).get("content")))):
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


def _litellm_response(payload: dict[str, Json]) -> Json:
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


_OPERATIONS = {
    "Converse": "converse",
    "ConverseStream": "converse-stream",
    "InvokeModel": "invoke",
    "InvokeModelWithResponseStream": "invoke-with-response-stream",
}
_WATCHED = ("message", "@message")
"""Fields with a record as text in CloudWatch: of an event, and of a row of query results."""


def gateway_records(document: dict[str, Json]) -> list[Json] | None:
    """Returns the records in a document of CloudWatch or LiteLLM's proxy, or None.

    CloudWatch: the output of get-log-events, a delivery to a subscription, or the rows of a query.
    LiteLLM: a page of rows.
    """
    rows: list[Json] = [
        {as_str(cell.get("field")): cell.get("value") for cell in as_dicts(row)}
        for row in as_list(document.get("results"))
    ]
    for records in (document.get("events"), document.get("logEvents"), rows, document.get("data")):
        first = as_dicts(as_list(records)[:5])
        if any(_text_of(item) or _litellm_fields(item) for item in first):
            return as_list(records)
    return None


def _text_of(value: dict[str, Json]) -> str:
    for key in _WATCHED:
        text = as_str(value.get(key)).strip()
        if text.startswith("{") and ("ModelInvocationLog" in text or '"call_type"' in text):
            return text
    return ""


def _unwrapped(value: dict[str, Json]) -> dict[str, Json]:
    for key in _WATCHED:  # the saved results of a query contain objects
        inner = value.get(key)
        if isinstance(inner, dict) and ("schemaType" in inner or "call_type" in inner):
            return inner
    inner = json_in_text(_text_of(value))
    return inner if isinstance(inner, dict) else value


def is_litellm(value: Json) -> bool:
    """Returns whether a value is a record of LiteLLM."""
    return isinstance(value, dict) and _litellm_fields(_unwrapped(value)) is not None


def _invocation(where: str, value: dict[str, Json]) -> Exchange | None:
    sent, got = as_dict(value.get("input")), as_dict(value.get("output"))
    if value.get("schemaType") != "ModelInvocationLog" and "inputBodyJson" not in sent:
        return None
    operation = as_str(value.get("operation"))
    model = as_str(value.get("modelId"))
    return Exchange(
        where,
        f"/model/{model or '-'}/{_OPERATIONS.get(operation, operation)}",
        400 if value.get("errorCode") else None,
        _request_of(sent.get("inputBodyJson"), model),
        *_answer(got.get("outputBodyJson")),
        log=BEDROCK,
        elsewhere=next((key for key in (*sent, *got) if key.endswith("BodyS3Path")), ""),
    )


def _request_of(body: Json, model: Json) -> dict[str, Json] | None:
    """Returns the body of a request, with the model that the record names; None without one."""
    value = as_dict(read_body(body).value)
    named: dict[str, Json] = {"model": model} if name_or_none(model) else {}
    return {**value, **named} if value else None


def _litellm(where: str, value: dict[str, Json]) -> Exchange | None:
    fields = _litellm_fields(value)
    if fields is None:
        return None
    kind = as_str(fields.get("call_type"))
    # Other calls (embeddings, images) have a path and no bodies.
    known = kind in _CALL_TYPES or kind in _PASSED
    request = _litellm_request(fields) if known else {}
    response = _litellm_response(fields) if known else None
    is_empty = bool(request) and not response and "response" in fields
    return Exchange(
        where,
        "" if known else f"/{kind}",
        500 if fields.get("status") == "failure" else None,
        _request_of(request, fields.get("model")),
        *(_Answer(is_empty=True) if is_empty else _answer(response)),
        log=LITELLM,
        api=_litellm_api(fields, request),
    )


_REQUEST = "responses_create_params"
_SUMMARISED = ("gpt-", "o1", "o3", "o4", "codex", "computer-use")
"""Beginnings of the names of models whose thoughts only the provider has."""


def with_thoughts(row: dict[str, Json]) -> dict[str, Json]:
    """Returns a row whose thoughts are in clear text; other values unchanged."""
    if _REQUEST not in row:
        return row
    request, response = as_dict(row.get(_REQUEST)), as_dict(row.get("response"))
    model = as_str(response.get("model")) or as_str(request.get("model"))
    if model.rpartition("/")[2].startswith(_SUMMARISED):
        return row
    changed = dict(row)
    if isinstance(request.get("input"), list):
        changed[_REQUEST] = {**request, "input": [*map(_item, as_list(request["input"]))]}
    if isinstance(response.get("output"), list):
        changed["response"] = {**response, "output": [*map(_item, as_list(response["output"]))]}
    return changed


def _item(value: Json) -> Json:
    item = as_dict(value)
    if item.get("type") != "reasoning" or item.get("content") or item.get("encrypted_content"):
        return value
    texts: list[Json] = [
        {"type": "reasoning_text", "text": as_dict(part).get("text")}
        for part in as_list(item.get("summary"))
    ]
    return {**item, "summary": [], "content": texts}


_REQUEST_KEYS = (
    "request", "req", "request_body", "requestBody", "full_request", "modelInput",
    "responses_create_params", "input",
)  # fmt: skip
_RESPONSE_KEYS = (
    "response", "res", "response_body", "responseBody", "full_response", "modelOutput", "output",
)  # fmt: skip
_STREAM_KEYS = ("response_stream", "response_chunks", "chunks", "stream")
_BODY_KEYS = (
    "parsed_body", "body", "body_raw", "postData", "content", "json", "inputBodyJson",
    "outputBodyJson", "jsonBody", "base64Body", "bodyAsBase64",
    "text",
)  # fmt: skip
_BASE64_KEYS = frozenset({"base64Body", "bodyAsBase64"})
"""Keys of WireMock."""
_URL_KEYS = ("url", "uri", "urlPath", "path", "endpoint")
_STATUS_KEYS = ("status", "status_code", "statusCode", "code")
_ENVELOPES = frozenset(
    {*_REQUEST_KEYS, *_RESPONSE_KEYS, *_STREAM_KEYS, *_URL_KEYS, "body", "custom_id"}
)
"""Keys of which every envelope has at least one."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One HTTP exchange, or the recorded part of one.

    where     the place of its record
    url       as recorded, perhaps only the path, or ""
    status    of the response as recorded, or None
    request   the request's body, or None if not recorded
    response  the response's body if it is one JSON object, else None
    events    the JSON values of a streamed answer in order; None if it was not streamed
    text      any other response (an error page, a binary stream in hex), or why it cannot be
              decompressed
    is_empty  whether a response without any body was recorded
    ids       of a record with only a request or only a response: what joins it to the other half
    log       the reader of the gateway log that contains the record, or None
    api       the API of the bodies, if the record names it or it is already known
    sent      if a server or SDK ran functions itself: the request without the turns that the
              response contains before its last answer; `request` includes them
    outcome   as logged next to the exchange
    elsewhere  the key that names another file with a body of the exchange, or ""
    """

    where: str
    url: str = ""
    status: int | None = None
    request: dict[str, Json] | None = None
    response: dict[str, Json] | None = None
    events: tuple[Json, ...] | None = None
    text: str = ""
    is_empty: bool = False
    ids: tuple[str, ...] = ()
    log: str | None = None
    api: str | None = None
    sent: dict[str, Json] | None = None
    outcome: Mapping[str, Json] | None = None
    elsewhere: str = ""

    def answer_body(self, whole: Callable[[tuple[Json, ...]], dict[str, Json]]) -> dict[str, Json]:
        """Returns the response's body, {} for an error; `whole` joins the events of a stream."""
        if (self.status or 0) >= 400:
            return {}
        return self.response or {} if self.events is None else whole(self.events)

    @property
    def dialect(self) -> str | None:
        """Returns the API, or the reader of the gateway's log; None if unknown."""
        return self.log or self.api or self.body_dialect

    @property
    def body_dialect(self) -> str | None:
        """Returns the API that the path and the bodies show, or None."""
        bodies = (self.request, self.response, *(self.events or ())[:3], None)
        name = next((name for body in bodies if (name := dialect(body, self.url))), None)
        if name == OPENAI_CHAT and not self.url and is_plain(self.request):
            # Messages of text alone belong to several APIs: the response decides.
            answers = (as_dict(body) for body in bodies[1:])
            return next((found for body in answers if (found := response_dialect(body))), name)
        return name

    @property
    def response_id(self) -> str | None:
        """Returns the provider's id of the response, or None."""
        return response_id(self.events[0] if self.events else self.response)

    @property
    def failed(self) -> bool:
        """Returns whether the status or body of the response is an error."""
        bodies = (self.response, *(self.events or ()))
        return (self.status or 0) >= 400 or any(as_dict(body).get("error") for body in bodies)


def response_id(body: Json) -> str | None:
    """Returns the provider's id in a response, or in the first event of a streamed one."""
    value = as_dict(body)
    inner = as_dict(value.get("response")) or as_dict(value.get("message"))
    ids = (inner.get("id"), value.get("id"), value.get("responseId"), inner.get("responseId"))
    return next((name_or_none(one) for one in ids if as_str(one)), None)


def open_exchange(record: Record) -> Exchange | Problem | Ignored:
    """Returns a record as an exchange; Ignored if it is not one, a Problem if it cannot be read.

    A single event of a stream is an exchange with that event.
    """
    value = record.value
    if not isinstance(value, dict):
        return not_object(record, "a record that is ")
    logged = _unwrapped(value)
    try:
        opened = (
            _invocation(record.where, logged)
            or _litellm(record.where, logged)
            or _from_body(record.where, value)
            or _from_envelope(record.where, value)
        )
    except JsonFault as fault:
        return fault.at(record.where)
    if opened is None and value == {"type": "ping"}:  # keeps Anthropic's streams open
        return Ignored("stream_field")
    for items in map(as_dicts, value.values()) if opened is None else ():
        if len(items) > 1 and all("role" in item or "from" in item for item in items):
            return Problem("unknown_shape", record.where, "a conversation in another form")
    return opened or Ignored(unknown_code(value.get("type", "record")))


def _from_body(where: str, value: dict[str, Json]) -> Exchange | None:
    if _has_both(value):
        return Exchange(where, request=value, response=value)
    if response_dialect(value) is not None:
        return Exchange(where, "", None, None, *_of_body(Body(value=value)))
    name = request_dialect(value)
    if name is None or "response" in value:  # together with its answer: another format's record
        return None
    if name in (OPENAI_CHAT, ANTHROPIC) and not isinstance(value.get("model"), str):
        return None
    return Exchange(where, request=value)


def _has_both(value: dict[str, Json]) -> bool:
    """Returns whether an object is a Responses request with its response: `input` and `output`.

    Servers list stored responses in this form, and programs log their requests in it.
    """
    output = value.get("output")
    if not isinstance(value.get("input"), str | list) or not isinstance(output, list):
        return False
    if response_dialect(value) == OPENAI_RESPONSES:
        return True
    if "type" in value or not output:
        return False
    typed = all(isinstance(as_dict(item).get("type"), str) for item in output)
    return typed and request_dialect(value) == OPENAI_RESPONSES


def _from_envelope(where: str, value: dict[str, Json]) -> Exchange | None:
    """Returns the exchange in an envelope, or None. Raises JsonFault for an undecodable body."""
    if _ENVELOPES.isdisjoint(value):
        return None
    value = with_thoughts(_batch_line(value))
    request = first_of(value, *_REQUEST_KEYS)
    response = first_of(value, *_RESPONSE_KEYS)
    if request is None and request_dialect(as_dict(value.get("inputs"))) and is_answer(response):
        request = value["inputs"]  # a call that Weave traced
    stream = first_of(value, *_STREAM_KEYS)
    url = as_str(first_of(value, *_URL_KEYS))
    flat = read_body(value["body"]) if request is None and "body" in value else Body()
    if isinstance(flat.value, dict):  # Batch input, nock, `body` with `response`
        named = (as_str(value.get(key)).lower() for key in ("type", "event", "kind", "direction"))
        is_response = response_dialect(flat.value) is not None or any(
            name.endswith(("response", "error")) for name in named
        )
        if response is None and is_response:
            response = flat.value
        else:
            request = flat.value
    elif flat.events is not None:
        stream = value["body"]
    in_request = request_dialect(value) is not None and request in (None, value.get("input"))
    if in_request and is_answer(response):
        request = value  # the answer is a key of the request itself
    if not any((request, response, stream, url, value.get("custom_id"))):
        return None
    is_input = "input" in value and request is value["input"]
    if is_input and not _is_pair(request, response):
        return None
    sent, got = _side(request), _side(response)
    status = got.status if got.status is not None else _status(first_of(value, *_STATUS_KEYS))
    body = read_body(sent.body, sent.encoding).value
    if isinstance(stream, list) and not all(isinstance(item, str) for item in stream):
        answer = _of_body(Body(events=tuple(map(_event, stream))))
    else:
        logged = got.body if isinstance(stream, bool) else stream or got.body
        answer = _answer(logged, got.encoding or content_encoding(value.get("rawHeaders")))
    if not any(answer) and (error := first_of(value, "error", "exception")):
        answer = _Answer({"error": error if isinstance(error, dict) else {"message": error}})
    has_place = not value.keys().isdisjoint(_RESPONSE_KEYS) and _batch_key(value) is None
    if not any(answer) and body and has_place:  # the recorder wrote null there
        answer = _Answer(is_empty=True)
    return Exchange(
        where,
        sent.url or url,
        status,
        body if isinstance(body, dict) else None,
        *answer,
        ids=_ids(value, is_half=(body is None) is any(answer)),
    )


def is_answer(response: Json) -> bool:
    """Returns whether a value is the body of an API's response, or its text or stream."""
    if isinstance(response, str) and response.startswith(("data:", "event:")):
        return True
    return response_dialect(as_dict(json_in_text(response))) is not None


def _batch_line(value: dict[str, Json]) -> dict[str, Json]:
    """Returns a line of Anthropic's Batch files with OpenAI's keys; other values unchanged."""
    result = as_dict(value.get("result"))
    if "custom_id" not in value or not (result or isinstance(value.get("params"), dict)):
        return value
    answer = result.get("message") or result.get("error")
    return {"custom_id": value["custom_id"], "request": value.get("params"), "response": answer}


def _event(item: Json) -> Json:
    """Returns the event of a list's item, which may be a server-sent event: {event, data}."""
    data = as_dict(item).get("data")
    if isinstance(data, dict):
        return data
    values = stream_events(f"data: {data}\n\n") if isinstance(data, str) else ()
    return values[0] if values else item


def _batch_key(value: dict[str, Json]) -> str | None:
    """Returns the key that joins Batch lines: OpenAI's `custom_id`, or Gemini's `key`."""
    if "custom_id" in value:
        return name_or_none(value["custom_id"])
    halves = value.keys() & {"request", "response", "error"}
    return name_or_none(value.get("key")) if len(halves) == 1 else None


_OTHER_IDS = re.compile(
    "p|parent|parentspan|session|conversation|thread|chat|user|account|client|customer|org"
    "|organization|project|tenant|team|workspace|process|host|machine|device|agent|run|model"
    "|deployment|endpoint|entity|app|application|served.*"
)
"""Names before `id` of what is not one exchange."""


def _ids(value: dict[str, Json], *, is_half: bool) -> tuple[str, ...]:
    if (key := _batch_key(value)) is not None or not is_half:
        return () if key is None else (key,)
    found: list[str] = []
    for name, item in value.items():
        plain = re.sub(r"[^a-z]", "", name.lower())
        is_id = plain.endswith("id") and _OTHER_IDS.fullmatch(plain.removesuffix("id")) is None
        if is_id and isinstance(item, str | int) and not isinstance(item, bool) and item != "":
            found.append(str(item))
    return tuple(dict.fromkeys(found))


def _is_pair(request: Json, response: Json) -> bool:
    """Returns whether `input` and `output` are API bodies, not other values of a trace."""
    if not isinstance(request, dict) or request_dialect(request) is None:
        return "inputBodyJson" in as_dict(request)
    return response is None or response_dialect(as_dict(_side(response).body)) is not None


class _Answer(NamedTuple):
    """A response's body, as the fields of `Exchange`."""

    response: dict[str, Json] | None = None
    events: tuple[Json, ...] | None = None
    text: str = ""
    is_empty: bool = False


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of an exchange: its body, and fields of the HTTP message around it."""

    body: Json
    url: str = ""
    status: int | None = None
    encoding: str = ""  # in the header `content-encoding`


def _side(value: Json) -> _Side:
    if not isinstance(value, dict) or dialect(value, "") is not None:
        return _Side(value)
    url = as_str(first_of(value, *_URL_KEYS))
    value = _with_expected_body(value)
    key = next((key for key in _BODY_KEYS if value.get(key) is not None), None)
    if key is None and not url and "headers" not in value:
        return _Side(value)
    body = value[key] if key is not None else None
    if isinstance(body, str) and (key in _BASE64_KEYS or value.get("isBase64Encoded") is True):
        body = {"base64_string": body}
    encoding = content_encoding(first_of(value, "headers", "rawHeaders"))
    return _Side(body, url, _status(first_of(value, *_STATUS_KEYS)), encoding)


def _with_expected_body(value: dict[str, Json]) -> dict[str, Json]:
    """Returns the request of a WireMock stub with the recorded body that it is compared with."""
    patterns = as_list(value.get("bodyPatterns"))
    if len(patterns) != 1:
        return value
    body = first_of(as_dict(patterns[0]), "equalToJson", "equalTo", "binaryEqualTo")
    return {**value, "body": body}


def _status(value: Json) -> int | None:
    if isinstance(value, dict):
        value = value.get("code")
    if isinstance(value, str) and (digits := re.match(r"\d{3}\b", value, re.ASCII)):
        return int(digits[0])
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _answer(logged: Json, encoding: str = "") -> _Answer:
    """Decodes the recorded body of a response; `text` is the fault if it cannot be decoded."""
    try:
        return _of_body(read_body(logged, encoding))
    except JsonFault as fault:  # the request is still usable
        return _Answer(text=fault.detail)


def _of_body(body: Body) -> _Answer:
    value = body.value
    if isinstance(value, dict) and not is_event(value):
        return _Answer(value)
    if isinstance(value, dict | list):
        return _Answer(events=tuple(value) if isinstance(value, list) else (value,))
    text = body.text if value is None else "neither an object nor a list"
    return _Answer(None, body.events, text, body.is_empty)
