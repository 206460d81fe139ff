"""Reads runs of tau-bench and tau2-bench.

Source: docs/formats/tau-bench.md, docs/formats/tau2-bench.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from builder.conversation import (
    Context,
    Conversation,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    Text,
    ToolResult,
    Unparsed,
)
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import chat_message, content, reasoning
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import logged_outcome, objects, read_each
from builder.readers.toolkit.tags import call_of
from builder.readers.toolkit.unknown_keys import message_keys, noted
from builder.sources.listing import Listing
from builder.sources.source import Record, Source

# -- tau-bench: a list of runs with OpenAI messages in `traj` --------------------------------------

_ENDING = "transfer_to_human_agents"
"""The tool that ends a run in both domains of the benchmark; nothing answers its result."""


def _recognise(source: Source) -> str | None:
    for item in source.peek.objects:
        if isinstance(item.get("traj"), list) and "reward" in item and "task_id" in item:
            return "runs with task_id, reward and traj"
        if item.keys() == {"messages_display"} and isinstance(item["messages_display"], str):
            return "few-shot rows with messages_display"
    return None


def _run(where: str, run: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    if "messages_display" in run:
        return Problem("flattened", where, "a conversation as one text, without its calls")
    messages = [chat_message(item) for item in as_dicts(run.get("traj"))]
    if not messages:
        error = as_str(run, "info", "error")
        return Problem("no_messages", where, error[:200] or "the run contains no messages")
    return Conversation(
        id=unique_name(f"task {run.get('task_id')} trial {run.get('trial')}"[:200], names),
        record=where,
        messages=tuple(messages),
        records=1,
        complete=_ended_by_call(messages),
        outcome=logged_outcome(
            benchmark="tau-bench",
            error=as_str(run, "info", "error"),
            reward=run.get("reward"),
        ),
    )


def _ended_by_call(messages: list[Message]) -> bool:
    last = next((message for message in reversed(messages) if message.role != "tool"), None)
    return last is not None and any(call.name == _ENDING for call in calls(last))


# -- tau2-bench: simulations, in one file or in a folder of files ----------------------------------

_RUN_FILE, _SIMULATIONS = "results.json", "simulations"
_STOP = "###STOP###"
"""The text with which an agent without a user replaces its last call."""
_GREETING = "Hi! How can I help you today?"
"""The first message, by tau2's orchestrator (DEFAULT_FIRST_AGENT_MESSAGE)."""
_SIMULATION_FILE = re.compile(rf"(?:^|/){_SIMULATIONS}/[^/]+\.json$")


def _is_store(folder: Listing) -> bool:
    return folder.is_dir(_SIMULATIONS) and b'"info"' in folder.first(_RUN_FILE, 1 << 12)


def _recognise_two(source: Source) -> str | None:
    if source.peek.kind == "folder":
        runs = [member for member in source.members if member.name == _RUN_FILE]
        return (
            "results.json of a run, with its simulations"
            if any(map(_recognise_two, runs))
            else None
        )
    for item in source.peek.objects[:1]:
        if "environment_info" in as_dict(item.get("info")) and "tasks" in item:
            return "a run: info.environment_info and tasks"
        is_list = isinstance(item.get("messages"), list) or isinstance(item.get("ticks"), list)
        if is_list and "termination_reason" in item and "task_id" in item:
            return "a simulation: task_id, termination_reason and messages or ticks"
    return None


@dataclass(frozen=True, slots=True)
class _Facts:
    """Properties that all simulations of a run share."""

    policy: str = ""
    tools: tuple[Json, ...] | None = None
    model: str | None = None


def read(source: Source) -> Iterator[Event]:
    """Yields one conversation for each simulation."""
    names: Counter[str] = Counter()
    if not source.members:
        run = _document(source)
        yield from _simulations(source, "", run, _facts(as_dict(run.get("info"))), names)
        return
    facts = _Facts()
    for member in sorted(source.members, key=lambda member: member.name != _RUN_FILE):
        if member.name == _RUN_FILE:
            facts = _facts(as_dict(_document(member).get("info")))
        elif not _SIMULATION_FILE.search(member.name):
            source.count_records()
            yield Ignored("other_file")
            continue
        yield from _simulations(member, f"{member.name} ", _document(member), facts, names)


def _document(source: Source) -> dict[str, Json]:
    value = source.document() if source.peek.kind == "json" else None
    if isinstance(value, dict) and ("info" in value or "simulations" in value):
        return value
    return {}


def _simulations(
    source: Source, prefix: str, run: dict[str, Json], facts: _Facts, names: Counter[str]
) -> Iterator[Event]:
    records: Iterator[Record | Problem] = source.records()
    if run:
        source.count_records()
        yield Ignored("run")
        records = source.counted(as_list(run.get("simulations")), "simulations[{}]")
    for item in objects(records, "a simulation is "):
        if isinstance(item, Problem):
            yield replace(item, where=prefix + item.where)
        else:
            yield _simulation(prefix + item[0], item[1], facts, names)


def _facts(info: dict[str, Json]) -> _Facts:
    environment = as_dict(info.get("environment_info"))
    signatures = map(as_dict, as_dict(environment.get("tool_defs")).values())
    tools: tuple[Json, ...] = tuple(
        {"name": one.get("name"), "description": one.get("doc"), "parameters": one.get("params")}
        for one in signatures
    )
    return _Facts(
        policy=as_str(environment.get("policy")),
        tools=tools if environment.get("tool_defs") else None,
        model=name_or_none(as_dict(info.get("agent_info")).get("llm")),
    )


def _simulation(
    where: str, run: dict[str, Json], facts: _Facts, names: Counter[str]
) -> Conversation | Problem:
    changes: Counter[str] = Counter()
    problems: tuple[Problem, ...] = ()
    if isinstance(run.get("messages"), list) and run["messages"]:
        items = as_dicts(run["messages"])
        messages = [message for item in items for message in _messages(item, changes)]
        policy = as_str(run.get("policy")) or facts.policy
        if policy and not any(message.role == "system" for message in messages):
            messages.insert(0, Message("system", (Text(policy),)))
            changes["policy_as_system"] += 1
    else:
        messages = _voice_calls(as_dicts(run.get("ticks")))
        problem = Problem("voice", where, "speech in chunks, without its words")
        if not messages and run.get("ticks"):
            return problem
        problems = (replace(problem, records=0),)
    if not messages:
        reason = as_str(run.get("termination_reason"))
        return Problem("no_messages", where, reason[:80] or "the simulation is empty")
    context: Context | None = None
    if changes["policy_as_system"]:  # the system text is a template around the policy
        no_tools = ("tools",) if facts.tools is None else ()
        context = Context("partial", ("system_template", *no_tools))
    name = as_str(run.get("id")) or f"task {run.get('task_id')} trial {run.get('trial')}"
    return Conversation(
        id=unique_name(name[:200], names),
        record=where,
        messages=tuple(messages),
        tools=facts.tools,
        model=facts.model,
        records=1,
        problems=problems,
        changes=changes,
        context=context,
        outcome=logged_outcome(
            benchmark="tau2-bench",
            exit_status=run.get("termination_reason"),
            reward=as_dict(run.get("reward_info")).get("reward"),
        ),
    )


def _messages(item: dict[str, Json], changes: Counter[str]) -> list[Message]:
    """Returns what the agent saw of a logged message, which may contain several tool results."""
    if "tool_messages" in item:
        answers = as_dicts(item["tool_messages"])
        messages = [message for answer in answers for message in _messages(answer, changes)]
    else:
        messages = _message(item, changes)
    return noted(messages, item, message_keys("tau2-bench"))


def _message(item: dict[str, Json], changes: Counter[str]) -> list[Message]:
    role = as_str(item.get("role"))
    if role == "tool" and item.get("requestor") == "user":
        changes["user_tools_hidden"] += 1
        return []
    if role == "tool":
        return [Message(role, (_result(item),))]
    parts = content(item.get("content"))
    if role == "assistant":
        raw = as_dict(item.get("raw_data"))
        thoughts = reasoning(item) or reasoning(as_dict(raw.get("message"))) or reasoning(raw)
        made = (*thoughts, *parts, *_calls(item.get("tool_calls")))
        text = item.get("content")
        by_program = text == _STOP or (text == _GREETING and not item.get("raw_data"))
        return [Message(role, made, untrained="inserted" if by_program else None)]
    if role == "user" and item.get("tool_calls"):
        changes["user_tools_hidden"] += len(as_list(item["tool_calls"]))
        return [Message(role, parts)] if parts else []
    return [Message(role, parts)]


def _calls(value: Json) -> list[Part]:
    items = [item for item in as_list(value) if as_dict(item).get("requestor") != "user"]
    return [call_of(item) or Unparsed(dumps(item), "bad_call") for item in items]


def _result(item: dict[str, Json]) -> ToolResult:
    """Returns a tool's result; its `id` is that of the call."""
    return ToolResult(
        content(item.get("content")),
        call_id=name_or_none(item.get("id")),
        is_error=item.get("error") is True,
    )


def _voice_calls(ticks: list[dict[str, Json]]) -> list[Message]:
    messages: list[Message] = []
    for tick in ticks:
        if calls := _calls(tick.get("agent_tool_calls")):
            messages.append(Message("assistant", tuple(calls), turn=str(tick.get("tick_id"))))
        results = as_dicts(tick.get("agent_tool_results"))
        messages += [Message("tool", (_result(item),)) for item in results]
    return messages


READERS = (
    declared(
        "tau-bench",
        recognise=_recognise,
        read=read_each(_run, "tau-bench"),
    ),
    declared("tau2-bench", recognise=_recognise_two, read=read, is_store=_is_store),
)
