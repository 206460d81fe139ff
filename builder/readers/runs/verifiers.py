"""Reads rollouts of verifiers and prime-rl: graphs of messages with the ids of their tokens.

Source: docs/formats/verifiers.md; verifiers 0.4.0, v1/trace.py and v1/graph.py (MIT).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Event,
    Json,
    Message,
    TokenIds,
)
from builder.keys import is_count
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import chat_message, qualified
from builder.readers.toolkit.comparison import cut_off, with_keys
from builder.readers.toolkit.history import Links
from builder.readers.toolkit.made_up import end_at_made_up
from builder.readers.toolkit.marks import finish_fault, recorded_ids
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import logged_outcome, read_rows, splits
from builder.sources.source import Source


def _recognise(source: Source) -> str | None:
    for item in source.peek.objects:
        if isinstance(item.get("traces"), list) and {"task", "env"} <= item.keys():
            return "episodes with task, env and traces"
        if _is_trace(item):
            return "traces with nodes of messages"
    return None


def _is_trace(item: dict[str, Json]) -> bool:
    nodes = as_dicts(item.get("nodes"))
    return (
        "task" in item
        and bool(nodes)
        and all("message" in node and "sampled" in node for node in nodes)
    )


def _episode(where: str, row: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
    traces = [row] if "nodes" in row else as_dicts(row.get("traces"))
    events = [event for trace in traces for event in _trace(where, trace, names)]
    if not events:
        errors = [*as_dicts(row.get("errors")), *(_errors(trace) for trace in traces)]
        detail = next(filter(None, map(_error, errors)), "no agent has run")
        yield Problem("no_messages", where, detail)
        return
    yield replace(events[0], records=1)
    yield from events[1:]


def _errors(trace: dict[str, Json]) -> dict[str, Json]:
    return next(iter(as_dicts(trace.get("errors"))), {})


def _error(error: dict[str, Json]) -> str:
    kind, text = as_str(error.get("type")), as_str(error.get("message"))
    return f"{kind}: {text}"[:200] if kind or text else ""


def _trace(where: str, trace: dict[str, Json], names: Counter[str]) -> Iterator[Conversation]:
    graph = _Graph(trace)
    agent = as_dict(trace.get("agent"))
    own = trace.get("id")
    title = name_or_none(own) or where
    problems: tuple[Problem, ...] = ()
    if agent.get("trainable") is False:
        name = as_str(agent.get("name")) or "agent"
        problems = (Problem("zero_weight", where, f"{name} is not trained", records=0),)
    outcome = logged_outcome(
        error=_error(_errors(trace)),
        exit_status=trace.get("stop_condition"),
        reward=_reward(trace),
        rewards=trace.get("rewards"),
    )
    seen: set[int] = set()
    for path in graph.paths():
        messages = list(graph.messages(path, seen, title))
        seen.update(path)
        yield Conversation(
            id=unique_name(title, names),
            record=where,
            messages=end_at_made_up(messages),
            tools=graph.tools(path),
            model=graph.model,
            problems=(*problems, *graph.problems(path, where)),
            complete=graph.is_sampled(path[-1]),
            version=name_or_none(as_dict(trace.get("verifiers")).get("version")),
            context=Context("rendered"),
            recorded=True,
            outcome=outcome,
        )


def _reward(trace: dict[str, Json]) -> float | None:
    """Returns the weighted sum of the scores; None if none was given (null: not scored)."""
    terms: list[float] = []
    for reward in as_dict(trace.get("rewards")).values():
        score, weight = as_dict(reward).get("score"), as_dict(reward).get("weight", 1.0)
        if isinstance(score, int | float) and isinstance(weight, int | float):
            terms.append(score * weight)
    return sum(terms) if terms else None


@dataclass(slots=True)
class _Call:
    """What the trace logs of one call of the model."""

    model: str | None
    fault: str | None


class _Graph:
    """The graph of messages of one trace. Parents that are no earlier node are faults."""

    def __init__(self, trace: dict[str, Json]) -> None:
        self._trace = trace
        self._nodes = as_dicts(trace.get("nodes"))
        self._parents = [self._parent(at) for at in range(len(self._nodes))]
        self._calls: dict[int, _Call] = {}
        for call in as_dicts(trace.get("calls")):
            at = call.get("node")
            if is_count(at):
                reason = call.get("finish_reason")
                fault = finish_fault(reason) if reason is not None else None
                self._calls[at] = _Call(name_or_none(call.get("model")), fault)

    @property
    def model(self) -> str | None:
        """The model of the last call that names one."""
        names = (call.model for call in reversed(list(self._calls.values())))
        return next(filter(None, names), None)

    def _parent(self, at: int) -> int | None:
        """Returns the parent of a node; -1 if it is not an earlier node."""
        parent = self._nodes[at].get("parent")
        if parent is None:
            return None
        return parent if is_count(parent) and parent < at else -1

    def is_sampled(self, at: int) -> bool:
        """Returns whether the model gave this message in this trace."""
        node = self._nodes[at]
        return node.get("sampled") is True and as_str(node, "message", "role") == "assistant"

    def paths(self) -> Iterator[list[int]]:
        """Yields the path to each leaf; one of the paths that share their last sampled message.

        A path without a sampled message has nothing to learn from, and is yielded only if there is
        no other.
        """
        links = Links(dict(enumerate(self._parents)))
        ends: dict[int | None, list[int]] = {}
        for path in map(links.path, links.leaves):
            last = next((at for at in reversed(path) if self.is_sampled(at)), None)
            ends.setdefault(last, path)
        if len(ends) > 1:
            ends.pop(None, None)
        yield from ends.values()

    def problems(self, path: Sequence[int], where: str) -> tuple[Problem, ...]:
        """Returns the problem of a path that does not begin at a root."""
        if self._parents[path[0]] is None:
            return ()
        detail = f"node {path[0]} continues a message that is not in the trace"
        return (Problem("missing_history", where, detail, records=0),)

    def tools(self, path: Sequence[int]) -> tuple[Json, ...]:
        """Returns the definitions of a path: those of its root replace those of the trace."""
        own = self._nodes[path[0]].get("tools")
        logged = own if isinstance(own, list) and own else self._trace.get("tools")
        return tuple(map(_definition, as_list(logged)))

    def messages(self, path: Sequence[int], seen: set[int], title: str) -> Iterator[Message]:
        """Yields the messages of a path; answers in `seen` are targets on an earlier path."""
        for place, at in enumerate(path):
            message = _message(as_dict(self._nodes[at].get("message")), f"{title}/{at}")
            if message.role != "assistant":
                yield message
                continue
            call = self._calls.get(at, _Call(None, None))
            code = call.fault or (REPEAT if at in seen else None)
            if not self.is_sampled(at):
                code = "inserted"
            message = replace(message, model=call.model, tokens=self._tokens(path[: place + 1]))
            is_cut = call.fault is not None and at == path[-1] and self.is_sampled(at)
            yield cut_off(message, str(code)) if is_cut else replace(message, untrained=code)

    def _tokens(self, path: Sequence[int]) -> TokenIds | None:
        """Returns the ids of the last message of a path, and of everything before it."""
        pieces = [as_list(self._nodes[at].get("token_ids")) for at in path]
        mask = as_list(self._nodes[path[-1]].get("mask"))
        own = pieces[-1]
        if len(mask) != len(own) or True not in mask:
            return None
        start, end = mask.index(True), len(mask) - mask[::-1].index(True)
        if False in mask[start:end]:
            return None
        before = [*pieces[:-1], own[:start]]
        prompt: Json = None
        if all(pieces[:-1]):  # relayed messages have none
            prompt = [number for piece in before for number in piece]
        return recorded_ids(own[start:end], prompt)


def _message(logged: dict[str, Json], key: str) -> Message:
    """Returns a message, whose calls are in a flat form; `key` identifies it."""
    calls = [_wrapped(call) for call in as_list(logged.get("tool_calls"))]
    message = chat_message({**logged, "tool_calls": calls} if calls else logged)
    return with_keys(message, lambda at, _: f"{key}/{at}") if calls else message


def _wrapped(item: Json) -> Json:
    call = as_dict(item)
    name = name_or_none(call.get("name"))
    if name is None:
        return item
    name = qualified(call.get("namespace"), name)
    arguments = call.get("arguments")
    if call.get("type") == "custom":
        return {"id": call.get("id"), "custom": {"name": name, "input": arguments}}
    return {"id": call.get("id"), "function": {"name": name, "arguments": arguments}}


def _definition(tool: Json) -> Json:
    spec = as_dict(tool)
    if not spec.get("namespace"):
        return tool
    rest = {key: value for key, value in spec.items() if key != "namespace"}
    return {**rest, "name": qualified(spec["namespace"], as_str(spec.get("name")))}


READER = declared(
    "verifiers",
    recognise=_recognise,
    read=lambda source: read_rows(source, _episode, "verifiers"),
    splits=splits,
)
