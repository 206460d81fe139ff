"""Reads OpenHands V0: event lists, event stores, evaluation outputs, and logs of model calls.

A record is an event, a row of an output file, or a model call. Source:
docs/formats/openhands-v0.md; OpenHands' memory/conversation_memory.py for what the model sees of an
event. Calls are taken from the model's response in `tool_call_metadata.model_response`, never from
the actions that OpenHands derived from it. For actions without that metadata (agents of 2024), the
model's own text is not logged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import (
    Data,
    Event,
    Ignored,
    Json,
    Media,
    Text,
    ToolCall,
    ToolResult,
    unknown_part,
)
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.openhands.views import (
    FINISH,
    AgentViews,
    ViewEntry,
    is_llm_log,
    llm_log,
    with_affixes,
)
from builder.readers.toolkit.chat_messages import as_harness, assistant_parts, content
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none, unknown_code
from builder.readers.toolkit.places import ignored, unique_name
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.unknown_keys import carries_content, unknown_message
from builder.sources.listing import Listing
from builder.sources.source import Record, Source

_FIRST_EVENT = "0.json"
_SOURCES = frozenset({"user", "agent", "environment"})
_SILENT_ACTIONS = frozenset(
    {"null", "change_agent_state", "condensation_request", "pause", "resume", "stop", "start"}
)
_SILENT_OBSERVATIONS = frozenset({"null", "agent_state_changed"})
_NOTES = {
    "error": "[Error occurred in processing last action]",
    "user_rejected": "[Last action has been rejected by the user]",
}
"""The line sent after the content of these observations. Source: conversation_memory."""
_EVENT_FILE = re.compile(r"\d+\.json")


def _is_store(folder: Listing) -> bool:
    """Returns whether the folder contains the events of one session, one per file (0.json, …)."""
    head = folder.first(_FIRST_EVENT, 1 << 12)
    return b'"source"' in head and (b'"action"' in head or b'"observation"' in head)


def _recognise(source: Source) -> str | None:
    """Claims events (source, and action or observation), rows with their history, LLM logs."""
    if source.peek.kind == "folder":
        first = next((member for member in source.members if member.name == "0.json"), None)
        return _recognise(first) if first else None
    for item in source.peek.objects[:5]:
        if _is_event(item) and as_str(item.get("source")) in _SOURCES:
            return "events with source and action or observation"
        history = as_list(item.get("history"))
        first_event = history[0] if history else None
        if isinstance(first_event, list):  # 2024: pairs of action and observation
            first_event = first_event[0] if first_event else None
        if ("instance_id" in item or "instruction" in item) and _is_event(as_dict(first_event)):
            return "rows with instruction and a history of events"
        if is_llm_log(item) and "latency_sec" not in item:
            return "the log of a model call: messages, response, kwargs, cost"
    return None


def _is_event(item: dict[str, Json]) -> bool:
    return isinstance(item.get("action"), str) or isinstance(item.get("observation"), str)


def read(source: Source) -> Iterator[Event]:
    """Yields one conversation for each session or row, more if its history was rewritten."""
    names: Counter[str] = Counter()
    session = _Session("session", source.name)
    ignored_events: Counter[str] = Counter()
    used = 0
    for record in objects(_records(source), "an event is "):
        if isinstance(record, Problem | Ignored):
            yield record
            continue
        where, value = record
        if "history" in value:
            yield from _row(where, value, names, source.name)
        elif is_llm_log(value):
            yield llm_log(where, value)
        elif code := session.take(value, where):
            ignored_events[code] += 1
        else:
            used += 1
    yield from ignored(ignored_events)
    if used:
        yield from session.events(used)


def _records(source: Source) -> Iterator[Record | Problem | Ignored]:
    """Yields the records of a file, or the events of a store in order."""
    events = [member for member in source.members if _EVENT_FILE.fullmatch(member.name)]
    for member in sorted(events, key=lambda member: int(member.name.removesuffix(".json"))):
        value = member.document()
        member.count_records()
        if isinstance(value, Problem):
            yield replace(value, where=member.name)
        else:
            yield Record(member.name, value)
    if source.members:
        others = len(source.members) - len(events)
        source.count_records(others)
        yield from [Ignored("other_file")] * others
    else:
        yield from source.records()


def _row(where: str, row: dict[str, Json], names: Counter[str], scope: str) -> Iterator[Event]:
    """Yields the conversations of a row of an evaluation or of the issue resolver."""
    issue = as_dict(row.get("issue"))
    name = as_str(row.get("instance_id")) or f"issue {issue.get('number')}"
    session = _Session(unique_name(name[:200], names), scope)
    for item in as_list(row.get("history")):
        for event in item if isinstance(item, list) else [item]:
            session.take(as_dict(event), where)
    config = as_dict(row, "metadata", "llm_config")
    session.main.model = session.main.model or name_or_none(config.get("model"))
    session.main.outcome.update(_outcome(row))
    yield from session.events(1, where=where)


def _outcome(row: dict[str, Json]) -> dict[str, Json]:
    outcome: dict[str, Json] = {}
    if dataset := name_or_none(as_dict(row.get("metadata")).get("dataset")):
        outcome["benchmark"] = dataset
    if isinstance(error := row.get("error"), str) and error:
        outcome["error"] = error
    result = as_dict(row.get("test_result"))
    for report in (result, as_dict(result.get("report")), as_dict(row.get("report")), row):
        if isinstance(resolved := report.get("resolved"), bool):
            outcome["resolved"] = resolved
    if isinstance(success := row.get("success"), bool):
        outcome["labels"] = {"success": success}
    return outcome


class _Session:
    """The events of one session: its agent's and, separately, those of delegates."""

    def __init__(self, name: str, scope: str) -> None:
        self.main = AgentViews(name, f"{scope}/{name}")
        self.agents = [self.main]
        self.running = [self.main]
        self.called: dict[str, str] = {}  # event id → id of its call
        self.unlogged: str | None = None  # the last action whose call was not logged
        self.responses: set[str] = set()

    def take(self, event: dict[str, Json], where: str) -> str:
        """Reads the next event; returns the code under which it is ignored, "" if it is used."""
        agent = self.running[-1]
        event_id = str(event.get("id", f"{where} {len(agent.view)}"))
        if isinstance(event.get("action"), str):
            code = self._action(agent, event, event_id, where)
        elif "observation" in event:
            code = self._observation(agent, event, event_id)
        else:
            code = unknown_code("event")
            if carries_content(event):
                agent.add(ViewEntry(event_id, "user", unknown_message("event").parts))
        if not code:
            agent.places.append(where)
        return code

    def events(self, records: int, where: str = "") -> Iterator[Event]:
        """Yields the conversations of all agents."""
        for agent in self.agents:
            if agent is self.main or agent.view:
                yield from agent.events(records, complete=agent.ended is not None, where=where)
                records = 0

    def _action(self, agent: AgentViews, event: dict[str, Json], event_id: str, where: str) -> str:
        action = as_str(event.get("action"))
        args = as_dict(event.get("args")) if "args" in event else event
        output = content(args.get("content"))
        if action in _SILENT_ACTIONS:
            return "no_message"
        if action == "recall":
            agent.add(ViewEntry(event_id))
            return "no_message"
        if event.get("tool_call_metadata"):
            entry = self._call(agent, event, event_id)
            agent.add(entry)
            if action == FINISH:
                agent.ended = entry
        elif action == "system":
            agent.add(ViewEntry(event_id, "system", output))
            tools = args.get("tools")
            agent.tools = tuple(tools) if isinstance(tools, list) else None
        elif action == "message":
            images = as_list(args.get("image_urls") or args.get("images_urls"))
            parts = (*output, *(Media("image") for _ in images))
            role = "assistant" if event.get("source") == "agent" else "user"
            harness = event.get("source") == "environment"
            agent.add(ViewEntry(event_id, role, as_harness(parts) if harness else parts))
        elif action == "condensation":
            summary, offset = as_str(args.get("summary")), _number(args.get("summary_offset"))
            agent.condense(_forgotten(args, agent.view), summary, offset, event_id)
        else:
            self._unlogged_call(agent, event, args, event_id, where)
        if action == "delegate":
            self._delegate()
        return ""

    def _call(self, agent: AgentViews, event: dict[str, Json], event_id: str) -> ViewEntry:
        """Adds the model's turn, at the first of the actions that its calls became."""
        metadata = as_dict(event.get("tool_call_metadata"))
        response = as_dict(metadata.get("model_response"))
        choices = as_list(response.get("choices"))
        message = as_dict(choices[0], "message") if choices else {}
        turn = name_or_none(response.get("id")) or event_id
        model = name_or_none(response.get("model"))
        agent.model = agent.model or model
        self.called[event_id] = as_str(metadata.get("tool_call_id"))
        if turn in self.responses:
            return ViewEntry(event_id, "assistant", turn=turn, model=model)
        self.responses.add(turn)
        parts = tuple(
            replace(part, key=f"{turn}/{number}") if isinstance(part, ToolCall) else part
            for number, part in enumerate(assistant_parts(message))
        )
        return ViewEntry(event_id, "assistant", parts, turn, model=model)

    def _unlogged_call(
        self,
        agent: AgentViews,
        event: dict[str, Json],
        args: dict[str, Json],
        event_id: str,
        where: str,
    ) -> None:
        """Adds an action without the model's own text; its call is counted but cannot be used."""
        action = as_str(event.get("action"))
        arguments: Json = {
            name: value for name, value in args.items() if name not in ("action", "thought")
        }
        if event.get("source") == "user":
            agent.problems.append(Problem("user_action", where, f"the user's own {action[:40]}", 0))
            agent.add(ViewEntry(event_id, "user", (Data(arguments),)))
            return
        detail = f"action {action[:40]!r} is logged, the model's call is not"
        agent.problems.append(Problem("no_model_response", where, detail, records=0))
        self.unlogged = f"action {len(agent.view)}"
        thought = as_str(args.get("thought"))
        call = ToolCall(action, arguments, id=self.unlogged, key=event_id)
        agent.add(ViewEntry(event_id, "assistant", (*([Text(thought)] if thought else []), call)))

    def _delegate(self) -> None:
        place = f"delegate {len(self.agents)}"
        agent = AgentViews(f"{self.main.name} {place}", f"{self.main.scope} {place}")
        self.agents.append(agent)
        self.running.append(agent)

    def _observation(self, agent: AgentViews, event: dict[str, Json], event_id: str) -> str:
        kind = as_str(event.get("observation")) or "null"
        extras = as_dict(event.get("extras"))
        if kind == "agent_state_changed" and isinstance(state := extras.get("agent_state"), str):
            self.main.outcome["exit_status"] = state
        if kind in _SILENT_OBSERVATIONS:
            return "no_message"
        if kind == "recall":  # inserted into the user's message by a template that is not logged
            agent.add(ViewEntry(event_id))
            agent.changes["recall_left_out"] += 1
            return "no_message"
        if kind == "delegate" and len(self.running) > 1:
            self.running.pop()
            agent = self.running[-1]
        metadata = as_dict(event.get("tool_call_metadata"))
        call_id = as_str(metadata.get("tool_call_id"))
        call_id = call_id or self.called.get(str(event.get("cause"))) or self.unlogged or ""
        output = with_affixes(content(event.get("content")), extras.get("metadata"))
        if call_id:
            self.unlogged = None
            if kind in _NOTES:
                output = (*output, Text(_NOTES[kind]))
            result = ToolResult(
                output,
                call_id=call_id,
                name=name_or_none(metadata.get("function_name")),
                is_error=kind == "error",
                is_denied=kind == "user_rejected",
            )
            agent.add(ViewEntry(event_id, "tool", (result,)))
        elif kind == "error":  # an answer that is no valid action
            parts = as_harness((*output, Text(_NOTES["error"])))
            agent.add(ViewEntry(event_id, "user", parts))
        elif output:
            agent.add(ViewEntry(event_id, "user", (unknown_part(f"observation {kind}"),)))
        else:
            return unknown_code(kind)
        return ""


def _forgotten(args: dict[str, Json], view: list[ViewEntry]) -> set[str]:
    """Returns the ids of the events that a condensation forgets: a list, or a range."""
    ids = {str(event) for event in as_list(args.get("forgotten_event_ids"))}
    first, last = args.get("forgotten_events_start_id"), args.get("forgotten_events_end_id")
    if isinstance(first, int) and isinstance(last, int):
        numbers = ((entry.event, _number(entry.event)) for entry in view)
        ids |= {event for event, number in numbers if first <= number <= last}
    return ids


def _number(value: Json) -> int:
    """Returns an event id given as a number or as its text; else 0."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) else 0


READER = Reader(
    name="openhands-v0",
    summary="OpenHands V0: lists and stores of events, evaluation output.jsonl, llm_completions",
    evidence=("source", "files"),
    recognise=_recognise,
    is_agent=True,
    read=read,
    is_store=_is_store,
)
