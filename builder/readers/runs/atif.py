"""Reads ATIF 1.0 to 1.8 (Harbor's agent trajectories), and the training rows that Harbor makes.

Source: docs/formats/atif.md; harbor 0.25.0 agents/terminus_2/, agents/installed/, models/trial.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Event,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    Used,
)
from builder.jsonio import JsonFault, dumps
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit import function_text, tags
from builder.readers.toolkit.chat_messages import as_harness, content
from builder.readers.toolkit.comparison import CallKeys, calls
from builder.readers.toolkit.made_up import end_at_made_up
from builder.readers.toolkit.marks import ids_beside
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    name_of,
    name_or_none,
    tuple_or_none,
)
from builder.readers.toolkit.places import Segments, unique_name
from builder.readers.toolkit.rows import logged_outcome, objects, outcome_beside
from builder.readers.toolkit.unknown_keys import noted, unknown_names
from builder.sources.listing import Listing
from builder.sources.source import Source

# -- rows of Harbor's exporter: prefixes of a trial, of which the longest is used -----------------

ENDING = frozenset({"finish", "mark_task_complete"})
"""Tools with which Harbor's agents end their run; nothing answers these calls."""


def is_row(item: dict[str, Json]) -> bool:
    """Returns whether an object is a row of Harbor's exporter."""
    return isinstance(item.get("conversations"), list) and {"episode", "trial_name"} <= item.keys()


def extends(later: dict[str, Json], earlier: dict[str, Json]) -> bool:
    """Returns whether a row continues the messages of an earlier row of its trial."""
    if any(later.get(key) != earlier.get(key) for key in ("run_id", "trial_name")):
        return False
    messages, before = as_list(later.get("conversations")), as_list(earlier.get("conversations"))
    return len(messages) > len(before) and messages[: len(before)] == before


def read_row(where: str, row: dict[str, Json], name: str) -> Conversation | Problem:
    """Returns the conversation of a row."""
    items = as_dicts(row.get("conversations"))
    if not items:
        return Problem("no_messages", where, "the row contains no messages")
    changes: Counter[str] = Counter()
    tools: tuple[Json, ...] | None = None
    texts = [as_str(item.get("content")) for item in items]
    roles = [as_str(item.get("role")) for item in items]
    tagged = any(
        role == "assistant" and "<tool_call>" in text
        for role, text in zip(roles, texts, strict=True)
    )
    if roles[:2] == ["user", "user"]:
        roles[0] = "system"
        changes["system_as_user"] += 1
    messages: list[Message] = []
    for item, role, text in zip(items, roles, texts, strict=True):
        if role in ("system", "user") and not messages and text:
            rest, tools = _definitions(text, tagged, changes)
            messages.append(Message(role, content(rest)))
        elif role == "assistant" and text:
            messages.append(Message(role, _answer(text, tagged, tools, changes)))
        elif role == "user" and messages and calls(messages[-1]):
            messages.append(Message("tool", (ToolResult(content(item.get("content"))),)))
        else:
            messages.append(Message(role, content(item.get("content"))))
    return Conversation(
        id=name,
        record=where,
        messages=end_at_made_up(messages),
        tools=tools,
        model=name_or_none(row.get("model")),
        records=1,
        changes=changes,
        complete=any(call.name in ENDING for call in calls(messages[-1])),
        outcome=_outcome(row),
    )


def _outcome(row: dict[str, Json]) -> dict[str, Json] | None:
    """Returns `result` as the reward if it is a number or its text, else as an error's name."""
    result = row.get("result")
    if not isinstance(result, str | int | float) or result == "":
        return None
    try:
        float(result)
    except ValueError:
        return {"error": result}
    return {"reward": result}


def _definitions(
    text: str, tagged: bool, changes: Counter[str]
) -> tuple[str, tuple[Json, ...] | None]:
    if tagged:
        try:
            return tags.take_tools(text, changes)
        except JsonFault:
            return text, None
    return function_text.take_definitions(text, changes)


def _answer(
    text: str, tagged: bool, tools: tuple[Json, ...] | None, changes: Counter[str]
) -> tuple[Part, ...]:
    if tagged:
        return tuple(tags.assistant_parts(text, changes))
    return function_text.assistant_parts(text, function_text.parameter_types(tools), None, changes)


# -- steps ---------------------------------------------------------------------------------------

_TERMINUS = "terminus"
_OPENHANDS = "openhands"
_PARSED = re.compile(r"(?:Analysis|Plan): ")
"""The beginning of messages that terminus-2 composes from the model's JSON or XML."""
_MADE_UP = "Technical difficulties. Please continue with the task."
"""The text that terminus-2 logs as the model's when every request failed."""
_HANDOFF = "Performed context summarization and handoff"
"""The system step of terminus-2 versions without `context_management`."""

_Lookup = Callable[[dict[str, Json]], Sequence[dict[str, Json]]]
"""Maps a subagent_trajectory_ref to the steps of its trajectory, () if not in the log."""

_KEYS = frozenset({
    "step_id", "timestamp", "source", "model_name", "reasoning_effort", "message",
    "reasoning_content", "tool_calls", "observation", "observations", "metrics",
    "is_copied_context", "llm_call_count", "extra",
})  # fmt: skip
"""Keys of a step; `extra` is for the program that wrote it."""


@dataclass(slots=True)
class _Segment:
    """The messages from one replacement of the model's context to the next.

    ended  the last step ended the run with a call that has no result
    """

    messages: list[Message] = field(default_factory=list)
    context: Context | None = None
    ended: bool = False

    @property
    def has_calls(self) -> bool:
        """Returns whether a turn calls a tool."""
        return any(map(calls, self.messages))


class Steps:
    """Reads the steps of one trajectory: `take` each in order, then see `segments`."""

    def __init__(self, agent: dict[str, Json], keys: CallKeys, lookup: _Lookup) -> None:
        self.segments = [_Segment()]
        self.changes: Counter[str] = Counter()
        self._agent = as_str(agent.get("name"))
        self._keys = keys
        self._lookup = lookup
        if self.in_text:  # the log contains the whole prompt, one user message
            self.segments[0].context = Context("logged")

    @property
    def in_text(self) -> bool:
        """Returns whether the agent offers no tools and parses JSON or XML in the model's text."""
        return self._agent.startswith(_TERMINUS)

    @property
    def _messages(self) -> list[Message]:
        return self.segments[-1].messages

    def take(self, step: dict[str, Json]) -> None:
        """Adds a step."""
        before, at = self._messages, len(self._messages)
        self._take(step)
        if self._messages is before and unknown_names(step, _KEYS):
            before[at:] = noted(before[at:], {**step, "role": step.get("source")}, _KEYS)

    def _take(self, step: dict[str, Json]) -> None:
        source = as_str(step.get("source"))
        parts = content(step.get("message"))
        results = self._results(step)
        if source == "agent":
            self._answer(step, parts, results)
            return
        if source == "system" and _replaces_context(step):
            self._replace_context(step)
            return
        late = any(message.role != "system" for message in self._messages)
        if source == "system" and late:
            if self._agent == _OPENHANDS:  # the interface's text for recalled knowledge
                self.changes["ui_text_dropped"] += bool(parts)
                parts = ()
            parts = as_harness(parts)
        if parts:
            self._messages.append(Message(source, parts))
        self._environment(results)

    def _answer(
        self, step: dict[str, Json], parts: tuple[Part, ...], results: list[ToolResult]
    ) -> None:
        calls = self._calls(step)
        if calls and self._agent == _OPENHANDS:  # the interface's text for the call
            self.changes["ui_text_dropped"] += any(isinstance(part, Text) for part in parts)
            parts = tuple(part for part in parts if not isinstance(part, Text))
        answer = _with_thoughts(as_str(step.get("reasoning_content")), parts)
        if not calls and not answer:  # an empty step contains the environment's actions
            self._environment(results)
            return
        code = self._untrained(step, parts, bool(calls))
        model = name_or_none(step.get("model_name"))
        tokens = ids_beside(step.get("metrics"))
        parts = (*answer, *calls)
        turn = Message("assistant", parts, untrained=code, model=model, tokens=tokens)
        self._messages.append(turn)
        self.segments[-1].ended = any(
            isinstance(call, ToolCall) and call.name in ENDING for call in calls
        )
        if calls and results:
            self._messages.append(Message("tool", tuple(results)))
        else:
            self._environment(results)

    def _untrained(self, step: dict[str, Json], parts: Sequence[Part], called: bool) -> str | None:
        text = next((part.text for part in parts if isinstance(part, Text)), "")
        if step.get("llm_call_count") == 0 or text == _MADE_UP:
            return "inserted"
        count = step.get("llm_call_count")
        if isinstance(count, int) and count > 1:
            self.changes["merged_answers"] += 1
            return "edited"
        if self.in_text and (called or _PARSED.match(text)):
            # The model answers in JSON or XML; the log contains only the parsed values.
            self.changes["reconstructed_answer"] += 1
            return "edited"
        return REPEAT if step.get("is_copied_context") is True else None

    def _calls(self, step: dict[str, Json]) -> list[Part]:
        """Returns the calls of a step; some writers use OpenAI's keys."""
        calls: list[Part] = []
        for item in as_list(step.get("tool_calls")):
            call = as_dict(item)
            function = as_dict(call.get("function"))
            name = call.get("function_name") or call.get("name") or function.get("name")
            arguments = call["arguments"] if "arguments" in call else function.get("arguments")
            call_id = name_of(call, "tool_call_id", "id")
            if isinstance(name, str) and name:
                key = self._keys.of(call_id)
                calls.append(ToolCall(name, arguments, id=call_id, key=key))
            else:
                calls.append(Unparsed(dumps(item), "bad_call"))
        return calls

    def _results(self, step: dict[str, Json]) -> list[ToolResult]:
        observation = step.get("observation") or step.get("observations")
        items = as_list(observation) or as_list(observation, "results")
        return [
            ToolResult(
                content(as_dict(item).get("content")),
                call_id=name_or_none(as_dict(item).get("source_call_id")),
            )
            for item in items
        ]

    def _environment(self, results: list[ToolResult]) -> None:
        """Adds results of a step without calls: of earlier calls, or text of the environment."""
        for result in results:
            if result.call_id is not None:
                self._messages.append(Message("tool", (result,)))
            elif result.content:
                self._messages.append(Message("user", as_harness(result.content)))

    def _replace_context(self, step: dict[str, Json]) -> None:
        """Begins a segment with the history that a compaction keeps.

        System texts stay. terminus-2 also keeps the task, and the summary and questions of a
        sub-agent, which the next step answers.
        """
        first = self.segments[0].messages
        kept = [message for message in first if message.role == "system"]
        context = None
        if self.in_text:
            kept += [message for message in first if message.role == "user"][:1]
            questions = self._questions(step)
            kept += questions
            context = Context("logged") if questions else Context("partial", ("history",))
        self.segments.append(_Segment(kept, context))

    def _questions(self, step: dict[str, Json]) -> list[Message]:
        """Returns the messages of the sub-agent that got the summary and asked questions."""
        results = as_list(step, "observation", "results")
        for result in results:
            for ref in as_dicts(result, "subagent_trajectory_ref"):
                named = " ".join(
                    as_str(ref.get(key))
                    for key in ("trajectory_path", "trajectory_id", "session_id")
                )
                if "questions" not in named:
                    continue
                reading = Steps({}, CallKeys(named), lambda _: ())
                for asking in self._lookup(ref):
                    reading.take(asking)
                return [
                    replace(message, untrained=REPEAT) if message.role == "assistant" else message
                    for message in reading.segments[0].messages
                ]
        return []


def _replaces_context(step: dict[str, Json]) -> bool:
    management = as_dict(step, "extra", "context_management")
    if management:
        return management.get("boundary", "replace") == "replace"
    return as_str(step.get("message")).startswith(_HANDOFF)


def _with_thoughts(thought: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    thoughts = [Reasoning(thought)] if thought else []
    first = parts[0] if parts else None
    if not isinstance(first, Text) or "</think>" not in first.text:
        return (*thoughts, *parts)
    before, _, after = first.text.partition("</think>")
    before = before.strip().removeprefix("<think>").strip()
    if before and before != thought.strip():
        thoughts.append(Reasoning(before))
    text = after.lstrip("\n")
    rest = [Text(text, harness=first.harness)] if text.strip() else []
    return (*thoughts, *rest, *parts[1:])


# -- trajectories --------------------------------------------------------------------------------

_MEMBER = re.compile(r"result\.json|agent/trajectory(?:\.[^/]+)?\.json")
_DERIVED = re.compile(r"-(?:cont|summarization)-\d+.*")
"""The suffix that terminus-2 adds to the session id for a continuation or a sub-agent."""


def is_store(folder: Listing) -> bool:
    """Returns whether a folder is a trial of Harbor, with a result and a trajectory."""
    return folder.is_file("result.json") and folder.is_file("agent/trajectory.json")


def holds(name: str) -> bool:
    """Returns whether a file of a trial is its result or a trajectory."""
    return _MEMBER.fullmatch(name) is not None


def _recognise(source: Source) -> str | None:
    """Claims `schema_version` ATIF-… with steps, and rows with conversations and episode."""
    for member in source.members or (source,):
        for item in member.peek.objects[:5]:
            if as_str(item.get("schema_version")).startswith("ATIF-") and "steps" in item:
                return "schema_version ATIF and steps"
            if is_row(item):
                return "Harbor's rows: conversations, episode, trial_name"
    return None


def read(source: Source) -> Iterator[Event]:
    """Yields conversations of trajectories and their sub-agents, and one for each trial's rows."""
    if source.members:
        yield from _trial(source)
        return
    names: Counter[str] = Counter()
    pending: tuple[str, dict[str, Json]] | None = None  # a row that the next may extend
    for item in objects(source.records(), "a trajectory is "):
        row = {} if isinstance(item, Problem) else item[1]
        if pending is not None:
            extended = is_row(row) and extends(row, pending[1])
            yield Used() if extended else _row(*pending, names)
            pending = None
        if isinstance(item, Problem):
            yield item
        elif is_row(row):
            pending = item
        else:
            yield from _Trajectories(source.name, names).events([item])
    if pending is not None:
        yield _row(*pending, names)


def _row(where: str, row: dict[str, Json], names: Counter[str]) -> Event:
    name = name_of(row, "trial_name", "run_id") or "trial"
    return read_row(where, row, unique_name(name[:200], names))


def _trial(source: Source) -> Iterator[Event]:
    outcome: Mapping[str, Json] | None = None
    trajectories: list[tuple[str, dict[str, Json]]] = []
    for member in source.members:
        for record in member.records():
            where = f"{member.name} {record.where}"
            if isinstance(record, Problem):
                yield replace(record, where=where)
            elif not isinstance(record.value, dict):
                yield Problem("not_object", where, "neither a trajectory nor a result")
            elif "steps" in record.value:
                trajectories.append((where, record.value))
            elif {"task_name", "trial_name"} <= record.value.keys():
                outcome = _trial_outcome(record.value)
                yield Used()
            else:
                yield Problem("unknown_shape", where, "neither a trajectory nor a result")
    yield from _Trajectories(source.name, Counter(), outcome).events(trajectories)


def _trial_outcome(result: dict[str, Json]) -> Mapping[str, Json] | None:
    """Returns the outcome of a trial; source: harbor 0.25.0 models/{trial,verifier}/result.py.

    reward     the only reward if it is named `reward`, else the object of all rewards
    error      type of the exception that ended the run
    benchmark  the dataset that contains the task, if there is one
    """
    rewards = as_dict(result, "verifier_result", "rewards")
    reward: Json = rewards["reward"] if rewards.keys() == {"reward"} else dict(rewards)
    return logged_outcome(
        benchmark=name_or_none(result.get("source")),
        error=name_or_none(as_dict(result.get("exception_info")).get("exception_type")),
        reward=reward,
    )


class _Trajectories:
    """Reads the trajectories of one run, which may refer to one another."""

    def __init__(
        self, scope: str, names: Counter[str], outcome: Mapping[str, Json] | None = None
    ) -> None:
        self._scope = scope
        self._names = names
        self._outcome = outcome
        self._steps: dict[str, list[dict[str, Json]]] = {}  # by path, id and session

    def events(self, trajectories: Sequence[tuple[str, dict[str, Json]]]) -> Iterator[Event]:
        """Yields the conversations of the trajectories and of the sub-agents in them."""
        waiting: list[tuple[str, dict[str, Json], str, int]] = []
        for where, top in trajectories:
            session = as_str(top.get("session_id")) or f"{self._scope} {where}"
            # From 1.7 on, several trajectories of a run may have its session id.
            ids = filter(None, (session, as_str(top.get("trajectory_id"))))
            waiting.append((where, top, "/".join(_DERIVED.sub("", one) for one in ids), 1))
        for where, trajectory, keys, _ in waiting:  # grows in the loop
            self._remember(where, trajectory)
            for number, child in enumerate(as_list(trajectory.get("subagent_trajectories"))):
                name = as_str(child, "trajectory_id") or str(number)
                place = f"{where} subagent_trajectories[{number}]"
                waiting.append((place, as_dict(child), f"{keys}/{name}", 0))
        for where, trajectory, keys, records in waiting:
            yield from self._conversations(where, trajectory, CallKeys(keys), records)

    def _remember(self, where: str, trajectory: dict[str, Json]) -> None:
        steps = as_dicts(trajectory.get("steps"))
        ids = (trajectory.get("trajectory_id"), trajectory.get("session_id"))
        for name in (posixpath.basename(where.partition(" ")[0]), *map(as_str, ids)):
            if name:
                self._steps.setdefault(name, steps)

    def _lookup(self, ref: dict[str, Json]) -> Sequence[dict[str, Json]]:
        path = posixpath.basename(as_str(ref.get("trajectory_path")))
        names = (path, as_str(ref.get("trajectory_id")), as_str(ref.get("session_id")))
        return next((self._steps[name] for name in names if name in self._steps), ())

    def _conversations(
        self, where: str, trajectory: dict[str, Json], keys: CallKeys, records: int
    ) -> Iterator[Event]:
        agent = as_dict(trajectory.get("agent"))
        steps = as_dicts(trajectory.get("steps"))
        reading = Steps(agent, keys, self._lookup)
        for step in steps:
            reading.take(step)
        segments = [segment for segment in reading.segments if segment.messages]
        if not segments:
            yield Problem("no_messages", where, "the trajectory has no steps", records)
            return
        name = name_of(trajectory, "trajectory_id", "session_id") or "trajectory"
        models = (name_or_none(item.get("model_name")) for item in (agent, *steps))
        model = next(filter(None, models), None)
        named = Segments(name[:200], records, self._names)
        for segment in segments:
            tools = tuple_or_none(agent.get("tool_definitions"))
            if tools is None and reading.in_text and not segment.has_calls:
                tools = ()
            yield Conversation(
                id=named.next_name(),
                record=where,
                messages=tuple(segment.messages),
                tools=tools,
                model=model,
                records=named.take_records(),
                changes=reading.changes if named.segments == 1 else {},
                complete=segment.ended,
                context=segment.context,
                outcome=self._outcome or outcome_beside(trajectory),
            )


READER = declared(
    "atif", recognise=_recognise, read=read, is_store=is_store, holds=holds, exclusive=False
)
