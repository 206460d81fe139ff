"""ATIF 1.0 to 1.8 (Harbor's agent trajectories), and the training rows that Harbor makes of them.

A record is a trajectory or a row. Source: atif.md. The format is written by converters, so what
it says is not always the model's: calls of terminus agents are reconstructed from its text, the
message beside a call of OpenHands is text of its user interface, results may name no call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from builder.conversation import (
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
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.runs.atif.harbor_rows import ENDING, extends, is_row, read_row
from builder.readers.toolkit.call_keys import CallKeys
from builder.readers.toolkit.chat_messages import as_harness, content, unknown_parts
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none
from builder.readers.toolkit.places import unique_name
from builder.sources.source import Record, Source


def recognise(source: Source) -> str | None:
    """Claim `schema_version` ATIF-… with steps, and rows with conversations and episode."""
    for item in source.peek.objects[:5]:
        if as_str(item.get("schema_version")).startswith("ATIF-") and "steps" in item:
            return "schema_version ATIF and steps"
        if is_row(item):
            return "Harbor's rows: conversations, episode, trial_name"
    return None


def read(source: Source) -> Iterator[Event]:
    """One conversation for each trajectory and each of its sub-agents; the last row of a trial."""
    names: Counter[str] = Counter()
    held: tuple[Record, dict[str, Json]] | None = None
    for record in source.records():
        row = as_dict(record.value) if isinstance(record, Record) else {}
        if held is not None:
            if is_row(row) and extends(row, held[1]):
                yield Used()
            else:
                yield _row(*held, names)
            held = None
        if isinstance(record, Problem):
            yield record
        elif not isinstance(record.value, dict):
            kind = type(record.value).__name__
            yield Problem("not_object", record.where, f"a trajectory is a {kind}")
        elif is_row(row):
            held = record, row
        else:
            yield from _trajectories(record, source.name, names)
    if held is not None:
        yield _row(*held, names)


def _row(record: Record, row: dict[str, Json], names: Counter[str]) -> Event:
    name = as_str(row.get("trial_name")) or as_str(row.get("run_id")) or "trial"
    return read_row(record, row, unique_name(name[:200], names))


def _trajectories(record: Record, scope: str, names: Counter[str]) -> Iterator[Event]:
    """The trajectory and those of its sub-agents, each apart."""
    top = as_dict(record.value)
    session = as_str(top.get("session_id")) or f"{scope} {record.where}"
    waiting = [(top, record.where, session)]
    records = 1
    while waiting:
        trajectory, where, keys = waiting.pop(0)
        own = as_str(trajectory.get("trajectory_id")) or as_str(trajectory.get("session_id"))
        yield _conversation(
            trajectory,
            unique_name(own[:200] or "trajectory", names),
            where,
            CallKeys(keys),
            records,
        )
        records = 0
        for number, child in enumerate(as_list(trajectory.get("subagent_trajectories"))):
            place = f"{where} subagent_trajectories[{number}]"
            name = as_str(as_dict(child).get("trajectory_id")) or str(number)
            waiting.append((as_dict(child), place, f"{keys}/{name}"))


def _conversation(
    trajectory: dict[str, Json], name: str, where: str, keys: CallKeys, records: int
) -> Event:
    agent = as_dict(trajectory.get("agent"))
    steps = [as_dict(step) for step in as_list(trajectory.get("steps"))]
    reading = _Steps(as_str(agent.get("name")), keys)
    for step in steps:
        reading.take(step)
    if not reading.messages:
        return Problem("no_messages", where, "the trajectory has no steps", records)
    model = name_or_none(agent.get("model_name"))
    tools = agent.get("tool_definitions")
    return Conversation(
        id=name,
        record=where,
        messages=tuple(reading.messages),
        tools=tuple(tools) if isinstance(tools, list) else None,
        model=model or next(filter(None, (name_or_none(s.get("model_name")) for s in steps)), None),
        records=records,
        problems=unknown_parts(reading.unknown, where),
        changes=reading.changes,
        complete=reading.ended,
    )


@dataclass(slots=True)
class _Steps:
    """The messages of a trajectory's steps."""

    agent: str
    keys: CallKeys
    messages: list[Message] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)
    ended: bool = False

    def take(self, step: dict[str, Json]) -> None:
        """Add a step."""
        source = as_str(step.get("source"))
        said = content(step.get("message"), self.unknown)
        results = self._results(step)
        if source == "agent":
            self._agent(step, said, results)
            return
        if source == "system":
            # Behind the first turn, they are the producer's notes on the run.
            late = any(message.role != "system" for message in self.messages)
            said = as_harness(said) if late else said
        if said:
            self.messages.append(Message(source, said))
        self._environment(results)

    def _agent(
        self, step: dict[str, Json], said: tuple[Part, ...], results: list[ToolResult]
    ) -> None:
        calls = self._calls(step)
        if calls and self.agent == "openhands":
            said = tuple(Text(p.text, harness=True) if isinstance(p, Text) else p for p in said)
        thought = as_str(step.get("reasoning_content"))
        spoken = _spoken(thought, said)
        if not calls and not spoken:  # a blank step carries what the environment did
            self._environment(results)
            return
        by_model = step.get("llm_call_count") != 0 and step.get("is_copied_context") is not True
        self.messages.append(
            Message("assistant", (*spoken, *calls), untrained=None if by_model else "inserted")
        )
        self.ended = any(isinstance(call, ToolCall) and call.name in ENDING for call in calls)
        if calls and results:
            self.messages.append(Message("tool", tuple(results)))
        else:
            self._environment(results)

    def _calls(self, step: dict[str, Json]) -> list[Part]:
        """The calls of a step, also those of writers that keep to OpenAI's names."""
        calls: list[Part] = []
        for item in as_list(step.get("tool_calls")):
            call = as_dict(item)
            function = as_dict(call.get("function"))
            name = call.get("function_name") or call.get("name") or function.get("name")
            arguments = call["arguments"] if "arguments" in call else function.get("arguments")
            call_id = name_or_none(call.get("tool_call_id")) or name_or_none(call.get("id"))
            if isinstance(name, str) and name:
                key = self.keys.of(call_id)
                calls.append(ToolCall(name, arguments, id=call_id, key=key))
            else:
                calls.append(Unparsed(dumps(item), "bad_call"))
        if self.agent.startswith("terminus"):
            self.changes["reconstructed_call"] += len(calls)
        return calls

    def _results(self, step: dict[str, Json]) -> list[ToolResult]:
        observation = step.get("observation") or step.get("observations")
        items = observation if isinstance(observation, list) else None
        if items is None:
            items = as_list(as_dict(observation).get("results"))
        return [
            ToolResult(
                content(as_dict(item).get("content"), self.unknown),
                call_id=name_or_none(as_dict(item).get("source_call_id")),
            )
            for item in items
        ]

    def _environment(self, results: list[ToolResult]) -> None:
        """Results outside a step that calls: of the calls before, or the environment's words."""
        for result in results:
            if result.call_id is not None:
                self.messages.append(Message("tool", (result,)))
            elif result.content:
                self.messages.append(Message("user", as_harness(result.content)))


def _spoken(thought: str, said: tuple[Part, ...]) -> tuple[Part, ...]:
    """Thoughts and words; what stands before a `</think>` in the words is a thought as well."""
    thoughts = [Reasoning(thought)] if thought else []
    first = said[0] if said else None
    if not isinstance(first, Text) or "</think>" not in first.text:
        return (*thoughts, *said)
    before, _, after = first.text.partition("</think>")
    before = before.strip().removeprefix("<think>").strip()
    if before and before != thought.strip():
        thoughts.append(Reasoning(before))
    words = after.lstrip("\n")
    rest = [Text(words, harness=first.harness)] if words.strip() else []
    return (*thoughts, *rest, *said[1:])


READER = Reader(
    name="atif",
    summary="ATIF trajectories (schema_version ATIF-…, agent, steps) and Harbor's training rows",
    recognise=recognise,
    read=read,
)
