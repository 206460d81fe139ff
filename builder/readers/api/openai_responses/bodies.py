"""Parses bodies of OpenAI's Responses API (docs/formats/openai-responses.md).

The server may keep the history; `ServerHistories` inserts it into requests that refer to it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from builder.conversation import Json
from builder.problem import Problem
from builder.readers.agents.codex.items import definitions
from builder.readers.api.capture.api import Api, ApiAnswer, History, ServerStep
from builder.readers.api.capture.dialect import OPENAI_RESPONSES, path_of
from builder.readers.api.capture.envelope import Exchange
from builder.readers.api.openai_responses.items import ItemReading, is_said_by_others, item_type
from builder.readers.api.openai_responses.stream import whole_response
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none

MAX_KEPT = 32 << 20
"""Maximum number of characters of JSON kept for later requests."""

Value = TypeVar("Value")

_UNANSWERED = frozenset({"queued", "in_progress", "searching"})
"""Statuses of an incomplete response, which the client polls by its id."""

_KEPT = ("previous_response_id", "conversation", "prompt")
"""Fields of a request that refer to a history or prompt on the server."""


def history(body: dict[str, Json]) -> History:
    """Returns the history of a request; `missing_history` if the server keeps part of it."""
    instructions = body.get("instructions")
    system = as_list(instructions)
    if isinstance(instructions, str) and instructions:
        system = [{"role": "system", "content": instructions}]
    reading = ItemReading().read([*system, *items(body.get("input"))])
    problems: tuple[Problem, ...] = ()
    kept = [name for name in _KEPT if body.get(name)]
    if kept or reading.missing:
        detail = f"{', '.join(kept) or 'item_reference'} refers to data that is not in the log"
        problems = (Problem("missing_history", "request", detail, records=0),)
    read = History(
        tuple(reading.messages),
        _tools(body, reading.tools),
        name_or_none(body.get("model")),
        problems,
        reading.changes,
        loads=bool(reading.tools),
    )
    return read.without_deferred({as_str(tool, "name") for tool in reading.tools})


def items(value: Json) -> list[Json]:
    """Returns the items of an `input`; a text is the user's."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}] if value else []
    return as_list(value)


def _tools(body: dict[str, Json], later: list[Json]) -> tuple[Json, ...] | None:
    """Returns the definitions of a request, and those given to the model later."""
    if not isinstance(body.get("tools"), list) and not later:
        return None
    tools = list(definitions(body.get("tools")))
    names = [as_dict(tool).get("name") for tool in tools]
    return (*tools, *(tool for tool in later if as_dict(tool).get("name") not in names))


def answers(exchange: Exchange) -> Sequence[ApiAnswer]:
    """Returns the answer, or () if the response is an error or not complete yet."""
    body = exchange.answer_body(whole_response)
    output = as_list(body.get("output"))
    status = as_str(body.get("status"))
    if status in _UNANSWERED or not output:
        return ()
    reading = ItemReading()
    message = reading.read_answer(output)
    fault = None
    if status in ("incomplete", "failed", "cancelled") or body.get("error"):
        reason = as_dict(body.get("incomplete_details")).get("reason")
        fault = "content_filter" if reason == "content_filter" else "truncated"
    elif any(as_dict(item).get("status") == "incomplete" for item in output):
        fault = "truncated"
    return (
        ApiAnswer(
            message,
            fault=fault,
            model=name_or_none(body.get("model")),
            changes=reading.changes,
        ),
    )


def response_of(exchange: Exchange) -> dict[str, Json]:
    """Returns the whole response of an exchange, or {}."""
    if exchange.events is not None:
        return whole_response(exchange.events)
    return exchange.response or {}


def continues(before: Json, after: Json) -> bool:
    """Returns whether an event belongs to the same response as the previous one."""
    one, other = as_str(before, "type"), as_str(after, "type")
    if not (one.startswith("response.") and other.startswith("response.")):
        return False
    return other != "response.created"


class _Kept(Generic[Value]):
    """Values by name: the last one, and earlier ones up to MAX_KEPT characters in total."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, tuple[Value, int]] = OrderedDict()
        self._weight = 0

    def get(self, name: str) -> Value | None:
        stored = self._values.get(name)
        return stored[0] if stored is not None else None

    def put(self, name: str, value: Value, weight: int) -> None:
        self._weight += weight - self._values.pop(name, (value, 0))[1]
        self._values[name] = (value, weight)
        while self._weight > MAX_KEPT and len(self._values) > 1:
            self._weight -= self._values.popitem(last=False)[1][1]


def _weight(value: Json) -> int:
    """Estimates the number of characters of a value as JSON."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return 16 + sum(map(_weight, inside))
    return 8


class ServerHistories:
    """Histories kept by the server, by the id of a response or conversation.

    `instructions` are not inherited; each request's own are its system text. The beginning of a
    conversation is known only if the log contains the request that created it.
    """

    def __init__(self) -> None:
        self._steps: _Kept[ServerStep] = _Kept()
        self._items: _Kept[Json] = _Kept()  # by their own ids
        self._waiting: _Kept[dict[str, Json]] = _Kept()  # requests, by the ids of their responses

    def complete(self, exchange: Exchange) -> Exchange:
        """Returns the exchange with the history that its request names, as far as it is logged.

        A response that the client polls by its id gets the request that began it.
        """
        response = response_of(exchange)
        if exchange.dialect != OPENAI_RESPONSES:
            self._begin(exchange, response)
            return exchange
        response_id = name_or_none(response.get("id")) or ""
        sent = exchange.request if exchange.request is not None else self._waiting.get(response_id)
        if sent is None:
            return exchange
        own = [self._referred(item) for item in items(sent.get("input"))]
        previous = name_or_none(sent.get("previous_response_id"))
        conversation = _conversation_id(sent.get("conversation"))
        named = previous or conversation
        before = self._steps.get(named) if named is not None else None
        step = ServerStep.after(before, named, own)
        request: dict[str, Json] = {**sent, "input": step.all()}
        for name in ("previous_response_id", "conversation") if step.whole else ():
            request.pop(name, None)
        if sent.get("prompt") and response.get("instructions"):
            # The response contains the stored prompt, filled in, and its tools.
            del request["prompt"]
            request["instructions"] = response["instructions"]
            request.setdefault("tools", response.get("tools"))
        output = _whole(as_list(response.get("output")))
        completed = replace(exchange, request=request)
        if turns := _server_turns(output):
            sent_alone = dict(request)
            request["input"] = [*as_list(request["input"]), *output[:turns]]
            rest: dict[str, Json] = {**response, "output": output[turns:]}
            completed = replace(completed, response=rest, events=None, sent=sent_alone)
        answered = answers(completed)
        if answered:
            added = [*own, *output]
            self._remember(added)
            step = replace(step, items=tuple(added))
            for name in filter(None, (response_id, conversation)):
                self._steps.put(name, step, _weight(added))
        if response_id and not any(answer.usable for answer in answered):
            self._waiting.put(response_id, sent, _weight(sent))
        return completed

    def _begin(self, exchange: Exchange, response: dict[str, Json]) -> None:
        """Remembers a new conversation, perhaps with its first items."""
        made = name_or_none(response.get("id"))
        if made is not None and path_of(exchange.url).endswith("/conversations"):
            given = as_list((exchange.request or {}).get("items"))
            self._steps.put(made, ServerStep(None, tuple(given), whole=True), _weight(given))

    def _referred(self, value: Json) -> Json:
        item = as_dict(value)
        if item_type(item) != "item_reference":
            return value
        return self._items.get(as_str(item.get("id"))) or value

    def _remember(self, added: list[Json]) -> None:
        for value in added:
            if (name := name_or_none(as_dict(value).get("id"))) is not None:
                self._items.put(name, value, _weight(value))


def _server_turns(output: list[Json]) -> int:
    """Returns the number of items before the last turn of a response.

    A server that runs functions itself returns calls, their outputs and the next answers in one
    response. The environments of NeMo Gym also return what a user says in between.
    """
    called: set[str] = set()
    turns = 0
    for at, value in enumerate(output):
        item = as_dict(value)
        call_id = as_str(item.get("call_id"))
        if item.get("type") == "function_call" and "caller" not in item:
            called.add(call_id)
        elif (
            item.get("type") == "function_call_output" and call_id in called
        ) or is_said_by_others(item):
            turns = at + 1
    return turns


def _whole(output: list[Json]) -> list[Json]:
    """Returns the items of a response; of one that lists all its states (Aviary), the last."""
    last = output[-1] if output else None
    return last if isinstance(last, list) and all(isinstance(it, list) for it in output) else output


def _conversation_id(value: Json) -> str | None:
    return name_or_none(value) or name_or_none(as_dict(value).get("id"))


RESPONSES = Api(OPENAI_RESPONSES, history, answers, continues, lambda: ServerHistories().complete)
