"""Adds history that a Gemini request lacks: stored by the service, or created in an SDK call.

An interaction names the one that it continues (docs/formats/gemini-api.md "Interactions API"). The
Python SDK may run functions itself until the model has answered; its only response then contains
the turns in between (google-genai 3.4.0, `automatic_function_calling_history`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from builder.conversation import Json
from builder.readers.api.capture.api import ServerStep
from builder.readers.api.capture.dialect import is_interaction
from builder.readers.api.capture.envelope import Exchange
from builder.readers.api.gemini import interactions
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none, one_or_many

MAX_KEPT = 10_000
"""Maximum number of interactions kept for later ones; the oldest are dropped."""

_RUN_BY_SDK = ("automatic_function_calling_history", "automaticFunctionCallingHistory")


def complete() -> Callable[[Exchange], Exchange]:
    """Returns a function that completes the requests of one log; call it in the log's order."""
    links = _Links()

    def completed(exchange: Exchange) -> Exchange:
        first = as_dict((exchange.events or (exchange.response,))[0])
        if is_interaction(first) or "input" in (exchange.request or {}):
            return links.complete(exchange)
        return _with_own_calls(exchange)

    return completed


def _with_own_calls(exchange: Exchange) -> Exchange:
    """Returns the exchange with the contents of the SDK's last request."""
    chunks = exchange.events if exchange.events is not None else (exchange.response,)
    bodies = [as_dict(chunk) for chunk in chunks]
    lists = (as_list(body.get(name)) for body in reversed(bodies) for name in _RUN_BY_SDK)
    contents = next(filter(None, lists), None)
    if contents is None:
        return exchange
    request = {**(exchange.request or {}), "contents": contents}
    exchange = replace(exchange, sent=exchange.request)
    if exchange.events is None:
        return replace(exchange, request=request)
    # The stream contains several answers; those before the last are in the contents.
    last = _response_id(bodies[-1])
    events = tuple(body for body in bodies if _response_id(body) == last)
    return replace(exchange, request=request, events=events)


def _response_id(body: dict[str, Json]) -> Json:
    return body.get("responseId") or body.get("response_id")


class _Links:
    """Interactions by id. Each request has its own system text and tools."""

    def __init__(self) -> None:
        self._steps: OrderedDict[str, ServerStep] = OrderedDict()
        self._waiting: OrderedDict[str, dict[str, Json]] = OrderedDict()  # unanswered requests

    def complete(self, exchange: Exchange) -> Exchange:
        """Returns the exchange with the history that its request names, as far as it is logged.

        An interaction that the client polls by its id gets the request that began it.
        """
        body = exchange.response or {}
        if exchange.events is not None:
            body = interactions.whole_interaction(exchange.events)
        own_id = as_str(body.get("id"))
        sent = exchange.request if exchange.request is not None else self._waiting.get(own_id)
        if sent is None:
            return exchange
        items = one_or_many(sent.get("input"))
        previous = name_or_none(sent.get("previous_interaction_id"))
        before = self._steps.get(previous) if previous else None
        step = ServerStep.after(before, previous, items)
        request: dict[str, Json] = {**sent, "input": step.all()}
        if step.whole:
            request.pop("previous_interaction_id", None)
        steps = interactions.steps_of(body)
        if own_id and steps:
            self._steps[own_id] = replace(step, items=(*items, *steps))
        elif own_id:
            self._waiting[own_id] = sent
        for kept in (self._steps, self._waiting):
            while len(kept) > MAX_KEPT:
                kept.popitem(last=False)
        return replace(exchange, request=request)
