"""Turns of a Claude Code session: the lines of one response, and the results of its calls.

Source: claude-code.md "Rebuilding the conversation", 3 to 6.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial

from builder.conversation import Part, Reasoning, Text, ToolCall, ToolResult, Unparsed
from builder.jsonio import dumps
from builder.readers.agents.claude_code.lines import SessionLine, answer_parts
from builder.readers.toolkit.narrow import as_dict, as_str


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A tool result: the line that holds it, and its number among the results of that line."""

    line: SessionLine
    number: int
    result: ToolResult

    @property
    def key(self) -> tuple[str, int]:
        """Its name in the file."""
        return self.line.uuid, self.number


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """One response of the model.

    lines     its lines in file order
    parts     what they say, each block once
    calls     the ids of its calls in order, each with the line of the call
    unknown   types of blocks that are not known
    repeated  number of blocks that were written a second time
    """

    lines: tuple[SessionLine, ...]
    parts: tuple[Part, ...]
    calls: tuple[tuple[str, SessionLine], ...]
    unknown: tuple[str, ...]
    repeated: int

    @property
    def key(self) -> str:
        """Its name in the file."""
        return self.lines[0].uuid


class Turns:
    """The turns of a file, and the results by the call that they answer."""

    def __init__(self, lines: Iterable[SessionLine]) -> None:
        responses: dict[tuple[str, str, str], list[SessionLine]] = {}
        self._answers: dict[tuple[str, str], list[ModelAnswer]] = {}
        for line in lines:
            if line.is_answer:
                responses.setdefault((*line.group, line.response), []).append(line)
            elif line.kind == "user":
                for number, result in enumerate(line.results):
                    named = self._answers.setdefault((line.agent, result.call_id or ""), [])
                    named.append(ModelAnswer(line, number, result))
        self._turns = {
            line.uuid: turn for turn in map(_turn, responses.values()) for line in turn.lines
        }

    def of(self, line: SessionLine) -> SessionTurn:
        """The turn that an assistant line is a block of."""
        return self._turns[line.uuid]

    def on(self, way: Iterable[SessionLine]) -> list[SessionTurn]:
        """The turns of a way in the order of their first lines on it."""
        turns = (self.of(line) for line in way if line.is_answer)
        return list({turn.key: turn for turn in turns}.values())

    def beside(self, way: Iterable[SessionLine]) -> Iterator[str]:
        """The lines that belong to the turns of a way, wherever they stand, by uuid."""
        for turn in self.on(way):
            yield from (line.uuid for line in turn.lines)
            for call_id, line in turn.calls:
                yield from (answer.line.uuid for answer in self._named(line, call_id))

    def answered(self, way: Sequence[SessionLine]) -> dict[str, list[ModelAnswer]]:
        """For each turn of a way (by its key) the results of its calls, in the order logged.

        A call takes one result. Where several name its id (a replay, ids that come again), it is
        the one that is linked to the turn, else one on the way, else one of the session, else the
        first after the call; never one that is linked to another turn with such a call.
        """
        on_way = {line.uuid for line in way}
        taken: set[tuple[str, int]] = set()
        found: dict[str, list[ModelAnswer]] = {}
        for turn in self.on(way):
            uuids = {line.uuid for line in turn.lines}
            answers: list[ModelAnswer] = []
            for call_id, line in turn.calls:
                named = [
                    answer
                    for answer in self._named(line, call_id)
                    if answer.key not in taken and self._fits(answer, turn)
                ]
                if named:
                    answers.append(min(named, key=partial(_distance, line, uuids, on_way)))
                    taken.add(answers[-1].key)
            found[turn.key] = sorted(answers, key=lambda answer: (answer.line.at, answer.number))
        return found

    def _fits(self, answer: ModelAnswer, turn: SessionTurn) -> bool:
        """May the result be the turn's? Not if it is linked to another turn with such a call."""
        other = self._turns.get(answer.line.parent or "", turn)
        named = answer.result.call_id
        return other.key == turn.key or all(call_id != named for call_id, _ in other.calls)

    def _named(self, line: SessionLine, call_id: str) -> list[ModelAnswer]:
        """The results that name a call of the line."""
        return self._answers.get((line.agent, call_id), [])


def _distance(
    call: SessionLine, turn: Set[str], way: Set[str], answer: ModelAnswer
) -> tuple[bool, bool, bool, bool, int]:
    """How far a result is from a call of the turn; the least is the nearest."""
    line = answer.line
    source = as_str(line.value.get("sourceToolAssistantUUID"))
    return (
        line.parent not in turn and source not in turn,
        line.uuid not in way,
        line.session != call.session,
        line.at < call.at,
        line.at,
    )


def _turn(lines: list[SessionLine]) -> SessionTurn:
    """The turn of these lines; a block that comes again (the response was written twice) is one."""
    parts: list[Part] = []
    calls: list[tuple[str, SessionLine]] = []
    said: set[Hashable] = set()
    unknown: list[str] = []
    repeated = 0
    stop = ""
    for line in lines:
        stop = as_str(as_dict(line.value.get("message")).get("stop_reason")) or stop
        for part in answer_parts(line, unknown):
            saying = _saying(part)
            if saying is not None and saying in said:
                repeated += 1
                continue
            said.add(saying)
            parts.append(part)
            if isinstance(part, ToolCall) and part.id is not None:
                calls.append((part.id, line))
    if stop == "max_tokens":
        parts.append(Unparsed("", "truncated_answer"))
    return SessionTurn(tuple(lines), tuple(parts), tuple(calls), tuple(unknown), repeated)


def _saying(part: Part) -> Hashable | None:
    """What two blocks of one response have in common if one is the other written again."""
    match part:
        case ToolCall(name=name, arguments=arguments, id=str(call_id)):
            return call_id, name, dumps(arguments)
        case Text(text=text) | Reasoning(text=text) if text.strip():
            return part
    return None
