"""Makes the calls of scripted steps (wire/model_turns.py)."""

from __future__ import annotations

import os
from typing import Any

WORK = os.environ.get("WORKDIR", ".")
_SUBAGENT = os.environ.get("SUBAGENT", "general-purpose")


def use(tool: str, **arguments: Any) -> dict[str, Any]:
    """Returns a call of the tool."""
    return {"tool": tool, "args": arguments}


def read(path: str) -> dict[str, Any]:
    return use("read", path=f"{WORK}/{path}")


def bash(command: str, **others: Any) -> dict[str, Any]:
    return use("bash", command=command, **others)


def finish(answer: str) -> dict[str, Any]:
    return use("final_answer", answer=answer)


def load(*names: str) -> dict[str, Any]:
    """Returns a call that loads deferred tools, for agents that have them."""
    return use("ToolSearch", query=f"select:{','.join(names)}", max_results=5)


def agent(name: str, *, background: bool) -> dict[str, Any]:
    """Returns a call that starts a sub-agent, whose turns are the script of this name."""
    task = f"[[S:{name}]] Count the lines of data.txt and report."
    return use(
        "agent",
        description="Count lines",
        prompt=task,
        message=task,
        subagent_type=_SUBAGENT,
        run_in_background=background,
    )
