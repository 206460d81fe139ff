"""Reads OpenHands V0 and V1 (SDK). Source: docs/formats/openhands-v0.md and -v1."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from builder.conversation import (
    REPEAT,
    Content,
    Context,
    Conversation,
    Data,
    Event,
    Ignored,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    unknown_part,
)
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.chat_messages import (
    as_harness,
    assistant_parts,
    chat_message,
    content,
    reasoning,
    tool_calls,
)
from builder.readers.toolkit.comparison import mark_repeats, with_session_keys
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    name_or_none,
    unknown_code,
)
from builder.readers.toolkit.places import Segments, ignored, span, unique_name
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.unknown_keys import carries_content, unknown_message
from builder.sources.listing import Listing
from builder.sources.source import Record, Source
from builder.sources.sqlite_file import once

# -- the model's view of an event log -------------------------------------------------------------
#
# A log is append-only, but the model sees a view: calls of one response are one turn, a result
# follows the turn with its call, and a condensation replaces events with a summary. The views
# before and after a condensation are two segments. A call without a result is removed from the
# view, so the views before and after it are two segments as well. Answers in several segments are
# targets in the first.

_FAMILY = "openhands"
"""The prefix of call keys, shared because V0 and V1 may log the same call."""
_PARSED = re.compile(r"toolu_\d{2,6}")
_FINISH = "finish"
"""The tool that an agent calls to end its run."""


@dataclass(frozen=True, slots=True)
class _ViewEntry:
    """The message parts that the model sees of an event; `role` is "" if it sees nothing.

    `turn` and `model`: of an answer. `untrained`: a code if it is no target, `stripped` if the
    model saw it without its calls.
    """

    event: str
    role: str = ""
    parts: tuple[Part, ...] = ()
    turn: str | None = None
    summary: bool = False
    untrained: str | None = None
    model: str | None = None


def _messages(view: list[_ViewEntry]) -> tuple[Message, ...]:
    """Returns the messages of a view; a result follows the latest turn that made its call."""
    slots: list[tuple[_ViewEntry, list[Part], list[Part]]] = []  # with parts, and results of calls
    turns: dict[str, int] = {}
    issued: dict[str | None, int] = {}
    for entry in view:
        if not entry.parts:
            continue
        result = entry.parts[0]
        if isinstance(result, ToolResult) and result.call_id in issued:
            slots[issued[result.call_id]][2].extend(entry.parts)
            continue
        at = turns.get(entry.turn or "", len(slots))
        if at == len(slots):
            slots.append((entry, [], []))
        first, parts, results = slots[at]
        parts += entry.parts
        slots[at] = replace(first, untrained=first.untrained or entry.untrained), parts, results
        if entry.turn:
            turns[entry.turn] = at
        issued.update(dict.fromkeys(_calls([entry]), at))
    messages: list[Message] = []
    for own, parts, results in slots:
        messages.append(Message(own.role, tuple(parts), own.turn, own.untrained, model=own.model))
        messages += [Message("tool", tuple(results))] if results else []
    return tuple(messages)


def _without_unanswered(
    messages: tuple[Message, ...], *, atomic: bool
) -> tuple[list[tuple[Message, ...]], tuple[Message, ...]]:
    """Returns segments that end with a turn with unanswered calls, and the view after them.

    Later requests lack the turn. Unless `atomic`, they contain it with its answered calls, if any.
    Source: View._filter_unmatched_tool_calls of the SDK (atomic), ConversationMemory of V0.
    """
    segments: list[tuple[Message, ...]] = []
    kept: list[Message] = []
    last = max((at for at, item in enumerate(messages) if item.role == "assistant"), default=-1)
    at = 0
    while at < len(messages):
        message = messages[at]
        results = [item for item in messages[at + 1 : at + 2] if item.role == "tool"]
        lacking = _calls([message]) - _results(results)
        if message.role != "assistant" or not lacking or at >= last:
            kept.append(message)
            at += 1
            continue
        segments.append((*kept, message))
        if results and not atomic:
            parts = tuple(
                part
                for part in message.parts
                if not isinstance(part, ToolCall) or part.id not in lacking
            )
            kept += [replace(message, parts=parts, untrained="stripped"), *results]
        at += 1 + len(results)
    return segments, tuple(kept)


def _condensed(
    view: list[_ViewEntry], forgotten: set[str], summary: str, offset: int, event: str
) -> list[_ViewEntry]:
    """Returns the view after a condensation.

    If it forgets a call or its result, the other is removed as well: the agent never sends one
    without the other. The summary is harness text; a new summary replaces the previous one.
    """
    kept = [entry for entry in view if entry.event not in forgotten]
    gone = [entry for entry in view if entry.event in forgotten]
    unanswered = _results(gone) - _results(kept)
    kept = [entry for entry in kept if _calls([entry]).isdisjoint(unanswered)]
    orphaned = _results(kept) - _calls(kept)
    kept = [entry for entry in kept if _results([entry]).isdisjoint(orphaned)]
    if summary:
        kept = [entry for entry in kept if not entry.summary]
        added = _ViewEntry(event, "user", (Text(summary, harness=True),), summary=True)
        kept.insert(max(0, offset), added)
    return kept


def _calls(entries: Sequence[_ViewEntry | Message]) -> set[str | None]:
    return {part.id for entry in entries for part in entry.parts if isinstance(part, ToolCall)}


def _results(entries: Sequence[_ViewEntry | Message]) -> set[str | None]:
    return {
        part.call_id for entry in entries for part in entry.parts if isinstance(part, ToolResult)
    }


@dataclass(slots=True)
class _AgentViews:
    """Collects the conversations of one agent as its events are read.

    scope         makes the keys of its calls unique: the file and the agent in it
    atomic        a turn with an unanswered call is removed from the view as a whole
    done          finished segments: messages, whether the last turn is complete, changes
    fresh         the view contains an answer that is in no finished segment
    ended         the entry with the call that ends a run
    outcome       applies to the last conversation
    is_cut        the next answer follows events that cannot be read
    writes_calls  the model is known to have no function calling (see `_context`)
    """

    name: str
    scope: str
    atomic: bool = False
    view: list[_ViewEntry] = field(default_factory=list)
    done: list[tuple[tuple[Message, ...], bool, dict[str, int]]] = field(default_factory=list)
    fresh: bool = False
    problems: list[Problem] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)
    tools: tuple[Json, ...] | None = None
    model: str | None = None
    places: list[str] = field(default_factory=list)
    ended: _ViewEntry | None = None
    outcome: dict[str, Json] = field(default_factory=dict)
    writes_calls: bool = False
    is_cut: bool = False

    def add(self, entry: _ViewEntry) -> None:
        """Adds the next event as the model sees it.

        The call that ends a run has no result: if the conversation continues, the model sees only
        the text of that turn, so a new segment begins.
        """
        if self.ended is not None and entry.parts:
            self.cut(complete=True)
            parts = tuple(part for part in self.ended.parts if not isinstance(part, ToolCall))
            spoken = replace(self.ended, parts=parts, untrained="stripped")
            self.view = [spoken if e is self.ended else e for e in self.view]
            self.ended = None
        if self.is_cut and entry.turn:
            entry = replace(entry, untrained="truncated")
        self.is_cut = False
        self.view.append(entry)
        self.fresh = self.fresh or (entry.role == "assistant" and bool(entry.parts))

    def cut(self, *, complete: bool = False) -> None:
        """Ends a segment here, unless it contains no new answer."""
        if self.fresh:
            ended, rest = _without_unanswered(_messages(self.view), atomic=self.atomic)
            changes = dict(self.changes)
            self.done += [(segment, True, changes) for segment in ended]
            self.done.append((rest, complete, changes))
        self.fresh = False

    def lose(self, events: int) -> None:
        """Notes that events here cannot be read; answers beside them may lack calls."""
        self.changes["record_lost"] += events
        if self.view and self.view[-1].turn:
            self.view[-1] = replace(self.view[-1], untrained="truncated")
        self.add(_ViewEntry(f"lost {len(self.places)}", "user", unknown_message("event").parts))
        self.is_cut = True

    def condense(self, forgotten: set[str], summary: str, offset: int, event: str) -> None:
        """Ends a segment and continues with the view that a condensation left."""
        self.cut()
        if summary:
            self.changes["compact_summary"] += 1
        self.view = _condensed(self.view, forgotten, summary, offset, event)

    def events(self, records: int, *, complete: bool, where: str = "") -> Iterator[Event]:
        """Yields the conversations once all events were added; `complete`: the last one is."""
        self.cut(complete=complete)
        if not self.done:
            self.done.append((_messages(self.view), False, dict(self.changes)))
        place = where or (span(self.places[0], self.places[-1]) if self.places else "file")
        targets: set[str] = set()
        conversations = [
            (mark_repeats(segment, targets), ended, changes)
            for segment, ended, changes in self.done
            if segment
        ]
        if not conversations:
            yield Problem("no_messages", place, "no event contains a message", records)
        segments = Segments(self.name, records, mark=" segment ")
        for segment, ended, changes in conversations:
            yield Conversation(
                id=segments.next_name(),
                record=place,
                messages=tuple(with_session_keys(_FAMILY, segment, self.scope)),
                tools=self.tools,
                model=self.model,
                records=segments.take_records(),
                problems=tuple(self.problems[:1]),
                changes=changes,
                complete=ended,
                context=self._context(segment, changes),
                outcome=self.outcome or None if segments.segments == len(conversations) else None,
            )

    def _context(self, segment: Sequence[Message], changes: Mapping[str, int]) -> Context:
        """Returns the context level; events do not contain requests as they were sent.

        Requests to a model without function calling contain calls and results as text, the tools in
        the system prompt, and an example before the first message of the user. OpenHands gives the
        calls that it finds in the text of these models the ids toolu_01, toolu_02 and so on.
        """
        has_system = any(message.role == "system" for message in segment)
        missing = set() if has_system else {"system"}
        if "recall_left_out" in changes:
            missing.add("reminders")
        if self.tools is None:
            missing.add("tools")
        if self.writes_calls or any(_PARSED.fullmatch(call or "") for call in _calls(segment)):
            missing |= {"history", "system_template"} if has_system else {"history"}
        return Context.lacking(missing)


def _with_affixes(output: tuple[Content, ...], metadata: Json) -> tuple[Content, ...]:
    """Returns a command's output as it is sent, with the additions that its metadata describes.

    Source: to_agent_observation of V0's CmdOutputObservation, to_llm_content of the SDK's terminal.
    """
    logged = as_dict(metadata)
    prefix, suffix = as_str(logged.get("prefix")), as_str(logged.get("suffix"))
    if folder := as_str(logged.get("working_dir")):
        suffix += f"\n[Current working directory: {folder}]"
    if interpreter := as_str(logged.get("py_interpreter_path")):
        suffix += f"\n[Python interpreter: {interpreter}]"
    code = logged.get("exit_code")
    if isinstance(code, int) and code != -1:
        suffix += f"\n[Command finished with exit code {code}]"
    texts = [part for part in output if isinstance(part, Text)]
    if not (prefix or suffix) or len(texts) != len(output) or len(texts) > 1:
        return output
    return (Text(prefix + "".join(part.text for part in texts) + suffix),)


# -- logs of single model calls, and dumps of messages --------------------------------------------


def _is_llm_log(item: dict[str, Json]) -> bool:
    """Returns whether an object is the log of one model call of V0 or V1."""
    return (
        isinstance(item.get("messages"), list)
        and isinstance(item.get("response"), dict)
        and {"kwargs", "cost"} <= item.keys()
    )


def _llm_log(where: str, log: dict[str, Json]) -> Event:
    """Returns the conversation of one logged model call: its request and its answer.

    For models without function calling, the log also contains the parsed calls: `fncall_messages`
    and `fncall_response` in V0, `raw_messages` in V1. These are not the messages that were sent, so
    the context is `logged` instead of `proven`. Each earlier answer has a log of its own.
    """
    parsed = ("fncall_messages", "raw_messages")
    name = next((name for name in parsed if isinstance(log.get(name), list)), "messages")
    messages = [
        replace(message, untrained=REPEAT) if message.role == "assistant" else message
        for message in map(chat_message, as_dicts(log[name]))
    ]
    response = as_dict(log.get("fncall_response")) or as_dict(log.get("response"))
    choices = as_list(response.get("choices"))
    for choice in choices[:1]:
        answer = assistant_parts(as_dict(choice, "message"))
        messages.append(Message("assistant", answer, untrained=cut_code(as_dict(choice))))
    if not messages:
        return Problem("no_messages", where, "the model call contains no messages")
    tools = log.get("tools") or as_dict(log.get("kwargs")).get("tools")
    problems = (Problem("no_response", where, "the model call has no answer", 0),)
    level = "proven" if name == "messages" else "logged"
    context = Context(level) if isinstance(tools, list) else Context("partial", ("tools",))
    return Conversation(
        id=as_str(response.get("id"))[:200] or where,
        record=where,
        messages=tuple(with_session_keys(_FAMILY, _with_place_keys(messages), "log")),
        tools=tuple(tools) if isinstance(tools, list) else None,
        model=name_or_none(response.get("model")),
        records=1,
        problems=problems if not choices else (),
        complete=bool(choices),
        context=context,
    )


def _with_place_keys(messages: list[Message]) -> Iterator[Message]:
    """Yields the messages with each call keyed by all messages before it.

    The next request repeats the call after the same messages, but without thoughts.
    """
    before = hashlib.blake2b(digest_size=16)
    for message in messages:
        visible = [part for part in message.parts if not isinstance(part, Reasoning)]
        before.update(repr((message.role, visible)).encode("utf-8", "surrogatepass"))
        calls = count()
        parts = (
            replace(part, key=f"{before.hexdigest()}/{next(calls)}")
            if isinstance(part, ToolCall)
            else part
            for part in message.parts
        )
        yield replace(message, parts=tuple(parts))


def _is_complete(answers: Sequence[_ViewEntry | Message]) -> bool:
    """Returns whether the last answer calls the tool that ends a run."""
    last = [one.parts for one in answers if one.role == "assistant" and one.parts][-1:]
    return any(isinstance(p, ToolCall) and p.name == _FINISH for parts in last for p in parts)


@once
def _is_dump(source: Source) -> bool:
    first = source.peek.objects[0] if source.peek.objects else {}
    texts = content(first.get("content")) if first.get("role") == "system" else ()
    prompt = "".join(part.text for part in texts if isinstance(part, Text))
    return source.peek.kind == "json" and prompt.startswith("You are OpenHands agent")


# -- V0 -------------------------------------------------------------------------------------------

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


def _is_v0_store(folder: Listing) -> bool:
    """Returns whether the folder contains the events of one session, one per file (0.json, …)."""
    head = folder.first("0.json", 1 << 12)
    return b'"source"' in head and (b'"action"' in head or b'"observation"' in head)


def _recognise_v0(source: Source) -> str | None:
    """Claims events (source, and action or observation), rows with their history, LLM logs."""
    if source.peek.kind == "folder":
        first = next((member for member in source.members if member.name == "0.json"), None)
        return _recognise_v0(first) if first else None
    for item in source.peek.objects[:5]:
        if _is_event(item) and as_str(item.get("source")) in _SOURCES:
            return "events with source and action or observation"
        history = as_list(item.get("history"))
        first_event = history[0] if history else None
        if isinstance(first_event, list):  # 2024: pairs of action and observation
            first_event = first_event[0] if first_event else None
        if ("instance_id" in item or "instruction" in item) and _is_event(as_dict(first_event)):
            return "rows with instruction and a history of events"
        if _is_llm_log(item) and "latency_sec" not in item:
            return "the log of a model call: messages, response, kwargs, cost"
    return None


def _is_event(item: dict[str, Json]) -> bool:
    return isinstance(item.get("action"), str) or isinstance(item.get("observation"), str)


def _read_v0(source: Source) -> Iterator[Event]:
    """Yields one conversation for each session or row, more if its history was rewritten."""
    names: Counter[str] = Counter()
    session = _Session("session", source.name)
    ignored_events: Counter[str] = Counter()
    used = 0
    for record in objects(_v0_records(source), "an event is "):
        if isinstance(record, Problem | Ignored):
            yield record
            continue
        where, value = record
        if "history" in value:
            yield from _read_row(where, value, names, source.name)
        elif _is_llm_log(value):
            yield _llm_log(where, value)
        elif code := session.take(value, where):
            ignored_events[code] += 1
        else:
            used += 1
    yield from ignored(ignored_events)
    if used:
        yield from session.events(used)


def _v0_records(source: Source) -> Iterator[Record | Problem | Ignored]:
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


def _read_row(where: str, row: dict[str, Json], names: Counter[str], scope: str) -> Iterator[Event]:
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
        self.main = _AgentViews(name, f"{scope}/{name}")
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
                agent.add(_ViewEntry(event_id, "user", unknown_message("event").parts))
        if not code:
            agent.places.append(where)
        return code

    def events(self, records: int, where: str = "") -> Iterator[Event]:
        for agent in self.agents:
            if agent is self.main or agent.view:
                yield from agent.events(records, complete=agent.ended is not None, where=where)
                records = 0

    def _action(self, agent: _AgentViews, event: dict[str, Json], event_id: str, where: str) -> str:
        action = as_str(event.get("action"))
        args = as_dict(event.get("args")) if "args" in event else event
        output = content(args.get("content"))
        if action in _SILENT_ACTIONS:
            return "no_message"
        if action == "recall":
            agent.add(_ViewEntry(event_id))
            return "no_message"
        if event.get("tool_call_metadata"):
            entry = self._call(agent, event, event_id)
            agent.add(entry)
            if action == _FINISH:
                agent.ended = entry
        elif action == "system":
            agent.add(_ViewEntry(event_id, "system", output))
            tools = args.get("tools")
            agent.tools = tuple(tools) if isinstance(tools, list) else None
        elif action == "message":
            images = as_list(args.get("image_urls") or args.get("images_urls"))
            parts = (*output, *(Media("image") for _ in images))
            role = "assistant" if event.get("source") == "agent" else "user"
            harness = event.get("source") == "environment"
            agent.add(_ViewEntry(event_id, role, as_harness(parts) if harness else parts))
        elif action == "condensation":
            ids = {str(event) for event in as_list(args.get("forgotten_event_ids"))}
            first, last = args.get("forgotten_events_start_id"), args.get("forgotten_events_end_id")
            if isinstance(first, int) and isinstance(last, int):
                events = [entry.event for entry in agent.view]
                ids |= {event for event in events if first <= _number(event) <= last}
            summary, offset = as_str(args.get("summary")), _number(args.get("summary_offset"))
            agent.condense(ids, summary, offset, event_id)
        else:
            self._unlogged_call(agent, event, event_id, where)
        if action == "delegate":
            place = f"delegate {len(self.agents)}"  # a conversation of another agent
            agent = _AgentViews(f"{self.main.name} {place}", f"{self.main.scope} {place}")
            self.agents.append(agent)
            self.running.append(agent)
        return ""

    def _call(self, agent: _AgentViews, event: dict[str, Json], event_id: str) -> _ViewEntry:
        """Adds the model's turn, at the first of the actions that its calls became."""
        metadata = as_dict(event.get("tool_call_metadata"))
        response = as_dict(metadata.get("model_response"))
        choice = as_dict(next(iter(as_list(response.get("choices"))), None))
        turn = name_or_none(response.get("id")) or event_id
        model = name_or_none(response.get("model"))
        agent.model = agent.model or model
        self.called[event_id] = as_str(metadata.get("tool_call_id"))
        if turn in self.responses:
            return _ViewEntry(event_id, "assistant", turn=turn, model=model)
        self.responses.add(turn)
        parts = tuple(
            replace(part, key=f"{turn}/{number}") if isinstance(part, ToolCall) else part
            for number, part in enumerate(assistant_parts(as_dict(choice.get("message"))))
        )
        code = cut_code(choice)
        return _ViewEntry(event_id, "assistant", parts, turn, untrained=code, model=model)

    def _unlogged_call(
        self, agent: _AgentViews, event: dict[str, Json], event_id: str, where: str
    ) -> None:
        """Adds an action without the model's own text; its call is counted but cannot be used."""
        action = as_str(event.get("action"))
        args = as_dict(event.get("args")) if "args" in event else event
        arguments: Json = {
            name: value for name, value in args.items() if name not in ("action", "thought")
        }
        if event.get("source") == "user":
            agent.problems.append(Problem("user_action", where, f"the user's own {action[:40]}", 0))
            agent.add(_ViewEntry(event_id, "user", (Data(arguments),)))
            return
        detail = f"action {action[:40]!r} is logged, the model's call is not"
        agent.problems.append(Problem("no_model_response", where, detail, records=0))
        self.unlogged = f"action {len(agent.view)}"
        thought = as_str(args.get("thought"))
        call = ToolCall(action, arguments, id=self.unlogged, key=event_id)
        agent.add(_ViewEntry(event_id, "assistant", (*([Text(thought)] if thought else []), call)))

    def _observation(self, agent: _AgentViews, event: dict[str, Json], event_id: str) -> str:
        kind = as_str(event.get("observation")) or "null"
        extras = as_dict(event.get("extras"))
        if kind == "agent_state_changed" and isinstance(state := extras.get("agent_state"), str):
            self.main.outcome["exit_status"] = state
        if kind in _SILENT_OBSERVATIONS:
            return "no_message"
        if kind == "recall":  # inserted into the user's message by a template that is not logged
            agent.add(_ViewEntry(event_id))
            agent.changes["recall_left_out"] += 1
            return "no_message"
        if kind == "delegate" and len(self.running) > 1:
            self.running.pop()
            agent = self.running[-1]
        metadata = as_dict(event.get("tool_call_metadata"))
        call_id = as_str(metadata.get("tool_call_id"))
        call_id = call_id or self.called.get(str(event.get("cause"))) or self.unlogged or ""
        output = _with_affixes(content(event.get("content")), extras.get("metadata"))
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
            agent.add(_ViewEntry(event_id, "tool", (result,)))
        elif kind == "error":  # an answer that is no valid action
            parts = as_harness((*output, Text(_NOTES["error"])))
            agent.add(_ViewEntry(event_id, "user", parts))
        elif output:
            agent.add(_ViewEntry(event_id, "user", (unknown_part(f"observation {kind}"),)))
        else:
            return unknown_code(kind)
        return ""


def _number(value: Json) -> int:
    """Returns an event id given as a number or as its text; else 0."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) else 0


_V0 = declared("openhands-v0", recognise=_recognise_v0, read=_read_v0, is_store=_is_v0_store)


# -- V1: observations as the model sees them ------------------------------------------------------
#
# Source: `to_llm_content` of each observation, `Message._maybe_truncate_tool_text` and
# `maybe_truncate` of openhands-sdk and openhands-tools 1.58.

_ERROR_HEADER = "[An error occurred during execution.]\n"
"""The header before the output of a failed tool (`Observation.ERROR_MESSAGE_HEADER`)."""
_TERMINAL_LIMIT, _LIMIT = 30_000, 50_000
"""Maximum number of characters that are sent of a terminal output, and of each text of a result."""
_CLIPPED = (
    "<response clipped><NOTE>Due to the max output limit, only part of the full response has been"
    " shown to you.{}</NOTE>"
)
_KEPT = (
    " The complete output has been saved to {} - you can use other tools to view the full content"
    " (truncated part starts around line {})."
)
_IMAGE_TYPES = {"/9j/": "jpg", "R0lGODlh": "gif", "UklGR": "webp"}
"""File name extensions of screenshots that are not PNG, by the beginning of their base64."""


def _as_sent(observation: dict[str, Json]) -> tuple[Content, ...]:
    """Returns the content of a tool result, without the text that the agent appends to it."""
    output = _with_affixes(content(observation.get("content")), observation.get("metadata"))
    header = (Text(_ERROR_HEADER),) if observation.get("is_error") is True else ()
    folder = as_str(observation.get("full_output_save_dir"))
    match observation.get("kind"):
        case "BrowserObservation":
            return (*header, *_of_browser(output, observation, folder))
        case "TaskObservation":
            names = {"Task ID": "task_id", "Subagent": "subagent", "Status": "status"}
            about = "\n".join(f"{name}: {as_str(observation.get(names[name]))}" for name in names)
            return (Text(about), *header, *output)
    first = output[0] if output else None
    if "metadata" in observation and len(output) == 1 and isinstance(first, Text):
        text = _clipped(first.text, _TERMINAL_LIMIT, folder and f"{folder}/terminal")
        output = (replace(first, text=text),)
    return (*header, *output)


def _of_browser(
    output: tuple[Content, ...], observation: dict[str, Json], folder: str
) -> tuple[Content, ...]:
    """Returns the page's text as one part, then the screenshot after the name of its file.

    The log does not say whether the model takes images.
    """
    text = "".join(part.text for part in output if isinstance(part, Text))
    content: list[Content] = []
    if text:
        content.append(Text(_clipped(text, _LIMIT, folder and f"{folder}/browser")))
    if data := as_str(observation.get("screenshot_data")):
        if folder:
            kinds = (kind for start, kind in _IMAGE_TYPES.items() if data.startswith(start))
            file = f"browser_screenshot_{_digest(data)}.{next(kinds, 'png')}"
            content.append(Text(f"Screenshot saved to: {folder}/{file}"))
        content.append(Media("image"))
    return tuple(content)


def _clipped(text: str, limit: int, kept_as: str = "") -> str:
    """Returns a text of at most `limit` characters; in a longer one, a notice replaces the middle.

    `kept_as`: the beginning of the path to which the SDK saves the whole text, or "".
    """
    if len(text) <= limit:
        return text
    head = (limit - len(_CLIPPED.format("")) + 1) // 2
    kept = ""
    if kept_as:
        line = len(text[:head].splitlines()) + 1
        kept = _KEPT.format(f"{kept_as}_output_{_digest(text)}.txt", line)
    notice = _CLIPPED.format(kept)
    room = limit - len(notice)
    if room <= 0:
        return notice[:limit]
    head = min(head, room)
    return text[:head] + notice + text[len(text) - (room - head) :]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


# -- V1: events -----------------------------------------------------------------------------------

_SEEN = frozenset(
    {
        "SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent",
        "UserRejectObservation", "Condensation", "ACPToolCallEvent",
    }
)  # fmt: skip
_SILENT = frozenset(
    {
        "ConversationStateUpdateEvent", "ConversationErrorEvent", "PauseEvent", "TokenEvent",
        "LLMCompletionLogEvent", "StreamingDelta", "StreamingDeltaEvent", "CondensationRequest",
        "CondensationSummaryEvent", "HookExecutionEvent",
    }
)  # fmt: skip
_STATE_FILE, _EVENTS = "base_state.json", "events"
_STORED_EVENT = re.compile(r"(?:^|/)event-(\d{1,18})[^/]*\.json$")


def _recognise_v1(source: Source) -> str | None:
    """Claims events of the SDK's kinds, its LLM logs, and its dump of messages."""
    if source.peek.kind == "folder":
        events = (member for member in source.members if _STORED_EVENT.search(member.name))
        first = next(events, None)
        return _recognise_v1(first) if first else None
    for item in source.peek.objects[:20]:
        if "source" in item and as_str(item.get("kind")) in _SEEN | _SILENT:
            return "events with source and a kind of the SDK"
        if _is_llm_log(item) and "latency_sec" in item:
            return "the log of a model call: messages, response, kwargs, latency_sec"
    return "a dump of messages to the agent" if _is_dump(source) else None


def _read_v1(source: Source) -> Iterator[Event]:
    """Yields one conversation (more if its history was rewritten), or one for each model call."""
    if _is_dump(source):
        yield from _dump(source)
        return
    session = _AgentViews("session", source.name, atomic=True)
    silent: Counter[str] = Counter()
    used = 0
    for record in objects(_v1_records(source, session), "an event is "):
        if isinstance(record, Problem | Ignored):
            if isinstance(record, Problem):
                session.lose(1)
            yield record
            continue
        where, value = record
        if _is_llm_log(value):
            yield _llm_log(where, value)
        elif code := _take(session, value, where):
            silent[code] += 1
        else:
            session.places.append(where)
            used += 1
    yield from ignored(silent)
    if used:
        yield from session.events(used, complete=_is_complete(session.view))


def _v1_records(source: Source, session: _AgentViews) -> Iterator[Record | Problem | Ignored]:
    """Yields the records of a file, or the events of a store by the numbers in file names."""
    if not source.members:
        yield from source.records()
        return
    numbered: list[tuple[int, Source]] = []
    for member in source.members:
        if match := _STORED_EVENT.search(member.name):
            numbered.append((int(match[1]), member))
            continue
        if member.name == _STATE_FILE:
            state = member.document()
            agent = as_dict(state, "agent") if not isinstance(state, Problem) else {}
            model = as_dict(agent.get("llm"))
            session.model = name_or_none(model.get("model"))
            session.writes_calls = model.get("native_tool_calling") is False
        source.count_records()
        yield Ignored("state" if member.name == _STATE_FILE else "other_file")
    expected = 0
    for number, member in sorted(numbered, key=lambda item: (item[0], item[1].name)):
        if number > expected:  # events are numbered from 0
            session.lose(number - expected)
        expected = number + 1
        for record in member.records():
            where = f"{member.name} {record.where}" if record.where != "file" else member.name
            yield replace(record, where=where)


def _take(session: _AgentViews, event: dict[str, Json], where: str) -> str:
    """Reads the next event; returns the code under which it is ignored, "" if it is used."""
    event_id = as_str(event.get("id")) or where
    match event.get("kind"):
        case "SystemPromptEvent":
            prompts = (event.get("system_prompt"), event.get("dynamic_context"))
            output = content([prompt for prompt in prompts if prompt])
            session.add(_ViewEntry(event_id, "system", output))
            tools = as_list(event.get("tools"))
            # Later versions log only the tools' classes, without schemas.
            if tools and all("function" in as_dict(tool) for tool in tools):
                session.tools = tuple(tools)
        case "MessageEvent":
            session.add(_message(event, event_id))
        case "ActionEvent":
            session.add(_action(event, event_id))
        case "ObservationEvent":
            observation = as_dict(event.get("observation"))
            output = (*_as_sent(observation), *as_harness(content(event.get("extended_content"))))
            failed = observation.get("is_error") is True
            session.add(_result(event, event_id, output, failed=failed))
        case "AgentErrorEvent":
            output = content(event.get("error"))
            session.add(_result(event, event_id, output, failed=True))
        case "UserRejectObservation":
            reason = as_str(event.get("rejection_reason"))
            output = (Text(f"Action rejected: {reason}"),)
            session.add(_result(event, event_id, output, denied=True))
        case "Condensation":
            forgotten = set(map(as_str, as_list(event.get("forgotten_event_ids"))))
            offset = event.get("summary_offset")
            place = offset if isinstance(offset, int) else 0
            session.condense(forgotten, as_str(event.get("summary")), place, event_id)
        case "ACPToolCallEvent":
            detail = "calls of an external agent, without what its model wrote"
            session.problems.append(Problem("no_model_response", where, detail, records=0))
        case "ConversationErrorEvent":
            code, detail = as_str(event.get("code")), as_str(event.get("detail"))
            session.outcome["error"] = ": ".join(filter(None, (code, detail)))
            return "no_message"
        case "ConversationStateUpdateEvent":
            if event.get("key") == "execution_status" and isinstance(event.get("value"), str):
                session.outcome["exit_status"] = event["value"]
            return "no_message"
        case str(kind) if kind in _SILENT:
            return "no_message"
        case kind:
            if carries_content(event):
                session.add(_ViewEntry(event_id, "user", unknown_message(kind).parts))
            return unknown_code(kind)
    return ""


def _message(event: dict[str, Json], event_id: str) -> _ViewEntry:
    """Returns a message of the user or the agent; text appended to the user's is harness text."""
    message = as_dict(event.get("llm_message"))
    output = content(message.get("content"))
    if event.get("source") == "agent":
        calls = tool_calls(message.get("tool_calls"))
        parts = (*reasoning(message), *output, *calls)
        return _ViewEntry(event_id, "assistant", parts)
    added = as_harness(content(event.get("extended_content")))
    output = as_harness(output) if event.get("source") == "environment" else output
    return _ViewEntry(event_id, "user", (*output, *added))


def _action(event: dict[str, Json], event_id: str) -> _ViewEntry:
    """Returns one call of a response; the first one includes the text before the calls."""
    output = content(event.get("thought"))
    call = as_dict(event.get("tool_call"))
    function = as_dict(call.get("function")) or call
    call_id = name_or_none(event.get("tool_call_id")) or name_or_none(call.get("id"))
    name = as_str(function.get("name")) or as_str(event.get("tool_name"))
    turn = name_or_none(event.get("llm_response_id"))
    key = f"{turn}/{call_id}" if turn and call_id else event_id
    made = ToolCall(name, function.get("arguments"), id=call_id, key=key)
    # The key `thought` of an event is the text of the answer.
    thoughts = reasoning({key: item for key, item in event.items() if key != "thought"})
    parts = (*thoughts, *output, made)
    return _ViewEntry(event_id, "assistant", parts, turn)


def _result(
    event: dict[str, Json],
    event_id: str,
    output: tuple[Content, ...],
    *,
    failed: bool = False,
    denied: bool = False,
) -> _ViewEntry:
    result = ToolResult(
        tuple(
            replace(part, text=_clipped(part.text, _LIMIT)) if isinstance(part, Text) else part
            for part in output
        ),
        call_id=name_or_none(event.get("tool_call_id")),
        name=name_or_none(event.get("tool_name")),
        is_error=failed,
        is_denied=denied,
    )
    return _ViewEntry(event_id, "tool", (result,))


def _dump(source: Source) -> Iterator[Event]:
    messages: list[Message] = []
    last = ""
    for record in objects(source.records(), "a message is "):
        if isinstance(record, Problem):
            yield record
        else:
            last, message = record
            messages.append(chat_message(message))
    if messages:
        yield Conversation(
            id="session",
            record=f"[0]-{last}",
            messages=tuple(with_session_keys(_FAMILY, _with_place_keys(messages), "log")),
            records=len(messages),
            complete=_is_complete(messages),
            context=Context("partial", ("tools",)),
        )


_V1 = declared(
    "openhands-v1",
    recognise=_recognise_v1,
    read=_read_v1,
    is_store=lambda folder: folder.is_file(_STATE_FILE) and folder.is_dir(_EVENTS),
)

READERS = (_V0, _V1)
