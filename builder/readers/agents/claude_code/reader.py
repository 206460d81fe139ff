"""Claude Code sessions: a tree of JSONL lines, rebuilt into what the model saw.

Reference: claude-code.md. The rules, in short:

- A uuid counts once, the first time: a resumed session replays lines.
- A conversation is a way from a root of the tree to its latest leaf (`_claude_tree`). A branch
  beside it with an answer of the model is one that the user went back from (`rewound`).
- Lines that share a `message.id` are one turn, wherever they stand. Each result belongs behind the
  turn that called, wherever it was written: parallel calls fork the tree.
- A compaction begins a new segment, a conversation of its own, with its summary as the first
  message (`compact_summary`).
- What the program put into the user's mouth is harness text. A slash command's prompt is what the
  model answered, so it stands as the user's where the user said nothing else (`command_prompt`).
- Errors in the place of an answer are left out (`synthetic_turn`). So is an answer that the user
  interrupted before any of its calls was answered (`aborted_turn`): it is a conversation of its
  own with the problem `aborted`, since a cut answer is no example.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from builder.conversation import Conversation, Event, Json, Media, Message, Text
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.claude_code.lines import (
    INTERRUPTED,
    SessionLine,
    as_harness,
    read_line,
    unknown_blocks,
)
from builder.readers.agents.claude_code.tree import Way, find_ways
from builder.readers.agents.claude_code.turns import SessionTurn, Turns
from builder.readers.toolkit.chat_messages import unknown_parts
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, unknown_code
from builder.readers.toolkit.places import ignored, span, unique_name
from builder.sources.source import Record, Source

_IGNORED = frozenset(
    {
        "system", "progress", "attachment", "summary", "file-history-snapshot", "queue-operation",
        "last-prompt", "permission-mode", "ai-title", "custom-title", "agent-name", "pr-link",
        "continued-in", "agent-setting", "started", "result",
    }
)  # fmt: skip
"""Types of lines that by design hold no turn."""
_SPEAKERS = ("user", "assistant")


def recognise(source: Source) -> str | None:
    """Lines of a session: user and assistant lines, or a session's bookkeeping alone."""
    for value in _logged(source.peek.objects):
        kind, message = value.get("type"), as_dict(value.get("message"))
        if kind in ("user", "assistant") and message.get("role") == kind:
            known = {"uuid", "sessionId", "timestamp"} & set(value)
            if known and isinstance(message.get("content"), str | list):
                return f"{kind} lines with a message"
        if kind == "summary" and "leafUuid" in value:
            return "summary lines with leafUuid"
        if kind == "file-history-snapshot" and "snapshot" in value:
            return "file-history-snapshot lines"
        if kind == "queue-operation" and "operation" in value and "sessionId" in value:
            return "queue-operation lines"
        qwen = "systemPayload" in value  # Qwen Code's lines look alike
        if kind == "system" and "uuid" in value and "sessionId" in value and not qwen:
            return "system lines with uuid and sessionId"
        if kind in ("started", "result") and "agentId" in value and "key" in value:
            return "a workflow's journal"
    return None


def _logged(objects: tuple[dict[str, Json], ...]) -> Iterator[dict[str, Json]]:
    """The lines, also where an export holds them in a list `loglines`."""
    for value in objects:
        lines = value.get("loglines")
        if isinstance(lines, list):
            yield from (line for line in lines if isinstance(line, dict))
        else:
            yield value


def read(source: Source) -> Iterator[Event]:
    """The source's conversations, and what became of its other lines."""
    nodes: dict[str, SessionLine] = {}
    counts: Counter[str] = Counter()
    for at, item in enumerate(_records(source)):
        if isinstance(item, Problem):
            yield item
            continue
        if not isinstance(item.value, dict):
            yield Problem("not_object", item.where, f"a bare {type(item.value).__name__}")
            continue
        line = read_line(at, item.where, item.value)
        speaks = line is not None and line.kind in _SPEAKERS
        if not speaks:
            kind = as_str(item.value.get("type"))
            counts[kind if kind in _IGNORED else unknown_code(item.value.get("type"))] += 1
        seen = nodes.get(line.uuid) if line else None
        if seen is not None and seen.kind in _SPEAKERS:
            counts["replayed"] += speaks
        elif line is not None and (speaks or seen is None):
            nodes.pop(line.uuid, None)
            nodes[line.uuid] = line
    turns = Turns(nodes.values())
    taken = _Taken()
    for way in find_ways(nodes, turns.beside):
        if any(line.is_answer or line.is_typed for line in way.lines):
            yield from _conversations(way, turns, taken)
    for line in nodes.values():
        if line.kind in _SPEAKERS and line.uuid not in taken.lines:
            counts[_left_over(line)] += 1
    yield from ignored(counts)


def _records(source: Source) -> Iterator[Record | Problem]:
    objects = source.peek.objects
    if source.peek.kind == "json" and len(objects) == 1 and "loglines" in objects[0]:
        yield from source.counted(as_list(objects[0]["loglines"]), "loglines[{}]")
    else:
        yield from source.records()


def _left_over(line: SessionLine) -> str:
    """Why a line is in no conversation: it stands beside all ways, or on one without a turn."""
    if line.results:
        return "orphan_result"
    return "rewound" if line.is_typed or line.is_answer else "harness_text"


@dataclass(frozen=True, slots=True)
class _Taken:
    """What the conversations of a file took: lines, aborted answers (by turn), names."""

    lines: set[str] = field(default_factory=set)
    aborted: set[str] = field(default_factory=set)
    names: Counter[str] = field(default_factory=Counter)


def _conversations(way: Way, turns: Turns, taken: _Taken) -> Iterator[Conversation]:
    """The way as a conversation; after it one for each answer on it that was aborted."""
    reading = _Reading(way.lines, turns)
    first, leaf = way.lines[0], way.lines[-1]
    name = "/".join(part for part in (leaf.session, leaf.agent) if part) or "session"
    problems = unknown_parts(reading.unknown, leaf.where)
    if way.rewound:
        detail = "a branch that the user went back from"
        problems = (Problem("rewound", leaf.where, detail, records=0), *problems)
    new = reading.members - taken.lines
    taken.lines.update(new)
    conversation = Conversation(
        id=unique_name(name, taken.names),
        record=span(first.where, leaf.where),
        messages=tuple(reading.messages),
        model=reading.model,
        records=len(new),
        problems=problems,
        changes=dict(sorted(reading.changes.items())),
    )
    yield conversation
    for turn, messages in reading.aborted:
        if turn.key not in taken.aborted:
            taken.aborted.add(turn.key)
            where = turn.lines[-1].where
            aborted = Problem("aborted", where, "the user interrupted the answer", records=0)
            yield replace(
                conversation,
                id=unique_name(name, taken.names),
                record=span(first.where, where),
                messages=messages,
                records=0,
                problems=(aborted, *problems),
            )


class _Reading:
    """One pass along a way.

    messages  what the model saw, in order
    model     the model of the last answer
    changes   what was altered, by code
    unknown   types of blocks that are not known
    aborted   answers that the user interrupted, each with the messages up to it
    members   the lines of the way and of the turns on it
    """

    def __init__(self, lines: Sequence[SessionLine], turns: Turns) -> None:
        self.messages: list[Message] = []
        self.model: str | None = None
        self.changes: Counter[str] = Counter()
        self.unknown: list[str] = []
        self.aborted: list[tuple[SessionTurn, tuple[Message, ...]]] = []
        self.members = {line.uuid for line in lines if line.kind in _SPEAKERS}
        self._answers = turns.answered(lines)
        self._claimed = {answer.key for found in self._answers.values() for answer in found}
        self._said: set[str] = set()
        self._open: SessionTurn | None = None  # the turn before, if nothing has answered it
        run: list[SessionLine] = []
        for line in lines:
            if line.kind == "user":
                run.append(line)
            elif line.is_answer:
                self._user(run)
                run = []
                self._assistant(turns.of(line))
            elif line.kind == "assistant":
                self.changes["synthetic_turn"] += 1
        self._user(run)

    def _assistant(self, turn: SessionTurn) -> None:
        """A turn, and the results of its calls behind it, in the order logged."""
        if turn.key in self._said:
            return
        self._said.add(turn.key)
        answers = self._answers[turn.key]
        self.members.update(line.uuid for line in turn.lines)
        self.members.update(answer.line.uuid for answer in answers)
        self.model = turn.lines[-1].model or self.model
        self.unknown += turn.unknown
        if turn.repeated:
            self.changes["repeated_block"] += turn.repeated
        self.messages.append(Message("assistant", turn.parts, turn=turn.lines[0].response))
        self.messages += [Message("tool", (answer.result,)) for answer in answers]
        self._open = None if answers else turn

    def _user(self, run: Sequence[SessionLine]) -> None:
        """The user lines between two turns: the user's words, and what the program put there.

        A slash command's own lines are harness text. The prompt that it expands to (isMeta) is what
        the model answered: it stands as the user's words where there are no others.
        """
        if self._open is not None and _interrupted(run):
            self.aborted.append((self._open, tuple(self.messages)))
            self.messages.pop()
            self.changes["aborted_turn"] += 1
        if run:
            self._open = None
        typed = any(line.is_typed for line in run)
        command = False
        for line in run:
            self.unknown += unknown_blocks(line)
            for number, result in enumerate(line.results):
                if (line.uuid, number) not in self._claimed:
                    self.messages.append(Message("tool", (result,)))
            parts = line.said
            if line.is_summary:
                self.changes["compact_summary"] += 1
            elif line.is_meta and command and not typed and any(map(_is_plain, parts)):
                self.changes["command_prompt"] += 1
            elif line.is_meta:
                parts = tuple(map(as_harness, parts))
            command = command or any("<command-name>" in text for text in _texts(parts))
            if parts:
                self.messages.append(Message("user", parts))


def _is_plain(part: Text | Media) -> bool:
    return isinstance(part, Text) and not part.harness


def _texts(parts: Iterable[Text | Media]) -> Iterator[str]:
    return (part.text for part in parts if isinstance(part, Text))


def _interrupted(run: Iterable[SessionLine]) -> bool:
    """Did the user stop the model before saying anything else?"""
    for line in run:
        if line.is_typed:
            return False
        if any(text.startswith(INTERRUPTED) for text in _texts(line.said)):
            return True
    return False


READER = Reader(
    name="claude-code",
    summary="Claude Code sessions (JSONL): lines with type, message and uuid, sub-agents too",
    recognise=recognise,
    read=read,
)
