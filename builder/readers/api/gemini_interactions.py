"""Adds history that a Gemini request lacks: stored by the service, or created in an SDK call.

An interaction names the one that it continues (docs/formats/gemini-api.md "Interactions API"). The
Python SDK may run functions itself until the model has answered; its only response then contains
the turns in between (google-genai 3.4.0, `automatic_function_calling_history`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from builder.conversation import (
    Content,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers.api.codec import ApiAnswer, History, ServerStep
from builder.readers.api.dialects import is_interaction, is_interaction_event
from builder.readers.api.exchanges import Exchange
from builder.readers.toolkit.chat_messages import text_or_data
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_int,
    as_list,
    as_str,
    flag_or_none,
    name_or_none,
    one_or_many,
    tuple_or_none,
)

# Parses bodies of Gemini's Interactions API (docs/formats/gemini-api.md "Interactions API").

_MEDIA = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
_ENDED = frozenset({"completed", "requires_action"})
"""Statuses of a complete answer; the second one of an answer that calls tools."""


def history(body: dict[str, Json]) -> History:
    """Returns the history of a request."""
    messages: list[Message] = []
    if system := as_str(body.get("system_instruction")):
        messages.append(Message("system", (Text(system),)))
    messages += _messages(one_or_many(body.get("input")))
    problems: tuple[Problem, ...] = ()
    if body.get("previous_interaction_id") or body.get("cached_content"):
        detail = "the service keeps the history"
        problems = (Problem("missing_history", "request", detail, records=0),)
    tools = tuple_or_none(body.get("tools"))
    return History(tuple(messages), tools, name_or_none(body.get("model")), problems)


def _messages(items: Iterable[Json]) -> Iterator[Message]:
    """Yields the messages of steps, turns with a role, or bare contents (of the user).

    Consecutive steps of the model are one message.
    """
    role, parts = "", list[Part]()
    for item in items:
        for part_role, part in _parts_by_role(item):
            if parts and part_role != role:
                yield Message(role, tuple(parts))
                parts = []
            role = part_role
            parts.append(part)
    if parts:
        yield Message(role, tuple(parts))


def _typed(item: Json) -> dict[str, Json]:
    return {"type": "text", "text": item} if isinstance(item, str) else as_dict(item)


def _parts_by_role(item: Json) -> Iterator[tuple[str, Part]]:
    step = _typed(item)
    kind = as_str(step.get("type"))
    if "role" in step and not kind:
        role = {"model": "assistant"}.get(as_str(step["role"]), as_str(step["role"])[:40])
        for piece in one_or_many(step.get("content")):
            for part_role, part in _parts_by_role(piece):
                yield part_role if part_role == "tool" else role, part
    elif kind == "user_input":
        yield from (("user", part) for part in _contents(step.get("content")))
    elif kind == "function_result":
        yield "tool", _result(step)
    elif kind == "text" or kind in _MEDIA:
        yield from (("user", part) for part in _contents([step]))
    else:
        yield from (("assistant", part) for part in _model_parts(step))


def _model_parts(step: dict[str, Json]) -> Iterator[Part]:
    kind = as_str(step.get("type"))
    if kind == "model_output":
        yield from _contents(step.get("content"))
    elif kind == "thought":
        pieces = [as_str(item.get("text")) for item in as_dicts(step.get("summary"))]
        if text := "".join(pieces):
            yield Reasoning(text)
    elif kind == "function_call":
        call_id = name_or_none(step.get("id"))
        yield ToolCall(as_str(step.get("name")), step.get("arguments"), call_id)
    elif kind.endswith(("_call", "_result")) and kind != "function_result":
        yield Unparsed(dumps(step), "server_tool")
    else:
        yield unknown_part(kind or "nothing")


def _contents(value: Json) -> Iterator[Text | Media | Unparsed]:
    for item in one_or_many(value):
        content = _typed(item)
        kind = as_str(content.get("type"))
        if kind in _MEDIA:
            yield Media(_MEDIA[kind], as_str(content.get("mime_type")))
        elif kind == "text":
            if text := as_str(content.get("text")):
                yield Text(text)
        elif item is not None:
            yield unknown_part(kind or "nothing")


def _result(step: dict[str, Json]) -> ToolResult:
    value = step.get("result")
    content: tuple[Content, ...]
    if isinstance(value, list) and all(as_dict(item).get("type") for item in value):
        content = tuple(_contents(value))
    else:
        content = text_or_data(value)
    return ToolResult(
        content,
        call_id=name_or_none(step.get("call_id")),
        name=name_or_none(step.get("name")),
        is_error=flag_or_none(step.get("is_error")),
    )


# -- answers -------------------------------------------------------------------------------------


def answers(exchange: Exchange) -> Sequence[ApiAnswer]:
    """Returns the answer in an interaction; () if it has no steps."""
    body = exchange.answer_body(_whole_interaction)
    steps = _steps_of(body)
    if not steps:
        return ()
    parts = [part for step in steps for part in _model_parts(step)]
    failed = any(step.get("error") for step in steps)
    return [
        ApiAnswer(
            Message("assistant", tuple(parts)),
            fault=None if as_str(body.get("status")) in _ENDED and not failed else "truncated",
            model=name_or_none(body.get("model")),
        )
    ]


def _steps_of(body: dict[str, Json]) -> list[dict[str, Json]]:
    """Returns the model's steps in an interaction, without the input that it repeats."""
    found = (*as_list(body.get("steps")), *as_list(body.get("outputs")))
    steps = (_step(as_dict(item)) for item in found)
    return [step for step in steps if step.get("type") != "user_input"]


def _step(output: dict[str, Json]) -> dict[str, Json]:
    """Returns an output as a step; in the first generation it may be a bare text or medium."""
    kind = as_str(output.get("type"))
    spoken = kind == "text" or kind in _MEDIA
    return {"type": "model_output", "content": [output]} if spoken else output


def _whole_interaction(events: Iterable[Json]) -> dict[str, Json]:
    """Returns the interaction assembled from events; its status is None if they are incomplete."""
    steps: dict[int, _Open] = {}
    whole: dict[str, Json] = {}
    broken = False
    for item in events:
        event = as_dict(item)
        kind = as_str(event.get("event_type"))
        if kind == "error" or event.get("error"):
            broken = True
        elif kind.startswith("interaction."):
            whole |= as_dict(event.get("interaction"))
        place = as_int(event.get("index"))
        if kind.endswith(".start") and not kind.startswith("interaction."):
            steps[place] = _Open(_step(as_dict(event.get("step") or event.get("content"))))
        elif kind.endswith(".delta"):
            steps.setdefault(place, _Open({})).add(as_dict(event.get("delta")))
    if not as_list(whole.get("steps")) and not as_list(whole.get("outputs")):
        whole["steps"] = [steps[place].whole() for place in sorted(steps)]
    return {**whole, "status": None if broken else whole.get("status")}


class _Open:
    """A step that is assembled from its pieces. Appends in place to lists that it created."""

    def __init__(self, start: dict[str, Json]) -> None:
        self.step = dict(start)
        self.lists: dict[str, list[Json]] = {}
        self.arguments: list[Json] = []

    def add(self, delta: dict[str, Json]) -> None:
        """Adds a piece; the first may contain the type of the step."""
        kind = as_str(delta.get("type"))
        if kind == "text" or kind in _MEDIA:
            self.step.setdefault("type", "model_output")
            self._append("content", delta)
        elif kind == "thought_summary":
            self.step.setdefault("type", "thought")
            self._append("summary", delta.get("content"))
        elif kind == "arguments_delta":
            before = self.step.get("arguments")  # {} from the start of the step
            if before is not self.arguments:
                self.arguments = [before] if isinstance(before, str) else []
                self.step["arguments"] = self.arguments
            self.arguments.append(as_str(delta.get("arguments")))
        elif kind not in ("thought_signature", "text_annotation_delta"):
            self.step.update(delta)

    def _append(self, name: str, item: Json) -> None:
        if name not in self.lists or self.step.get(name) is not self.lists[name]:
            self.lists[name] = [*as_list(self.step.get(name))]
            self.step[name] = self.lists[name]
        self.lists[name].append(item)

    def whole(self) -> dict[str, Json]:
        """Returns the step assembled so far."""
        if self.step.get("arguments") is not self.arguments:
            return self.step
        return {**self.step, "arguments": "".join(map(as_str, self.arguments))}


def continues(before: Json, after: Json) -> bool:
    """Returns whether an event belongs to the same stream as the previous one."""
    one, other = as_dict(before), as_dict(after)
    if not (is_interaction_event(one) and is_interaction_event(other)):
        return False
    return other.get("event_type") not in ("interaction.created", "interaction.start")


_MAX_KEPT = 10_000
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
            body = _whole_interaction(exchange.events)
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
        steps = _steps_of(body)
        if own_id and steps:
            self._steps[own_id] = replace(step, items=(*items, *steps))
        elif own_id:
            self._waiting[own_id] = sent
        for kept in (self._steps, self._waiting):
            while len(kept) > _MAX_KEPT:
                kept.popitem(last=False)
        return replace(exchange, request=request)
