"""Makes the calls of scripted steps (wire/model_turns.py)."""

from __future__ import annotations

import os
from typing import Any

WORK = os.environ.get("WORKDIR", ".")


def read(path: str) -> dict[str, Any]:
    return {"tool": "read", "args": {"path": f"{WORK}/{path}"}}


def bash(command: str, **others: Any) -> dict[str, Any]:
    return {"tool": "bash", "args": {"command": command, **others}}


def finish(answer: str) -> dict[str, Any]:
    return {"tool": "final_answer", "args": {"answer": answer}}


def load(names: str) -> dict[str, Any]:
    """Loads deferred tools, if the agent has them."""
    return {"tool": "ToolSearch", "args": {"query": f"select:{names}", "max_results": 5}}


def agent(name: str, *, background: bool) -> dict[str, Any]:
    task = f"[[S:{name}]] Count the lines of data.txt and report."
    arguments = {
        "description": "Count lines",
        "prompt": task,
        "message": task,
        "subagent_type": "general-purpose",
        "run_in_background": background,
    }
    return {"tool": "agent", "args": arguments}
