"""Rebuilds the model's view of an event log, for OpenHands V0 and V1.

Source: docs/formats/openhands-v0.md and docs/formats/openhands-v1.md; OpenHands' memory/view.py and
the SDK's event/condenser.py for the view. An event log is append-only, but the model sees a view of
it: calls of one response are one turn, a result follows the turn with its call, and a condensation
replaces events with a summary. The views before and after a condensation are two segments. A call
without a result is removed from the view, so the views before and after it are two segments as
well. Answers in several segments are targets in the first.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from builder.conversation import (
    REPEAT,
    Content,
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
)
from builder.problem import Problem
from builder.readers.toolkit.chat_messages import assistant_parts, chat_message, content
from builder.readers.toolkit.comparison import mark_repeats, with_session_keys
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.places import Segments, span
from builder.readers.toolkit.unknown_keys import unknown_message
from builder.sources.source import Source
from builder.sources.sqlite_file import once

FAMILY = "openhands"
"""The prefix of call keys, shared because V0 and V1 may log the same call."""
_PARSED = re.compile(r"toolu_\d{2,6}")
FINISH = "finish"
"""The tool that an agent calls to end its run."""


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """The message parts that the model sees of an event; `role` is "" if it sees nothing.

    `turn`: the id of the response that an assistant's entry belongs to. `model`: its model, if it
    names one. `stripped`: the model saw
    the entry without its calls.
    """

    event: str
    role: str = ""
    parts: tuple[Part, ...] = ()
    turn: str | None = None
    summary: bool = False
    stripped: bool = False
    model: str | None = None


@dataclass(slots=True)
class _Slot:
    """A message under construction, with the results of its calls."""

    role: str
    parts: list[Part]
    turn: str | None = None
    untrained: str | None = None
    results: list[Part] = field(default_factory=list)
    model: str | None = None


def messages(view: list[ViewEntry]) -> tuple[Message, ...]:
    """Returns the messages of a view; a result follows the latest turn that made its call."""
    slots: list[_Slot] = []
    turns: dict[str, _Slot] = {}
    issued: dict[str | None, _Slot] = {}
    for entry in view:
        if not entry.parts:
            continue
        result = entry.parts[0]
        if isinstance(result, ToolResult) and result.call_id in issued:
            issued[result.call_id].results += entry.parts
            continue
        slot = turns.get(entry.turn) if entry.turn else None
        if slot is None:
            code = "stripped" if entry.stripped else None
            slot = _Slot(entry.role, [], entry.turn, code, model=entry.model)
            slots.append(slot)
        slot.parts += entry.parts
        if entry.turn:
            turns[entry.turn] = slot
        issued.update(dict.fromkeys(_calls([entry]), slot))
    messages: list[Message] = []
    for slot in slots:
        messages.append(
            Message(slot.role, tuple(slot.parts), slot.turn, slot.untrained, model=slot.model)
        )
        if slot.results:
            messages.append(Message("tool", tuple(slot.results)))
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


def condense(
    view: list[ViewEntry], forgotten: set[str], summary: str, offset: int, event: str
) -> list[ViewEntry]:
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
        added = ViewEntry(event, "user", (Text(summary, harness=True),), summary=True)
        kept.insert(max(0, offset), added)
    return kept


def _calls(entries: Sequence[ViewEntry | Message]) -> set[str | None]:
    return {part.id for entry in entries for part in entry.parts if isinstance(part, ToolCall)}


def _results(entries: Sequence[ViewEntry | Message]) -> set[str | None]:
    return {
        part.call_id for entry in entries for part in entry.parts if isinstance(part, ToolResult)
    }


def _without_calls(entry: ViewEntry) -> ViewEntry:
    """Returns the entry without its calls."""
    parts = tuple(part for part in entry.parts if not isinstance(part, ToolCall))
    return replace(entry, parts=parts, stripped=True)


@dataclass(slots=True)
class AgentViews:
    """Collects the conversations of one agent as its events are read.

    scope         makes the keys of its calls unique: the file and the agent in it
    atomic        a turn with an unanswered call is removed from the view as a whole
    done          finished segments: messages, whether the last turn is complete, changes
    fresh         the view contains an answer that is in no finished segment
    ended         the entry with the call that ends a run
    outcome       applies to the last conversation
    writes_calls  the model is known to have no function calling (see `_context`)
    """

    name: str
    scope: str
    atomic: bool = False
    view: list[ViewEntry] = field(default_factory=list)
    done: list[tuple[tuple[Message, ...], bool, dict[str, int]]] = field(default_factory=list)
    fresh: bool = False
    problems: list[Problem] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)
    tools: tuple[Json, ...] | None = None
    model: str | None = None
    places: list[str] = field(default_factory=list)
    ended: ViewEntry | None = None
    outcome: dict[str, Json] = field(default_factory=dict)
    writes_calls: bool = False

    def add(self, entry: ViewEntry) -> None:
        """Adds the next event as the model sees it.

        The call that ends a run has no result: if the conversation continues, the model sees only
        the text of that turn, so a new segment begins.
        """
        if self.ended is not None and entry.parts:
            self.cut(complete=True)
            self.view = [_without_calls(e) if e is self.ended else e for e in self.view]
            self.ended = None
        self.view.append(entry)
        self.fresh = self.fresh or (entry.role == "assistant" and bool(entry.parts))

    def cut(self, *, complete: bool = False) -> None:
        """Ends a segment here, unless it contains no new answer."""
        if self.fresh:
            ended, rest = _without_unanswered(messages(self.view), atomic=self.atomic)
            changes = dict(self.changes)
            self.done += [(segment, True, changes) for segment in ended]
            self.done.append((rest, complete, changes))
        self.fresh = False

    def lose(self, events: int) -> None:
        """Notes that events here cannot be read; the answers around them are not one answer."""
        self.changes["record_lost"] += events
        self.add(ViewEntry(f"lost {len(self.places)}", "user", unknown_message("event").parts))

    def condense(self, forgotten: set[str], summary: str, offset: int, event: str) -> None:
        """Ends a segment and continues with the view that a condensation left."""
        self.cut()
        if summary:
            self.changes["compact_summary"] += 1
        self.view = condense(self.view, forgotten, summary, offset, event)

    def events(self, records: int, *, complete: bool, where: str = "") -> Iterator[Event]:
        """Yields the conversations once all events were added; `complete`: the last one is."""
        self.cut(complete=complete)
        if not self.done:
            self.done.append((messages(self.view), False, dict(self.changes)))
        place = where or self.where
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
                messages=tuple(with_session_keys(FAMILY, segment, self.scope)),
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

    @property
    def where(self) -> str:
        """The span from its first to its last event."""
        return span(self.places[0], self.places[-1]) if self.places else "file"


def with_affixes(output: tuple[Content, ...], metadata: Json) -> tuple[Content, ...]:
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


# Reads logs of single model calls and dumps of messages that OpenHands V0 and V1 write.


def is_llm_log(item: dict[str, Json]) -> bool:
    """Returns whether an object is the log of one model call of V0 or V1."""
    return (
        isinstance(item.get("messages"), list)
        and isinstance(item.get("response"), dict)
        and {"kwargs", "cost"} <= item.keys()
    )


def llm_log(where: str, log: dict[str, Json]) -> Event:
    """Returns the conversation of one logged model call: its request and its answer.

    For models without function calling, the log also contains the parsed calls: `fncall_messages`
    and `fncall_response` in V0, `raw_messages` in V1. These are not the messages that were sent, so
    the context is `logged` instead of `proven`. Each earlier answer has a log of its own.
    """
    names = ("fncall_messages", "raw_messages")  # the parsed calls
    name = next((name for name in names if isinstance(log.get(name), list)), "messages")
    messages = [
        replace(message, untrained=REPEAT) if message.role == "assistant" else message
        for message in map(chat_message, as_dicts(log[name]))
    ]
    response = as_dict(log.get("fncall_response")) or as_dict(log.get("response"))
    choices = as_list(response.get("choices"))
    problems: tuple[Problem, ...] = ()
    if choices:
        answer = as_dict(choices[0], "message")
        messages.append(Message("assistant", assistant_parts(answer)))
    else:
        problems = (Problem("no_response", where, "the model call has no answer", 0),)
    if not messages:
        return Problem("no_messages", where, "the model call contains no messages")
    tools = log.get("tools") or as_dict(log.get("kwargs")).get("tools")
    is_sent = name == "messages" and isinstance(tools, list)
    context = Context("proven" if is_sent else "logged")
    if not isinstance(tools, list):
        context = Context("partial", ("tools",))
    return Conversation(
        id=as_str(response.get("id"))[:200] or where,
        record=where,
        messages=tuple(with_session_keys(FAMILY, with_place_keys(messages), "log")),
        tools=tuple(tools) if isinstance(tools, list) else None,
        model=name_or_none(response.get("model")),
        records=1,
        problems=tuple(problems),
        complete=bool(choices),
        context=context,
    )


def with_place_keys(messages: list[Message]) -> Iterator[Message]:
    """Yields the messages with each call keyed by all messages before it.

    The next request repeats the call after the same messages, but without thoughts.
    """
    before = hashlib.blake2b(digest_size=16)
    for message in messages:
        visible = [part for part in message.parts if not isinstance(part, Reasoning)]
        before.update(repr((message.role, visible)).encode("utf-8", "surrogatepass"))
        calls = count()
        yield replace(
            message,
            parts=tuple(
                replace(part, key=f"{before.hexdigest()}/{next(calls)}")
                if isinstance(part, ToolCall)
                else part
                for part in message.parts
            ),
        )


def calls_finish(parts: Iterable[Part]) -> bool:
    """Returns whether a turn calls the tool that ends the run."""
    return any(isinstance(part, ToolCall) and part.name == FINISH for part in parts)


@once
def is_dump(source: Source) -> bool:
    """Returns whether a source is a list of chat messages that begins with OpenHands' prompt."""
    first = source.peek.objects[0] if source.peek.objects else {}
    texts = content(first.get("content")) if first.get("role") == "system" else ()
    prompt = "".join(part.text for part in texts if isinstance(part, Text))
    return source.peek.kind == "json" and prompt.startswith("You are OpenHands agent")
