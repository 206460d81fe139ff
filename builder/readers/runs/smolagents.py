"""Reads smolagents: an agent's memory dumped as a list of steps, and full results of runs.

Source: docs/formats/smolagents.md; smolagents' memory.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

from builder.conversation import (
    Content,
    Context,
    Conversation,
    Event,
    Ignored,
    Json,
    Media,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import as_harness, content, reasoning, tool_calls
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, unknown_code
from builder.readers.toolkit.places import span, unique_name
from builder.readers.toolkit.rows import logged_outcome, objects, outcome_beside, outcome_of_records
from builder.readers.toolkit.unknown_keys import message_keys, noted, unknown_names
from builder.sources.source import Source

_Parts = tuple[Content, ...]
_RETRY = (
    "\nNow let's retry: take care not to repeat previous errors! "
    "If you have retried several times, try a completely different approach.\n"
)
_PROCEED = "Now proceed and carry out this plan."


@dataclass(slots=True)
class _Requests:
    """The logged requests of a dump.

    sent     the texts of their messages
    differs  a message was, or may have been, sent in another form than the conversation's
    """

    sent: set[str] = field(default_factory=set)
    differs: bool = False

    def add(self, step: dict[str, Json]) -> None:
        """Collects the texts of a step's request."""
        for message in as_dicts(step.get("model_input_messages")):
            blocks = message.get("content")
            if isinstance(blocks, str):
                self.sent.add(blocks)
            self.sent.update(as_str(block.get("text")) for block in as_dicts(blocks))

    def framed(self, before: str, parts: _Parts, after: str = "") -> _Parts:
        """Returns a single text in its frame if a request contains it, else the parts unchanged."""
        if not parts:
            return parts
        if len(parts) == 1 and isinstance(parts[0], Text):
            text = before + parts[0].text + after
            if text in self.sent:
                return (Text(text),)
        self.differs = True
        return parts


def _recognise(source: Source) -> str | None:
    for item in source.peek.objects[:10]:
        if _is_action(item):
            return "steps with step_number, model_output and observations"
        if _is_run(item):
            return "runs with steps of step_number, model_output and observations"
    return None


def _is_action(item: dict[str, Json]) -> bool:
    return {"step_number", "model_output", "observations"} <= item.keys()


def _is_run(item: dict[str, Json]) -> bool:
    return any(map(_is_action, as_dicts(item.get("steps"))))


def read(source: Source) -> Iterator[Event]:
    """Yields a conversation for each run, and one for the steps that stand by themselves."""
    memory = _Memory("memory")
    names: Counter[str] = Counter({"memory": 1})
    for item in objects(source.records(), "a step is "):
        if isinstance(item, Problem):
            yield item
            continue
        where, step = item
        if _is_run(step):
            run = _Memory(unique_name(where, names))
            for inner in as_dicts(step["steps"]):
                run.add(where, inner)
            beside = outcome_beside(step) or {}
            outcome = logged_outcome(**{**beside, "exit_status": step.get("state")})
            yield from run.events(records=1, outcome=outcome)
        elif code := memory.add(where, step):
            yield Ignored(code)
    outcome = outcome_of_records(memory.steps)
    yield from memory.events(records=len(memory.places), outcome=outcome)


@dataclass(slots=True)
class _Memory:
    """The steps of one run while they are collected."""

    name: str
    requests: _Requests = field(default_factory=_Requests)
    steps: list[dict[str, Json]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)

    def add(self, where: str, step: dict[str, Json]) -> str | None:
        """Adds a step; returns the code of one that the model never sees."""
        if code := _ignored(step):
            return code
        self.requests.add(step)
        # All messages of all requests would take quadratic memory.
        first = as_list(step.get("model_input_messages"))[:1]
        self.steps.append({**step, "model_input_messages": first})
        self.places.append(where)
        return None

    def events(
        self, *, records: int, outcome: Mapping[str, Json] | None = None
    ) -> Iterator[Conversation | Problem]:
        """Yields the conversation of the steps, which counts `records`."""
        requests, messages, differs = self.requests, list[Message](), False
        for step in self.steps:
            if "system_prompt" not in step and not any(m.role == "system" for m in messages):
                request = as_dicts(step.get("model_input_messages"))[:1]
                messages += [
                    Message("system", content(message.get("content")))
                    for message in request
                    if message.get("role") == "system"
                ]
            differs = requests.differs if "step_number" in step else differs
            keys = message_keys("smolagents")
            found = noted(_step(step, requests), step, keys)
            if extra := unknown_names(as_dict(step.get("model_output_message")), keys):
                found[:1] = [replace(one, unknown=(*one.unknown, *extra)) for one in found[:1]]
            messages += found
        if messages:
            lacks = {  # code agents send no tool definitions
                "system": not any(message.role == "system" for message in messages),
                "tools": all(step.get("code_action") is None for step in self.steps),
                "history": differs,
            }
            missing = tuple(code for code, is_missing in lacks.items() if is_missing)
            yield Conversation(
                id=self.name,
                record=span(self.places[0], self.places[-1]),
                messages=tuple(_as_sent(messages)),
                records=records,
                complete=self.steps[-1].get("is_final_answer") is True,
                context=Context("partial" if missing else "rendered", missing),
                outcome=outcome,
            )
        elif self.places:
            yield Problem("no_messages", self.places[0], "the steps contain no messages", records)


def _ignored(step: dict[str, Json]) -> str | None:
    if any(key in step for key in ("system_prompt", "task", "step_number", "plan")):
        return None
    return "final_answer" if "output" in step else unknown_code("step")


def _as_sent(messages: list[Message]) -> Iterator[Message]:
    """Yields the system message first and joins consecutive user texts with newlines, as sent.

    A logged request, which may contain the only system message, follows the task in the dump.
    """
    ordered = sorted(messages, key=lambda message: message.role != "system")

    def is_text(message: Message) -> bool:
        return message.role == "user" and all(isinstance(part, Text) for part in message.parts)

    for joins, group in groupby(ordered, key=is_text):
        if not joins:
            yield from group
            continue
        texts = [part for message in group for part in message.parts if isinstance(part, Text)]
        joined = "\n".join(part.text for part in texts)
        yield Message("user", (Text(joined, harness=all(part.harness for part in texts)),))


def _step(step: dict[str, Json], requests: _Requests) -> list[Message]:
    if "system_prompt" in step:
        return [Message("system", content(step["system_prompt"]))]
    if "task" in step:
        images = [Media("image") for _ in as_list(step.get("task_images"))]
        task = requests.framed("New task:\n", content(step["task"]))
        return [Message("user", (*task, *images))]
    if "plan" in step:  # the model's text in the agent's frame
        plan = Message("assistant", as_harness(content(step["plan"])))
        was_sent = _PROCEED in requests.sent
        return [plan, Message("user", (Text(_PROCEED, harness=True),))] if was_sent else [plan]
    answer = as_dict(step.get("model_output_message"))
    output = content(answer.get("content") or step.get("model_output"))
    calls = tool_calls(answer.get("tool_calls") or step.get("tool_calls") or None)
    if step.get("code_action") is not None:
        calls = []
    parts: list[Part] = [*reasoning(answer), *output, *calls]
    messages = [Message("assistant", tuple(parts))] if parts else []
    if calls:
        requests.differs = True
        results = _results(step, calls)
        return [*messages, Message("tool", tuple(results))] if results else messages
    return [*messages, *_observed(step, requests)]


def _observed(step: dict[str, Json], requests: _Requests) -> list[Message]:
    images = tuple(Media("image") for _ in as_list(step.get("observations_images")))
    output = content(step.get("observations"))
    contents = [images, requests.framed("Observation:\n", output)]
    called = as_list(step.get("tool_calls"))[:1]
    if called:
        requests.differs = True  # the agent sends the code again, as a call in text
    if (error := _error(step)) is not None:
        contents = [as_harness(parts) for parts in contents]
        id_line = f"Call id: {as_str(as_dict(called[0]).get('id'))}\n" if called else ""
        framed = requests.framed(f"{id_line}Error:\n", (error,), _RETRY)
        contents.append(as_harness(framed))
    return [Message("user", parts) for parts in contents if parts]


def _error(step: dict[str, Json]) -> Text | None:
    error = step.get("error")
    return None if error is None else Text(as_str(error, "message") or as_str(error))


def _results(step: dict[str, Json], calls: list[ToolCall | Unparsed]) -> list[ToolResult]:
    """Returns the results of a step: one for each call, or one for all calls and the error."""
    ids = [call.id for call in calls if isinstance(call, ToolCall)]
    own = step.get("tool_observations")
    error = _error(step)
    if isinstance(own, list) and len(own) == len(ids) > 0 and error is None:
        return [
            ToolResult(content(value), call_id=call_id)
            for value, call_id in zip(own, ids, strict=True)
        ]
    output = content(step.get("observations"))
    output += tuple(Media("image") for _ in as_list(step.get("observations_images")))
    if error is not None:
        output += (error,)
    only = ids[0] if len(ids) == 1 else None
    return [ToolResult(output, call_id=only, is_error=error is not None or None)] if output else []


READER = declared("smolagents", recognise=_recognise, read=read)
