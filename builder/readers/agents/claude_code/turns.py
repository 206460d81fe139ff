"""Collects the turns of a Claude Code session: the lines of a response, and its calls' results.

Source: docs/formats/claude-code.md, "How the conversation is rebuilt".
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial

from builder.conversation import (
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
from builder.readers.agents.claude_code.arguments import WrittenArguments
from builder.readers.agents.claude_code.injected_text import CUT_OFF, INCOMPLETE, OVER_LIMIT
from builder.readers.agents.claude_code.lines import SessionLine
from builder.readers.api.anthropic.blocks import read_part
from builder.readers.toolkit.finish_reasons import finish_fault
from builder.readers.toolkit.links import upwards
from builder.readers.toolkit.narrow import as_dict, as_str

_ENDS, _AGENT_ENDS = (2, 1, 260), (2, 1, 310)
"""The first versions in which every complete answer has a stop reason (all of 674 measured).

Sub-agents up to 2.1.290 log each complete block, usually before the stop reason is known.
"""


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

    `sent`: the arguments of calls in the log's requests, by call id.
    """

    def __init__(
        self, lines: Iterable[SessionLine], sent: Mapping[str, dict[str, Json]] | None = None
    ) -> None:
        responses: dict[tuple[str, str, str], list[SessionLine]] = {}
        self._answers: dict[tuple[str, str], list[LoggedResult]] = {}
        nodes = {line.uuid: line for line in lines}
        cut_off: set[str | None] = set()
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
        arguments = WrittenArguments(nodes.values(), sent or {})
        self._turns = {
            line.uuid: turn
            for lines_of_response in responses.values()
            for turn in [_turn(lines_of_response, cut_off, arguments)]
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
        """Returns the results with the id of a call of the line."""
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
    """Returns whether the line notes that the answer before it was cut off."""
    texts = [as_str(block.get("text")) for block in line.blocks]
    if line.kind == "user":
        return line.is_meta and any(text.startswith(CUT_OFF) for text in texts)
    notes = (text.endswith(INCOMPLETE) or OVER_LIMIT.search(text) for text in texts)
    return not line.is_answer and any(notes)


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
    lines: list[SessionLine], cut_off: Collection[str | None], arguments: WrittenArguments
) -> SessionTurn:
    """Returns the turn of these lines; a block that is logged again (a replay) counts once.

    `cut_off`: uuids of the last lines of answers that were cut off.
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
    has_end = bool(stop) or lines[-1].version < (_AGENT_ENDS if lines[-1].agent else _ENDS)
    was_cut = finish_fault(stop) in ("truncated", "content_filter")
    if was_cut or not has_end or any(line.uuid in cut_off for line in lines):
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
