"""ATIF 1.0 to 1.8 (Harbor's agent trajectories), and the training rows that Harbor makes of them.

A record is a trajectory or a row. A trial of Harbor is a folder with the result of the run, the
trajectory, its continuations and those of the sub-agents that summarised it.
Source: docs/formats/atif.md.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from builder.conversation import Conversation, Event, Json, Used
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.runs.atif.harbor_rows import extends, is_row, read_row
from builder.readers.runs.atif.steps import Steps
from builder.readers.toolkit.comparison import CallKeys
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
from builder.sources.listing import Listing
from builder.sources.source import Source

_MEMBER = re.compile(r"result\.json|agent/trajectory(?:\.[^/]+)?\.json")
_DERIVED = re.compile(r"-(?:cont|summarization)-\d+.*")
"""The suffix that terminus-2 adds to the session id for a continuation or a sub-agent."""


def is_store(folder: Listing) -> bool:
    """Returns whether a folder is a trial of Harbor, with a result and a trajectory."""
    return folder.is_file("result.json") and folder.is_file("agent/trajectory.json")


def holds(name: str) -> bool:
    """Returns whether a file of a trial is its result or a trajectory."""
    return _MEMBER.fullmatch(name) is not None


def recognise(source: Source) -> str | None:
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
    """Yields the events of a trial's folder."""
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
                outcome = _outcome(record.value)
                yield Used()
            else:
                yield Problem("unknown_shape", where, "neither a trajectory nor a result")
    yield from _Trajectories(source.name, Counter(), outcome).events(trajectories)


def _outcome(result: dict[str, Json]) -> Mapping[str, Json] | None:
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


READER = Reader(
    name="atif",
    summary="ATIF trajectories (schema_version ATIF-…, agent, steps) and Harbor's training rows",
    evidence=("source", "files"),
    recognise=recognise,
    read=read,
    is_store=is_store,
    holds=holds,
    exclusive=False,
)
