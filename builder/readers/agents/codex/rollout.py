"""Replays a Codex session line by line, keeping the history as the model sees it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from builder.conversation import (
    REPEAT,
    Context,
    Conversation,
    Event,
    Ignored,
    Json,
    Part,
    Reasoning,
    Text,
    ToolResult,
    Unparsed,
    Used,
)
from builder.problem import Problem
from builder.readers.agents.codex import items
from builder.readers.agents.codex.history import (
    RolloutTurn,
    ends_review,
    last_answer,
    mark_replayed,
    messages,
    rebuilt,
)
from builder.readers.agents.codex.lines import RolloutLine, id_in, item_texts, typed_texts
from builder.readers.toolkit.call_keys import with_session_keys
from builder.readers.toolkit.chat_messages import as_harness
from builder.readers.toolkit.narrow import as_dict, as_str, name_or_none, unknown_code
from builder.readers.toolkit.places import ignored, span
from builder.readers.toolkit.unknown_records import carries_content, unknown_message

NAME = "codex"

_BOOKKEEPING = frozenset({
    "world_state", "token_usage_record", "inter_agent_communication_metadata", "retained_context",
    "security_risk_score", "realtime_item", "id_allocation",
})  # fmt: skip
"""Kinds of lines that no request contains, though some repeat what the user answered or spoke."""


class Rollout:
    """Converts the lines of one session to the conversations of its segments and branches."""

    def __init__(self, name: str, lines: Sequence[RolloutLine]) -> None:
        self.id = id_in(name)
        self.scope = name
        self.typed = typed_texts(lines)
        self.texts = frozenset(item_texts(lines))
        self.has_text_patch = any(
            line.item == "custom_tool_call" and line.payload.get("name") == "apply_patch"
            for line in lines
        )
        self.records_usage = any(line.kind == "token_usage_record" for line in lines)
        self.counts_answers = False  # a whole answer is followed by a record of its usage
        self.has_tasks = self.is_idle = False
        self.has_meta = False
        self.is_inherited = False
        self.system = ""
        self.missing = frozenset({"system", "tools"})
        self.tools: list[Json] = []
        self.model: str | None = None
        self.version: str | None = None
        self.ignored: Counter[str] = Counter()
        self.emitted = 0
        self.abandoned = 0
        self.segment = 0
        self.records = 0
        self.unsure: set[str | None] = set()
        self._begin()

    def _begin(self) -> None:
        """Begins a segment without a history."""
        self.segment += 1
        self.turns: list[RolloutTurn] = []
        self.open: RolloutTurn | None = None
        self.is_complete = False  # the model's last response is known to be whole
        self.grew = self.segment == 1
        self.first = self.last = ""
        self.changes: Counter[str] = Counter()

    def take(self, line: RolloutLine, *, joins: bool) -> Iterator[Event]:
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
        elif kind == "state":
            code = kind
            self.open = None  # written before each response
        else:
            code = kind if kind in _BOOKKEEPING else unknown_code(kind)
            if kind not in _BOOKKEEPING and carries_content(line.payload):
                self.open = None
                self.turns.append(RolloutTurn("user", [*unknown_message(kind).parts]))
            if kind == "token_usage_record":
                self._end_response(line.payload)
        if code is not None:
            self.ignored[code] += 1
            return
        self.records += 1
        self.first = self.first or line.where
        self.last = line.where

    def lose(self) -> None:
        """Notes that a line here cannot be read: it may be part of what the model saw."""
        self.open = None
        at = last_answer(self.turns)
        if at is not None:
            answered = {result.call_id for result in self.turns[at].results}
            self.unsure |= {call.id for call in self.turns[at].calls} - answered
        self.turns.append(RolloutTurn("user", hides={"history"}))

    def end(self) -> Iterator[Event]:
        """Yields the last segment, and the lines that are in no conversation."""
        yield from self._segment()
        if self.records and self.emitted:
            yield Used(self.records)
        elif self.records:
            yield Ignored("no_messages", self.records)
        yield from ignored(self.ignored)

    def inherit(self, lines: Sequence[RolloutLine]) -> None:
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
            self.turns.append(RolloutTurn("user", [Text(own, harness=True)]))
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
            hidden = bool(item.get("encrypted_content")) and not item.get("content")
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
            self._append(RolloutTurn("user", [*items.unasked(item)], hides={"history"}))
        elif kind in items.OUTPUTS:
            self._add_output(items.result(item))
        elif kind in items.COMPACTIONS:
            self.turns.append(RolloutTurn("user", hides={"encrypted_context"}))
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
            is_inserted = self.is_idle or items.is_from_program(item) or ends_review(self.turns)
            self.open = None if is_inserted else self.open
            turn = self._add(parts, joins=joins)
            turn.unknown += items.unknown(item)
            if is_inserted:
                turn.untrained, self.open = turn.untrained or "inserted", None
            return
        if role in ("developer", "system") and any(turn.has_content for turn in self.turns):
            parts = [*as_harness(parts)]  # the program's notes of changed settings
        self._append(RolloutTurn(role, parts, unknown=[*items.unknown(item)]))

    def _from_agent(self, item: items.Item) -> None:
        """Adds a message of another agent: neither the user's nor the model's own."""
        parts = items.content_parts(item.get("content"))
        known: list[Part] = [part for part in parts if not isinstance(part, Unparsed)]
        is_hidden = len(known) < len(parts) or item.get("encrypted_content")
        hides = {"encrypted_context"} if is_hidden else set()
        self._append(RolloutTurn("user", [*as_harness(known)], hides=hides))

    def _append(self, turn: RolloutTurn) -> None:
        if not turn.parts and not turn.hides:
            return
        # The program may log a warning between a call and its output: the turn continues.
        if turn.is_prompt or (self.open and len(self.open.results) >= len(self.open.calls)):
            self.open = None
        self.turns.append(turn)
        self.grew = self.grew or turn.has_content

    def _add(self, parts: list[Part], *, joins: bool, hides: str | None = None) -> RolloutTurn:
        """Adds parts to the open turn of the model, or to a new one; returns the turn."""
        if self.open is None or (self.open.results and not joins):
            is_counted = False if self.counts_answers else None
            self.open = RolloutTurn("assistant", model=self.model, is_counted=is_counted)
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
        at = last_answer(self.turns)
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
        else:
            self.turns.append(RolloutTurn("tool", results=[result]))
        self.grew = True

    def _drop_summary(self, message: str) -> None:
        """Removes the answer that is the summary: the log lacks the request for it."""
        at = last_answer(self.turns)
        if at is None or self.turns[at].calls:
            return
        text = self.turns[at].text.strip()
        if text and message.strip().endswith(text):
            del self.turns[at]
            self.changes["summary_request"] += 1

    def _compact(self, line: RolloutLine) -> None:
        """Begins a segment with the history that replaces the previous one."""
        before = self.turns
        history = line.payload.get("replacement_history")
        summary = as_str(line.payload.get("message"))
        self._begin()
        if isinstance(history, list):
            for number, item in enumerate(history):
                self._item(as_dict(item), f"{line.where} [{number}]", replayed=True)
            is_encrypted = any("encrypted_context" in turn.hides for turn in self.turns)
            mark_replayed(self.turns, before, is_encrypted=is_encrypted)
        else:
            self.changes["compaction_rebuilt"] += 1
            self.turns = rebuilt(before, summary)
        self.open = None
        self.grew = False

    def _roll_back(self, line: RolloutLine) -> Iterator[Conversation]:
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
        at = last_answer(self.turns)
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
        logged, changes["result_supplied"] = messages(
            self.system, self.turns, self.missing, self.unsure
        )
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
        )
