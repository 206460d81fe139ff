"""Removes arguments that the program added to logged calls after the model's answer.

Observed by running the program against a recording server (scripts/wire):

- The call that leaves plan mode is logged with the text of the plan file (seen since 2.0.76) and
  its path (since 2.1.260). The model writes neither, and later requests contain neither.
- A few tools log arguments derived from the model's (`SendMessage`). Requests contain the model's,
  and the log contains the requests' messages since 2.1.310.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from builder.conversation import Json
from builder.readers.agents.claude_code.lines import SessionLine
from builder.readers.toolkit.narrow import as_str

LEAVES_PLAN_MODE = "ExitPlanMode"
"""The tool whose plan later requests omit, whether the model wrote it or not."""
_PLAN, _PLAN_PATH = "plan", "planFilePath"
_PLAN_FILE = re.compile(r"[/\\]\.?claude[/\\]plans[/\\][^/\\]+\.md\Z")


class WrittenArguments:
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
