"""Reads runs of SWE-agent and mini-SWE-agent.

Source: docs/formats/swe-agent.md, docs/formats/mini-swe-agent.md; models/ of both programs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
)
from builder.jsonio import a_json_type
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api import openai_responses
from builder.readers.toolkit import rows
from builder.readers.toolkit.chat_messages import (
    as_harness,
    assistant_parts,
    content,
    reasoning,
    tool_result,
)
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    json_in_text,
    name_of,
    name_or_none,
)
from builder.readers.toolkit.places import span, unique_name
from builder.readers.toolkit.rows import (
    logged_outcome,
    objects,
    outcome_beside,
    read_each,
)
from builder.readers.toolkit.unknown_keys import message_keys, noted
from builder.sources.source import Source

# -- mini-swe-agent: `.traj.json` files, and bare lists of its messages ----------------------------

_MARKS = (
    "```mswea_bash_command",
    "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    "MINI_SWE_AGENT_FINAL_OUTPUT",
)
"""Text that only this agent's prompts contain."""


_SWE_BENCH_IMAGE = re.compile(r"(?:docker\.io/)?(?:swebench/)?sweb\.eval\.")


def _benchmark_of_image(image: Json) -> str | None:
    """Returns "SWE-bench" for a container image of its tasks, else None.

    The images are called `swebench/sweb.eval.ARCH.INSTANCE`, without the namespace if built locally
    (swebench/harness/test_spec). Other training sets use the name in namespaces of their own.
    """
    is_swe_bench = isinstance(image, str) and _SWE_BENCH_IMAGE.match(image)
    return "SWE-bench" if is_swe_bench else None


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
            changes=run.changes,
            tools=None if has_calls else (),
            complete=status == "Submitted",
            context=Context("partial", ("tools",)) if has_calls else Context("rendered"),
            outcome=logged_outcome(
                outcome_beside(value) or {},
                benchmark=_benchmark_of_image(image),
                exit_status=status,
            ),
        )
    elif run.records:
        yield Problem("no_messages", run.where, "no item is a known message", run.records)


@dataclass(slots=True)
class _Run:
    """Collects the messages of a run."""

    messages: list[Message] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)
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
        self.messages += _messages(item, extra, self.changes, harness=interrupted)
        self.records += 1
        self.first = self.first or where
        self.where = span(self.first, where)


def _messages(
    item: dict[str, Json], extra: dict[str, Json], changes: Counter[str], *, harness: bool
) -> list[Message]:
    role = as_str(item.get("role"))
    failed = bool(extra.get("exception_info")) or None  # exit codes are in the text
    if item.get("object") == "response":
        turn, model = (name_or_none(item.get(key)) for key in ("id", "model"))
        return [
            replace(one, turn=turn, model=model) for one in _of_items(item.get("output"), changes)
        ]
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
    found = _of_items([item], changes)
    return [replace(one, parts=tuple(_marked(part, failed) for part in one.parts)) for one in found]


def _of_items(items: Json, changes: Counter[str]) -> tuple[Message, ...]:
    """Returns the messages of items of the Responses API."""
    found = openai_responses.history({"input": items})
    changes.update(found.changes)
    return found.messages


def _marked(part: Part, failed: bool | None) -> Part:
    return replace(part, is_error=failed) if isinstance(part, ToolResult) else part


def _answer(response: dict[str, Json]) -> dict[str, Json]:
    choices = as_list(response.get("choices"))
    return as_dict(choices[0], "message") if choices else {}


def _malformed(response: dict[str, Json], where: str) -> Iterator[Event]:
    """Yields a rejected conversation for a malformed answer if it has calls.

    The message that requests a new answer contains it.
    """
    made = (part for one in _of_items(response.get("output"), Counter()) for part in one.parts)
    answer = Message("assistant", (*assistant_parts(_answer(response)), *made))
    if calls(answer):
        problem = Problem("malformed_answer", where, "refused by the agent and asked for again", 0)
        yield Conversation(
            id=f"refused {where}",
            record=where,
            messages=(answer,),
            problems=(problem,),
        )


# -- rows of a table: nebius/SWE-agent-trajectories and its copies --------------------------------

_ROLES = {"system": "system", "user": "user", "ai": "assistant"}
_EXITS = ("Exit due to ", "Exiting due to ")
"""The beginnings of the step that SWE-agent adds when an error or limit ends a run."""


def _is_exit(text: str, exit_status: str) -> bool:
    """Returns whether SWE-agent, not the model, wrote the last answer of a run."""
    return "exit" in exit_status and text.startswith(_EXITS)


def _is_row(row: dict[str, Json]) -> bool:
    """Returns whether a row has the history of a run, in texts of system, user and ai."""
    items = as_list(json_in_text(row.get("trajectory")))
    return bool(items) and all(
        as_str(item, "role") in _ROLES and {"text", "system_prompt"} & as_dict(item).keys()
        for item in items[:5]
    )


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    items = as_dicts(json_in_text(row.get("trajectory")))
    exit_status = as_str(row.get("exit_status"))
    changes: Counter[str] = Counter()
    if items and items[-1].get("role") == "ai":
        changes["exit_message"] += _is_exit(as_str(items[-1].get("text")), exit_status)
    messages: list[Message] = []
    for item in items[: len(items) - changes["exit_message"]]:
        role = as_str(item.get("role"))
        text = item.get("text") or item.get("system_prompt")
        messages += noted(
            [Message(_ROLES.get(role, role[:40]), content(text))], item, message_keys("swe-agent")
        )
    if not any(message.role == "assistant" for message in messages):
        return Problem("no_response", where, "no answer of the model")
    return Conversation(
        id=unique_name((name_of(row, "instance_id") or where)[:200], names),
        record=where,
        messages=tuple(messages),
        tools=(),
        model=name_of(row, "model_name", "model"),
        records=1,
        changes=+changes,
        complete=exit_status == "submitted",
        outcome=logged_outcome(row, resolved=row.get("target"), exit_status=exit_status),
    )


_read_rows = read_each(_row, "swe-agent")

_Item = tuple[str, dict[str, Json]]
"""An item of a history with its place."""
_OWN = frozenset({"agent", "message_type", "thought", "action", "is_demo"})
"""Keys that only SWE-agent's history items have."""


def _recognise_runs(source: Source) -> str | None:
    if any(map(_is_row, source.peek.objects)):
        return "rows with a trajectory of system, user and ai"
    if source.peek.kind != "json" or len(source.peek.objects) != 1:
        return None
    run = source.peek.objects[0]
    runs = [run, *as_dicts(as_list(run.get("attempts"))[:1])]
    for history, _ in map(_history, runs):
        head = [as_dict(entry) for entry in history[:5]]
        if head and all("role" in entry and entry.keys() & _OWN for entry in head):
            return "a history of items with role and agent, message_type or thought"
    return None


def _history(run: dict[str, Json]) -> tuple[list[Json], str]:
    """Returns the history of a run and its place; if missing, the longest list in the last step."""
    if history := as_list(run.get("history")):
        return history, "history"
    steps = as_list(run.get("trajectory"))
    last = as_dict(steps[-1]) if steps else {}
    # Unlike `query`, `messages` of a step include its own result.
    key = "messages" if last.get("messages") else "query"
    return as_list(last.get(key)), f"trajectory[{len(steps) - 1}].{key}"


def _read_run(source: Source) -> Iterator[Event]:
    """Yields one conversation for each agent of each attempt, or for each row."""
    if any(map(_is_row, source.peek.objects)):
        yield from _read_rows(source)
        return
    value = source.document()
    if isinstance(value, Problem):
        source.count_records()
        yield value
        return
    if not isinstance(value, dict):
        source.count_records()
        yield Problem("not_object", "file", f"a trajectory that is {a_json_type(value)}")
        return
    # With attempts, the top-level history is a copy of the chosen attempt's.
    attempts = as_list(value.get("attempts"))
    runs = [("", as_dict(value))] if not attempts else []
    runs += [(f"attempts[{n}].", as_dict(attempt)) for n, attempt in enumerate(attempts)]
    names: Counter[str] = Counter()
    for prefix, run in runs:
        yield from _run(source, prefix, run, names)


def _run(source: Source, prefix: str, run: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
    history, where = _history(run)
    if not history:
        source.count_records()
        yield Problem("no_messages", (prefix or "file").rstrip("."), "the run has no history")
        return
    by_agent: dict[str, list[_Item]] = {}
    for item in rows.objects(source.counted(history, f"{prefix}{where}[{{}}]")):
        if isinstance(item, Problem):
            yield item
        else:
            by_agent.setdefault(as_str(item[1].get("agent")) or "main", []).append(item)
    facts = _facts(run)
    inputs = _inputs(run) if len(by_agent) == 1 and where == "history" else []
    for agent, items in by_agent.items():
        name = f"attempt {prefix[9:-2]} {agent}" if prefix else agent
        yield from _agent(unique_name(name[:200], names), items, facts, inputs)
    answers = sum(item.get("role") == "assistant" for item in as_dicts(history))
    steps = len(as_list(run.get("trajectory"))) if where == "history" else 0
    if steps > answers:  # blocked or malformed actions, which the agent requested again
        source.count_records(steps - answers)
        yield Ignored("step_outside_history", steps - answers)


def _inputs(run: dict[str, Json]) -> list[Json]:
    """Returns the input of each step as logged: its `query`, or the last `messages` before it."""
    steps = as_dicts(run.get("trajectory"))
    if any("query" in step for step in steps):
        return [step.get("query") for step in steps]
    return [None, *(step.get("messages") for step in steps[:-1])] if steps else []


@dataclass(frozen=True, slots=True)
class _Facts:
    """Metadata of a run."""

    model: str | None
    exit_status: str
    benchmark: str | None
    outcome: Mapping[str, Json]


def _facts(run: dict[str, Json]) -> _Facts:
    config = json_in_text(run.get("replay_config"))
    model = as_dict(config, "agent", "model")
    deployment = as_dict(config, "env", "deployment")
    return _Facts(
        name_or_none(model.get("name")),
        as_str(run, "info", "exit_status"),
        _benchmark_of_image(deployment.get("image")),
        outcome_beside(run) or {},
    )


def _agent(name: str, items: list[_Item], facts: _Facts, inputs: Sequence[Json]) -> Iterator[Event]:
    """Yields the conversation of one agent, and a separate one for a demonstration with turns."""
    steps = _Steps.compare([item for _, item in items], inputs)
    demo = [entry for entry in items if entry[1].get("is_demo") is True]
    if any(item.get("role") != "user" for _, item in demo):
        detail = "shown to the model, not its own work"
        problem = Problem("demonstration", demo[0][0], detail, records=0)
        yield _conversation(f"{name} demonstration", demo, facts, _Steps(), (problem,))
        items = [entry for entry in items if entry[1].get("is_demo") is not True]
    exit_at = _harness_exit(items, facts)
    if exit_at < len(items):
        yield Ignored("exit_message", len(items) - exit_at)
    if exit_at > 0:
        yield _conversation(name, items[:exit_at], facts, steps)


@dataclass(frozen=True, slots=True)
class _Steps:
    """The result of comparing the inputs of the steps with the history.

    compared   whether there were inputs to compare
    differing  `id()` of each answer whose input differs from the history before it
    """

    compared: bool = False
    differing: frozenset[int] = frozenset()

    @classmethod
    def compare(cls, history: list[dict[str, Json]], inputs: Sequence[Json]) -> _Steps:
        """Compares each input with the history before the answer of its step."""
        answers = [at for at, item in enumerate(history) if item.get("role") == "assistant"]
        if len(answers) != len(inputs) or not any(isinstance(given, list) for given in inputs):
            return cls()
        texts = [_text_of(item) for item in history]
        differing = frozenset(
            id(history[at])
            for at, given in zip(answers, inputs, strict=True)
            if isinstance(given, list) and [_text_of(as_dict(item)) for item in given] != texts[:at]
        )
        return cls(compared=True, differing=differing)


def _text_of(item: dict[str, Json]) -> tuple[str, str]:
    parts = content(item.get("content"))
    return as_str(item.get("role")), "".join(p.text for p in parts if isinstance(p, Text))


def _harness_exit(items: list[_Item], facts: _Facts) -> int:
    """Returns the index of the last answer if SWE-agent wrote it itself, else `len(items)`."""
    at = max((n for n, (_, item) in enumerate(items) if item.get("role") == "assistant"), default=0)
    item = items[at][1] if items else {}
    text = as_str(item.get("thought")) or as_str(item.get("content"))
    by_harness = _is_exit(text, facts.exit_status)
    return at if by_harness and not item.get("tool_calls") else len(items)


def _conversation(
    name: str,
    items: list[_Item],
    facts: _Facts,
    steps: _Steps,
    problems: tuple[Problem, ...] = (),
) -> Conversation:
    messages = [noted([_message(item)], item, message_keys("swe-agent"))[0] for _, item in items]
    has_calls = any(map(calls, messages))
    missing = {"tools"} if has_calls else set()
    if not any(item.role == "system" for item in messages):
        missing.add("system")
    level = "rendered" if steps.compared else "logged"
    for at, (_, item) in enumerate(items):
        if id(item) in steps.differing:
            context = Context("partial", tuple(sorted({*missing, "history"})))
            messages[at] = replace(messages[at], context=context)
    return Conversation(
        id=name,
        record=span(items[0][0], items[-1][0]),
        messages=tuple(messages),
        tools=None if has_calls else (),
        model=facts.model,
        records=len(items),
        problems=tuple(problems),
        complete=facts.exit_status == "submitted" and not problems,
        context=Context("partial" if missing else level, tuple(sorted(missing))),
        outcome=logged_outcome(
            facts.outcome, benchmark=facts.benchmark, exit_status=facts.exit_status
        ),
    )


def _message(item: dict[str, Json]) -> Message:
    role = as_str(item.get("role"))
    if role == "assistant":
        # Its `thought` is the text of the answer, in part.
        spoken = {key: value for key, value in item.items() if key != "thought"}
        return Message(role, assistant_parts(spoken))
    parts = content(item.get("content"))
    if role == "tool":
        ids = [name_or_none(value) for value in as_list(item.get("tool_call_ids"))]
        call_id = ids[0] if ids else name_or_none(item.get("tool_call_id"))
        return Message(role, (ToolResult(parts, call_id=call_id),))
    return Message(role, as_harness(parts) if item.get("is_demo") is True else parts)


READERS = (
    declared("mini-swe-agent", recognise=_recognise, read=_read),
    declared(
        "swe-agent",
        recognise=_recognise_runs,
        read=_read_run,
        splits=lambda source: rows.splits(source) and any(map(_is_row, source.peek.objects)),
    ),
)
