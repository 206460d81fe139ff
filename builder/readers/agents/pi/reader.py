"""Pi coding agent sessions (also OpenClaw's): one JSONL file of entries for each session.

From version 2 on the entries are a tree by `id` and `parentId`, and the last one is where the
session stands; version 1 is a line. Source: pi.md.

- The path from the root to the last entry is the conversation. A branch that was left is one with
  the problem `rewound`, if the model answered in it.
- A compaction begins a new segment: its summary, the entries that it kept, and what followed.
- An answer that was aborted or failed leaves the context, as the program does with it: it becomes
  a conversation with the problem `aborted`, which ends with it.
- Session files hold neither the system prompt nor tool definitions.
- Files of branched sessions repeat the history; the ids of their calls are their keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from builder.conversation import Conversation, Event, Ignored, Message, Used
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.pi.messages import Entry, entry_message, is_broken_off
from builder.readers.toolkit.call_keys import with_session_keys
from builder.readers.toolkit.narrow import as_dict, as_str, name_or_none, unknown
from builder.readers.toolkit.places import ignored, span
from builder.sources.source import Source

NAME = "pi"

_SAID = frozenset({"message", "compaction", "branch_summary", "custom_message"})
_SETTINGS = frozenset({"model_change", "thinking_level_change", "label", "session_info", "custom"})


def recognise(source: Source) -> str | None:
    """By the header with a folder or version; without it, by messages as only Pi writes them."""
    if source.peek.kind not in ("jsonl", "json"):
        return None
    for value in source.peek.objects:
        kind = value.get("type")
        if kind == "session" and isinstance(value.get("id"), str) and "harness" not in value:
            if "cwd" in value or "version" in value:
                return "a session header"
        elif kind == "message":
            message = as_dict(value.get("message"))
            if message.get("role") == "toolResult" or {"stopReason", "api"} <= message.keys():
                return "messages with toolResult or stopReason"
    return None


def read(source: Source) -> Iterator[Event]:
    """The session's segments, and the branches and answers that were left."""
    taken: set[str] = set()
    stem = source.name.rpartition("/")[2].partition(".")[0]
    session = _Session(stem or "session", source.name)
    for record in source.json_lines():
        if isinstance(record, Problem):
            yield record
        elif not isinstance(record.value, dict):
            detail = f"an entry that is a {type(record.value).__name__}"
            yield Problem("not_object", record.where, detail)
        elif record.value.get("type") == "session":
            yield from session.events()  # files put one after the other
            if session.nodes:
                taken.add(session.id)
            logged = name_or_none(record.value.get("id"))
            name = logged or session.id
            name = f"{name}@{record.where}" if name in taken else name
            session = _Session(name, name if logged else f"{source.name}/{record.where}")
            session.used = 1
            session.model = name_or_none(record.value.get("modelId"))
            session.places = [None]
        else:
            problem = session.add(record.where, record.value)
            if problem:
                yield problem
    yield from session.events()


@dataclass(frozen=True, slots=True)
class _Node:
    """An entry in the tree. `id` is its own or, in version 1, made of its position."""

    id: str
    parent: str | None
    where: str
    entry: Entry

    @property
    def answers(self) -> bool:
        return as_dict(self.entry.get("message")).get("role") == "assistant"


class _Session:
    """All entries of a file, and what has been told of them."""

    def __init__(self, name: str, scope: str) -> None:
        self.id = name
        self.scope = scope  # of the places of calls
        self.model: str | None = None
        self.places: list[_Node | None] = []  # by line, as version 1 counts; None: the header
        self.nodes: dict[str, _Node] = {}
        self.ignored: Counter[str] = Counter()
        self.used = 0
        self.told: set[str] = set()
        self.branches = 0
        self.emitted = False

    def add(self, where: str, entry: Entry) -> Problem | None:
        """Take in the next entry, unless its name is taken by another."""
        last = next(reversed(self.nodes), None)
        name = name_or_none(entry.get("id")) or f"#{len(self.places)}"
        parent = name_or_none(entry.get("parentId")) if "parentId" in entry else last
        if name in self.nodes:
            self.places.append(None)
            if entry != self.nodes[name].entry:
                return Problem("duplicate_id", where, f"another entry is called {name[:40]}")
            self.ignored["repeated_entry"] += 1
            return None
        node = _Node(name, parent, where, entry)
        self.nodes[name] = node
        self.places.append(node)
        kind = as_str(entry.get("type"))
        if kind not in _SAID:
            self.told.add(name)
            self.ignored[kind if kind in _SETTINGS else unknown(entry.get("type"))] += 1
        return None

    def events(self) -> Iterator[Event]:
        """The conversations, and every entry that none of them counts."""
        parents = {node.parent for node in self.nodes.values()}
        leaves = [name for name in self.nodes if name not in parents]
        current = next(reversed(self.nodes), None)
        if current is not None:
            yield from self._path(current)
        for leaf in leaves:
            if leaf != current:
                yield from self._path(leaf, left=True)
        for name, node in self.nodes.items():
            if node.answers and name not in self.told:  # in a circle, which has no leaf
                yield from self._path(name, left=True)
        rest = len(self.nodes.keys() - self.told)
        if rest:
            self.ignored["rewound"] += rest
        if self.used:
            yield Used(self.used) if self.emitted else Ignored("no_messages", self.used)
        yield from ignored(self.ignored)

    def _path(self, leaf: str, *, left: bool = False) -> Iterator[Conversation]:
        """The segments of the path to a leaf that tell something new."""
        path, whole = self._to_root(leaf)
        cuts = [at for at, node in enumerate(path) if node.entry.get("type") == "compaction"]
        bounds = [0, *cuts, len(path)]
        for number, (start, end) in enumerate(pairwise(bounds), start=1):
            segment = path[start:end]
            if number > 1:
                segment = [segment[0], *self._kept(path[:start], segment[0]), *segment[1:]]
            problems: list[Problem] = []
            if left:
                problems.append(_problem("rewound", path[-1], "the session went on elsewhere"))
            if number == 1 and not whole:
                problems.append(_problem("missing_parent", path[0], "its history is not there"))
            name = self.id if number == 1 else f"{self.id}#{number}"
            yield from self._segment(None if left else name, segment, problems)

    def _to_root(self, leaf: str) -> tuple[list[_Node], bool]:
        """The path from the root to the entry, and whether it begins where a session begins."""
        path: list[_Node] = []
        passed: set[str] = set()
        name: str | None = leaf
        while name is not None and name in self.nodes and name not in passed:
            passed.add(name)
            path.append(self.nodes[name])
            name = path[-1].parent
        return path[::-1], name is None

    def _kept(self, before: Sequence[_Node], compaction: _Node) -> list[_Node]:
        """The entries before a compaction that stayed in the context beside its summary."""
        first = compaction.entry.get("firstKeptEntryId")
        index = compaction.entry.get("firstKeptEntryIndex")
        if first is None and isinstance(index, int) and 0 <= index < len(self.places):
            place = self.places[index]
            first = place.id if place else None
        at = next((at for at, node in enumerate(before) if node.id == first), len(before))
        return [node for node in before[at:] if node.entry.get("type") != "compaction"]

    def _segment(
        self, name: str | None, nodes: Sequence[_Node], problems: Sequence[Problem]
    ) -> Iterator[Conversation]:
        """The conversation of a segment, if it tells anything new; a branch has no name.

        Before it comes one for each new answer that was broken off.
        """
        fresh = [node for node in nodes if node.id not in self.told]
        if name is None and not any(node.answers for node in fresh):
            return
        messages: list[Message] = []
        model = self.model
        changes: Counter[str] = Counter()
        news = False
        for node in nodes:
            message = entry_message(node.entry, node.id)
            if message is None or not message.parts:
                continue
            model = name_or_none(as_dict(node.entry.get("message")).get("model")) or model
            if is_broken_off(node.entry):
                changes["aborted_turn"] += 1
                if node.id not in self.told:
                    problem = _problem("aborted", node, "the answer was aborted or failed")
                    cut = [*messages, message]
                    yield self._conversation(None, cut, (nodes[0], node), model, [problem])
                continue
            messages.append(message)
            new = node.id not in self.told and node.entry.get("type") != "compaction"
            news = news or (new and (name is not None or node.answers))
        self.told.update(node.id for node in fresh)
        if not news:
            self.used += len(fresh)
            return
        ends = (nodes[0], nodes[-1])
        conversation = self._conversation(name, messages, ends, model, problems)
        yield replace(conversation, records=len(fresh), changes=dict(changes))

    def _conversation(
        self,
        name: str | None,
        messages: Sequence[Message],
        ends: tuple[_Node, _Node],
        model: str | None,
        problems: Sequence[Problem],
    ) -> Conversation:
        self.emitted = True
        if name is None:
            self.branches += 1
            name = f"{self.id}~{self.branches}"
        return Conversation(
            id=name,
            record=span(ends[0].where, ends[1].where),
            messages=tuple(with_session_keys(NAME, messages, self.scope)),
            model=model,
            problems=tuple(problems),
        )


def _problem(code: str, node: _Node, detail: str) -> Problem:
    return Problem(code, node.where, detail, records=0)


READER = Reader(
    name=NAME,
    summary=(
        "Pi and OpenClaw sessions (JSONL): a session header, then entries, in a tree from version 2"
    ),
    recognise=recognise,
    read=read,
)
