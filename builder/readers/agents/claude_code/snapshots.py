"""System prompt and tools of turns whose requests are not logged, from `prompt_snapshot` lines.

The first snapshot of a session is written before tools and prefix are known, later ones when tools
were added, after the first answer that had them. Tools that are missing when a session is resumed
are not logged. Measured with Claude Code 2.1.290.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Sequence
from math import inf

from builder.conversation import Json
from builder.readers.agents.claude_code.digests import Shape
from builder.readers.agents.claude_code.lines import SessionLine
from builder.readers.agents.claude_code.turns import SessionTurn
from builder.readers.toolkit.narrow import as_dict, as_list, as_str


class Snapshots:
    """The snapshots of a branch, for its turns.

    `ends`: positions in the file of the lines with which a process ended.
    """

    def __init__(self, lines: Sequence[SessionLine], ends: Sequence[int]) -> None:
        found = [line for line in lines if line.attachment.get("type") == "prompt_snapshot"]
        self._process = _processes(lines, ends)
        self._confirmed = {
            self._process[line.at] for line in found if "tools" in line.attachment
        }  # processes of which the tools are logged
        self._shapes: list[tuple[int, Shape]] = []
        whole: dict[str, Json] = {}
        for line in reversed(found):
            whole = {**whole, **line.attachment}
            self._shapes.insert(0, (line.at, _shape(whole)))

    def before(self, following: SessionTurn | None) -> Shape | None:
        """Returns what the request of a turn held, given the turn that follows it.

        None: the branch has no snapshot.
        """
        if not self._shapes:
            return None
        end = following.lines[0].at if following is not None else inf
        fits = [shape for place, shape in self._shapes if place < end]
        return fits[-1] if fits else self._shapes[0][1]

    def has_tools_of(self, turn: SessionTurn) -> bool:
        """Returns whether a snapshot lists the tools of the process in which the turn was made."""
        return self._process.get(turn.lines[0].at) in self._confirmed


def _processes(lines: Iterable[SessionLine], ends: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Returns for each line, by its position, which process of the program wrote it.

    A process writes a line at its end. Another one has the session if lines were copied from
    a fork, or if the prompts of the terminal interface are counted from 1 again.
    """
    found: dict[int, tuple[int, ...]] = {}
    restarts = 0
    for line in sorted(lines, key=lambda line: line.at):
        position = as_dict(line.value.get("turnPosition"))
        number = position.get("turnIndex")
        if position.get("promptIndex") == 1 and isinstance(number, int) and number > 1:
            restarts += 1
        found[line.at] = (bisect(ends, line.at), "forkedFrom" in line.value, restarts)
    return found


def _shape(snapshot: dict[str, Json]) -> Shape:
    prompts = [as_str(item) for item in as_list(snapshot.get("systemPrompt"))]
    prefix = as_str(snapshot.get("cliPrefix"))
    system = [prefix, "\n\n".join(prompts)]
    tools = tuple(as_dict(tool).get("schema") for tool in as_list(snapshot.get("tools")))
    known = {"system"} if any(prompts) else set()
    known |= {"tools"} if "tools" in snapshot else set()
    return Shape(tuple(text for text in system if text), tools, frozenset(known))
