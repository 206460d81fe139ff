"""OpenAI Codex CLI rollouts: one JSONL file of events for each session, from 2025 to 0.169.

The only source of content is `response_item` (in the oldest layout: bare items without a
`payload`); `event_msg` repeats it for the screen and is used for what the items do not say: what
the human typed, aborted turns, rollbacks. Source: codex.md.

- A turn is what the model wrote until the first output. Where the program wrote a line before
  every request (`turn_context` up to 0.77, `state` rows in the oldest layout), calls of one
  response that were written each with its own output are one turn as well.
- A compaction begins a new segment, which is a conversation of its own: the history that replaced
  the old one, and what followed.
- A rollback makes the history that it discards a conversation with the problem `rewound`. An
  answer that was aborted before any of its calls was answered is one with the problem `aborted`
  and is missing from what follows: a cut answer is no example, and the program's own note of the
  abort is harness text.
- A web search or a generated image is no call that a client answers: the provider ran it inside
  the response and kept what it found. The model saw more than the log holds, so its turn cannot
  be learnt (`server_tool`); so it is with summaries that are encrypted (`encrypted_context`).
- Files of forks and subagents replay the history of their parent. Ids of calls that the provider
  drew at random are their keys, so that a replayed call is known for the same call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import (
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
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.codex import items
from builder.readers.agents.codex.lines import (
    KINDS,
    RolloutLine,
    answered,
    id_in,
    interleaved,
    line_of,
    typed,
)
from builder.readers.toolkit.call_keys import with_session_keys
from builder.readers.toolkit.narrow import as_dict, as_str, name_or_none, unknown
from builder.readers.toolkit.places import ignored, span
from builder.sources.source import Source

NAME = "codex"

_BOOKKEEPING = frozenset(
    {"world_state", "token_usage_record", "inter_agent_communication_metadata"}
)


def recognise(source: Source) -> str | None:
    """By lines of a known type with a payload, or by the header and rows of the oldest layout."""
    if source.peek.kind not in ("jsonl", "json"):
        return None
    header = bare = False
    for value in source.peek.objects:
        kind = as_str(value.get("type"))
        if kind in KINDS and isinstance(value.get("payload"), dict):
            return f"{kind} lines with a payload"
        header = header or value.get("record_type") == "state" or _is_old_header(value)
        bare = bare or ("payload" not in value and kind in items.ITEMS)
    return "bare response items after the header of an old rollout" if header and bare else None


def _is_old_header(value: dict[str, Json]) -> bool:
    return "type" not in value and {"id", "timestamp", "instructions"} <= value.keys()


def read(source: Source) -> Iterator[Event]:
    """The segments of the session, and what was rolled back or aborted."""
    lines: list[RolloutLine] = []
    for record in source.json_lines():
        line = record if isinstance(record, Problem) else line_of(record)
        if isinstance(line, Problem):
            yield line
        else:
            lines.append(line)
    rollout = _Rollout(source.name, typed(lines), answered(lines))
    joining = interleaved(lines)
    for at, line in enumerate(lines):
        yield from rollout.take(line, joins=at in joining)
    yield from rollout.end()


@dataclass(slots=True)
class _Turn:
    """One entry of the history: a message, or the model's turn with what answered it."""

    role: str
    parts: list[Part] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)

    @property
    def calls(self) -> list[ToolCall]:
        return [part for part in self.parts if isinstance(part, ToolCall)]

    @property
    def is_prompt(self) -> bool:
        """Is it a user's, with more than harness text?"""
        return self.role == "user" and any(
            not (isinstance(part, Text) and part.harness) for part in self.parts
        )

    @property
    def says(self) -> bool:
        """Does it hold anything of a conversation, more than context and unreadable items?"""
        spoken = any(not isinstance(part, Unparsed | Reasoning) for part in self.parts)
        return bool(self.results) or self.is_prompt or (self.role == "assistant" and spoken)


class _Rollout:
    """One pass over a session: the history as the model sees it at each line."""

    def __init__(self, name: str, typed: frozenset[str] | None, answered: frozenset[str]) -> None:
        self.id = id_in(name)
        self.scope = name
        self.typed = typed
        self.answered = answered
        self.has_meta = False
        self.system = ""
        self.tools: list[Json] = []
        self.model: str | None = None
        self.ignored: Counter[str] = Counter()
        self.emitted = 0
        self.abandoned = 0
        self.segment = 0
        self.records = 0
        self._begin([])

    def _begin(self, turns: list[_Turn]) -> None:
        """Begin a segment with the history that it takes over."""
        self.segment += 1
        self.turns = turns
        self.open: _Turn | None = None
        self.grew = self.segment == 1
        self.first = self.last = ""
        self.problems: list[Problem] = []
        self.changes: Counter[str] = Counter()

    def take(self, line: RolloutLine, *, joins: bool) -> Iterator[Event]:
        """Read the next line. `joins`: it belongs to the model's turn before the last output."""
        kind = line.kind
        code: str | None = None
        if kind == "response_item":
            code = self._item(line.payload, line.where, joins=joins)
        elif kind == "session_meta":
            self._meta(line.payload)
        elif kind == "turn_context":
            self.model = name_or_none(line.payload.get("model")) or self.model
            self.open = None  # a request begins
        elif kind == "compacted":
            yield from self._segment()
            self._compact(line)
        elif kind == "inter_agent_communication":
            self._from_agent(line.payload, line.where)
        elif kind == "event_msg" and line.item == "thread_rolled_back":
            yield from self._roll_back(line)
        elif kind == "event_msg" and line.item == "turn_aborted":
            yield from self._abort(line.where)
        elif kind == "event_msg":
            code = "ui_event"
            if line.item in ("task_started", "turn_started"):
                self.open = None
        elif kind == "state":
            code = kind
            self.open = None  # written before each response
        else:
            code = kind if kind in _BOOKKEEPING else unknown(kind)
        if code is not None:
            self.ignored[code] += 1
            return
        self.records += 1
        self.first = self.first or line.where
        self.last = line.where

    def end(self) -> Iterator[Event]:
        """The last segment, and the lines that no conversation counts."""
        yield from self._segment()
        if self.records and self.emitted:
            yield Used(self.records)
        elif self.records:
            yield Ignored("no_messages", self.records)
        yield from ignored(self.ignored)

    # -- lines -------------------------------------------------------------------------------

    def _meta(self, meta: dict[str, Json]) -> None:
        if self.has_meta:  # a fork repeats its parent's after its own
            return
        self.has_meta = True
        self.id = name_or_none(meta.get("id")) or self.id
        self.scope = name_or_none(meta.get("id")) or self.scope
        base = meta.get("base_instructions")
        prompt = base if isinstance(base, str) else as_str(as_dict(base).get("text"))
        # Up to 0.7x the prompt is not logged; `instructions` are those of the user and project.
        self.system = prompt or as_str(meta.get("instructions"))
        # These are the client's own tools, a part of what the model had; the log does not tell
        # the built-in ones.
        self.tools += items.definitions(meta.get("dynamic_tools"))

    def _item(
        self, item: items.Item, where: str, *, joins: bool = False, replayed: bool = False
    ) -> str | None:
        """Add an item to the history; the code under which it is ignored, or None."""
        kind = as_str(item.get("type"))
        if kind == "message":
            self._message(item, where, joins=joins, replayed=replayed)
        elif kind == "reasoning":
            self._speak(items.thoughts(item), joins=joins)
        elif kind in items.CALLS:
            self._speak([replace(items.call(item), key=where)], joins=joins)
        elif kind in items.OUTPUTS:
            self._answer(items.result(item))
        elif kind in items.SERVER_CALLS:
            self._speak([Unparsed(dumps(item.get("action")), "server_tool")], joins=joins)
        elif kind in items.COMPACTIONS:
            self._speak([Unparsed(kind, "encrypted_context")], joins=joins)
        elif kind == "agent_message":
            self._from_agent(item, where)
        elif kind == "additional_tools":
            for tool in items.definitions(item.get("tools")):
                if tool not in self.tools:  # a replay brings them again
                    self.tools.append(tool)
        elif kind in items.SILENT:
            return kind
        else:
            # What the model saw from here on is not known.
            self._speak([Unparsed(kind, "unknown_part")], joins=joins)
            return unknown(item.get("type"))
        return None

    def _message(self, item: items.Item, where: str, *, joins: bool, replayed: bool) -> None:
        role = as_str(item.get("role"))
        if role == "user":
            # A history that replaces another also holds a summary that no one typed.
            parts, strange = items.user_parts(item, None if replayed else self.typed)
        else:
            parts, strange = items.content_parts(item.get("content"))
        for name in strange:
            self.problems.append(Problem("unknown_part", where, f"content type {name[:40]}", 0))
        if role == "assistant":
            self._speak(parts, joins=joins)
            return
        if role in ("developer", "system") and any(turn.says for turn in self.turns):
            parts = items.as_harness(parts)  # the program's notes of changed settings
        self._append(_Turn(role, parts))

    def _from_agent(self, item: items.Item, where: str) -> None:
        """Another agent's words: neither the user's nor the model's own."""
        parts, strange = items.content_parts(item.get("content"))
        if strange or item.get("encrypted_content"):
            self.problems.append(Problem("encrypted_context", where, "words of another agent", 0))
        self._append(_Turn("user", items.as_harness(parts)))

    def _append(self, turn: _Turn) -> None:
        if not turn.parts:
            return
        # The program may put a warning between a call and its output: the turn goes on.
        if turn.is_prompt or (self.open and len(self.open.results) >= len(self.open.calls)):
            self.open = None
        self.turns.append(turn)
        self.grew = self.grew or turn.says

    def _speak(self, parts: list[Part], *, joins: bool) -> None:
        if not parts:
            return
        if self.open is None or (self.open.results and not joins):
            self.open = _Turn("assistant")
            self.turns.append(self.open)
        self.open.parts += parts
        self.grew = self.grew or self.open.says

    def _answer(self, result: ToolResult) -> None:
        asked = next((turn for turn in reversed(self.turns) if turn.role == "assistant"), None)
        if asked and any(result.call_id in (None, call.id) for call in asked.calls):
            asked.results.append(result)
        else:
            self.turns.append(_Turn("tool", results=[result]))
        self.grew = True

    def _compact(self, line: RolloutLine) -> None:
        before = self.turns
        history = line.payload.get("replacement_history")
        self._begin([])
        if isinstance(history, list):
            for number, item in enumerate(history):
                self._item(as_dict(item), f"{line.where} [{number}]", replayed=True)
        else:
            # Older builds log the summary alone. They kept the context that led the history and
            # what the user wrote, and put the summary after it.
            self.changes["compaction_rebuilt"] += 1
            heads = [at for at, turn in enumerate(before) if turn.says]
            self.turns = before[: heads[0]] if heads else before
            self.turns += [turn for turn in before if turn.is_prompt]
            summary = as_str(line.payload.get("message"))
            if summary:
                self.turns.append(_Turn("user", [Text(summary)]))
            else:
                self._speak([Unparsed("compacted", "encrypted_context")], joins=False)
        self.open = None
        self.grew = False

    def _roll_back(self, line: RolloutLine) -> Iterator[Conversation]:
        """Drop the last user turns, with the context that the program put before them."""
        count = line.payload.get("num_turns")
        prompts = [at for at, turn in enumerate(self.turns) if turn.is_prompt]
        if not isinstance(count, int) or count < 1 or not prompts:
            return
        cut = prompts[max(len(prompts) - count, 0)]
        while cut > prompts[0] and not self.turns[cut - 1].says:
            cut -= 1
        yield self._branch(Problem("rewound", line.where, f"{count} user turns rolled back", 0))
        del self.turns[cut:]
        self.open = None

    def _abort(self, where: str) -> Iterator[Conversation]:
        """Take out the answer that was cut short, unless a tool has answered it."""
        found = [at for at, turn in enumerate(self.turns) if turn.role == "assistant"]
        self.open = None
        if not found:
            return
        at = found[-1]
        turn = self.turns[at]
        answered = turn.results or any(call.id in self.answered for call in turn.calls)
        later = [
            part for then in self.turns[at + 1 :] if then.role == "user" for part in then.parts
        ]
        if answered or not all(map(items.notes_abort, later)):
            return
        yield self._branch(Problem("aborted", where, "the answer was cut short", 0))
        del self.turns[at]
        self.changes["aborted_turn"] += 1

    # -- conversations -----------------------------------------------------------------------

    def _segment(self) -> Iterator[Conversation]:
        """The segment so far, unless it holds nothing that the one before did not."""
        if not self.grew or not any(turn.says for turn in self.turns):
            return
        name = self.id if self.segment == 1 else f"{self.id}#{self.segment}"
        yield self._conversation(name, self.problems)
        self.records = 0

    def _branch(self, problem: Problem) -> Conversation:
        """The history as it is before some of it is discarded; its lines count in the segment."""
        self.abandoned += 1
        name = f"{self.id}~{self.abandoned}"
        branch = self._conversation(name, [problem, *self.problems])
        return replace(branch, records=0)

    def _conversation(self, name: str, problems: Sequence[Problem]) -> Conversation:
        self.emitted += 1
        return Conversation(
            id=name,
            record=span(self.first, self.last),
            messages=tuple(with_session_keys(NAME, _messages(self.system, self.turns), self.scope)),
            tools=tuple(self.tools) or None,
            model=self.model,
            records=self.records,
            problems=tuple(problems),
            changes=dict(self.changes),
        )


def _messages(system: str, turns: Sequence[_Turn]) -> Iterator[Message]:
    """The history as messages; the model's turns numbered, since the log has no ids for them."""
    if system:
        yield Message("system", (Text(system),))
    number = 0
    for turn in turns:
        number += turn.role == "assistant"
        name = f"response {number}" if turn.role == "assistant" else None
        if turn.parts:
            yield Message(turn.role, tuple(turn.parts), name)
        for result in turn.results:
            yield Message("tool", (result,))


READER = Reader(
    name=NAME,
    summary="OpenAI Codex CLI rollouts (JSONL): lines with type and payload, or the old bare items",
    recognise=recognise,
    read=read,
)
