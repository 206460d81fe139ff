"""Reads what Kiro's IDE kept before version 1: chats, sessions of workspaces and executions.

Their meaning is known from other programs only. Calls are not logged as the model made them, and
the sessions' answers are a phrase of the program; so none of this is read unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Context, Event, Ignored, Json, Message, Part, unknown_part
from builder.problem import Problem
from builder.readers.toolkit.chat_messages import content
from builder.readers.toolkit.history import RequestHead, SessionHistory
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, model_of, name_of
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.unknown_records import unknown_message
from builder.sources.source import Source

_OWN = frozenset({"executionId", "editorState", "promptLogs"})
_BASE = ("history", "system", "tools")


def is_chat(value: dict[str, Json]) -> bool:
    """Returns whether a record is a `.chat` file."""
    roles = {as_str(message.get("role")) for message in as_dicts(value.get("chat"))}
    return "executionId" in value and bool(roles & {"human", "bot"})


def is_workspace_session(value: dict[str, Json]) -> bool:
    """Returns whether a record is a session of a workspace.

    Kiro has this layout from Continue, whose answers have no execution.
    """
    if "sessionId" not in value:
        return False
    items = as_dicts(value.get("history"))
    is_own = "autonomyMode" in value or "selectedModel" in value or "sessionType" in value
    return any("executionId" in item for item in items) or (
        is_own and any("message" in item and item.keys() & _OWN for item in items)
    )


def is_execution(value: dict[str, Json]) -> bool:
    """Returns whether a record is an execution, or the index of executions."""
    if "executionId" in value and "workflowType" in value:
        return isinstance(value.get("actions"), list)
    listed = as_dicts(value.get("executions"))
    return any("executionId" in item for item in listed)


def read_chats(source: Source, format_name: str) -> Iterator[Event]:
    """Yields the conversations of chats and sessions; those of executions are not known."""
    for record in objects(source.records(), "a session that is "):
        if isinstance(record, Problem):
            yield record
            continue
        where, value = record
        name = name_of(value, "sessionId", "executionId") or where
        history = SessionHistory(format_name, name, source.name, f"{where} ")
        if is_chat(value):
            _chat(history, value)
        elif "history" in value:
            _session(history, value)
        elif "executions" in value:
            yield Ignored("index")
            continue
        else:
            detail = "actions of the program, without the calls that the model made"
            yield Problem("unverified_format", where, detail)
            continue
        yield from history.conversations(1)


def _chat(history: SessionHistory, value: dict[str, Json]) -> None:
    """Reads a `.chat`: texts as they were sent. A row of a result follows a call that is missing.

    The first row is the system prompt, and what follows up to the second row of the user is put
    there by the program.
    """
    head = RequestHead(model=model_of(as_dict(value, "metadata"), "modelId"))
    items = as_dicts(value.get("chat"))
    asked = [at for at, item in enumerate(items) if item.get("role") == "human"]
    begins = asked[1] if len(asked) > 1 else 0
    for at, item in enumerate(items[begins:], begins):
        place, role = f"chat[{at}]", as_str(item.get("role"))
        parts: list[Part] = [*content(item.get("content"))]
        if role == "bot":
            follows = items[at + 1].get("role") if at + 1 < len(items) else None
            parts += [] if follows == "human" else [unknown_part("call")]
            context = Context.lacking(_BASE)
            if parts:
                message = Message("assistant", tuple(parts), place, context=context)
                history.append(message, place, head)
        elif role == "human":
            if parts:
                history.append(Message("user", tuple(parts)), place)
        else:
            history.append(unknown_message(role), place)


def _session(history: SessionHistory, value: dict[str, Json]) -> None:
    """Reads a session of a workspace. The answer of an execution is not in the session."""
    head = RequestHead(model=model_of(value, "selectedModel"))
    for at, item in enumerate(as_list(value.get("history"))):
        place = f"history[{at}]"
        message = as_dict(item, "message")
        parts = content(message.get("content"))
        if message.get("role") == "user" and parts:
            history.append(Message("user", parts), place)
        elif message.get("role") == "assistant":
            found = (unknown_part("execution"),)
            answer = Message("assistant", found, place, context=Context.lacking(_BASE))
            history.append(answer, place, head)
        elif message:
            history.append(unknown_message(message.get("role")), place)
