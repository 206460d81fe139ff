"""Reads one line of a Claude Code session.

Source: docs/formats/claude-code.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial

from builder.conversation import (
    LOST_RECORD,
    Content,
    Json,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.jsonio import dumps
from builder.readers.api.anthropic import read_part
from builder.readers.toolkit.history import upwards
from builder.readers.toolkit.marks import finish_fault
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str, name_or_none
from builder.readers.toolkit.unknown_keys import carries_content

# -- separates text that the program put into a user message from the user's own text --------------

INTERRUPTED = "[Request interrupted by user"
"""The beginning of the note that the user stopped the model; the rest differs by version."""

_CUT_OFF = ("Your response above was cut off mid-stream", "Output token limit hit.")
_INCOMPLETE = "The response above may be incomplete."
_OVER_LIMIT = re.compile(r"response exceeded the \d+ output token maximum")
"""The program's notes to the model and the user that an answer was cut off."""

_TAGS = (
    "command-name", "command-message", "command-args", "command-contents", "local-command-stdout",
    "local-command-stderr", "local-command-caveat", "bash-input", "bash-stdout", "bash-stderr",
    "task-notification", "system-reminder", "ide_opened_file", "ide_selection", "ide_diagnostics",
    "teammate-message", "user-memory-input", "user-prompt-submit-hook", "session-start-hook",
)  # fmt: skip
_LEADING = re.compile(rf"\s*<({'|'.join(_TAGS)})\b[^>]*>[\s\S]*?(?:</\1>\s*|\Z)")
_REMINDER = re.compile(r"\s*<system-reminder>[\s\S]*?</system-reminder>\s*")
_OPEN, _CLOSE = "<system-reminder>", "</system-reminder>"
_WHOLE = (
    "Caveat: The messages below were generated", INTERRUPTED, "[Image: source:",
    "<task-notification>",
)  # fmt: skip
"""Prefixes of messages that the program wrote entirely."""


def split_user_text(text: str, by_program: Collection[str] = ()) -> list[Text]:
    """Splits the text of a user message into text of the user and text of the program.

    Joining the parts with blank lines, as the normaliser does, restores the text. If that is
    impossible, the text is one part. `by_program` contains stripped texts that are known to be the
    program's.
    """
    if text.strip() in by_program:
        return [Text(text, harness=True)]
    return _separable(_parts(text), "\n\n")


def _parts(text: str) -> list[Text]:
    """Splits the text into parts whose concatenation is the text."""
    if text.startswith(_WHOLE):
        return [Text(text, harness=True)]
    parts: list[Text] = []
    at = 0
    while match := _LEADING.match(text, at):
        parts.append(Text(match[0], harness=True))
        at = match.end()
    rest = text[at:]
    return parts + _without_reminders(rest) if rest.strip() or not parts else parts


def _without_reminders(text: str) -> list[Text]:
    """Splits off the `<system-reminder>` blocks at the beginning and end of a text.

    The program adds them there; a block in the middle belongs to a text about reminders. A block
    includes the white space around it.
    """
    before: list[Text] = []
    after: list[Text] = []
    start, end = 0, len(text)
    while match := _REMINDER.match(text, start):
        before.append(Text(match[0], harness=True))
        start = match.end()
    while True:
        body = text[start:end].rstrip()
        if not body.endswith(_CLOSE) or (at := body.rfind(_OPEN)) < 0:
            break
        at = start + len(body[:at].rstrip())
        after.append(Text(text[at:end], harness=True))
        end = at
    middle = [Text(text[start:end])] if start < end or not (before or after) else []
    return [*before, *middle, *reversed(after)]


def _separable(parts: list[Text], separator: str) -> list[Text]:
    """Removes the separator between neighbouring parts; joins neighbours that lack it."""
    if all(part.harness for part in parts):
        return [Text("".join(part.text for part in parts), harness=bool(parts))]
    separable = parts[:1]
    for part in parts[1:]:
        last = separable[-1]
        if part.text.startswith(separator):
            separable.append(Text(part.text.removeprefix(separator), part.harness))
        elif last.text.endswith(separator):
            separable[-1] = Text(last.text.removesuffix(separator), last.harness)
            separable.append(part)
        else:
            separable[-1] = Text(last.text + part.text, last.harness and part.harness)
    return separable


NOT_SENT = "isApiErrorMessage"
"""The flag of a line that reports an error instead of an answer; it is in no request."""

_COLLAPSE = "marble-origami-commit"
"""The type of a line that names lines which later requests contained as a summary."""

KNOWN = frozenset(
    {
        "user", "assistant", "system", "progress", "attachment", "summary", "file-history-snapshot",
        "file-history-delta", "queue-operation", "last-prompt", "permission-mode", "ai-title",
        "custom-title", "agent-name", "pr-link", "continued-in", "agent-setting", "started",
        "result", "mode", "atis-latch", "tools-used", "relocated", "worktree-state", "cost-state",
        "content-replacement", "fork-context-ref",
    }
)  # fmt: skip
"""Types of lines that are known; except for user and assistant, none contains a turn."""

_DENIAL = re.compile(
    "The user doesn't want to (?:proceed with this tool use|take this action right now)"
    "|Permission (?:to use|for this (?:tool use|action)) |Claude requested permissions to"
    "|This command requires approval|This Bash command contains multiple operations"
    r"|[^\n]{1,999} was blocked\. For security, Claude Code may only"
)
"""What begins the result of a refused call; lines of newer versions name the kind of refusal."""

_INTERRUPTIONS = ("[Tool call interrupted", "[Request interrupted")


@dataclass(frozen=True)
class SessionLine:
    """A line that is a node of the session's tree.

    at        position in the file, which orders nodes
    where     position for people: "line 12"
    kind      user, assistant, attachment (usually text for the request), boundary (of a
              compaction), unknown (of another type, with a message), hole (lines that the file
              lacks, see `with_holes`) or link (part of the tree, but nothing that was sent)
    agent     the sub-agent that the line belongs to; "" for the session itself. In the stream of a
              headless run it is the id of the call that started the sub-agent
    response  assistant: the id of the response that the line is a block of
    is_answer assistant: it is the model's own, not an error or placeholder of the program
    value     the line as logged
    """

    at: int
    where: str
    kind: str
    uuid: str
    parent: str | None
    session: str
    agent: str
    response: str
    is_answer: bool
    value: dict[str, Json]

    @property
    def group(self) -> tuple[str, str]:
        """The sequence that the line belongs to: a session, or one of its sub-agents."""
        return self.session, self.agent

    @cached_property
    def blocks(self) -> list[dict[str, Json]]:
        """Returns the content blocks; a string becomes one text block."""
        content = as_dict(self.value.get("message")).get("content")
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        return as_dicts(content)

    @cached_property
    def results(self) -> list[dict[str, Json]]:
        """The tool results of a user line, as the model saw them (not `toolUseResult`)."""
        if self.kind != "user":
            return []
        return [block for block in self.blocks if block.get("type") == "tool_result"]

    @property
    def answered(self) -> list[str | None]:
        """The call ids of the results, in their order."""
        return [name_or_none(block.get("tool_use_id")) for block in self.results]

    @cached_property
    def is_typed(self) -> bool:
        """Returns whether it is a user line with text or images of the user."""
        if self.kind != "user" or self.is_meta:
            return False
        texts = (as_str(block.get("text")) for block in self.blocks if block.get("type") == "text")
        has_media = any(block.get("type") in ("image", "document") for block in self.blocks)
        return has_media or any(
            self.is_summary or not all(part.harness for part in _parts(text)) for text in texts
        )

    @property
    def attachment(self) -> dict[str, Json]:
        """The attached object; {} if the line is not an attachment."""
        return as_dict(self.value.get("attachment"))

    @property
    def model(self) -> str | None:
        """The model of an assistant line."""
        return name_or_none(as_dict(self.value.get("message")).get("model"))

    @property
    def version(self) -> tuple[int, ...]:
        """The version of the program that wrote the line; () if it has none."""
        parts = as_str(self.value.get("version")).split(".")
        return tuple(int(part) for part in parts[:3] if part.isdecimal() and len(part) < 9)

    @property
    def is_meta(self) -> bool:
        """Returns whether the program wrote the text of the user line."""
        return self.value.get("isMeta") is True

    @property
    def is_summary(self) -> bool:
        """Returns whether it is a summary that replaced the history in a compaction."""
        return self.kind == "user" and self.value.get("isCompactSummary") is True


def is_qwen(value: dict[str, Json]) -> bool:
    """Returns whether a line is one of Qwen Code's, which look similar."""
    return "systemPayload" in value or "parts" in as_dict(value.get("message"))


def read_line(at: int, where: str, value: dict[str, Json]) -> SessionLine | None:
    """Returns the line as a node, or None if it is not part of the tree."""
    kind = as_str(value.get("type"))
    if kind == "system" and value.get("subtype") == "local_command":
        # The separately logged output of a command of the user; requests contain it.
        sent: dict[str, Json] = {"role": "user", "content": as_str(value.get("content"))}
        kind, value = "user", {**value, "message": sent}
    message = as_dict(value.get("message"))
    uuid = name_or_none(value.get("uuid"))
    if kind == "system" and value.get("subtype") == "compact_boundary":
        kind = "boundary"
    elif kind == "attachment" and isinstance(value.get("attachment"), dict):
        pass
    elif kind not in ("user", "assistant") or not isinstance(message.get("content"), str | list):
        has_message = kind not in KNOWN and (kind == _COLLAPSE or carries_content(value))
        if uuid is None and not has_message:
            return None
        kind = "unknown" if has_message else "link"
    uuid = uuid or f"#{at}"
    started_by = as_str(value.get("parent_tool_use_id"))
    agent = as_str(value.get("agentId")) or started_by or "sidechain"
    synthetic = message.get("model") == "<synthetic>" or value.get(NOT_SENT) is True
    return SessionLine(
        at=at,
        where=where,
        kind=kind,
        uuid=uuid,
        parent=name_or_none(value.get("parentUuid")),
        session=as_str(value.get("sessionId") or value.get("session_id")),
        agent=agent if started_by or value.get("isSidechain") is True else "",
        response=as_str(message.get("id")) or uuid,
        is_answer=kind == "assistant" and not synthetic,
        value=value,
    )


def mark_result(result: ToolResult, denial: str = "") -> ToolResult:
    """Returns the result with reminders split off, and marked if it was denied or interrupted.

    `denial` is the logged kind of refusal, or "".
    """
    content: list[Content] = []
    for part in result.content:
        if isinstance(part, Text):  # joined with newlines, the pieces are the text again
            content += _separable(_without_reminders(part.text), "\n")
        else:
            content.append(part)
    head = content[0] if content and result.is_error else None
    first = head.text if isinstance(head, Text) else ""
    is_interrupted = first.startswith(_INTERRUPTIONS) or "interrupt" in denial
    return ToolResult(
        tuple(content),
        result.call_id,
        result.name,
        is_error=bool(result.is_error),  # the program flags each failure
        is_denied=not is_interrupted and bool(denial or _DENIAL.match(first)),
        is_interrupted=is_interrupted,
    )


# -- removes arguments that the program added to logged calls after the model's answer -------------

LEAVES_PLAN_MODE = "ExitPlanMode"
"""The tool whose plan later requests omit, whether the model wrote it or not."""
_PLAN, _PLAN_PATH = "plan", "planFilePath"
_PLAN_FILE = re.compile(r"[/\\]\.?claude[/\\]plans[/\\][^/\\]+\.md\Z")


class _WrittenArguments:
    """Restores the arguments of calls as the model wrote them.

    `sent`: the arguments of calls in the log's requests, by call id.
    """

    def __init__(self, lines: Iterable[SessionLine], sent: Mapping[str, dict[str, Json]]) -> None:
        self._sent = sent
        self._plan_at = min((line.at for line in lines if _writes_plan(line)), default=None)

    def of(self, block: dict[str, Json], line: SessionLine) -> dict[str, Json]:
        """Returns a block of an answer; a call without the added arguments."""
        logged = block.get("input")
        if block.get("type") != "tool_use" or not isinstance(logged, dict):
            return block
        if block.get("name") == LEAVES_PLAN_MODE:
            has_file = self._plan_at is not None and self._plan_at < line.at
            if _PLAN_PATH not in logged and not (has_file and _PLAN in logged):
                return block
            own = {key: logged[key] for key in logged if key not in (_PLAN, _PLAN_PATH)}
            return {**block, "input": own}
        sent = self._sent.get(as_str(block.get("id")))
        if sent is None or len(sent) >= len(logged):
            return block
        is_part = all(key in logged and logged[key] == sent[key] for key in sent)
        return {**block, "input": sent} if is_part else block


def _writes_plan(line: SessionLine) -> bool:
    return line.is_answer and any(
        block.get("name") == "Write" and _PLAN_FILE.search(as_str(block, "input", "file_path"))
        for block in line.blocks
    )


# -- collects the turns of a Claude Code session ---------------------------------------------------

_ENDS, _AGENT_ENDS = (2, 1, 260), (2, 1, 310)
"""The first versions in which every complete answer has a stop reason (all of 674 measured).

Sub-agents up to 2.1.290 log each complete block, usually before the stop reason is known.
"""
_SOME_END = (2, 1, 81)
"""The first version in which each of a session's answers has one if any has (376 measured)."""


@dataclass(frozen=True, slots=True)
class LoggedResult:
    """A tool result: the line that contains it, and its index among the results of that line."""

    line: SessionLine
    number: int

    @property
    def key(self) -> tuple[str, int]:
        """The key of the result, unique in the file."""
        return self.line.uuid, self.number

    @property
    def block(self) -> dict[str, Json]:
        """The block as logged."""
        return self.line.results[self.number]


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """One response of the model.

    lines     its lines in file order
    blocks    their content blocks as logged, without repetitions and arguments of the program
    parts     the blocks as parts
    calls     the ids of its calls in order, each with the line of the call
    repeated  number of blocks that were logged again
    added     number of calls with arguments that the program added
    """

    lines: tuple[SessionLine, ...]
    blocks: tuple[dict[str, Json], ...]
    parts: tuple[Part, ...]
    calls: tuple[tuple[str, SessionLine], ...]
    repeated: int
    added: int = 0

    @property
    def key(self) -> str:
        """The key of the turn, unique in the file."""
        return self.lines[0].uuid

    @property
    def is_stripped(self) -> bool:
        """Whether its calls are not in the log: a fork began in the middle of the turn."""
        stop = as_dict(self.lines[-1].value.get("message")).get("stop_reason")
        return stop == "tool_use" and all(block.get("type") != "tool_use" for block in self.blocks)


class Turns:
    """The turns of a file and the results of their calls.

    `sent`: the arguments of calls in the log's requests, by call id. `lost`: the positions of the
    lines that cannot be read.
    """

    def __init__(
        self,
        lines: Iterable[SessionLine],
        sent: Mapping[str, dict[str, Json]],
        lost: Sequence[int],
    ) -> None:
        responses: dict[tuple[str, str, str], list[SessionLine]] = {}
        self._answers: dict[tuple[str, str], list[LoggedResult]] = {}
        nodes = {line.uuid: line for line in lines}
        cut_off: set[str | None] = set()
        beside_holes = _beside_holes(nodes, lost)
        for line in nodes.values():
            if line.kind in ("user", "assistant") and _notes_cut_off(line):
                cut_off.add(_answer_above(line, nodes))
            if line.is_answer and _continues_unfinished(nodes.get(line.parent or ""), line):
                cut_off.add(line.parent)
            if line.is_answer:
                responses.setdefault((*line.group, line.response), []).append(line)
            elif line.kind == "user":
                for number, call_id in enumerate(line.answered):
                    named = self._answers.setdefault((line.agent, call_id or ""), [])
                    named.append(LoggedResult(line, number))
        arguments = _WrittenArguments(nodes.values(), sent)
        own = (line for line in nodes.values() if line.is_answer and not line.agent)
        ends = _SOME_END if any(as_str(x.value, "message", "stop_reason") for x in own) else _ENDS
        self._turns = {
            line.uuid: turn
            for lines_of_response in responses.values()
            for turn in [_turn(lines_of_response, cut_off, beside_holes, arguments, ends)]
            for line in turn.lines
        }

    def of(self, line: SessionLine) -> SessionTurn:
        """Returns the turn that an assistant line is a block of."""
        return self._turns[line.uuid]

    def on(self, branch: Iterable[SessionLine]) -> list[SessionTurn]:
        """Returns the turns of a branch in the order of their first lines on it."""
        turns = (self.of(line) for line in branch if line.is_answer)
        return list({turn.key: turn for turn in turns}.values())

    def partial_on(self, branch: Sequence[SessionLine]) -> dict[str, list[dict[str, Json]]]:
        """Returns the turns of which a branch contains only a part, by key: their blocks on it.

        The user went back to a line before the turn's last. Branches of parallel calls lack lines
        of a turn as well, but contain one of its results.
        """
        uuids = {line.uuid for line in branch}
        answered = {call_id for line in branch for call_id in line.answered}
        partial = {}
        for turn in self.on(branch):
            present = [line for line in turn.lines if line.uuid in uuids]
            is_beginning = present == list(turn.lines[: len(present)])
            if not is_beginning or len(present) == len(turn.lines) or not turn.calls:
                continue
            if any(line.uuid == branch[-1].uuid for line in present):
                continue  # nothing follows
            if answered.isdisjoint(call_id for call_id, _ in turn.calls):
                partial[turn.key] = [block for line in present for block in line.blocks]
        return partial

    def lines_of(self, branch: Iterable[SessionLine]) -> Iterator[str]:
        """Yields the uuids of all lines of a branch's turns and of their results, on it or not."""
        for turn in self.on(branch):
            yield from (line.uuid for line in turn.lines)
            for call_id, line in turn.calls:
                yield from (answer.line.uuid for answer in self._named(line, call_id))

    def answered(self, branch: Sequence[SessionLine]) -> dict[str, list[LoggedResult]]:
        """Returns the results of each turn of a branch, by the turn's key, in logged order.

        A call takes one result. If several results have its id (a replay, repeated ids), it takes
        the one linked to the turn, else one on the branch, else one of the session, else the first
        after the call, but never one linked to another turn with a call of this id.
        """
        on_branch = {line.uuid for line in branch}
        taken: set[tuple[str, int]] = set()
        results: dict[str, list[LoggedResult]] = {}
        for turn in self.on(branch):
            uuids = {line.uuid for line in turn.lines}
            answers: list[LoggedResult] = []
            for call_id, line in turn.calls:
                named = [
                    answer
                    for answer in self._named(line, call_id)
                    if answer.key not in taken and self._fits(answer, turn)
                ]
                if named:
                    answers.append(min(named, key=partial(_distance, line, uuids, on_branch)))
                    taken.add(answers[-1].key)
            results[turn.key] = sorted(answers, key=lambda answer: (answer.line.at, answer.number))
        return results

    def _fits(self, answer: LoggedResult, turn: SessionTurn) -> bool:
        """Returns whether the result is not linked to another turn with a call of its id."""
        other = self._turns.get(answer.line.parent or "", turn)
        own_id = answer.line.answered[answer.number]
        return other.key == turn.key or all(call_id != own_id for call_id, _ in other.calls)

    def _named(self, line: SessionLine, call_id: str) -> list[LoggedResult]:
        return self._answers.get((line.agent, call_id), [])


def _distance(
    call: SessionLine, turn: Set[str], branch: Set[str], answer: LoggedResult
) -> tuple[bool, bool, bool, bool, int]:
    """Returns the distance of a result from a call of the turn; smaller is closer."""
    line = answer.line
    source = as_str(line.value.get("sourceToolAssistantUUID"))
    return (
        line.parent not in turn and source not in turn,
        line.uuid not in branch,
        line.session != call.session,
        line.at < call.at,
        line.at,
    )


def _notes_cut_off(line: SessionLine) -> bool:
    texts = [as_str(block.get("text")) for block in line.blocks]
    if line.kind == "user":
        return line.is_meta and any(text.startswith(_CUT_OFF) for text in texts)
    notes = (text.endswith(_INCOMPLETE) or _OVER_LIMIT.search(text) for text in texts)
    return not line.is_answer and any(notes)


def _beside_holes(nodes: Mapping[str, SessionLine], lost: Sequence[int]) -> set[str]:
    """Returns the uuids of lines of answers that may lack blocks, or that answer a lost line."""
    beside: set[str] = set()
    asked: set[str | None] = {None}
    above: dict[tuple[str, str], tuple[SessionLine | None, SessionLine]] = {}  # answer, last line
    lacks_call: set[tuple[str, str]] = set()
    for line in nodes.values():
        answer, last = above.get(line.group, (None, line))
        before = nodes.get(line.parent or "", last)
        is_hole = before.kind == "hole" and before.parent is not None
        if is_hole and not (answer is not None and _are_calls(answer, line)):
            is_unasked = not asked.issuperset(line.answered)
            lacks_call |= {line.group} if is_unasked or line.is_answer else set()
            if answer is not None and not _has_ended(answer):
                beside |= {answer.uuid} if is_unasked or before.parent == answer.uuid else set()
        if line.is_answer:
            beside |= {line.uuid} if line.group in lacks_call else set()
            lacks_call.discard(line.group)
            asked.update(name_or_none(block.get("id")) for block in line.blocks)
        above[line.group] = (line if line.is_answer else answer, line)
    continued = {line.parent for line in nodes.values()}
    answers = {line.at: line for line in nodes.values() if line.is_answer}
    ahead = [answers[at - 1] for at in lost if at - 1 in answers]
    ends = (one.uuid for one in ahead if one.uuid not in continued and not _has_ended(one))
    return beside.union(ends)


def _are_calls(first: SessionLine, second: SessionLine) -> bool:
    """Returns whether two lines are calls of one response; between them only a call can be lost."""
    kinds = {as_str(block.get("type")) for line in (first, second) for block in line.blocks}
    return second.is_answer and first.response == second.response and kinds == {"tool_use"}


def _has_ended(answer: SessionLine) -> bool:
    return as_str(answer.value, "message", "stop_reason") == "end_turn"


def _continues_unfinished(above: SessionLine | None, line: SessionLine) -> bool:
    """Returns whether an answer follows an unfinished one without a note in between."""
    if above is None or not above.is_answer or above.response == line.response:
        return False
    stop = as_dict(above.value.get("message")).get("stop_reason")
    has_calls = any(block.get("type") == "tool_use" for block in above.blocks)
    return not stop and not has_calls and above.version >= _ENDS


def _answer_above(note: SessionLine, nodes: Mapping[str, SessionLine]) -> str | None:
    """Returns the uuid of the last line of the answer that a note follows.

    Calls that were complete when the answer was cut off were run: their results and the hooks'
    attachments are between the answer and the note.
    """
    ids = upwards(note.parent, lambda one: nodes[one].parent if one in nodes else None, {note.uuid})
    above = (nodes[one] for one in ids if one in nodes)
    return next((one.uuid for one in above if one.kind == "assistant" or one.is_typed), note.parent)


def _turn(
    lines: list[SessionLine],
    cut_off: Collection[str | None],
    beside_holes: Collection[str],
    arguments: _WrittenArguments,
    ends: tuple[int, ...],
) -> SessionTurn:
    """Returns the turn of these lines; a block that is logged again (a replay) counts once.

    `cut_off`: uuids of the last lines of answers that were cut off. `beside_holes`: those of lines
    beside lines that are lost. `ends`: the version from which on a whole answer has a stop reason.
    """
    blocks: list[dict[str, Json]] = []
    parts: list[Part] = []
    calls: list[tuple[str, SessionLine]] = []
    seen: set[Hashable] = set()
    repeated = added = 0
    stop = ""
    for line in lines:
        stop = as_str(line.value, "message", "stop_reason") or stop
        for logged in line.blocks:
            block = arguments.of(logged, line)
            part = _part(block, line)
            same = _identity(part)
            if same is not None and same in seen:
                repeated += 1
                continue
            seen.add(same)
            added += block is not logged
            blocks.append(block)
            if part is None:
                continue
            parts.append(part)
            if isinstance(part, ToolCall) and part.id is not None:
                calls.append((part.id, line))
    has_end = bool(stop) or lines[-1].version < (_AGENT_ENDS if lines[-1].agent else ends)
    was_cut = finish_fault(stop) in ("truncated", "content_filter")
    if any(line.uuid in beside_holes for line in lines):
        parts.append(LOST_RECORD)
    elif was_cut or not has_end or any(line.uuid in cut_off for line in lines):
        parts.append(Unparsed("", "truncated_answer"))
    return SessionTurn(tuple(lines), tuple(blocks), tuple(parts), tuple(calls), repeated, added)


def _part(block: dict[str, Json], line: SessionLine) -> Part | None:
    """Returns a block of an answer as a part, a call with a key that is unique in the file.

    Blank thoughts are dropped.
    """
    match read_part(block):
        case Reasoning(text=thought) if not thought.strip():
            return None
        case ToolResult():
            return unknown_part("tool_result")  # no answer contains one
        case ToolCall(id=str(call_id)) as call if not line.uuid.startswith("#"):
            return replace(call, key=f"{line.uuid}/{call_id}")
        case part:
            return part


def _identity(part: Part | None) -> Hashable | None:
    """Returns a value that is equal for repeated blocks; None if repeats cannot be detected."""
    match part:
        case ToolCall(name=name, arguments=arguments, id=str(call_id)):
            return call_id, name, dumps(arguments)
        case Text(text=text) | Reasoning(text=text) if text.strip():
            return part
    return None
