"""Claude Code sessions: a tree of JSONL lines, rebuilt into what the model saw.

Reference: claude-code.md. The rules, in short: a uuid counts once, the first time (a resumed
session replays lines). The conversation is the way from the last line up to the root. Lines that
share a `message.id` are one turn, wherever they stand, and each result belongs behind the turn that
called, wherever it was written: forks of the tree are mostly parallel calls. What is left beside
the way is a branch that the user rewound. A compaction begins a new segment with its summary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from builder.conversation import (
    Conversation,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
)
from builder.problem import Problem
from builder.readers._claude_lines import (
    IGNORED_TYPES,
    Line,
    answer_parts,
    is_synthetic,
    read_line,
    results,
    unknown_blocks,
    user_parts,
)
from builder.readers._narrow import as_dict, as_list, as_str, unknown
from builder.source import Record, Source

NAME = "claude-code"
SUMMARY = "Claude Code sessions (JSONL): lines with type, message and uuid, sub-agents too"


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
    tree = _Tree()
    for at, item in enumerate(_records(source)):
        if isinstance(item, Problem):
            yield item
            continue
        if not isinstance(item.value, dict):
            yield Problem("not_object", item.where, f"a bare {type(item.value).__name__}")
            continue
        line = read_line(at, item.where, item.value)
        kind = as_str(item.value.get("type"))
        if line is not None and line.uuid in tree.nodes:
            yield Ignored("replayed")
            continue
        if line is not None:
            tree.nodes[line.uuid] = line
        if line is None or line.kind in ("link", "boundary"):
            attachment = as_str(as_dict(item.value.get("attachment")).get("type"))
            code = kind if kind in IGNORED_TYPES else unknown(kind)
            yield Ignored(f"attachment:{attachment[:40]}" if attachment else code)
    yield from _conversations(tree)


def _records(source: Source) -> Iterator[Record | Problem]:
    objects = source.peek.objects
    if source.peek.kind == "json" and len(objects) == 1 and "loglines" in objects[0]:
        yield from source.counted(as_list(objects[0]["loglines"]), "loglines[{}]")
    else:
        yield from source.records()


@dataclass(slots=True)
class _Tree:
    """The nodes by uuid, in file order, and the ways through them."""

    nodes: dict[str, Line] = field(default_factory=dict)

    def parents(self) -> dict[str, str | None]:
        """Each node's parent in this file.

        A line whose parent is not here follows the last line of its group. So does every line of
        a group in which no line names a parent that is here (logs without uuids).
        """
        linked = {
            node.group for node in self.nodes.values() if node.parent and node.parent in self.nodes
        }
        last: dict[tuple[str, str], str] = {}
        parents: dict[str, str | None] = {}
        for uuid, node in self.nodes.items():
            before = last.get(node.group)
            above = self.nodes.get(node.parent or "")
            if above is not None and above.agent == node.agent:
                parents[uuid] = above.uuid
            elif above is not None:
                parents[uuid] = before  # a sub-agent's first line hangs on the call that started it
            elif node.kind == "boundary" or (
                node.parent is None and node.kind != "assistant" and node.group in linked
            ):
                parents[uuid] = None  # a root: a new conversation, or the segment of a compaction
            else:
                parents[uuid] = before
            last[node.group] = uuid
        return parents


def _conversations(tree: _Tree) -> Iterator[Conversation | Ignored]:
    nodes = list(tree.nodes.values())
    parents = tree.parents()
    preserved = _preserved(nodes, parents)
    turns = _Turns(nodes)
    covered: set[str] = set()
    roots: set[str] = set()
    found: list[tuple[int, list[Line], bool]] = []
    loose = 0
    for leaf, compacted in _leaves(nodes):
        if leaf.uuid in covered and not compacted:
            continue
        way = _way(leaf, tree.nodes, parents, preserved)
        if compacted and way[0].uuid in roots:
            continue
        own = [node for node in way if node.uuid not in covered]
        rewound = way[0].uuid in roots
        if rewound and not any(_is_turn(node) for node in own):
            # Harness lines or results beside the way: no words of anybody.
            loose += sum(node.kind in ("user", "assistant") for node in own)
            covered.update(node.uuid for node in own)
            continue
        roots.add(way[0].uuid)
        covered.update(node.uuid for node in way)
        covered.update(turns.taken(way))
        found.append((way[0].at, way, rewound))
    counted: set[str] = set()
    ids: dict[str, int] = {}
    for _, way, rewound in sorted(found, key=lambda item: (item[0], item[2], item[1][-1].at)):
        members = dict.fromkeys([*(n.uuid for n in way), *turns.taken(way)])
        content = {u for u in members if tree.nodes[u].kind in ("user", "assistant")} - counted
        counted |= content
        conversation = _conversation(way, turns, rewound, len(content), ids)
        if conversation is not None:
            yield conversation
        else:
            yield Ignored("no_turns", len(content))
    left = sum(n.kind in ("user", "assistant") and n.uuid not in counted for n in nodes)
    if left:
        yield Ignored("beside_the_way", left)


def _leaves(nodes: list[Line]) -> Iterator[tuple[Line, bool]]:
    """Where ways may end, the latest first; before others the last lines before a compaction.

    Those are marked: a compaction may keep its last lines, which then stand in two segments. A
    line that holds nobody's words (the output of a local command) ends a way only if no line with
    words does.
    """
    by_uuid = {node.uuid: node for node in nodes}
    content = [node for node in nodes if node.kind in ("user", "assistant")]
    spoken = [node for node in content if _is_turn(node) or results(node)]
    if spoken:
        yield spoken[-1], False
    for node in reversed(nodes):
        if node.kind == "boundary":
            last = by_uuid.get(as_str(node.value.get("logicalParentUuid")))
            if last is not None and last.kind in ("user", "assistant"):
                yield last, True
    yield from ((node, False) for node in reversed(spoken))
    yield from ((node, False) for node in reversed(content))


def _preserved(nodes: list[Line], parents: dict[str, str | None]) -> dict[str, tuple[int, str]]:
    """For lines that a compaction kept: (position of its boundary, parent in the new segment)."""
    moved: dict[str, tuple[int, str]] = {}
    for node in nodes:
        if node.kind != "boundary":
            continue
        about = as_dict(node.value.get("compactMetadata"))
        kept = as_dict(about.get("preservedMessages"))
        uuids = [uuid for uuid in as_list(kept.get("uuids")) if isinstance(uuid, str)]
        segment = as_dict(about.get("preservedSegment"))
        anchor = as_str(kept.get("anchorUuid")) or as_str(segment.get("anchorUuid"))
        if not uuids and segment:
            at: str | None = as_str(segment.get("tailUuid"))
            while at and at not in uuids:
                uuids.append(at)
                at = None if at == segment.get("headUuid") else parents.get(at)
            uuids.reverse()
        for parent, uuid in zip([anchor, *uuids], uuids, strict=False):
            moved[uuid] = (node.at, parent)
    return moved


def _way(
    leaf: Line,
    nodes: dict[str, Line],
    parents: dict[str, str | None],
    preserved: dict[str, tuple[int, str]],
) -> list[Line]:
    """The nodes from the root to `leaf`."""
    way: list[Line] = []
    seen: set[str] = set()
    at: str | None = leaf.uuid
    while at is not None and at in nodes and at not in seen:
        seen.add(at)
        way.append(nodes[at])
        boundary, parent = preserved.get(at, (leaf.at, ""))
        at = parent if boundary < leaf.at else parents[at]
    way.reverse()
    return way


def _is_turn(node: Line) -> bool:
    """Does the line hold words of the user or of the model?"""
    if node.kind == "assistant":
        return not is_synthetic(node)
    if node.kind != "user" or node.value.get("isMeta") is True:
        return False
    return any(not isinstance(part, Text) or not part.harness for part in user_parts(node))


class _Turns:
    """Assistant lines by response, and results by the call that they answer."""

    def __init__(self, nodes: list[Line]) -> None:
        self.responses: dict[str, list[Line]] = {}
        self.answers: dict[str, list[tuple[Line, ToolResult]]] = {}
        for node in nodes:
            if node.kind == "assistant" and not is_synthetic(node):
                self.responses.setdefault(node.message or node.uuid, []).append(node)
            elif node.kind == "user":
                for result in results(node):
                    self.answers.setdefault(result.call_id or "", []).append((node, result))

    def response(self, node: Line) -> list[Line]:
        """All lines of the turn that `node` is a block of."""
        return self.responses.get(node.message or node.uuid, [])

    def taken(self, way: list[Line]) -> list[str]:
        """The lines that belong to the turns of a way though they stand beside it."""
        taken: list[str] = []
        for node in way:
            if node.kind == "assistant" and not is_synthetic(node):
                for line in self.response(node):
                    taken.append(line.uuid)
                    for part in answer_parts(line, []):
                        if isinstance(part, ToolCall):
                            answers = self.answers.get(part.id or "", [])
                            taken += [answer.uuid for answer, _ in answers]
        return taken


def _conversation(
    way: list[Line], turns: _Turns, rewound: bool, records: int, ids: dict[str, int]
) -> Conversation | None:
    """The way as a conversation; None if it holds no turn."""
    unknown_parts: list[str] = []
    changes: dict[str, int] = {}
    messages: list[Message] = []
    done: set[str] = set()
    answered: set[int] = set()
    run: list[Line] = []
    model = None
    for node in way:
        if node.kind == "user":
            run.append(node)
            continue
        if node.kind != "assistant" or is_synthetic(node):
            continue
        messages += _user_messages(run, answered, changes, unknown_parts)
        run = []
        key = node.message or node.uuid
        if key in done:
            continue
        done.add(key)
        model = node.model or model
        messages += _turn(node, turns, answered, unknown_parts)
    messages += _user_messages(run, answered, changes, unknown_parts)
    if not messages:
        return None
    leaf = way[-1]
    problems: list[Problem] = []
    if rewound:
        detail = "a branch that the user went back from"
        problems.append(Problem("rewound", leaf.where, detail, records=0))
    if unknown_parts:
        names = ", ".join(dict.fromkeys(unknown_parts))
        problems.append(Problem("unknown_part", leaf.where, f"block type {names}", records=0))
    name = "/".join(part for part in (leaf.session, leaf.agent) if part) or "session"
    ids[name] = ids.get(name, 0) + 1
    return Conversation(
        id=name if ids[name] == 1 else f"{name}#{ids[name]}",
        record=f"{way[0].where} to {leaf.where}",
        messages=tuple(messages),
        model=model,
        records=records,
        problems=tuple(problems),
        changes=changes,
    )


def _turn(
    node: Line, turns: _Turns, answered: set[int], unknown_parts: list[str]
) -> Iterator[Message]:
    """One response as a turn, and the results of its calls behind it, in the order logged."""
    parts: list[Part] = []
    calls: dict[str | None, ToolCall] = {}
    for line in turns.response(node):
        for part in answer_parts(line, unknown_parts):
            if isinstance(part, ToolCall):
                if part.id is not None and part.id in calls:
                    continue  # the same block, written again
                calls[part.id] = part
            elif part in parts:
                continue
            parts.append(part)
    yield Message("assistant", tuple(parts), turn=node.message or node.uuid)
    results_found = [
        (line.at, number, result)
        for call_id in calls
        for number, (line, result) in enumerate(turns.answers.get(call_id or "", ())[:1])
    ]
    for _, _, result in sorted(results_found, key=lambda item: item[:2]):
        answered.add(id(result))
        yield Message("tool", (result,))


def _user_messages(
    run: list[Line], answered: set[int], changes: dict[str, int], unknown_parts: list[str]
) -> Iterator[Message]:
    """The user lines between two turns: their words; what the harness put there, marked as such.

    A slash command's own lines are harness text. The prompt that it expands to (isMeta) is what the
    model answered: it stands as the turn's words where there are no others (`command_prompt`).
    """
    typed = any(_is_turn(line) for line in run)
    command = False
    for line in run:
        unknown_parts += unknown_blocks(line)
        parts = user_parts(line)
        text = "".join(part.text for part in parts if isinstance(part, Text))
        if line.value.get("isCompactSummary") is True:
            changes["compact_summary"] = changes.get("compact_summary", 0) + 1
        elif line.value.get("isMeta") is True:
            whole = any(isinstance(part, Text) and not part.harness for part in parts)
            if command and not typed and whole:
                changes["command_prompt"] = changes.get("command_prompt", 0) + 1
            else:
                parts = [
                    replace(part, harness=True) if isinstance(part, Text) else part
                    for part in parts
                ]
        command = command or "<command-name>" in text
        if parts:
            yield Message("user", tuple(parts))
