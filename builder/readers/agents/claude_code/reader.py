"""Reads Claude Code sessions: a tree of JSONL lines, rebuilt into the requests that the model saw.

Source: docs/formats/claude-code.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from builder.conversation import (
    LEVELS,
    LOST_RECORD,
    REPEAT,
    Context,
    Conversation,
    Event,
    Json,
    Message,
    Part,
    Text,
    ToolCall,
    Used,
    lowest,
)
from builder.problem import Problem
from builder.readers import declared
from builder.readers.agents.claude_code.lines import (
    KNOWN,
    LEAVES_PLAN_MODE,
    SessionLine,
    SessionTurn,
    Turns,
    is_qwen,
    mark_result,
    read_line,
    split_user_text,
)
from builder.readers.agents.claude_code.requests import (
    KINDS,
    REPLACEMENTS,
    Assembly,
    ProcessEnd,
    PromptSnapshots,
    Requests,
    SentMessage,
    Shape,
    adds_only,
    assemble,
    replacement_texts,
    with_replacements,
)
from builder.readers.agents.claude_code.tree import (
    FORK,
    Branch,
    after_lost_summaries,
    copied_answers,
    find_branches,
    find_prompt,
    prompts_of_calls,
    with_histories,
    with_holes,
)
from builder.readers.api.anthropic import read_parts
from builder.readers.toolkit.chat_messages import results_apart
from builder.readers.toolkit.history import lost_message
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none, unknown_code
from builder.readers.toolkit.places import ignored, span, unique_name
from builder.readers.toolkit.rows import not_object
from builder.readers.toolkit.tool_forms import is_deferred, loaded_names, without_deferred
from builder.readers.toolkit.unknown_keys import message_keys, unknown_in
from builder.sources.source import Record, Source

# -- converts the branches of a session to conversations with the context of each answer -----------

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}/\d{1,2}/\d{4}")


_ALTERED = "digest"
"""The code of `Context.missing` for a request that does not match the log's own digests."""


@dataclass
class _RequestRun:
    """Messages up to the last turn, the targets among the turns by key, and their contexts."""

    messages: list[SentMessage] = field(default_factory=list)
    targets: list[SessionTurn] = field(default_factory=list)
    contexts: dict[str, Context] = field(default_factory=dict)
    shape: Shape | None = None
    changes: Counter[str] = field(default_factory=Counter)

    @property
    def context(self) -> Context:
        """The context of all targets together: the lowest level, every missing code."""
        return lowest(self.contexts.values()) or Context(LEVELS[0])


@dataclass(frozen=True, slots=True)
class _RequestContext:
    """The context of a turn: messages (None: as assembled from the lines), shape, level."""

    messages: tuple[SentMessage, ...] | None
    shape: Shape | None
    context: Context


def _request_runs(
    lines: Sequence[SessionLine],
    assembly: Assembly,
    requests: Requests,
    *,
    renders: bool,
    repeated: Collection[str],
    ends: Sequence[ProcessEnd],
) -> list[_RequestRun]:
    """Returns the runs of a branch, in order; each has at least one target.

    `ends`: the lines that a process of the program wrote at its end.
    `repeated`: keys of turns that are not targets of this branch: they are targets of another
    branch, or a compaction kept them.
    """
    turns = [
        sent.turn
        for sent in assembly.messages
        if sent.turn is not None and sent.turn.key not in repeated
    ]
    snapshots = PromptSnapshots(lines, ends)
    views = [
        _view(turn, following, requests, snapshots, renders)
        for turn, following in zip_longest(turns, turns[1:])
    ]
    views = _with_missing(turns, _with_later_requests(turns, views), assembly)
    runs: list[_RequestRun] = []
    at = 0  # messages of the assembly that are in the run
    for turn, view in zip(turns, views, strict=True):
        place = assembly.places[turn.key]
        current = runs[-1] if runs else None
        between = assembly.messages[at:place]
        at = place + 1
        shape = _joined_shape(current, view.shape)
        if (
            current is None
            or shape is None
            or not (view.messages is None or adds_only(current.messages, view.messages))
        ):
            current = _RequestRun([*current.messages] if current else [], shape=view.shape)
            runs.append(current)
        else:
            current.shape = shape
        if view.messages is None:
            current.messages += between
        else:
            current.messages = [*view.messages]
        current.messages.append(assembly.messages[place])
        current.targets.append(turn)
        current.contexts[turn.key] = view.context
    if runs:
        runs[-1].messages += assembly.messages[at:]
    for run in runs:
        _leave_deferred(run)
    return runs


def _leave_deferred(run: _RequestRun) -> None:
    """Leaves out the tools that the requests of a run defer and that none of them loads.

    The definition of a loaded tool was sent after the prompt, so its turns are at most `rendered`,
    and those before it was loaded lack it.
    """
    shape = run.shape
    marked = sum(map(is_deferred, shape.tools)) if shape is not None else 0
    if shape is None or not marked:
        return
    named: set[str] = set()
    known: dict[str, set[str]] = {}
    for sent in run.messages:
        if sent.turn is None:
            named.update(loaded_names(sent.value.get("content")))
        else:
            named.update(part.name for part in sent.turn.parts if isinstance(part, ToolCall))
            known[sent.turn.key] = set(named)
    offered, deferred = without_deferred(shape.tools, named)
    run.shape = replace(shape, tools=offered)
    run.changes["deferred_tools"] += len(deferred)
    if len(deferred) < marked:
        _lower_proven(run)
    loaded = {_tool_name(tool) for tool in shape.tools if is_deferred(tool)} & named
    for key, context in run.contexts.items():
        if not loaded <= known[key]:
            run.contexts[key] = _lacking_tools(context)


def _lacking_tools(context: Context) -> Context:
    return Context.lacking({*context.missing, "tools"})


def _lower_proven(run: _RequestRun) -> None:
    for key, context in run.contexts.items():
        if context.level == "proven":
            run.contexts[key] = Context("rendered")


def _view(
    turn: SessionTurn,
    following: SessionTurn | None,
    requests: Requests,
    snapshots: PromptSnapshots,
    renders: bool,
) -> _RequestContext:
    references = [as_str(line.value.get("requestRef")) for line in turn.lines]
    reference = next((item for item in references if item), "")
    rebuilt = requests.rebuild(reference) if reference else None
    if rebuilt is not None:
        missing = set() if rebuilt.proven else {_ALTERED}
        missing |= {"history"} if rebuilt.trimmed else set()
        context = Context.lacking(missing, "proven")
        return _RequestContext(rebuilt.messages, rebuilt.shape, context)
    exact = requests.exact_shape(reference)
    shape = exact or snapshots.before(following)
    missing = {"system", "tools"} - (shape.known if shape is not None else frozenset())
    if exact is None and not snapshots.has_tools_of(turn):
        missing.add("tools")
    if not renders:
        missing.add("reminders")
    if reference in requests:
        missing.add(_ALTERED)
    return _RequestContext(None, shape, Context.lacking(missing, "rendered"))


def _with_missing(
    turns: Sequence[SessionTurn], views: list[_RequestContext], assembly: Assembly
) -> list[_RequestContext]:
    """Returns the views; those assembled from the lines get the codes of what lines lack.

    Another model gets attachments in another form, and the call that leaves plan mode is sent back
    without the plan (`history`).
    """
    completed = []
    trimmed = False
    for turn, view in zip(turns, views, strict=True):
        if view.messages is not None:
            completed.append(view)
            continue
        place, missing = assembly.places[turn.key], set(view.context.missing)
        missing |= {code for code, first in assembly.lacking.items() if place >= first}
        if trimmed:
            missing.add("history")
        trimmed = trimmed or any(map(_loses_plan, turn.blocks))
        if not missing and turn.lines[0].model != turns[0].lines[0].model:
            missing.add("history")
        completed.append(replace(view, context=Context.lacking(missing, view.context.level)))
    return completed


def _loses_plan(block: dict[str, Json]) -> bool:
    return block.get("name") == LEAVES_PLAN_MODE and bool(block.get("input"))


def _with_later_requests(
    turns: Sequence[SessionTurn], views: list[_RequestContext]
) -> list[_RequestContext]:
    """Returns the views; a turn without a request uses a later request that contains the turn.

    The log of a forked or moved session has only the requests of its later turns.
    """
    completed = list(views)
    later: _RequestContext | None = None
    version: Json = None
    for at in reversed(range(len(turns))):
        view, turn = completed[at], turns[at]
        if view.messages is not None:
            later, version = view, turn.lines[0].value.get("version")
        elif (
            later is not None
            and later.messages is not None
            and _ALTERED not in (*view.context.missing, *later.context.missing)
        ):
            same = turn.lines[0].value.get("version") == version
            keys = (sent.turn and sent.turn.key for sent in later.messages)
            place = next((n for n, key in enumerate(keys) if key == turn.key), None)
            if same and place is not None:
                completed[at] = _RequestContext(
                    later.messages[:place], later.shape, Context("rendered")
                )
    return completed


def _joined_shape(current: _RequestRun | None, new: Shape | None) -> Shape | None:
    """Returns the shape of the run with the next turn; None if that begins a new run.

    Records in the run what it changes for the earlier turns.
    """
    old = current.shape if current is not None else None
    if current is None or old is None or new is None or old == new:
        return new or old or Shape(known=frozenset())
    kept = {_tool_name(tool): tool for tool in new.tools}
    if any(kept.get(_tool_name(tool)) != tool for tool in old.tools):
        return None
    moved = old.system != new.system
    if moved and _undated(old.system) != _undated(new.system):
        return None
    current.changes["system_date_moved"] += moved
    _lower_proven(current)
    if len(new.tools) > len(old.tools):
        current.changes["tools_added_later"] += 1
        current.contexts = {key: _lacking_tools(one) for key, one in current.contexts.items()}
    return new


def _tool_name(tool: Json) -> str:
    return as_str(tool, "name")


def _undated(texts: Sequence[str]) -> list[str]:
    return [_DATE.sub("", text) for text in texts]


def messages_of(
    run: _RequestRun,
    *,
    untrained: Mapping[str, str],
    by_program: Collection[str],
    denials: Mapping[str, str],
) -> Iterator[Message]:
    """Yields a run as messages, its system prompt first.

    `untrained` contains the codes of turns that are not targets, by key; other turns that are not
    targets of the run are repeats. `by_program`: texts of user lines that the program wrote.
    `denials`: the logged kinds of refusals, by call id.
    """
    if run.shape is not None and run.shape.system:
        yield Message("system", tuple(map(Text, run.shape.system)))
    targets = {turn.key for turn in run.targets}
    common = run.context
    for sent in run.messages:
        turn = sent.turn
        if turn is not None:
            code = untrained.get(turn.key) or (None if turn.key in targets else REPEAT)
            context = run.contexts.get(turn.key)
            context = None if context == common else context
            name = turn.lines[0].response
            model = turn.lines[-1].model
            logged = (line.value.get("message") for line in turn.lines)
            keys = message_keys("claude-code")
            unknown = tuple(dict.fromkeys(key for one in logged for key in unknown_in(one, keys)))
            yield Message("assistant", turn.parts, name, code, context, model, unknown=unknown)
            continue
        if sent.code == LOST_RECORD.code:
            yield lost_message()
            continue
        role = as_str(sent.value.get("role"))
        parts = read_parts(sent.value.get("content"))
        if role == "assistant":
            yield Message(role, tuple(parts), untrained=sent.code, unknown=unknown_in(sent.value))
            continue
        results, rest = results_apart(parts)
        unknown = unknown_in(sent.value)
        if results:
            marked = (mark_result(part, denials.get(part.call_id or "", "")) for part in results)
            yield Message("tool", tuple(marked), unknown=unknown)
        if rest:
            marked_rest = tuple(_marked(rest, role, by_program))
            yield Message(role, marked_rest, unknown=() if results else unknown)


def _marked(parts: Sequence[Part], role: str, by_program: Collection[str]) -> Iterator[Part]:
    for part in parts:
        if not isinstance(part, Text):
            yield part
        elif role == "system":
            yield replace(part, harness=True)
        else:
            yield from split_user_text(part.text, by_program)


# -- finds the prompts of a Claude Code session that the user did not type as they stand -----------

_WARMUP = "Warmup"
"""The prompt with which the program fills the provider's cache."""


def _command_prompts(lines: Iterable[SessionLine]) -> set[str]:
    """Returns the uuids of lines with prompts of slash commands, if the user typed nothing else.

    These lines are marked as the program's text but contain the user's request.
    """
    uuids: set[str] = set()
    run: list[SessionLine] = []
    command = typed = False
    for line in lines:
        if line.is_answer:
            uuids |= set() if typed else {line.uuid for line in run}
            run, command, typed = [], False, False
        elif line.kind == "user":
            typed = typed or line.is_typed
            if (
                line.is_meta
                and command
                and not any(text.lstrip().startswith("<") for text in _texts_of(line))
            ):
                run.append(line)
            command = command or any("<command-name>" in text for text in _texts_of(line))
    return uuids if typed else uuids | {line.uuid for line in run}


def _texts_of(line: SessionLine) -> Iterator[str]:
    return (as_str(block.get("text")) for block in line.blocks if block.get("type") == "text")


def _warmups(lines: Iterable[SessionLine], runs: Iterable[_RequestRun]) -> Iterator[str]:
    prompts = [line for line in lines if line.kind == "user" and line.is_typed]
    if prompts and all([*_texts_of(line)] == [_WARMUP] for line in prompts):
        yield from (turn.key for run in runs for turn in run.targets)


_END = "cost-state"
"""Type of the line that a process writes at its end."""
_IGNORED = (KNOWN | KINDS) - {"user", "assistant"}
"""Types of lines that never contain a turn."""
_ASIDE = KINDS | {FORK, REPLACEMENTS}
"""Types of lines outside of the tree that say what requests contained."""
_SPEAKERS = ("user", "assistant")


def _recognise(source: Source) -> str | None:
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
    lost      the positions of the lines that cannot be read
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
    lost: list[int] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)

    def read(self) -> Iterator[Problem]:
        """Reads all lines; yields a problem for each invalid one."""
        for at, item in enumerate(_records(self.source)):
            if isinstance(item, Problem):
                self.lost.append(at)
                yield item
            elif not isinstance(item.value, dict):
                self.lost.append(at)
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
        forks = [item for item in self.aside if item["type"] == FORK]
        self.nodes, self.inherited, shared = with_histories(self.source, self.nodes, forks)
        self.nodes = with_holes(self.nodes, self.lost)
        self.used |= self.inherited
        self.used |= {uuid for uuid, line in self.nodes.items() if line.kind == "hole"}
        texts = replacement_texts(item for item in self.aside if item["type"] == REPLACEMENTS)
        self.nodes = {uuid: with_replacements(line, texts) for uuid, line in self.nodes.items()}
        requests = Requests(self.aside)
        turns = Turns(self.nodes.values(), requests.arguments, self.lost)
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
            unsummarised=after_lost_summaries(self.nodes),
            unknown=self._unknown(lines),
        )
        kept = {turns.of(line).key for line in lines if line.uuid in branch.kept and line.is_answer}
        repeated = self.targets | self.copied | kept
        runs = _request_runs(
            lines, assembly, requests, renders=renders, repeated=repeated, ends=self.ends
        )
        prompts = _command_prompts(lines)
        by_program = {
            text.strip()
            for line in lines
            if line.kind == "user" and line.is_meta and line.uuid not in prompts
            for text in _texts_of(line)
        }
        denials = {
            call_id: as_str(line.value.get("toolDenialKind"))
            for line in lines
            for call_id in line.answered
            if call_id and line.value.get("toolDenialKind")
        }
        changes = assembly.changes + Counter({"command_prompt": len(prompts)})
        untrained = {turn.key: "stripped" for turn in turns.on(lines) if turn.is_stripped}
        untrained.update(dict.fromkeys(_warmups(lines, runs), "warmup"))
        without = assembly.messages if self.copied else assembly.before_turns()
        for run in runs or [_RequestRun([*without])]:
            new = assembly.members - self.used
            shown = messages_of(run, untrained=untrained, by_program=by_program, denials=denials)
            conversation = self._conversation(branch, run, shown, changes, len(new))
            if conversation.messages:
                self.used |= new
                yield conversation
            if not branch.rewound:
                self.targets.update(turn.key for turn in run.targets)
        for turn, place, code in assembly.left_out:
            if turn.key not in self.left_out:
                self.left_out.add(turn.key)
                messages = [*assembly.messages[:place], SentMessage({}, turn)]
                ended = _RequestRun(messages, targets=[turn])
                why = "the user interrupted the answer" if code == "aborted" else "no result"
                problem = Problem(code, turn.lines[-1].where, why, records=0)
                sent = messages_of(ended, untrained={}, by_program=by_program, denials=denials)
                yield self._conversation(branch, ended, sent, changes, 0, problem)

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
        branch: Branch,
        run: _RequestRun,
        messages: Iterable[Message],
        changes: Counter[str],
        records: int,
        problem: Problem | None = None,
    ) -> Conversation:
        first = next(line for line in branch.lines if line.at >= 0)  # not one of another file
        end = branch.lines[-1]
        last = run.targets[-1].lines[-1] if run.targets else end
        problems = () if problem is None else (problem,)
        if branch.rewound:
            detail = "a branch that the user went back from"
            problems = (*problems, Problem("rewound", end.where, detail, records=0))
        name = "/".join(part for part in (end.session, end.agent) if part) or "session"
        shape = run.shape
        models = [turn.lines[-1].model for turn in run.targets]
        return Conversation(
            id=unique_name(name, self.names),
            record=span(first.where, end.where if problem is None else last.where),
            messages=tuple(messages),
            tools=shape.tools if shape is not None and "tools" in shape.known else None,
            model=next((model for model in reversed(models) if model), None),
            records=records,
            version=name_or_none(last.value.get("version")),
            folder=name_or_none(last.value.get("cwd")),
            headless=entry != "cli" if (entry := last.value.get("entrypoint")) else None,
            problems=problems,
            changes=dict(sorted((+(changes + run.changes)).items())),
            context=run.context,
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


def _code(value: dict[str, Json]) -> str:
    kind = as_str(value.get("type"))
    return kind if kind in _IGNORED else unknown_code(value.get("type"))


def _left_over(line: SessionLine) -> str:
    """Returns the code of a line in no conversation: outside all branches, or never answered."""
    if line.results:
        return "orphan_result"
    return "rewound" if line.is_typed or line.is_answer else "harness_text"


READER = declared("claude-code", recognise=_recognise, read=read)
