"""What both generations of OpenHands share: the view of the model, condensation, LLM logs.

Source: openhands.md; OpenHands' memory/view.py and the SDK's event/condenser.py for the view. An
event log is append-only, but the model sees a view of it: calls of one response are one turn, a
result stands behind the turn that called, and a condensation forgets events and puts a summary in
their place. What was seen before a condensation and what was seen after it are two segments.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from builder.conversation import (
    Conversation,
    Data,
    Event,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from builder.problem import Problem
from builder.readers.toolkit.call_keys import with_session_keys
from builder.readers.toolkit.chat_messages import (
    assistant_parts,
    chat_message,
    content,
    unknown_parts,
)
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none
from builder.readers.toolkit.places import span
from builder.sources.once import once
from builder.sources.source import Record, Source

FAMILY = "openhands"
"""What the keys of calls begin with: both generations may log one call."""
FINISH = "finish"
"""The tool by which an agent ends its run."""


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """What the model sees of an event: a message's parts, or nothing (`role` is "").

    `turn` is the id of the response that an assistant's entry belongs to.
    """

    event: str
    role: str = ""
    parts: tuple[Part, ...] = ()
    turn: str | None = None
    summary: bool = False


@dataclass(slots=True)
class _Slot:
    """A message in the making, with the results of its calls."""

    role: str
    parts: list[Part]
    turn: str | None = None
    results: list[Part] = field(default_factory=list)


def messages(view: list[ViewEntry]) -> tuple[Message, ...]:
    """The messages of a view; a result goes behind the latest turn that made its call."""
    slots: list[_Slot] = []
    turns: dict[str, _Slot] = {}
    issued: dict[str | None, _Slot] = {}
    for entry in view:
        if not entry.parts:
            continue
        calls = [part for part in entry.parts if isinstance(part, ToolCall)]
        result = entry.parts[0]
        if isinstance(result, ToolResult) and result.call_id in issued:
            issued[result.call_id].results += entry.parts
            continue
        slot = turns.get(entry.turn) if entry.turn else None
        if slot is None:
            slot = _Slot(entry.role, [], entry.turn)
            slots.append(slot)
        slot.parts += entry.parts
        if entry.turn:
            turns[entry.turn] = slot
        issued.update((call.id, slot) for call in calls)
    found: list[Message] = []
    for slot in slots:
        found.append(Message(slot.role, tuple(slot.parts), turn=slot.turn))
        if slot.results:
            found.append(Message("tool", tuple(slot.results)))
    return tuple(found)


def condense(
    view: list[ViewEntry], forgotten: set[str], summary: str, offset: int, event: str
) -> list[ViewEntry]:
    """The view after a condensation.

    A call whose result was forgotten, and a result whose call was, go with it: the agent sends
    no half of a pair. The summary is context that the model saw, though no user said it; a new one
    replaces the one before.
    """
    kept = [entry for entry in view if entry.event not in forgotten]
    gone = [entry for entry in view if entry.event in forgotten]
    unanswered = _results(gone) - _results(kept)
    kept = [entry for entry in kept if _calls([entry]).isdisjoint(unanswered)]
    orphaned = _results(kept) - _calls(kept)
    kept = [entry for entry in kept if _results([entry]).isdisjoint(orphaned)]
    if summary:
        kept = [entry for entry in kept if not entry.summary]
        told = ViewEntry(event, "user", (Text(summary),), summary=True)
        kept.insert(max(0, offset), told)
    return kept


def _calls(entries: list[ViewEntry]) -> set[str | None]:
    return {part.id for entry in entries for part in entry.parts if isinstance(part, ToolCall)}


def _results(entries: list[ViewEntry]) -> set[str | None]:
    return {
        part.call_id for entry in entries for part in entry.parts if isinstance(part, ToolResult)
    }


def without_calls(entry: ViewEntry) -> ViewEntry:
    """The entry's words alone."""
    return replace(entry, parts=tuple(p for p in entry.parts if not isinstance(p, ToolCall)))


@dataclass(slots=True)
class Segments:
    """The conversations of one agent, as its events are read.

    `scope` is where the keys of its calls are unique: the file and the agent in it.
    """

    name: str
    scope: str
    view: list[ViewEntry] = field(default_factory=list)
    done: list[tuple[tuple[Message, ...], bool, dict[str, int]]] = field(default_factory=list)
    fresh: bool = False
    unknown: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    changes: Counter[str] = field(default_factory=Counter)
    tools: tuple[Json, ...] | None = None
    model: str | None = None
    places: list[str] = field(default_factory=list)
    ended: ViewEntry | None = None

    def add(self, entry: ViewEntry) -> None:
        """Add what the model sees of the next event.

        After the call that ended a run nothing answers it: where the conversation goes on, the
        model is shown the words of that turn alone, so that a new segment begins.
        """
        if self.ended is not None and entry.parts:
            self.cut(complete=True)
            self.view = [without_calls(e) if e is self.ended else e for e in self.view]
            self.ended = None
        self.view.append(entry)
        self.fresh = self.fresh or (entry.role == "assistant" and bool(entry.parts))

    def cut(self, *, complete: bool = False) -> None:
        """End a segment here, unless nothing was answered since the last one."""
        if self.fresh:
            self.done.append((messages(self.view), complete, dict(self.changes)))
        self.fresh = False

    def condense(self, forgotten: set[str], summary: str, offset: int, event: str) -> None:
        """End a segment, and go on with what a condensation left of the view."""
        self.cut()
        if summary:
            self.changes["compact_summary"] += 1
        self.view = condense(self.view, forgotten, summary, offset, event)

    def events(self, records: int, *, complete: bool, where: str = "") -> Iterator[Event]:
        """The conversations, once all events were added; `complete` says it of the last."""
        self.cut(complete=complete)
        if not self.done:
            self.done.append((messages(self.view), False, dict(self.changes)))
        found = [segment for segment in self.done if segment[0]]
        if not found:
            yield Problem("no_messages", where or self.where, "no event holds a message", records)
        for number, (seen, ended, changes) in enumerate(found, 1):
            yield Conversation(
                id=self.name if number == 1 else f"{self.name} segment {number}",
                record=where or self.where,
                messages=tuple(with_session_keys(FAMILY, seen, self.scope)),
                tools=self.tools,
                model=self.model,
                records=records if number == 1 else 0,
                problems=(*self.problems[:1], *unknown_parts(self.unknown, where or self.where)),
                changes=changes,
                complete=ended,
            )

    @property
    def where(self) -> str:
        """From the first place to the last."""
        return span(self.places[0], self.places[-1]) if self.places else "file"


def with_affixes(
    said: tuple[Text | Data | Media, ...], metadata: Json
) -> tuple[Text | Data | Media, ...]:
    """A command's output with the prefix and suffix that the log keeps apart from it."""
    about = as_dict(metadata)
    prefix, suffix = as_str(about.get("prefix")), as_str(about.get("suffix"))
    texts = [part for part in said if isinstance(part, Text)]
    if not (prefix or suffix) or len(texts) != len(said) or len(texts) > 1:
        return said
    return (Text(prefix + "".join(part.text for part in texts) + suffix),)


def is_llm_log(item: dict[str, Json]) -> bool:
    """Whether an object is the log of one model call that both generations write."""
    return (
        isinstance(item.get("messages"), list)
        and isinstance(item.get("response"), dict)
        and {"kwargs", "cost"} <= item.keys()
    )


def llm_log(record: Record) -> Event:
    """The conversation of one logged model call: its request and its answer.

    Where the model has no function calling, its calls stand beside as they were understood:
    `fncall_messages`, `fncall_response` in V0, `raw_messages` in V1.
    """
    log = as_dict(record.value)
    unknown: list[str] = []
    request = next(
        as_list(log[name])
        for name in ("fncall_messages", "raw_messages", "messages")
        if isinstance(log.get(name), list) or name == "messages"
    )
    found = [chat_message(as_dict(item), unknown) for item in request]
    response = as_dict(log.get("fncall_response")) or as_dict(log.get("response"))
    choices = as_list(response.get("choices"))
    problems: tuple[Problem, ...] = ()
    if choices:
        answer = as_dict(as_dict(choices[0]).get("message"))
        found.append(Message("assistant", assistant_parts(answer, unknown)))
    else:
        problems = (Problem("no_response", record.where, "the model call has no answer", 0),)
    if not found:
        return Problem("no_messages", record.where, "the model call holds no messages")
    tools = log.get("tools") or as_dict(log.get("kwargs")).get("tools")
    return Conversation(
        id=as_str(response.get("id"))[:200] or record.where,
        record=record.where,
        messages=tuple(with_session_keys(FAMILY, placed(found), "log")),
        tools=tuple(tools) if isinstance(tools, list) else None,
        model=name_or_none(response.get("model")),
        records=1,
        problems=(*problems, *unknown_parts(unknown, record.where)),
        complete=calls_finish(found[-1]),
    )


def placed(found: list[Message]) -> Iterator[Message]:
    """The messages with each call keyed by all that was said before it.

    The next request repeats the call behind the same messages, its thoughts apart.
    """
    said = hashlib.blake2b(digest_size=16)
    for message in found:
        heard = [part for part in message.parts if not isinstance(part, Reasoning)]
        said.update(repr((message.role, heard)).encode("utf-8", "surrogatepass"))
        calls = count()
        yield replace(
            message,
            parts=tuple(
                replace(part, key=f"{said.hexdigest()}/{next(calls)}")
                if isinstance(part, ToolCall)
                else part
                for part in message.parts
            ),
        )


def calls_finish(message: Message) -> bool:
    """Whether a turn ends the run by its call."""
    return any(isinstance(part, ToolCall) and part.name == FINISH for part in message.parts)


@once
def is_dump(source: Source) -> bool:
    """A list of chat messages behind the system text of OpenHands' agent."""
    first = source.peek.objects[0] if source.peek.objects else {}
    texts = content(first.get("content"), []) if first.get("role") == "system" else ()
    said = "".join(part.text for part in texts if isinstance(part, Text))
    return source.peek.kind == "json" and said.startswith("You are OpenHands agent")
