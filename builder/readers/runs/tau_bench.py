"""tau-bench: historical trajectories, a JSON list of runs with OpenAI messages in `traj`.

A record is a run. Call ids repeat within a run, so results come directly after their turn. Tool
definitions are not logged. Runs of the text strategies (ReAct, act) contain actions as text, which
become text turns. Few-shot rows contain a conversation as one text without its calls; they are
rejected as `flattened`. Source: docs/formats/tau-bench.md.
"""

from __future__ import annotations

from collections import Counter

from builder.conversation import Conversation, Json, Message
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.toolkit.chat_messages import chat_message
from builder.readers.toolkit.comparison import calls
from builder.readers.toolkit.narrow import as_dicts, as_str
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import logged_outcome, read_each
from builder.sources.source import Source

_ENDING = "transfer_to_human_agents"
"""The tool that ends a run in both domains of the benchmark; nothing answers its result."""


def _recognise(source: Source) -> str | None:
    for item in source.peek.objects:
        if isinstance(item.get("traj"), list) and "reward" in item and "task_id" in item:
            return "runs with task_id, reward and traj"
        if item.keys() == {"messages_display"} and isinstance(item["messages_display"], str):
            return "few-shot rows with messages_display"
    return None


def _run(where: str, run: dict[str, Json], names: Counter[str]) -> Conversation | Problem:
    if "messages_display" in run:
        return Problem("flattened", where, "a conversation as one text, without its calls")
    messages = [chat_message(item) for item in as_dicts(run.get("traj"))]
    if not messages:
        error = as_str(run, "info", "error")
        return Problem("no_messages", where, error[:200] or "the run contains no messages")
    return Conversation(
        id=unique_name(f"task {run.get('task_id')} trial {run.get('trial')}"[:200], names),
        record=where,
        messages=tuple(messages),
        records=1,
        complete=_ended_by_call(messages),
        outcome=logged_outcome(
            benchmark="tau-bench",
            error=as_str(run, "info", "error"),
            reward=run.get("reward"),
        ),
    )


def _ended_by_call(messages: list[Message]) -> bool:
    last = next((message for message in reversed(messages) if message.role != "tool"), None)
    return last is not None and any(call.name == _ENDING for call in calls(last))


READER = Reader(
    name="tau-bench",
    summary="tau-bench result lists: runs with task_id, reward and OpenAI messages in traj",
    evidence=("source", "files"),
    recognise=_recognise,
    read=read_each(_run, {"traj", "messages_display", "task_id", "trial"}),
)
