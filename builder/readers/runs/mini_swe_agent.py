"""mini-swe-agent: `.traj.json` files of version 1 and 2, and bare lists of its messages.

A record is a message. Models that write their command into the text (the only kind in version 1)
have text turns and no tools. Others have one tool, `bash(command)`, whose definition is not logged.
A malformed answer is not in later requests; with calls, it becomes a separate conversation.
Source: docs/formats/mini-swe-agent.md; mini-swe-agent's models/ for the Responses form and retries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Context,
    Conversation,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    Reasoning,
    ToolCall,
    ToolResult,
    unknown_part,
)
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.toolkit.chat_messages import (
    as_harness,
    assistant_parts,
    content,
    reasoning,
    tool_result,
)
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_of, name_or_none
from builder.readers.toolkit.places import span
from builder.readers.toolkit.rows import benchmark_of_image, logged_outcome, objects, outcome_beside
from builder.sources.source import Source

_MARKS = (
    "```mswea_bash_command",
    "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    "MINI_SWE_AGENT_FINAL_OUTPUT",
)
"""Text that only this agent's prompts contain."""


def _recognise(source: Source) -> str | None:
    if source.peek.kind != "json":
        return None
    objects = source.peek.objects
    if len(objects) == 1 and isinstance(objects[0].get("messages"), list):
        run = objects[0]
        if as_str(run.get("trajectory_format")).startswith("mini-swe-agent"):
            return "trajectory_format names mini-swe-agent"
        return "info.mini_version" if "mini_version" in as_dict(run.get("info")) else None
    prompts = [as_str(item.get("content")) for item in objects[:2] if "role" in item]
    if len(prompts) == 2 and any(mark in prompt for prompt in prompts for mark in _MARKS):
        return "messages with mini-swe-agent's prompt"
    return None


def _read(source: Source) -> Iterator[Event]:
    value = source.document()
    if isinstance(value, Problem):
        source.count_records()
        yield value
        return
    info = as_dict(value, "info")
    items, where = as_list(value), "[{}]"
    if isinstance(value, dict):
        items, where = as_list(value.get("messages")), "messages[{}]"
    if not items:
        source.count_records()
        yield Problem("no_messages", "file", "no list of messages")
        return
    run = _Run()
    for item in objects(source.counted(items, where), "a message is "):
        yield from [item] if isinstance(item, Problem) else run.take(*item)
    if run.messages:
        config = as_dict(info.get("config"))
        model = as_dict(config.get("model"))
        image = as_dict(config.get("environment")).get("image")
        status = name_or_none(info.get("exit_status")) or run.exit_status
        has_calls = any(map(calls, run.messages))
        yield Conversation(
            id="main",
            record=run.where,
            messages=tuple(run.messages),
            model=name_or_none(model.get("model_name")),
            records=run.records,
            tools=None if has_calls else (),
            complete=status == "Submitted",
            context=Context("partial", ("tools",)) if has_calls else Context("rendered"),
            outcome=logged_outcome(
                outcome_beside(value) or {},
                benchmark=benchmark_of_image(image),
                exit_status=status,
            ),
        )
    elif run.records:
        yield Problem("no_messages", run.where, "no item is a known message", run.records)


@dataclass(slots=True)
class _Run:
    """Collects the messages of a run."""

    messages: list[Message] = field(default_factory=list)
    records: int = 0
    first: str = ""
    where: str = ""
    exit_status: str | None = None

    def take(self, where: str, item: dict[str, Json]) -> Iterator[Event]:
        """Adds a message; yields events for records outside the conversation."""
        if item.get("role") == "exit":
            status = as_dict(item.get("extra")).get("exit_status")
            self.exit_status = name_or_none(status) or self.exit_status
            yield Ignored("exit")
            return
        extra = as_dict(item.get("extra"))
        interrupted = "interrupt_type" in extra
        if interrupted:
            yield from _malformed(as_dict(extra.get("response")), where)
        self.messages += _messages(item, extra, harness=interrupted)
        self.records += 1
        self.first = self.first or where
        self.where = span(self.first, where)


def _messages(item: dict[str, Json], extra: dict[str, Json], *, harness: bool) -> list[Message]:
    role, kind = as_str(item.get("role")), as_str(item.get("type"))
    failed = bool(extra.get("exception_info")) or None  # exit codes are in the text
    if item.get("object") == "response":
        parts = _response_parts(item)
        turn, model = (name_or_none(item.get(key)) for key in ("id", "model"))
        return [Message("assistant", tuple(parts), turn=turn, model=model)]
    if kind == "function_call_output":
        output = content(item.get("output"))
        call_id = name_or_none(item.get("call_id"))
        return [Message("tool", (ToolResult(output, call_id=call_id, is_error=failed),))]
    if role == "tool":
        return [Message(role, (replace(tool_result(item), is_error=failed),))]
    if role == "assistant":
        parts = list(assistant_parts(item))
        if not reasoning(item):
            parts = [*reasoning(_answer(as_dict(extra.get("response")))), *parts]
        model = name_or_none(as_dict(extra.get("response")).get("model"))
        return [Message(role, tuple(parts), model=model)]
    if role:
        visible = content(item.get("content"))
        return [Message(role, as_harness(visible) if harness else visible)]
    parts = _item_parts(item)
    return [Message("assistant", tuple(parts))] if parts else []


def _response_parts(response: dict[str, Json]) -> list[Part]:
    return [part for item in as_dicts(response.get("output")) for part in _item_parts(item)]


def _item_parts(item: dict[str, Json]) -> list[Part]:
    """Returns the parts of an item of the Responses API; reasoning only in clear text."""
    kind = as_str(item.get("type"))
    if kind == "function_call" and (name := name_or_none(item.get("name"))):
        return [ToolCall(name, item.get("arguments"), id=name_of(item, "call_id", "id"))]
    if kind == "reasoning":
        thoughts = as_list(item.get("content")) or as_list(item.get("summary"))
        texts = [as_str(thought, "text") for thought in thoughts]
        return [Reasoning(text) for text in texts if text]
    if kind == "message":
        return list(content(item.get("content")))
    return [unknown_part(kind or "no type")]


def _answer(response: dict[str, Json]) -> dict[str, Json]:
    choices = as_list(response.get("choices"))
    return as_dict(choices[0], "message") if choices else {}


def _malformed(response: dict[str, Json], where: str) -> Iterator[Event]:
    """Yields a rejected conversation for a malformed answer if it has calls.

    The message that requests a new answer contains it.
    """
    answer = Message("assistant", (*assistant_parts(_answer(response)), *_response_parts(response)))
    if calls(answer):
        problem = Problem("malformed_answer", where, "refused by the agent and asked for again", 0)
        yield Conversation(
            id=f"refused {where}",
            record=where,
            messages=(answer,),
            problems=(problem,),
        )


READER = Reader(
    name="mini-swe-agent",
    summary="mini-swe-agent .traj.json files: messages with info, or its messages alone",
    evidence=("source", "files"),
    recognise=_recognise,
    read=_read,
)
