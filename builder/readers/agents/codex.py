"""Reads OpenAI Codex CLI rollouts: one JSONL file of events for each session, from 2025 to 0.169.

Source: docs/formats/codex.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePosixPath

from builder.conversation import (
    LOST_RECORD,
    REPEAT,
    Context,
    Conversation,
    Event,
    Ignored,
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
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api import response_items as items
from builder.readers.toolkit.chat_messages import as_harness
from builder.readers.toolkit.comparison import with_session_keys
from builder.readers.toolkit.history import supply_results
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none, unknown_code
from builder.readers.toolkit.places import ignored, span
from builder.readers.toolkit.rows import not_object
from builder.readers.toolkit.unknown_keys import carries_content, unknown_message
from builder.sources.source import Record, Source

_KINDS = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class _RolloutLine:
    """One line, in any layout. The `payload` of a response_item is the item.

    `is_numbered`: it has an ordinal, as in the builds since 0.171.
    """

    where: str
    kind: str
    payload: dict[str, Json]
    is_numbered: bool = False

    @property
    def item(self) -> str:
        """The type of the item or event that it contains."""
        return as_str(self.payload.get("type"))


def _line_of(record: Record) -> _RolloutLine | Problem:
    """Returns the record as a line; bare items and the oldest header get a kind."""
    value = record.value
    if not isinstance(value, dict):
        return not_object(record, "a line that is ")
    kind = as_str(value.get("type"))
    payload = value.get("payload")
    if isinstance(payload, dict):
        return _RolloutLine(record.where, kind, payload, isinstance(value.get("ordinal"), int))
    if "payload" in value or kind in _KINDS:
        return Problem("not_object", record.where, f"{kind[:40]}: its payload is not an object")
    if "record_type" in value:
        return _RolloutLine(record.where, as_str(value["record_type"]), value)
    if not kind and "id" in value:
        return _RolloutLine(record.where, "session_meta", value)
    return _RolloutLine(record.where, "response_item", value)


def _id_in(name: str) -> str:
    """Returns the session id in a file name, for builds that do not write session_meta."""
    file = PurePosixPath(name).name
    match = _UUID.search(file)
    return match[0] if match else file.partition(".")[0] or "session"


def _typed_texts(lines: Sequence[_RolloutLine]) -> frozenset[str] | None:
    """Collects the texts that the user typed from the events; None if no event has any."""
    texts: set[str] = set()
    for line in lines:
        if line.kind != "event_msg":
            continue
        if line.item == "user_message" and line.payload.get("kind") in (None, "plain"):
            texts.add(as_str(line.payload.get("message")))
        item = as_dict(line.payload.get("item"))
        if line.item == "item_completed" and item.get("type") == "UserMessage":
            pieces = [as_str(part, "text") for part in as_list(item.get("content"))]
            texts.update((*pieces, "".join(pieces), "\n".join(pieces)))
    return frozenset(text for text in texts if text) or None


def _item_texts(lines: Sequence[_RolloutLine]) -> Iterator[str]:
    for line in lines:
        if line.item == "message" and line.payload.get("role") != "assistant":
            parts = items.content_parts(line.payload.get("content"))
            yield from (part.text for part in parts if isinstance(part, Text))


def interleaved(lines: Sequence[_RolloutLine]) -> frozenset[int]:
    """Returns the indexes of the model's lines that follow a tool output but belong to its turn.

    They can be determined only in a user turn in which the program wrote a line before requests.
    """
    interleaved: set[int] = set()
    candidates: list[int] = []
    marked = answered = marks_requests = False
    for at, line in enumerate(lines):
        if line.kind in ("turn_context", "state"):
            marked = True
        elif line.kind != "response_item" or line.item in items.SILENT:
            continue
        elif line.item == "message" and line.payload.get("role") != "assistant":
            interleaved.update(candidates if marks_requests else ())
            candidates = []
            marked = answered = marks_requests = False
        elif line.item in items.OUTPUTS:
            answered = True
        else:
            if answered and marked:
                marks_requests = True
            elif answered:
                candidates.append(at)
            marked = answered = False
    interleaved.update(candidates if marks_requests else ())
    return frozenset(interleaved)


# -- finds what a fork continues -------------------------------------------------------------------

_THREAD = re.compile(r"[0-9a-fA-F-]{8,64}")
_DAY = "[0-9]*/[0-9]*/[0-9]*/"
_FOLDERS = ("", f"../../../{_DAY}", "../../../../archived_sessions/", f"../sessions/{_DAY}")
"""Where a parent's file lies, seen from its fork: by day, or archived in one folder."""
_FORKS = 32
"""How many parents are followed: a fork of a fork of a fork, and so on."""


def _base_of(value: dict[str, Json]) -> tuple[str, int] | None:
    """Returns the parent's thread id and the number of its lines; None if the line has none."""
    payload = as_dict(value.get("payload"))
    base = payload.get("history_base")
    if value.get("type") != "session_meta" or base is None:
        return None
    end = as_dict(base).get("end_ordinal_exclusive")
    return as_str(base, "thread_id"), end if isinstance(end, int) else 0


def _parent_lines(source: Source, base: tuple[str, int]) -> list[_RolloutLine] | None:
    """Returns the lines that a fork continues, the oldest first; None unless all are there."""
    found: list[_RolloutLine] = []
    for _ in range(_FORKS):
        thread, end = base
        file = _file_of(source, thread)
        if file is None:
            return None
        lines: list[_RolloutLine] = []
        above: tuple[str, int] | None = None
        following: int | None = None
        for record in file.json_lines():
            line = record if isinstance(record, Problem) else _line_of(record)
            value = {} if isinstance(record, Problem) else as_dict(record.value)
            ordinal = value.get("ordinal")
            if isinstance(line, Problem) or not isinstance(ordinal, int):
                return None
            if ordinal >= end:
                break
            if following not in (None, ordinal):
                return None
            following = ordinal + 1
            if line.kind == "session_meta":
                above = above or _base_of(value)
            else:
                lines.append(line)
        if following != end:
            return None
        found[:0] = lines
        if above is None:
            return found
        base = above
    return None


def _file_of(source: Source, thread: str) -> Source | None:
    """Returns the file of a thread; its name ends with the thread's id."""
    if not _THREAD.fullmatch(thread):
        return None
    places = (source.related(f"{folder}rollout-*-{thread}.jsonl") for folder in _FOLDERS)
    return next((file for file in places if file is not None), None)


# -- represents the history of a Codex session as turns, and as the messages of a request ----------

_SUMMARY_PREFIX = "Another language model started to solve this problem"
_KEPT_USER_CHARS = 80_000
"""The approximate limit of user messages that a compaction keeps: 20,000 tokens of 4 bytes.

Source: codex-rs/core/src/compact.rs, COMPACT_USER_MESSAGE_MAX_TOKENS.
"""


@dataclass(slots=True)
class _RolloutTurn:
    """One entry of the history: a message, or the model's turn with its results.

    hides      codes of `Context.missing` for the parts of this entry that are not logged
    untrained  why it is not a target, as in `Message`
    model      the model of the request that it answers
    response   the provider's id of the response
    unknown    keys with text that are not known, as in `Message`
    is_counted the log has the record of usage that follows a whole answer; None: it has none of any
    is_moved   an output that the log has after it is shown before it
    """

    role: str
    parts: list[Part] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    hides: set[str] = field(default_factory=set)
    untrained: str | None = None
    model: str | None = None
    response: str | None = None
    unknown: list[str] = field(default_factory=list)
    is_counted: bool | None = None
    is_moved: bool = False

    @property
    def calls(self) -> list[ToolCall]:
        return [part for part in self.parts if isinstance(part, ToolCall)]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def is_prompt(self) -> bool:
        """Returns whether it is a user's message with more than harness text."""
        return self.role == "user" and any(
            part != LOST_RECORD and not (isinstance(part, Text) and part.harness)
            for part in self.parts
        )

    @property
    def has_content(self) -> bool:
        """Returns whether it has more than harness context, thoughts and unreadable items."""
        written = any(not isinstance(part, Unparsed | Reasoning) for part in self.parts)
        return bool(self.results) or self.is_prompt or (self.role == "assistant" and written)


def _last_answer(turns: Sequence[_RolloutTurn]) -> int | None:
    return next((at for at in reversed(range(len(turns))) if turns[at].role == "assistant"), None)


def _mark_replayed(
    turns: Sequence[_RolloutTurn], before: Sequence[_RolloutTurn], *, is_encrypted: bool
) -> None:
    """Marks the model's turns in a history that replaced another: none of them is a target.

    A turn is a repeat if the replaced history (`before`) has a turn with the same text and no call.
    Other turns were stripped of their calls. With an encrypted summary, any turn may have been.
    """
    whole = {turn.text for turn in before if turn.role == "assistant" and not turn.calls}
    for turn in turns:
        if turn.role == "assistant":
            is_repeat = not is_encrypted and turn.text in whole
            turn.untrained = REPEAT if is_repeat else "stripped"


def _rebuilt(before: Sequence[_RolloutTurn], summary: str) -> list[_RolloutTurn]:
    """Returns the history after a compaction of which only the summary is logged.

    Older builds kept the context at the start of the history and the user's messages, and appended
    the summary (seen in 0.77).
    """
    heads = [at for at, turn in enumerate(before) if turn.has_content]
    prompts = [turn for turn in before if turn.is_prompt]
    hides = set() if summary else {"encrypted_context"}
    if sum(len(turn.text) for turn in prompts) > _KEPT_USER_CHARS or (
        summary and not summary.startswith(_SUMMARY_PREFIX)
    ):
        hides = {"history"}
    parts: list[Part] = [Text(summary, harness=True)] if summary else []
    first = before[: heads[0]] if heads else before
    return [*first, *prompts, _RolloutTurn("user", parts, hides=hides)]


def messages(
    system: str,
    turns: Sequence[_RolloutTurn],
    missing: frozenset[str],
) -> tuple[list[Message], int]:
    """Returns the history as messages, and the number of results that Codex supplied itself.

    The model's turns are numbered because the log has no ids for them. In later requests, Codex
    answers a call without an output with ABORTED. `missing`: the codes of what the log lacks from
    the start.
    """
    lost: set[str | None] = set()  # ids of calls whose outputs may be in lines that are lost
    calls: set[str | None] = set()
    for turn in turns:
        lost |= calls if LOST_RECORD in turn.parts else set()
        if turn.role == "assistant":
            calls = {call.id for call in turn.calls} - {result.call_id for result in turn.results}

    def aborted(call: ToolCall) -> ToolResult | None:
        if call.id in lost:
            return None
        return ToolResult((Text(items.ABORTED),), call.id, is_interrupted=True)

    messages = [Message("system", (Text(system),))] if system else []
    base = Context.lacking(missing)
    number = 0
    for turn in turns:
        name = context = None
        if turn.role == "assistant":
            number += 1
            name, context = f"response {number}", Context.lacking(missing)
        if turn.parts:
            context = None if context == base else context
            parts = tuple(turn.parts)
            untrained = turn.untrained or ("aborted" if turn.is_counted is False else None)
            message = Message(turn.role, parts, name, untrained, context, turn.model)
            unknown = tuple(dict.fromkeys(turn.unknown))
            messages.append(replace(message, response=turn.response, unknown=unknown))
        missing |= turn.hides
        answered = {result.call_id for result in turn.results}
        if len(turn.calls) > 1 and not answered.issuperset(call.id for call in turn.calls):
            missing |= {"history"}  # each such call is sent with its "aborted", before the next
        messages += [Message("tool", (result,)) for result in turn.results]
    return supply_results(messages, aborted)


# -- replays a Codex session line by line, keeping the history as the model sees it ----------------

NAME = "codex"

_BOOKKEEPING = frozenset({
    "world_state", "token_usage_record", "inter_agent_communication_metadata", "retained_context",
    "security_risk_score", "realtime_item", "id_allocation",
})  # fmt: skip
"""Kinds of lines that no request contains, though some repeat what the user answered or spoke."""


class _Rollout:
    """Converts the lines of one session to the conversations of its segments and branches."""

    def __init__(self, name: str, lines: Sequence[_RolloutLine]) -> None:
        self.id = _id_in(name)
        self.scope = name
        self.typed = _typed_texts(lines)
        self.texts = frozenset(_item_texts(lines))
        self.has_text_patch = any(
            line.item == "custom_tool_call" and line.payload.get("name") == "apply_patch"
            for line in lines
        )
        self.records_usage = any(line.kind == "token_usage_record" for line in lines)
        self.counts_answers = False  # a whole answer is followed by a record of its usage
        self.has_counts = self.has_tasks = self.is_idle = False
        self.has_meta = False
        self.is_inherited = False
        self.system = ""
        self.missing = frozenset({"system", "tools"})
        self.tools: list[Json] = []
        self.model: str | None = None
        self.version: str | None = None
        self.folder: str | None = None
        self.ignored: Counter[str] = Counter()
        self.emitted = 0
        self.abandoned = 0
        self.segment = 0
        self.records = 0
        self._begin()

    def _begin(self) -> None:
        self.segment += 1
        self.turns: list[_RolloutTurn] = []
        self.open: _RolloutTurn | None = None
        self.is_complete = False  # the model's last response is known to be whole
        self.grew = self.segment == 1
        self.first = self.last = ""
        self.changes: Counter[str] = Counter()

    def take(self, line: _RolloutLine, *, joins: bool) -> Iterator[Event]:
        """Reads the next line. `joins`: it belongs to the model's turn before the last output."""
        kind = line.kind
        code: str | None = None
        self.counts_answers = self.counts_answers or (self.records_usage and line.is_numbered)
        if kind == "response_item":
            code = self._item(line.payload, line.where, joins=joins)
        elif kind == "session_meta":
            self._meta(line.payload)
        elif kind == "turn_context":
            self.model = name_or_none(line.payload.get("model")) or self.model
            self.folder = name_or_none(line.payload.get("cwd")) or self.folder
            self.open, self.is_idle = None, False  # a request begins
        elif kind == "dynamic_tools_updated":
            added = line.payload.get("dynamic_tools", line.payload.get("tools"))
            self.tools = items.with_tools(self.tools, added)
        elif kind == "compacted":
            self._drop_summary(as_str(line.payload.get("message")))
            yield from self._segment()
            self._compact(line)
        elif kind == "inter_agent_communication":
            self._from_agent(line.payload)
        elif kind == "event_msg" and line.item == "thread_rolled_back":
            yield from self._roll_back(line)
        elif kind == "event_msg" and line.item == "turn_aborted":
            self._abort()
        elif kind == "event_msg":
            code = "ui_event"
            if line.item in ("task_started", "turn_started"):
                self.open, self.is_idle, self.has_tasks = None, False, True
            elif line.item in ("task_complete", "turn_complete"):
                self.open, self.is_idle = None, self.has_tasks
            if line.item == "token_count" and line.payload.get("info") is not None:
                self.is_complete = self.is_complete or not self.records_usage
                # Old builds write it before the items.
                self.has_counts = self.has_counts or (self.is_complete and self._last() is not None)
        elif kind == "state":
            code = kind
            self.open = None  # written before each response
        else:
            code = kind if kind in _BOOKKEEPING else unknown_code(kind)
            if kind not in _BOOKKEEPING and carries_content(line.payload):
                self.open = None
                self.turns.append(_RolloutTurn("user", [*unknown_message(kind).parts]))
            if kind == "token_usage_record":
                self._end_response(line.payload)
        if code is not None:
            self.ignored[code] += 1
            return
        self.records += 1
        self.first = self.first or line.where
        self.last = line.where

    def _last(self) -> _RolloutTurn | None:
        """Returns the answer at the end of the history, unless all its calls have results."""
        turn = self.turns[-1] if self.turns else None
        if turn is None or turn.role != "assistant":
            return None
        answered = {result.call_id for result in turn.results}
        is_whole = bool(turn.calls) and all(call.id in answered for call in turn.calls)
        return None if is_whole else turn

    def lose(self) -> None:
        """Notes that a line here cannot be read: it may be part of what the model saw or wrote."""
        if not self.is_complete and (turn := self._last()):
            turn.parts.append(LOST_RECORD)
        self.open = None
        self.turns.append(_RolloutTurn("user", [LOST_RECORD], hides={"history"}))

    def end(self) -> Iterator[Event]:
        """Yields the last segment, and the lines that are in no conversation."""
        if self.has_counts and not self.is_complete and (turn := self._last()):
            turn.parts.append(Unparsed("", "truncated_answer"))
        yield from self._segment()
        if self.records and self.emitted:
            yield Used(self.records)
        elif self.records:
            yield Ignored("no_messages", self.records)
        yield from ignored(self.ignored)

    def inherit(self, lines: Sequence[_RolloutLine]) -> None:
        """Replays the lines of the parent that a fork continues: its history, not its own turns."""
        for line in lines:
            for _ in self.take(line, joins=False):
                pass  # the parent's file has this conversation
        for turn in self.turns:
            if turn.role == "assistant":
                turn.untrained = turn.untrained or REPEAT
        self.open = None
        self.is_inherited = True
        self.segment, self.emitted, self.abandoned, self.records = 1, 0, 0, 0
        self.first = self.last = ""
        self.grew = False
        self.ignored.clear()
        self.changes.clear()

    def _meta(self, meta: dict[str, Json]) -> None:
        if self.has_meta:  # in a fork, the parent's follows
            return
        self.has_meta = True
        self.id = name_or_none(meta.get("id")) or self.id
        self.scope = name_or_none(meta.get("id")) or self.scope
        self.version = name_or_none(meta.get("cli_version"))
        self.folder = name_or_none(meta.get("cwd"))
        if "history_base" in meta and not self.is_inherited:  # the parent's file is not there
            self.missing |= {"history"}
        base = meta.get("base_instructions")
        prompt = base if isinstance(base, str) else as_str(base, "text")
        if prompt and "provenance" in as_dict(base):
            # These builds omit sections of it from their requests (0.157 and 0.169).
            self.missing = self.missing - {"system"} | {"system_template"}
        elif prompt:  # sent unchanged (0.128 and 0.145)
            self.missing -= {"system"}
            self.system = prompt
        # Up to 0.7x `instructions` are those of the user and the project. Some builds also log
        # them as an item and send that; older builds send this text and log no item.
        own = as_str(meta.get("instructions"))
        if own.strip() and not any(own.strip() in text for text in self.texts):
            self.turns.append(_RolloutTurn("user", [Text(own, harness=True)]))
        # Only the client's own tools: the log does not list the built-in ones.
        self.tools = items.with_tools(self.tools, meta.get("dynamic_tools"))

    def _item(
        self, item: items.Item, where: str, *, joins: bool = False, replayed: bool = False
    ) -> str | None:
        """Adds an item to the history; returns the code under which it is ignored, or None."""
        kind = as_str(item.get("type"))
        if kind == "message":
            self._message(item, joins=joins, replayed=replayed)
        elif kind == "reasoning":
            stands_for = item.get("encrypted_content") or item.get("summary")
            hidden = bool(stands_for) and not item.get("content")
            turn = self._add(
                items.thoughts(item), joins=joins, hides="reasoning" if hidden else None
            )
            turn.unknown += items.unknown(item)
        elif items.runs_on_server(item):
            turn = self._add([], joins=joins, hides="server_tool")
            turn.untrained = "server_tool"
        elif kind in items.CALLS:
            turn = self._add([replace(items.call(item), key=where)], joins=joins)
            turn.unknown += items.unknown(item)
        elif kind in items.OUTPUTS and items.is_unasked(item):
            self._append(_RolloutTurn("user", [*items.unasked(item)], hides={"history"}))
        elif kind in items.OUTPUTS:
            self._add_output(items.result(item))
        elif kind in items.COMPACTIONS:
            self.turns.append(_RolloutTurn("user", hides={"encrypted_context"}))
        elif kind == "agent_message":
            self._from_agent(item)
        elif kind == "additional_tools":
            self.tools = items.with_tools(self.tools, item.get("tools"))
        elif kind in items.SILENT:
            return kind
        else:
            # What the model saw from here on is unknown.
            self._add([Unparsed(kind, "unknown_part")], joins=joins)
            return unknown_code(item.get("type"))
        if items.is_cut(item) and self.open is not None:
            self.open.untrained = self.open.untrained or "truncated_answer"
        return None

    def _message(self, item: items.Item, *, joins: bool, replayed: bool) -> None:
        role = as_str(item.get("role"))
        if role == "user":
            # A replacement history contains a summary, which the user did not type.
            parts = items.user_parts(item, None if replayed else self.typed)
        else:
            parts = items.content_parts(item.get("content"))
        if role == "assistant":
            ends_review = bool(self.turns) and self.turns[-1].text.startswith("<user_action>")
            is_inserted = self.is_idle or items.is_from_program(item) or ends_review
            self.open = None if is_inserted else self.open
            turn = self._add(parts, joins=joins)
            turn.unknown += items.unknown(item)
            if is_inserted:
                turn.untrained, self.open = turn.untrained or "inserted", None
            return
        if role in ("developer", "system") and any(turn.has_content for turn in self.turns):
            parts = [*as_harness(parts)]  # the program's notes of changed settings
        self._append(_RolloutTurn(role, parts, unknown=[*items.unknown(item)]))

    def _from_agent(self, item: items.Item) -> None:
        """Adds a message of another agent: neither the user's nor the model's own."""
        parts = items.content_parts(item.get("content"))
        known: list[Part] = [part for part in parts if not isinstance(part, Unparsed)]
        is_hidden = len(known) < len(parts) or item.get("encrypted_content")
        hides = {"encrypted_context"} if is_hidden else set()
        self._append(_RolloutTurn("user", [*as_harness(known)], hides=hides))

    def _append(self, turn: _RolloutTurn) -> None:
        if not turn.parts and not turn.hides:
            return
        # The program may log a warning between a call and its output: the turn continues.
        if turn.is_prompt or (self.open and len(self.open.results) >= len(self.open.calls)):
            self.open = None
        self.turns.append(turn)
        self.grew = self.grew or turn.has_content

    def _add(self, parts: list[Part], *, joins: bool, hides: str | None = None) -> _RolloutTurn:
        """Adds parts to the open turn of the model, or to a new one; returns the turn."""
        if self.open is None or (self.open.results and not joins):
            is_counted = False if self.counts_answers else None
            self.open = _RolloutTurn("assistant", model=self.model, is_counted=is_counted)
            if self.turns and self.turns[-1].parts == [LOST_RECORD]:
                self.open.parts.append(LOST_RECORD)  # its beginning may be lost
            self.turns.append(self.open)
        self.open.parts += parts
        if hides is not None:
            self.open.hides.add(hides)
        self.is_complete = False
        self.grew = self.grew or self.open.has_content
        return self.open

    def _end_response(self, payload: dict[str, Json]) -> None:
        """Takes the line that follows the items of a response."""
        self.is_complete = self.counts_answers = True
        self.open = None
        at = _last_answer(self.turns)
        if at is not None:
            self.turns[at].is_counted = True
            self.turns[at].response = name_or_none(payload.get("response_id"))

    def _add_output(self, result: ToolResult) -> None:
        """Adds an output to the model's last turn that contains its call."""
        answers = [turn for turn in self.turns if turn.role == "assistant"]
        fitting = answers[-1:]
        if result.call_id is not None:
            fitting = [t for t in answers if any(call.id == result.call_id for call in t.calls)]
        if fitting and fitting[-1].calls:
            call = next((c for c in fitting[-1].calls if c.id == result.call_id), None)
            if self.has_text_patch and call is not None and call.name in items.SHELLS:
                result = items.as_sent(result)
            fitting[-1].results.append(result)
            for later in reversed(self.turns):
                if later is fitting[-1]:
                    break
                if later.parts and later.role != "assistant" and not later.is_moved:
                    later.is_moved = True
                    self.changes["user_moved"] += 1
        else:
            self.turns.append(_RolloutTurn("tool", results=[result]))
        self.grew = True

    def _drop_summary(self, message: str) -> None:
        """Removes the answer that is the summary: the log lacks the request for it."""
        at = _last_answer(self.turns)
        if at is None or self.turns[at].calls:
            return
        text = self.turns[at].text.strip()
        if text and message.strip().endswith(text):
            del self.turns[at]
            self.changes["summary_request"] += 1

    def _compact(self, line: _RolloutLine) -> None:
        """Begins a segment with the history that replaces the previous one."""
        before = self.turns
        history = line.payload.get("replacement_history")
        summary = as_str(line.payload.get("message"))
        self._begin()
        if isinstance(history, list):
            for number, item in enumerate(history):
                self._item(as_dict(item), f"{line.where} [{number}]", replayed=True)
            is_encrypted = any("encrypted_context" in turn.hides for turn in self.turns)
            _mark_replayed(self.turns, before, is_encrypted=is_encrypted)
        else:
            self.changes["compaction_rebuilt"] += 1
            self.turns = _rebuilt(before, summary)
        self.open = None
        self.grew = False

    def _roll_back(self, line: _RolloutLine) -> Iterator[Conversation]:
        """Drops the last user turns, with the context that the program put before them."""
        count = line.payload.get("num_turns")
        prompts = [at for at, turn in enumerate(self.turns) if turn.is_prompt]
        if not isinstance(count, int) or count < 1 or not prompts:
            return
        cut = prompts[max(len(prompts) - count, 0)]
        while cut > prompts[0] and not self.turns[cut - 1].has_content:
            cut -= 1
        yield self._branch(Problem("rewound", line.where, f"{count} user turns rolled back", 0))
        del self.turns[cut:]
        self.open = None

    def _abort(self) -> None:
        """Marks the answer that the user interrupted, unless it is known to be whole.

        A response is whole if its tokens were counted or, in files without records of usage, if it
        ends with a call. Complete items of it stay in later requests; thoughts cannot be shown.
        """
        at = _last_answer(self.turns)
        self.open = None
        if at is None:
            return
        turn = self.turns[at]
        later = [part for following in self.turns[at + 1 :] for part in following.parts]
        is_whole = self.is_complete or (bool(turn.calls) and not self.records_usage)
        if is_whole or not all(map(items.notes_abort, later)):
            return
        if all(isinstance(part, Reasoning) for part in turn.parts):
            turn.parts.clear()
        turn.untrained = turn.untrained or "aborted"

    def _segment(self) -> Iterator[Conversation]:
        """Yields the segment so far, unless it adds nothing to the previous one."""
        if not self.grew or not any(turn.has_content for turn in self.turns):
            return
        name = self.id if self.segment == 1 else f"{self.id}#{self.segment}"
        yield self._conversation(name, ())
        self.records = 0

    def _branch(self, problem: Problem) -> Conversation:
        """Returns the history before part of it is discarded; its lines count in the segment."""
        self.abandoned += 1
        branch = self._conversation(f"{self.id}~{self.abandoned}", (problem,))
        return replace(branch, records=0)

    def _conversation(self, name: str, problems: tuple[Problem, ...]) -> Conversation:
        self.emitted += 1
        changes = Counter(self.changes)
        logged, changes["result_supplied"] = messages(self.system, self.turns, self.missing)
        return Conversation(
            id=name,
            record=span(self.first, self.last),
            messages=tuple(with_session_keys(NAME, logged, self.scope)),
            tools=tuple(self.tools) or None,
            model=self.model,
            records=self.records,
            problems=problems,
            changes=dict(+changes),
            context=Context.lacking(self.missing),
            version=self.version,
            folder=self.folder,
        )


def recognise(source: Source) -> str | None:
    """Claims lines of a known type with a payload, or the oldest layout's header and rows."""
    header = bare = False
    for value in source.peek.objects:
        kind = as_str(value.get("type"))
        if kind in _KINDS and isinstance(value.get("payload"), dict):
            return f"{kind} lines with a payload"
        header = (
            header
            or value.get("record_type") == "state"
            or ("type" not in value and {"id", "timestamp", "instructions"} <= value.keys())
        )
        bare = bare or ("payload" not in value and kind in items.ITEMS)
    return "bare response items after the header of an old rollout" if header and bare else None


def read(source: Source) -> Iterator[Event]:
    """Yields the segments of the session and the histories that were rolled back."""
    lines: list[_RolloutLine] = []
    lost: set[int] = set()  # positions before which a line cannot be read
    base: tuple[str, int] | None = None
    for record in source.json_lines():
        line = record if isinstance(record, Problem) else _line_of(record)
        if isinstance(line, Problem):
            lost.add(len(lines))
            yield line
        else:
            if not lines and not isinstance(record, Problem):
                base = _base_of(as_dict(record.value))
            lines.append(line)
    before = (_parent_lines(source, base) or []) if base else []
    for begin, end in pairwise([0, *_further_sessions(lines), len(lines)]):
        own = lines[begin:end]
        rollout = _Rollout(source.name, [*before, *own])
        if before:
            rollout.inherit(before)
        joining = interleaved(own)
        for at, line in enumerate(own):
            if begin + at in lost or (lost and begin and not at):  # it may continue what is lost
                rollout.lose()
            yield from rollout.take(line, joins=at in joining)
        yield from rollout.end()
        before = []


def _further_sessions(lines: Sequence[_RolloutLine]) -> Iterator[int]:
    """Yields where another session begins, in a file of several; a fork's parents come first."""
    known: set[Json] = set()
    has_items = False
    for at, line in enumerate(lines):
        has_items = has_items or line.kind == "response_item"
        if line.kind == "session_meta" and (name := name_or_none(line.payload.get("id"))):
            if has_items and known and name not in known:
                yield at
                has_items = False
            known.add(name)


READER = declared(NAME, recognise=recognise, read=read)
