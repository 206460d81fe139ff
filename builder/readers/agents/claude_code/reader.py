"""Reads Claude Code sessions: a tree of JSONL lines, rebuilt into the requests that the model saw.

Source: docs/formats/claude-code.md. The rules in short:

- Only the first line with a uuid counts: a resumed session replays lines.
- A branch leads from a root of the tree to its latest leaf (`tree`). A fork with an answer of the
  model is a branch that the user abandoned (`rewound`).
- Lines that share a `message.id` are one turn, wherever they are. A result belongs to the turn with
  its call, wherever it was logged: parallel calls fork the tree.
- A compaction begins a new segment, a conversation of its own, with the summary as the first
  message (`compact_summary`). Turns that it kept are repeats there.
- The context of a turn is the request that the log names, if its digests match (`digests`),
  otherwise the request assembled from the lines (`assembly`). A request that does not continue the
  previous one begins a new conversation (`stretches`).
- Errors logged in place of an answer are in no request (`synthetic_turn`). An interrupted turn, or
  one with unanswered calls, becomes a conversation of its own, rejected as `aborted` or
  `unanswered`, unless the log shows how later requests contain it.
- If the file of a sub-agent lacks its prompt, it is taken from the parent's call (`parents`,
  `parent_prompt`).
- "Warmup" prompts are the program's own; their answers are not targets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from builder.conversation import Conversation, Event, Json, Used
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.claude_code.lines import KNOWN, SessionLine, Turns, is_qwen, read_line
from builder.readers.agents.claude_code.prompts import command_prompts, texts_of, warmups
from builder.readers.agents.claude_code.requests import (
    KINDS,
    REPLACEMENTS,
    ProcessEnd,
    Requests,
    SentMessage,
    assemble,
    replacement_texts,
    with_replacements,
)
from builder.readers.agents.claude_code.stretches import RequestRun, find_stretches, messages_of
from builder.readers.agents.claude_code.tree import (
    FORK,
    Branch,
    after_lost_summaries,
    copied_answers,
    find_branches,
    find_prompt,
    prompts_of_calls,
    with_histories,
)
from builder.readers.homes import Home
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none, unknown_code
from builder.readers.toolkit.places import ignored, span, unique_name
from builder.readers.toolkit.rows import not_object
from builder.sources.source import Record, Source

_END = "cost-state"
"""Type of the line that a process writes at its end."""
_IGNORED = (KNOWN | KINDS) - {"user", "assistant"}
"""Types of lines that never contain a turn."""
_ASIDE = KINDS | {FORK, REPLACEMENTS}
"""Types of lines outside of the tree that say what requests contained."""
_SPEAKERS = ("user", "assistant")


def recognise(source: Source) -> str | None:
    """Claims user and assistant lines of a session, or a session's bookkeeping alone."""
    if _is_companion(source.name):
        return "a file that Claude Code keeps next to its sessions"
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
        if isinstance(kind, str) and kind in KINDS and "sessionId" in value:
            return f"{kind} lines"
        if is_qwen(value):
            return None
        if kind == "system" and "uuid" in value and "sessionId" in value:
            others = any(map(is_qwen, source.peek.objects))
            return None if others else "system lines with uuid and sessionId"
        if kind in ("started", "result") and "agentId" in value and "key" in value:
            return "a workflow's journal"
    return None


def _is_companion(name: str) -> bool:
    """Returns whether a file belongs to a session: metadata of a sub-agent, or a large output."""
    folders, _, file = name.rpartition("/")
    if file.startswith("agent-") and file.endswith(".meta.json"):
        return True
    return file == "custom-title.json" or folders.rpartition("/")[2] == "tool-results"


def _logged(objects: tuple[dict[str, Json], ...]) -> Iterator[dict[str, Json]]:
    """Yields the lines; an export contains them in a list `loglines`."""
    for value in objects:
        lines = value.get("loglines")
        if isinstance(lines, list):
            yield from (line for line in lines if isinstance(line, dict))
        else:
            yield value


def read(source: Source) -> Iterator[Event]:
    """Yields the source's conversations and the events of its other lines."""
    if _is_companion(source.name):
        source.count_records()
        yield from ignored(Counter({"session_file": source.records_read}))
        return
    log = _Log(source)
    yield from log.read()
    yield from log.conversations()
    yield from log.rest()


def _records(source: Source) -> Iterator[Record | Problem]:
    document = source.document() if source.peek.kind == "json" else None
    if isinstance(document, dict) and "loglines" in document:
        yield from source.counted(as_list(document["loglines"]), "loglines[{}]")
    else:
        yield from source.records()


@dataclass
class _Log:
    """The lines of a file, and which of them are in a conversation.

    nodes     lines of the tree, by uuid
    counts    lines that are ignored, by code
    aside     lines of the types _ASIDE
    ends      the lines that a process of the program wrote at its end
    used      uuids of lines that a conversation counts
    targets   keys of turns that are targets of a conversation
    left_out  keys of turns that are in no request
    copied    keys of turns that are targets in the file of another session
    inherited uuids of the lines of another session that a fork continues
    lost      the position of the first line that cannot be read
    """

    source: Source
    nodes: dict[str, SessionLine] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    aside: list[dict[str, Json]] = field(default_factory=list)
    ends: list[ProcessEnd] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    copied: set[str] = field(default_factory=set)
    inherited: set[str] = field(default_factory=set)
    lost: int | None = None
    names: Counter[str] = field(default_factory=Counter)

    def read(self) -> Iterator[Problem]:
        """Reads all lines; yields a problem for each invalid one."""
        for at, item in enumerate(_records(self.source)):
            if isinstance(item, Problem):
                self.lost = at if self.lost is None else self.lost
                yield item
            elif not isinstance(item.value, dict):
                yield not_object(item)
            else:
                self._add(at, item.where, item.value)

    def _add(self, at: int, where: str, value: dict[str, Json]) -> None:
        if as_str(value.get("type")) in _ASIDE:
            self.aside.append(value)
            return
        if value.get("type") == _END:
            self.ends.append(ProcessEnd.read(at, value))
        line = read_line(at, where, value)
        if line is None:
            self.counts[_code(value)] += 1
            return
        seen = self.nodes.get(line.uuid)
        if seen is not None and (seen.kind in _SPEAKERS or line.kind not in _SPEAKERS):
            self.counts["replayed" if line.kind in _SPEAKERS else _code(value)] += 1
            return
        if seen is not None:
            self.counts[_code(seen.value)] += 1
            del self.nodes[line.uuid]
        self.nodes[line.uuid] = line

    def conversations(self) -> Iterator[Conversation]:
        """Yields the conversations of all branches."""
        forks = [item for item in self.aside if item["type"] == FORK]
        self.nodes, self.inherited, shared = with_histories(self.source, self.nodes, forks)
        self.used |= self.inherited
        texts = replacement_texts(item for item in self.aside if item["type"] == REPLACEMENTS)
        self.nodes = {uuid: with_replacements(line, texts) for uuid, line in self.nodes.items()}
        requests = Requests(self.aside)
        turns = Turns(self.nodes.values(), requests.arguments)
        lines = list(self.nodes.values())
        renders = any(line.kind == "attachment" and "rendered" in line.value for line in lines)
        copied = copied_answers(self.source, lines)
        self.copied = {
            turns.of(line).key
            for line in lines
            if line.uuid in copied or (line.is_answer and line.response in shared)
        }
        branches = [
            branch
            for branch in find_branches(self.nodes, turns.lines_of)
            if any(line.is_answer or line.is_typed for line in branch.lines)
            and not self.inherited.issuperset(line.uuid for line in branch.lines)
        ]
        if requests:
            for branch in branches:
                requests.add_lines(branch.lines, turns)
        for branch in branches:
            yield from self._branch(branch, turns, requests, renders=renders)

    def _branch(
        self, branch: Branch, turns: Turns, requests: Requests, *, renders: bool
    ) -> Iterator[Conversation]:
        lines = branch.lines
        first = next((line for line in lines if line.kind in _SPEAKERS), None)
        prompt: str | None = ""
        if first is not None and first.agent and first.is_answer:
            prompt = prompts_of_calls(line.value for line in self.nodes.values()).get(first.agent)
            prompt = prompt or find_prompt(self.source, first.session, first.agent)
        assembly = assemble(
            lines,
            turns,
            renders=renders,
            prompt=prompt,
            orphans=self._orphans(first),
            unknown=self._unknown(lines),
        )
        kept = {turns.of(line).key for line in lines if line.uuid in branch.kept and line.is_answer}
        repeated = self.targets | self.copied | kept
        stretches = find_stretches(
            lines, assembly, requests, renders=renders, repeated=repeated, ends=self.ends
        )
        info = _BranchInfo.of(branch, assembly.changes)
        untrained = {turn.key: "stripped" for turn in turns.on(lines) if turn.is_stripped}
        untrained.update(dict.fromkeys(warmups(lines, stretches), "warmup"))
        without = assembly.messages if self.copied else assembly.before_turns()
        for stretch in stretches or [RequestRun([*without])]:
            new = assembly.members - self.used
            conversation = self._conversation(info, stretch, untrained, len(new))
            if conversation.messages:
                self.used |= new
                yield conversation
            if not branch.rewound:
                self.targets.update(turn.key for turn in stretch.targets)
        for turn, place, code in assembly.left_out:
            if turn.key not in self.left_out:
                self.left_out.add(turn.key)
                messages = [*assembly.messages[:place], SentMessage({}, turn)]
                ended = RequestRun(messages, targets=[turn])
                why = "the user interrupted the answer" if code == "aborted" else "no result"
                problem = Problem(code, turn.lines[-1].where, why, records=0)
                yield self._conversation(info, ended, {}, 0, problem)

    def _orphans(self, first: SessionLine | None) -> set[str]:
        """Returns the uuids of the lines with a parent, or a summary above, that the file lacks.

        Lines of a stream name no parent: there, those after a lost line. Except the prompt of a
        sub-agent, `first`, which follows a call in the file of its parent.
        """
        begins = None
        if first is not None and first.agent and not first.is_answer:
            is_fork = first.parent != first.value.get("parentUuid")  # see `with_histories`
            begins = None if is_fork else first.uuid
        return after_lost_summaries(self.nodes) | {
            line.uuid
            for line in self.nodes.values()
            if (line.parent and line.parent not in self.nodes and line.uuid != begins)
            or (self.lost is not None and line.at > self.lost and "parentUuid" not in line.value)
        }

    def _unknown(self, branch: Iterable[SessionLine]) -> int | None:
        """Returns the position of the first line of unknown type outside of the tree."""
        groups = {line.group for line in branch}
        unknown = (
            line.at
            for line in self.nodes.values()
            if line.kind == "unknown" and line.uuid.startswith("#") and line.group in groups
        )
        return next(unknown, None)

    def _conversation(
        self,
        info: _BranchInfo,
        stretch: RequestRun,
        untrained: Mapping[str, str],
        records: int,
        problem: Problem | None = None,
    ) -> Conversation:
        messages = tuple(
            messages_of(
                stretch, untrained=untrained, by_program=info.by_program, denials=info.denials
            )
        )
        last = stretch.targets[-1].lines[-1] if stretch.targets else info.last
        problems = () if problem is None else (problem,)
        if info.rewound:
            detail = "a branch that the user went back from"
            problems = (*problems, Problem("rewound", info.last.where, detail, records=0))
        shape = stretch.shape
        models = [turn.lines[-1].model for turn in stretch.targets]
        return Conversation(
            id=unique_name(info.name, self.names),
            record=span(info.first.where, info.last.where if problem is None else last.where),
            messages=messages,
            tools=shape.tools if shape is not None and "tools" in shape.known else None,
            model=next((model for model in reversed(models) if model), None),
            records=records,
            version=name_or_none(last.value.get("version")),
            problems=problems,
            changes=dict(sorted((+(info.changes + stretch.changes)).items())),
            context=stretch.context,
        )

    def rest(self) -> Iterator[Event]:
        """Yields the events of the lines that are in no conversation."""
        for line in self.nodes.values():
            if line.uuid not in self.used:
                speaks = line.kind in _SPEAKERS
                self.counts[_left_over(line) if speaks else _code(line.value)] += 1
        if self.aside and self.targets:
            yield Used(len(self.aside))
        else:
            self.counts.update(_code(value) for value in self.aside)
        yield from ignored(+self.counts)


@dataclass(frozen=True, slots=True)
class _BranchInfo:
    """The values that the conversations of a branch share."""

    name: str
    first: SessionLine
    last: SessionLine
    rewound: bool
    by_program: frozenset[str]
    denials: Mapping[str, str]
    changes: Counter[str]

    @classmethod
    def of(cls, branch: Branch, changes: Counter[str]) -> _BranchInfo:
        first = next(line for line in branch.lines if line.at >= 0)  # not one of another file
        last = branch.lines[-1]
        name = "/".join(part for part in (last.session, last.agent) if part) or "session"
        prompts = command_prompts(branch.lines)
        return cls(
            name=name,
            first=first,
            last=last,
            rewound=branch.rewound,
            by_program=frozenset(
                text.strip()
                for line in branch.lines
                if line.kind == "user" and line.is_meta and line.uuid not in prompts
                for text in texts_of(line)
            ),
            denials={
                call_id: as_str(line.value.get("toolDenialKind"))
                for line in branch.lines
                for call_id in line.answered
                if call_id and line.value.get("toolDenialKind")
            },
            changes=changes + Counter({"command_prompt": len(prompts)}),
        )


def _code(value: dict[str, Json]) -> str:
    kind = as_str(value.get("type"))
    return kind if kind in _IGNORED else unknown_code(value.get("type"))


def _left_over(line: SessionLine) -> str:
    """Returns the code of a line in no conversation: outside all branches, or never answered."""
    if line.results:
        return "orphan_result"
    return "rewound" if line.is_typed or line.is_answer else "harness_text"


READER = Reader(
    name="claude-code",
    summary="Claude Code sessions (JSONL): lines with type, message and uuid, sub-agents too",
    evidence=("files", "parsers"),
    recognise=recognise,
    is_agent=True,
    checked="2.1.332",
    homes=(Home("Claude Code", "${CLAUDE_CONFIG_DIR:-~/.claude}/projects"),),
    read=read,
)
