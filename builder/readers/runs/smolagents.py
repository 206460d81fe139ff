"""smolagents: an agent's memory dumped as a list of steps (`memory.get_full_steps()`).

A record is a step, known by its keys. Source: inspect-ai.md "smolagents"; smolagents' memory.py.
Code agents write code into their text, which the dump wraps as a call of `python_interpreter`: they
come as text turns. One text holds the results of all calls of a step, ordered by id, so that
several calls without `tool_observations` cannot be matched with their results. Definitions of tools
are not logged.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import (
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
from builder.readers import Reader
from builder.readers.toolkit.chat_messages import (
    as_harness,
    content,
    reasoning,
    tool_calls,
    unknown_parts,
)
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, unknown_code
from builder.readers.toolkit.places import span
from builder.sources.source import Source


def recognise(source: Source) -> str | None:
    """Claim steps with `step_number`, `model_output` and `observations`."""
    for item in source.peek.objects[:10]:
        if {"step_number", "model_output", "observations"} <= item.keys():
            return "steps with step_number, model_output and observations"
    return None


def read(source: Source) -> Iterator[Event]:
    """Yield one conversation: the steps of one agent's memory."""
    messages: list[Message] = []
    names: list[str] = []
    places: list[str] = []
    complete = False
    for record in source.records():
        step = record.value if not isinstance(record, Problem) else None
        if isinstance(record, Problem):
            yield record
        elif not isinstance(step, dict):
            yield Problem("not_object", record.where, f"a step is a {type(step).__name__}")
        elif code := _ignored(step):
            yield Ignored(code)
        else:
            if "system_prompt" not in step and not any(m.role == "system" for m in messages):
                messages += _system(step, names)
            messages += _step(step, names)
            places.append(record.where)
            complete = step.get("is_final_answer") is True
    if messages:
        where = span(places[0], places[-1])
        yield Conversation(
            id="memory",
            record=where,
            messages=tuple(_in_order(messages)),
            records=len(places),
            problems=unknown_parts(names, where),
            complete=complete,
            context=Context("partial", _missing(messages)),
        )
    elif places:
        yield Problem("no_messages", places[0], "the steps hold no messages", len(places))


def _missing(messages: list[Message]) -> tuple[str, ...]:
    has_system = any(message.role == "system" for message in messages)
    return ("tools",) if has_system else ("system", "tools")


def _ignored(step: dict[str, Json]) -> str | None:
    """Return the code of a step that the model never sees, or None."""
    if any(key in step for key in ("system_prompt", "task", "step_number", "plan")):
        return None
    return "final_answer" if "output" in step else unknown_code("step")


def _system(step: dict[str, Json], names: list[str]) -> list[Message]:
    """Return the system message of the first logged request of the model."""
    for item in as_list(step.get("model_input_messages"))[:1]:
        if as_dict(item).get("role") == "system":
            return [Message("system", content(as_dict(item).get("content"), names))]
    return []


def _in_order(messages: list[Message]) -> list[Message]:
    """Put the system message first: a request is logged after the task that it answers."""
    return sorted(messages, key=lambda message: message.role != "system")


def _step(step: dict[str, Json], names: list[str]) -> list[Message]:
    if "system_prompt" in step:
        return [Message("system", content(step["system_prompt"], names))]
    if "task" in step:
        images = [Media("image") for _ in as_list(step.get("task_images"))]
        return [Message("user", (*content(step["task"], names), *images))]
    if "plan" in step:  # the model's text in a frame that the agent put around it
        return [Message("assistant", as_harness(content(step["plan"], names)))]
    answer = as_dict(step.get("model_output_message"))
    output = content(answer.get("content") or step.get("model_output"), names)
    calls = tool_calls(answer.get("tool_calls") or step.get("tool_calls") or None)
    if step.get("code_action") is not None:
        calls = []
    parts: list[Part] = [*reasoning(answer), *output, *calls]
    messages = [Message("assistant", tuple(parts))] if parts else []
    results = _results(step, calls, names)
    if calls:
        return [*messages, Message("tool", tuple(results))] if results else messages
    observed = tuple(part for result in results for part in result.content)
    failed = step.get("error") is not None
    return (
        [*messages, Message("user", as_harness(observed) if failed else observed)]
        if observed
        else messages
    )


def _results(
    step: dict[str, Json], calls: list[ToolCall | Unparsed], names: list[str]
) -> list[ToolResult]:
    """Return the results of a step: one for each call, or one for all, and the step's error."""
    ids = [call.id for call in calls if isinstance(call, ToolCall)]
    own = step.get("tool_observations")
    error = step.get("error")
    if isinstance(own, list) and len(own) == len(ids) > 0 and error is None:
        return [
            ToolResult(content(value, names), call_id=call_id)
            for value, call_id in zip(own, ids, strict=True)
        ]
    output = content(step.get("observations"), names)
    output += tuple(Media("image") for _ in as_list(step.get("observations_images")))
    if error is not None:
        output += (Text(as_str(as_dict(error).get("message")) or as_str(error)),)
    only = ids[0] if len(ids) == 1 else None
    return [ToolResult(output, call_id=only, is_error=error is not None)] if output else []


READER = Reader(
    name="smolagents",
    summary="smolagents memory dumps: lists of steps with step_number and model_output, or task",
    recognise=recognise,
    read=read,
)
