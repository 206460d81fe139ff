"""Builds the tree of a Claude Code session and finds its branches.

Source: docs/formats/claude-code.md.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import PurePosixPath

from builder.conversation import Json
from builder.readers.agents.claude_code.lines import SessionLine, read_line
from builder.readers.toolkit.history import upwards
from builder.readers.toolkit.narrow import as_dict, as_list, as_str
from builder.readers.toolkit.siblings import from_related, from_sibling
from builder.sources.source import Record, Source


@dataclass(frozen=True, slots=True)
class Branch:
    """The lines from a root to a leaf, and those that the program logged below the leaf.

    rewound  the user abandoned it, and the session continues along another branch
    kept     uuids of lines that a compaction kept: they were answered in the context before it
    """

    lines: tuple[SessionLine, ...]
    rewound: bool
    kept: frozenset[str] = frozenset()


def find_branches(
    nodes: Mapping[str, SessionLine], lines_of: Callable[[Iterable[SessionLine]], Iterable[str]]
) -> list[Branch]:
    """Returns the branches of a tree in the order of their first lines.

    `nodes` are the lines by uuid, in file order. `lines_of` returns the uuids of all lines of the
    turns of a branch, wherever they are: most forks of the tree are results of parallel calls. Any
    other fork with an answer of the model is a branch of its own. The branch to the latest leaf is
    the one that was kept.
    """
    tree = _Tree(nodes)
    covered: set[str] = set()
    trees: dict[str, set[str]] = {}  # root → the lines covered below it
    sessions: dict[str, set[str]] = {}  # root → sessions of the branches that were kept there
    branches: list[Branch] = []
    for leaf, final in tree.leaves():
        new, joins = tree.climb(leaf, covered)
        if not final and joins and not any(line.is_answer for line in new):
            covered.update(line.uuid for line in new)
            continue
        lines = [*tree.branch(leaf), *tree.below(leaf)]
        root = lines[0].uuid
        if leaf.uuid in trees.setdefault(root, set()):
            continue
        # Another session below the same root is a fork that the user asked for.
        rewound = leaf.session in sessions.setdefault(root, set())
        sessions[root].add(leaf.session)
        own = set(lines_of(lines))
        trees[root].update(own, (line.uuid for line in lines))
        covered |= trees[root]
        kept = frozenset(uuid for line in lines for uuid in tree.kept.get(line.uuid, ()))
        branches.append(Branch(tuple(tree.with_attachments(lines, own)), rewound, kept))
    return sorted(
        branches, key=lambda branch: (branch.lines[0].at, branch.rewound, branch.lines[-1].at)
    )


class _Tree:
    """The links between lines, across compactions.

    moves     maps each line that a compaction moved to its new parents: (position, parent)
    bookkeeping_below  maps each line to the first one below it without text of user or model
    kept      maps each compaction's boundary to the lines that it kept
    attached  see `_attached`
    """

    def __init__(self, nodes: Mapping[str, SessionLine]) -> None:
        self.nodes = nodes
        self.parents = _parents(nodes)
        self.bookkeeping_below: dict[str | None, SessionLine] = {}
        self.moves: dict[str, list[tuple[int, str]]] = {}
        self.kept: dict[str, list[str]] = {}
        below: dict[str | None, list[SessionLine]] = {}
        for line in nodes.values():
            if not has_content(line):
                self.bookkeeping_below.setdefault(self.parents[line.uuid], line)
            below.setdefault(line.parent, []).append(line)
        for line in nodes.values():
            if line.kind == "boundary":
                self._keep(line, below)
        self.attached = self._attached()

    def _keep(self, boundary: SessionLine, below: Mapping[str | None, list[SessionLine]]) -> None:
        """Moves the lines that a compaction kept below its anchor.

        New lines below the anchor are attached to the last kept line.
        """
        messages, segment = _preserved(boundary)
        anchor = as_str(messages.get("anchorUuid")) or as_str(segment.get("anchorUuid"))
        kept = self._kept(messages, segment)
        self.kept[boundary.uuid] = kept
        if anchor not in self.nodes or not kept:
            return
        staying = set(kept)
        for parent, uuid in zip([anchor, *kept], kept, strict=False):
            self.moves.setdefault(uuid, []).append((boundary.at, parent))
        for line in below.get(anchor, ()):
            if line.at > boundary.at and line.uuid not in staying:
                self.moves.setdefault(line.uuid, []).append((boundary.at, kept[-1]))

    def _kept(self, messages: dict[str, Json], segment: dict[str, Json]) -> list[str]:
        listed = [as_str(uuid) for uuid in as_list(messages.get("uuids"))]
        if listed:
            return list(dict.fromkeys(uuid for uuid in listed if uuid in self.nodes))
        kept: dict[str, None] = {}
        tail = self.nodes.get(as_str(segment.get("tailUuid")))
        for line in self._upwards(tail.uuid, tail) if tail else ():
            kept[line.uuid] = None
            if line.uuid == segment.get("headUuid"):
                return list(reversed(kept))
        return []

    def parent(self, uuid: str, leaf: SessionLine) -> str | None:
        """Returns the line's parent after the last compaction before `leaf`."""
        moves = self.moves.get(uuid, [])
        before = bisect_left(moves, (leaf.at, ""))
        return moves[before - 1][1] if before else self.parents[uuid]

    def leaves(self) -> Iterator[tuple[SessionLine, bool]]:
        """Yields the lines that may end a branch, the latest first, and whether they certainly do.

        The last line before each compaction ends a branch, and so does the last line with text of
        the user or the model: the output of a local command may be anywhere in the tree.
        """
        lines = [line for line in self.nodes.values() if line.kind in ("user", "assistant")]
        spoken = [line for line in lines if has_content(line)]
        finals: dict[str, SessionLine] = {}
        for line in self.nodes.values():
            logical = as_str(line.value.get("logicalParentUuid")) if line.kind == "boundary" else ""
            for before in self._upwards(logical, line):
                if has_content(before):
                    finals[before.uuid] = before
                    break
        if spoken:
            finals[spoken[-1].uuid] = spoken[-1]
        for leaf in sorted(finals.values(), key=lambda line: -line.at):
            yield leaf, True
        for group in (spoken, lines):
            for leaf in reversed(group):
                yield leaf, False

    def climb(self, leaf: SessionLine, covered: set[str]) -> tuple[list[SessionLine], bool]:
        """Returns the lines from `leaf` up to the first covered one, and whether there is one."""
        new: list[SessionLine] = []
        for line in self._upwards(leaf.uuid, leaf):
            if line.uuid in covered:
                return new, True
            new.append(line)
        return new, False

    def branch(self, leaf: SessionLine) -> list[SessionLine]:
        return list(self._upwards(leaf.uuid, leaf))[::-1]

    def below(self, leaf: SessionLine) -> Iterator[SessionLine]:
        """Yields the lines below `leaf` without text of the user or the model (interruptions)."""
        line: SessionLine | None = leaf
        while line is not None:
            line = self.bookkeeping_below.pop(line.uuid, None)
            if line is not None:
                yield line

    def with_attachments(
        self, lines: Sequence[SessionLine], own: Collection[str]
    ) -> list[SessionLine]:
        """Returns the lines of a branch with the attachments of hooks to lines of its turns.

        `own` are the uuids of these lines. Like the results of parallel calls, the attachments are
        not on the branch.
        """
        included = {line.uuid for line in lines}
        placed = list(lines)
        for uuid in sorted(own, key=lambda uuid: self.nodes[uuid].at):
            for line in self.attached.get(uuid, ()):
                place = next((n for n, other in enumerate(placed) if other.at > line.at), None)
                if line.uuid not in included and place is not None:
                    included.add(line.uuid)
                    placed.insert(place, line)
        return placed

    def _attached(self) -> dict[str, list[SessionLine]]:
        """Returns the attachments without a message below them, by the line that they follow."""
        leads: set[str] = set()
        for line in self.nodes.values():
            if has_content(line):
                leads.update(upwards(line.uuid, self.parents.get, until=leads))
        attached: dict[str, list[SessionLine]] = {}
        anchors: dict[str, str] = {}
        for line in self.nodes.values():
            above = self.parents[line.uuid]
            if above is None or line.kind not in ("attachment", "link") or line.uuid in leads:
                continue
            anchor = anchors[line.uuid] = anchors.get(above, above)
            if line.kind == "attachment":
                attached.setdefault(anchor, []).append(line)
        return attached

    def _upwards(self, uuid: str, leaf: SessionLine) -> Iterator[SessionLine]:
        if uuid in self.nodes:
            for one in upwards(uuid, lambda below: self.parent(below, leaf)):
                yield self.nodes[one]


def _preserved(boundary: SessionLine) -> tuple[dict[str, Json], dict[str, Json]]:
    """Returns what a compaction kept: the lines that it lists, and the first and last line."""
    metadata = as_dict(boundary.value.get("compactMetadata"))
    return as_dict(metadata.get("preservedMessages")), as_dict(metadata.get("preservedSegment"))


def _kept_names(line: SessionLine) -> list[str]:
    if line.kind != "boundary":
        return []
    messages, segment = _preserved(line)
    named = [*as_list(messages.get("uuids")), segment.get("headUuid"), segment.get("tailUuid")]
    return [as_str(uuid) for uuid in named]


def with_holes(nodes: Mapping[str, SessionLine], lost: Sequence[int]) -> dict[str, SessionLine]:
    """Returns the lines with a line of the kind "hole" for each parent that the file lacks.

    It continues the last line of its group before the first line that names it. In a stream, whose
    lines name no parent, it stands for the lines that cannot be read, at the positions `lost`.
    """
    whole: dict[str, SessionLine] = {}
    last: dict[tuple[str, str], SessionLine] = {}
    for uuid, line in nodes.items():
        before = last.get(line.group)
        named = [line.parent, *_kept_names(line)]
        if line.parent is None and "parentUuid" not in line.value:
            start = -1 if before is None else before.at
            named = [f"#{line.at} lost"] if any(start < at < line.at for at in lost) else []
        for name in named:
            if name and name not in nodes and name not in whole:
                above = None if before is None or line.is_summary else before.uuid
                whole[name] = replace(
                    line, kind="hole", uuid=name, parent=above, is_answer=False, value={}
                )
        whole[uuid] = last[line.group] = line
    return whole


def after_lost_summaries(nodes: Mapping[str, SessionLine]) -> set[str]:
    """Returns the uuids of lines after a compaction of which the log lacks a part.

    They are the first lines after each one without its summary, and all lines after a summary
    whose boundary is lost: it says what the compaction kept.
    """
    summarised = {line.parent or "" for line in nodes.values() if line.is_summary}
    holes = (nodes[uuid].at for uuid in summarised if uuid in nodes and nodes[uuid].kind == "hole")
    lost = min(holes, default=inf)
    follows: dict[str, int] = {}  # uuid of a line → position of the compaction that replaced it
    for line in nodes.values():
        if line.kind == "boundary" and line.uuid not in summarised:
            follows[line.uuid] = line.at
            if before := as_str(line.value.get("logicalParentUuid")):
                follows[before] = line.at
    return {
        line.uuid
        for line in nodes.values()
        if line.at > lost
        or (line.kind != "boundary" and line.at > follows.get(line.parent or "", line.at))
    }


def has_content(line: SessionLine) -> bool:
    """Returns whether the line contains text of the user or the model, or a tool result."""
    if line.kind == "user":
        return bool(line.results) or line.is_typed
    return line.is_answer


def _parents(nodes: Mapping[str, SessionLine]) -> dict[str, str | None]:
    """Returns each line's parent in this file, by uuid; None for a root.

    A line with a parent outside the file follows the last line of its group. So does every line of
    a group without any parents in the file (logs without uuids).
    """
    written = [line for line in nodes.values() if line.kind != "hole"]
    linked = {line.group for line in written if line.parent in nodes}
    last: dict[tuple[str, str], str] = {}
    parents: dict[str, str | None] = {}
    for uuid, line in nodes.items():
        before = last.get(line.group)
        above = nodes.get(line.parent or "")
        if line.kind == "boundary":
            parents[uuid] = None
        elif line.is_summary:
            begins = above or nodes.get(before or "")
            is_start = begins is not None and begins.kind in ("boundary", "hole")
            parents[uuid] = begins.uuid if begins is not None and is_start else None
        elif above is not None and above.agent == line.agent:
            parents[uuid] = above.uuid
        elif above is not None and line.agent:
            parents[uuid] = None  # a sub-agent begins below the call that started it
        elif line.parent is None and line.kind != "assistant" and line.group in linked:
            parents[uuid] = None
        else:
            parents[uuid] = before
        last[line.group] = uuid
    return parents


# -- finds what the file of a sub-agent lacks and the file of its parent session has ---------------

FORK = "fork-context-ref"
"""Type of the line that names what a forked sub-agent continues."""

_NAME = re.compile(r"[0-9A-Za-z_-]{1,100}")
_FOLDERS = ("", "../../", "../../../../")
"""Folders of a session's file, from those of its sub-agents: beside it, or in its own folders."""


@dataclass(frozen=True, slots=True)
class _ForkedHistory:
    """What a forked sub-agent continues.

    lines      the lines of the parent session up to the last one that the fork's request contained
    responses  the ids of all answers in the parent's file
    """

    lines: tuple[SessionLine, ...]
    responses: frozenset[str]


def _object_records(source: Source) -> Iterator[Record]:
    for record in source.records():
        if isinstance(record, Record) and isinstance(record.value, dict):
            yield record


@dataclass(frozen=True, slots=True)
class _UpTo:
    """Extracts the lines of a session up to one with a uuid; nothing if there is none."""

    uuid: str

    def __call__(self, parent: Source) -> _ForkedHistory | None:
        records = [*_object_records(parent)]
        session_lines: list[SessionLine] = []
        end = None
        for number, record in enumerate(records):
            # Positions below 0: before all lines of the fork.
            line = read_line(number - len(records), record.where, as_dict(record.value))
            if line is not None and not line.agent:
                session_lines.append(line)
                end = len(session_lines) if line.uuid == self.uuid else end
        responses = frozenset(line.response for line in session_lines if line.is_answer)
        return None if end is None else _ForkedHistory(tuple(session_lines[:end]), responses)


def with_histories(
    source: Source, nodes: dict[str, SessionLine], references: Iterable[Mapping[str, Json]]
) -> tuple[dict[str, SessionLine], set[str], set[str]]:
    """Returns the lines with those that forked sub-agents continue before them.

    Also returns the uuids of these, and the ids of the answers that other files have. A fork whose
    history is not found begins below a line that the file lacks.
    """
    inherited: set[str] = set()
    responses: set[str] = set()
    for reference in references:
        agent, above = as_str(reference.get("agentId")), as_str(reference.get("parentLastUuid"))
        own = (line for line in nodes.values() if line.agent == agent)
        first = next((line for line in own if line.kind in ("user", "assistant")), None)
        if first is None or first.parent or not above:
            continue
        history = _find_history(source, reference) or _ForkedHistory((), frozenset())
        before = {line.uuid: line for line in history.lines if line.uuid not in nodes}
        nodes = {**before, **nodes, first.uuid: replace(first, parent=above)}
        inherited.update(before)
        responses |= history.responses
    return nodes, inherited, responses


def _find_history(source: Source, reference: Mapping[str, Json]) -> _ForkedHistory | None:
    """Returns what a fork continues, its lines as lines of the fork; None if it is not found."""
    session = as_str(reference.get("parentSessionId"))
    if not _NAME.fullmatch(session):
        return None
    extract = _UpTo(as_str(reference.get("parentLastUuid")))
    for folder in _FOLDERS:
        history = from_related(source, f"{folder}{session}.jsonl", extract)
        if history is not None:
            agent = as_str(reference.get("agentId"))
            lines = tuple(replace(line, agent=agent) for line in history.lines)
            return replace(history, lines=lines)
    return None


def find_prompt(source: Source, session: str, agent: str) -> str:
    """Returns the prompt in the parent session's call that started the agent, or "".

    The parent session is the file in the same folder with the session's name.
    """
    if not session or not agent:
        return ""
    return (from_sibling(source, f"{session}.jsonl", _prompts) or {}).get(agent, "")


def _prompts(parent: Source) -> Mapping[str, str]:
    """Returns the prompts of the agents that a session started, by the agent's id."""
    return prompts_of_calls(as_dict(record.value) for record in _object_records(parent))


def prompts_of_calls(lines: Iterable[dict[str, Json]]) -> dict[str, str]:
    """Returns the prompts of the agents that lines started: by their ids, and by their calls' ids.

    The stream of a headless run names a sub-agent by the call that started it.
    """
    calls: dict[str, str] = {}
    prompts: dict[str, str] = {}
    for value in lines:
        content = as_list(value, "message", "content")
        for block in map(as_dict, content):
            if block.get("type") == "tool_use":
                calls[as_str(block.get("id"))] = as_str(block, "input", "prompt")
            elif block.get("type") == "tool_result":
                agent = as_str(value, "toolUseResult", "agentId")
                prompts.setdefault(agent, calls.get(as_str(block.get("tool_use_id")), ""))
    return {**calls, **prompts}


# -- finds the answers that a session's file copied from the files of other sessions ---------------


def copied_answers(source: Source, lines: Iterable[SessionLine]) -> set[str]:
    """Returns the uuids of the answers that the file of another session also has.

    The other session is the file in the same folder with the session's name.
    """
    own = PurePosixPath(source.name).name.partition(".")[0]
    named: dict[str, list[SessionLine]] = {}
    for line in lines:
        if (
            line.is_answer
            and (session := (as_str(line.value, "forkedFrom", "sessionId") or line.session))
            and session != own
            and not line.agent
        ):
            named.setdefault(session, []).append(line)
    return {
        line.uuid
        for session, found in named.items()
        for answers in [from_sibling(source, f"{session}.jsonl", _answers) or ()]
        for line in found
        if line.response in answers
    }


def _answers(other: Source) -> Collection[str]:
    """Returns the ids of the answers in a session's file, except lines of yet another session."""
    session = other.name.removesuffix(".jsonl")
    lines = (
        read_line(at, record.where, as_dict(record.value))
        for at, record in enumerate(_object_records(other))
    )
    return frozenset(
        line.response
        for line in lines
        if line is not None and line.is_answer and line.session in ("", session)
    )
