"""Reads Pi coding agent sessions (also OpenClaw's): one JSONL file of entries for each session.

From version 2 on, the entries are a tree by `id` and `parentId`, and the last entry is the current
one; version 1 is linear. Source: docs/formats/pi.md.

- The path from the root to the last entry is the conversation. An abandoned branch with an answer
  of the model is a conversation with the problem `rewound`.
- A compaction begins a new segment: its summary, the entries that it kept, and what followed. The
  answers that it kept are repeats.
- An aborted or failed answer is not sent again: it becomes a conversation with the problem
  `aborted`, which ends with it. Builds before 0.49 did send it, and sessions of versions 1 and 2
  may be from these: their later answers lack `history`.
- A call without a result is sent again with the result "No result provided". Builds before 0.31,
  which wrote version 1, removed the call: later answers lack `history` as well.
- Versions before 0.86 log neither the system prompt nor tool definitions; later ones do, and also
  edits of earlier messages. A context that does not extend the one before begins a conversation of
  its own, in which the earlier answers are repeats (stretches.py).
- Files of branched sessions repeat the history: answers that the parent's file has are repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from builder.conversation import (  # fmt: skip
    REPEAT,
    Context,
    Conversation,
    Event,
    Json,
    Message,
    Text,
)
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.pi import forks
from builder.readers.agents.pi.copies import answer_digest, answers_of_parent
from builder.readers.agents.pi.messages import (
    ROLES,
    entry_message,
    hides_reasoning,
    image_messages,
    no_result,
    patch_message,
)
from builder.readers.agents.pi.overtaken import in_order
from builder.readers.agents.pi.stretches import (
    Entry,
    Node,
    PathStretch,
    edited,
    find_stretches,
    kept,
)
from builder.readers.homes import Home
from builder.readers.toolkit.call_keys import with_session_keys
from builder.readers.toolkit.links import Links
from builder.readers.toolkit.narrow import as_dict, as_str, name_or_none, unknown_code
from builder.readers.toolkit.places import ignored, span
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.segments import Segments
from builder.readers.toolkit.unanswered import supply_results
from builder.readers.toolkit.unknown_records import carries_content, unknown_message
from builder.sources.source import Source

NAME = "pi"

_VERSION = 3  # of sessions with known rules
_MISSING = frozenset({"system", "tools"})

_IN_CONTEXT = frozenset({
    "message", "compaction", "branch_summary", "custom_message", "context_edit",
})  # fmt: skip
_SETTINGS = frozenset({
    "model_change", "thinking_level_change", "label", "session_info", "custom", "usage",
    *forks.SETTINGS,
})  # fmt: skip


def recognise(source: Source) -> str | None:
    """Claims a header with a folder or version, or messages in a shape that only Pi writes."""
    for value in source.peek.objects:
        kind = value.get("type")
        # Hugging Face's traces have a harness, those of DeepSeek Harness a createdAt.
        is_other = not value.keys().isdisjoint({"harness", "createdAt"})
        if kind == "session" and isinstance(value.get("id"), str) and not is_other:
            if "cwd" in value or "version" in value:
                return "a session header"
        elif kind == "message":
            message = as_dict(value.get("message"))
            if message.get("role") == "toolResult" or {"stopReason", "api"} <= message.keys():
                return "messages with toolResult or stopReason"
    return None


def read(source: Source) -> Iterator[Event]:
    """Yields the session's segments, abandoned branches and aborted answers."""
    taken: set[str] = set()
    stem = source.name.rpartition("/")[2].partition(".")[0]
    session = _Session(stem or "session", source.name)
    for record in objects(source.json_lines(), "an entry that is "):
        if isinstance(record, Problem):
            yield record
            continue
        where, entry = record
        if entry.get("type") == "session":
            yield from session.events()  # concatenated files
            if session.nodes:
                taken.add(session.segments.name)
            logged = name_or_none(entry.get("id"))
            name = logged or session.segments.name
            name = f"{name}@{where}" if name in taken else name
            session = _Session(name, name if logged else f"{source.name}/{where}")
            session.segments.records = 1
            session.model = name_or_none(entry.get("modelId"))
            session.version = entry.get("version")
            session.copied = answers_of_parent(source, entry)
            session.places = [None]
        else:
            yield from session.add(where, entry)
    yield from session.events()


class _Session:
    """All entries of a session, and which of them are in a conversation.

    scope    makes the keys of its calls unique
    places   nodes by line, which version 1 refers to; None: the header
    segments its names, and its records that no conversation counts
    emitted  ids of the entries that a conversation contains or that are ignored
    unknown  ids of the entries of unknown types that carry content
    copied   digests of the answers that the file of the parent session has
    prompt   that of a sub-agent, if its beginning has it
    injects  ids of entries after rules that the log does not show
    snapshots  by the id of a message that may be written again: its last entry
    """

    def __init__(self, name: str, scope: str) -> None:
        self.segments = Segments(name)
        self.scope = scope
        self.model: str | None = None
        self.version: Json = None
        self.places: list[Node | None] = []
        self.nodes: dict[str, Node] = {}
        self.ignored: Counter[str] = Counter()
        self.emitted: set[str] = set()
        self.unknown: set[str] = set()
        self.copied: Collection[bytes] = ()
        self.prompt: str | None = None
        self.injects: set[str] = set()
        self.answered, self.snapshots = False, dict[str, str]()
        self.moved = frozenset[str]()

    def add(self, where: str, entry: Entry) -> Iterator[Problem]:
        """Adds the next entry; yields a Problem if another entry has its id."""
        last = next(reversed(self.nodes), None)
        name = name_or_none(entry.get("id")) or f"#{len(self.places)}"
        parent = name_or_none(entry.get("parentId")) if "parentId" in entry else last
        if name in self.nodes:
            self.places.append(None)
            if entry == self.nodes[name].entry:
                self.ignored["repeated_entry"] += 1
            else:
                yield Problem("duplicate_id", where, f"another entry is called {name[:40]}")
            return
        before = None if last is None else (last, self.nodes[last].entry)
        if parent is not None and parent not in self.nodes:
            parent = forks.parent_of(parent, self.segments.name, before, answered=self.answered)
        if before is not None and forks.is_injection(before[1]):
            self.injects.add(name)
        self.prompt = forks.init_prompt(entry) or self.prompt
        node = Node(name, parent, where, entry)
        self.answered = self.answered or node.answers
        if snapshot := forks.snapshot_id(entry):
            if old := self.snapshots.get(snapshot):
                self.nodes[old] = replace(self.nodes[old], entry={"type": "label"})
                self.ignored["repeated_entry"] += old not in self.emitted
                self.emitted.add(old)
            self.snapshots[snapshot] = name
        self.nodes[name] = node
        self.places.append(node)
        kind = as_str(entry.get("type"))
        role = as_dict(entry.get("message")).get("role")
        if kind in _SETTINGS:
            self.emitted.add(name)
            self.ignored[kind] += 1
        elif kind not in _IN_CONTEXT or (kind == "message" and as_str(role) not in ROLES):
            self.unknown |= {name} if carries_content(entry) else set()
            self.emitted.add(name)
            self.ignored[unknown_code(role if kind == "message" else entry.get("type"))] += 1

    def events(self) -> Iterator[Event]:
        """Yields the conversations, and the events of entries that none of them counts."""
        links = Links({name: node.parent for name, node in self.nodes.items()})
        current = next(reversed(self.nodes), None)
        if current is not None:
            yield from self._path(links.path(current))
        for leaf in links.leaves:
            if leaf != current:
                yield from self._path(links.path(leaf), abandoned=True)
        for name, node in self.nodes.items():
            if node.answers and name not in self.emitted:  # a cycle, which has no leaf
                yield from self._path(links.path(name), abandoned=True)
        self.ignored["rewound"] += len(self.nodes.keys() - self.emitted)
        yield from self.segments.rest("no_messages")
        yield from ignored(+self.ignored)

    def _path(self, names: Sequence[str], *, abandoned: bool = False) -> Iterator[Conversation]:
        """Yields the segments with new entries of a path to a leaf; `abandoned`: not current."""
        logged = [self.nodes[name] for name in names]
        path, self.moved = in_order(logged)  # prompts behind what did not see them
        self.moved |= {node.id for node in path if forks.is_unlike_log(node.entry)}
        starts = (at for at, node in enumerate(path) if at and forks.begins_context(node.entry))
        for start, end in pairwise([0, *starts, len(path)]):
            segment = path[start:end]
            if start:
                segment = [segment[0], *kept(path[:start], segment[0], self.places), *segment[1:]]
            problems: list[Problem] = []
            if abandoned:
                problems.append(_problem("rewound", path[-1], "the session went on elsewhere"))
            lost = as_str(segment[0].entry.get("firstKeptEntryId"))
            is_cut = lost not in {"", *self.nodes} if start else logged[0].parent is not None
            for stretch in find_stretches(segment):
                yield from self._stretch(stretch, problems, abandoned=abandoned, is_cut=is_cut)

    def _stretch(
        self,
        stretch: PathStretch,
        problems: Sequence[Problem],
        *,
        abandoned: bool,
        is_cut: bool,
    ) -> Iterator[Conversation]:
        """Yields the conversation of a stretch, if it contains anything new.

        Before it, yields one for each new aborted answer. `abandoned`: it is not the current path.
        `is_cut`: the entry before the first is not in the file.
        """
        nodes = stretch.nodes
        fresh = [node for node in nodes if node.id not in self.emitted]
        if abandoned and not any(node.answers for node in fresh):
            return
        messages: list[Message] = []
        held: list[Message] = []
        missing = base = self._missing(stretch)
        missing |= {"history"} if is_cut else frozenset()
        model = self.model
        changes = Counter({"tools_added_later": int(stretch.tools_added)})
        has_new = False
        for node in nodes:
            if node.role == "system":
                patch = patch_message(node.entry) if stretch.in_place and messages else None
                if patch is not None:
                    missing |= {"history"}  # whether it was sent at its place is not logged
                    held.append(patch)
                continue
            message = self._message(node, stretch, changes)
            if node.id in self.unknown:
                message = unknown_message(node.role or node.entry.get("type"))
            if message is None or not message.parts:
                continue
            if message.role != "tool":  # a patch among results is sent after them
                messages, held = [*messages, *held], []
            missing |= {"history"} if node.id in self.moved else frozenset()
            model = name_or_none(as_dict(node.entry.get("message")).get("model")) or model
            if node.is_aborted:
                changes["aborted_turn"] += 1
                missing |= self._uncertain()
                if node.id not in self.emitted:
                    problem = _problem("aborted", node, "the answer was aborted or failed")
                    cut = [*messages, message]
                    ends = (nodes[0], node)
                    yield self._conversation(cut, ends, model, [problem], stretch, branch=True)
                continue
            if node.answers:
                is_edited = stretch.edits.get(node.id) is not None
                missing |= {"reminders"} if node.id in self.injects else frozenset()
                message = replace(
                    message,
                    untrained="edited" if is_edited else self._code(node),
                    context=Context.lacking(missing) if missing != base else None,
                )
                missing |= {"reasoning"} if hides_reasoning(node.entry) else frozenset()
            messages.append(message)
            new = node.id not in self.emitted and node.entry.get("type") != "compaction"
            has_new = has_new or (new and (node.answers or not abandoned))
        self.emitted.update(node.id for node in fresh)
        if not has_new:
            self.segments.records += len(fresh)
            return
        messages, changes["result_supplied"] = self._with_results(messages, base)
        ends = (nodes[0], nodes[-1])
        conversation = self._conversation(
            messages, ends, model, problems, stretch, branch=abandoned
        )
        yield replace(conversation, records=len(fresh), changes=dict(+changes))

    def _message(self, node: Node, stretch: PathStretch, changes: Counter[str]) -> Message | None:
        """Returns the message of an entry as the stretch has it; counts one that was taken out."""
        if node.id not in stretch.edits or node.is_aborted:
            return entry_message(node.entry, node.id)
        changes["context_edited"] += 1
        content = as_dict(stretch.edits[node.id]).get("content")
        return None if content is None else entry_message(edited(node.entry, content), node.id)

    def _with_results(
        self, messages: Sequence[Message], base: frozenset[str]
    ) -> tuple[list[Message], int]:
        """Returns the messages with the results that the program supplied, and their number."""
        answered, supplied = supply_results(messages, no_result)
        uncertain = self._uncertain()
        if not supplied or not uncertain:
            return answered, supplied
        logged = set(map(id, messages))
        first = next(at for at, message in enumerate(answered) if id(message) not in logged)
        for at, message in enumerate(answered[first:], start=first):
            if message.role == "assistant":
                known = message.context.missing if message.context else base
                answered[at] = replace(message, context=Context.lacking(uncertain.union(known)))
        return answered, supplied

    def _missing(self, stretch: PathStretch) -> frozenset[str]:
        if stretch.system is None:
            return _MISSING - {"system"} if self.prompt else _MISSING
        return frozenset() if stretch.exact_tools else frozenset({"tools"})

    def _code(self, node: Node) -> str | None:
        if forks.is_mirror(node.entry):
            return "inserted"
        copied = bool(self.copied) and answer_digest(node.entry) in self.copied
        return REPEAT if node.id in self.emitted or copied else None

    def _uncertain(self) -> frozenset[str]:
        """Returns what is missing after an aborted answer or call, by the session's version."""
        return frozenset() if self.version == _VERSION else frozenset({"history"})

    def _conversation(
        self,
        messages: Sequence[Message],
        ends: tuple[Node, Node],
        model: str | None,
        problems: Sequence[Problem],
        stretch: PathStretch,
        *,
        branch: bool,
    ) -> Conversation:
        prompt = stretch.system or self.prompt
        system = [Message("system", (Text(prompt),))] if prompt else []
        sent = [*system, *image_messages(messages, stretch.api)]
        return Conversation(
            id=self.segments.next_branch() if branch else self.segments.next_name(),
            record=span(ends[0].where, ends[1].where),
            messages=tuple(with_session_keys(NAME, sent, self.scope)),
            tools=None if stretch.system is None else tuple(stretch.tools.values()),
            model=model,
            problems=tuple(problems),
            context=Context.lacking(self._missing(stretch)),
        )


def _problem(code: str, node: Node, detail: str) -> Problem:
    return Problem(code, node.where, detail, records=0)


READER = Reader(
    name=NAME,
    summary="Pi, OpenClaw and Oh My Pi sessions (JSONL): a header, then entries, in a tree from v2",
    evidence=("source", "files"),
    recognise=recognise,
    is_agent=True,
    checked="1.6.0",
    homes=(
        Home("Pi", "${PI_CODING_AGENT_DIR:-~/.pi/agent}/sessions"),
        Home("OpenClaw", "~/.openclaw/agents/*/sessions"),
        Home("Oh My Pi", "~/.omp/agent/sessions"),
    ),
    read=read,
)
