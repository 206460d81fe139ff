"""Opens records of gateway logs: Bedrock's invocation log, LiteLLM.

A record contains the bodies of one exchange, and metadata of the gateway, of which only the API,
path, model and status are used.
References: docs/formats/bedrock-converse.md "Model-invocation logs", docs/formats/litellm.md
(`litellm_records`).
"""

from __future__ import annotations

from dataclasses import dataclass

from builder.conversation import Json
from builder.readers.api.capture.dialect import BEDROCK
from builder.readers.api.litellm import records as litellm_records
from builder.readers.toolkit.json_text import json_in_text
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none

_OPERATIONS = {
    "Converse": "converse",
    "ConverseStream": "converse-stream",
    "InvokeModel": "invoke",
    "InvokeModelWithResponseStream": "invoke-with-response-stream",
}
_WATCHED = ("message", "@message")
"""Fields with a record as text in CloudWatch: of an event, and of a row of query results."""


@dataclass(frozen=True, slots=True)
class GatewayRecord:
    """One record: the reader of its log, and fields of `Exchange`.

    `model` is the requested model, for bodies that do not name it. `is_empty`: the log has a place
    for the response, in which there is nothing.
    """

    log: str
    request: Json
    response: Json
    url: str = ""
    status: int | None = None
    api: str | None = None
    model: str | None = None
    is_empty: bool = False


def gateway_record(value: dict[str, Json]) -> GatewayRecord | None:
    """Returns the record of a gateway, or None if the value is not one."""
    value = _unwrapped(value)
    return _invocation(value) or _litellm(value)


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
        if any(_text_of(item) or litellm_records.fields(item) for item in first):
            return as_list(records)
    return None


def _text_of(value: dict[str, Json]) -> str:
    """Returns the text of the record in an event of CloudWatch or Datadog, or ""."""
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


def _invocation(value: dict[str, Json]) -> GatewayRecord | None:
    sent, got = as_dict(value.get("input")), as_dict(value.get("output"))
    if value.get("schemaType") != "ModelInvocationLog" and "inputBodyJson" not in sent:
        return None
    operation = as_str(value.get("operation"))
    model = as_str(value.get("modelId"))
    return GatewayRecord(
        log=BEDROCK,
        request=sent.get("inputBodyJson"),
        response=got.get("outputBodyJson"),
        url=f"/model/{model or '-'}/{_OPERATIONS.get(operation, operation)}",
        status=400 if value.get("errorCode") else None,
        model=name_or_none(model),
    )


def _litellm(value: dict[str, Json]) -> GatewayRecord | None:
    fields = litellm_records.fields(value)
    if fields is None:
        return None
    kind = as_str(fields.get("call_type"))
    # Other calls (embeddings, images) have a path and no bodies.
    known = litellm_records.is_chat(kind)
    request = litellm_records.request(fields) if known else None
    response = litellm_records.response(fields) if known else None
    return GatewayRecord(
        log=litellm_records.LITELLM,
        request=request,
        response=response,
        url="" if known else f"/{kind}",
        status=500 if fields.get("status") == "failure" else None,
        api=litellm_records.api(fields, request or {}),
        model=name_or_none(fields.get("model")),
        is_empty=bool(request) and not response and "response" in fields,
    )
