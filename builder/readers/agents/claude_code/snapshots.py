"""Finds system prompt and tools in `prompt_snapshot` lines, for turns without a logged request.

The first snapshot of a session is written before its tools and prefix are known. Later ones are
written when tools were added, after the first answer that had them. Tools that are missing when a
session is resumed are not logged. Measured with Claude Code 2.1.290.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf

from builder.conversation import Json
from builder.readers.agents.claude_code.digests import Shape
from builder.readers.agents.claude_code.lines import SessionLine, SessionTurn
from builder.readers.toolkit.narrow import as_dict, as_list, as_str


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """A line that a process of the program wrote at its end.

    at      position in the file
    began   the start of the process, or of the session that it resumed, in the format of
            `timestamp`; "" if the line lacks it
    """

    at: int
    began: str = ""

    @classmethod
    def read(cls, at: int, value: dict[str, Json]) -> ProcessEnd:
        """Returns a `cost-state` line, whose `startTime` is in milliseconds since 1970."""
        start = value.get("startTime")
        try:
            began = datetime.fromtimestamp(start / 1000, UTC) if isinstance(start, int) else None
        except (ValueError, OverflowError, OSError):
            began = None
        return cls(at, "" if began is None else began.isoformat(timespec="milliseconds"))


class Snapshots:
    """The snapshots of a branch.

    `ends`: the lines of the file that a process wrote at its end.
    """

    def __init__(self, lines: Sequence[SessionLine], ends: Sequence[ProcessEnd]) -> None:
        snapshots = [line for line in lines if line.attachment.get("type") == "prompt_snapshot"]
        self._process = _processes(lines, ends)
        # The processes with logged tools.
        self._confirmed = {
            self._process[line.at] for line in snapshots if "tools" in line.attachment
        }
        self._shapes: list[tuple[int, Shape]] = []
        whole: dict[str, Json] = {}
        for line in reversed(snapshots):
            whole = {**whole, **line.attachment}
            self._shapes.insert(0, (line.at, _shape(whole)))

    def before(self, following: SessionTurn | None) -> Shape | None:
        """Returns the shape of a turn's request, given the next turn; None without snapshots."""
        if not self._shapes:
            return None
        end = following.lines[0].at if following is not None else inf
        fits = [shape for place, shape in self._shapes if place < end]
        return fits[-1] if fits else self._shapes[0][1]

    def has_tools_of(self, turn: SessionTurn) -> bool:
        """Returns whether a snapshot lists the tools of the turn's process."""
        return self._process.get(turn.lines[0].at) in self._confirmed


def _processes(
    lines: Iterable[SessionLine], ends: Sequence[ProcessEnd]
) -> dict[int, tuple[int, ...]]:
    """Returns a key of the process that wrote each line, by the line's position.

    A process writes a line with its start time at its end, and the terminal interface may restart
    its count of prompts at 1. Some lines cannot be assigned: those copied from another session (a
    fork), those older than the process with the next end line, and those without an end line after
    them (killed, or still running). There, each prompt gets a key of its own.
    """
    ordered = sorted(lines, key=lambda line: line.at)
    places = [end.at for end in ends]
    copied = _copied(ordered)
    processes: dict[int, tuple[int, ...]] = {}
    restarts = last = 0
    for line in ordered:
        prompt, turn = _position(line)
        restarts += prompt == 1 and turn > 1
        last = turn or last
        number = bisect(places, line.at)
        is_known = (
            line.at >= copied
            and "forkedFrom" not in line.value
            and number < len(ends)
            and as_str(line.value.get("timestamp")) >= ends[number].began
        )
        processes[line.at] = (number, restarts, 0 if is_known else last)
    return processes


def _copied(lines: Iterable[SessionLine]) -> int:
    """Returns the position before which all lines are copies; 0 if there are none.

    A fork logs the copies with the `promptId` of its own first prompt. Otherwise each prompt has
    its own id.
    """
    turns: dict[str, int] = {}
    copied = 0
    for line in lines:
        prompt_id, (_, turn) = as_str(line.value.get("promptId")), _position(line)
        if prompt_id and turn and turns.setdefault(prompt_id, turn) != turn:
            copied = line.at
    return copied


def _position(line: SessionLine) -> tuple[int, int]:
    """Returns the numbers of a prompt in its process and in the session; zeros if it has none."""
    position = as_dict(line.value.get("turnPosition"))
    prompt, turn = position.get("promptIndex"), position.get("turnIndex")
    return (prompt, turn) if isinstance(prompt, int) and isinstance(turn, int) else (0, 0)


def _shape(snapshot: dict[str, Json]) -> Shape:
    prompts = [as_str(item) for item in as_list(snapshot.get("systemPrompt"))]
    prefix = as_str(snapshot.get("cliPrefix"))
    system = [prefix, "\n\n".join(prompts)]
    tools = tuple(as_dict(tool).get("schema") for tool in as_list(snapshot.get("tools")))
    known = {"system"} if any(prompts) else set()
    known |= {"tools"} if "tools" in snapshot else set()
    return Shape(tuple(text for text in system if text), tools, frozenset(known))
