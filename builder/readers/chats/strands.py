"""Sessions of Strands Agents, in a file for each message. Source: docs/formats/strands.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import Context, Event, Ignored, Json
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api import bedrock
from builder.readers.toolkit.history import RequestHead, SessionHistory, lost_message
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import as_dict
from builder.sources.listing import Listing
from builder.sources.source import Source

_NAME = "strands"
_FILE = re.compile(r"(?:.*/)?agent_([^/]+)/(?:agent\.json|messages/message_(\d{1,9})\.json)")


def _is_store(folder: Listing) -> bool:
    head = folder.first("session.json", 1 << 12)
    return folder.is_dir("agents") and b'"session_id"' in head and b'"session_type"' in head


def _recognise(source: Source) -> str | None:
    if source.peek.kind == "folder":
        is_own = any(_FILE.fullmatch(member.name) for member in source.members)
        return "a session of agents with messages" if is_own else None
    for value in source.peek.objects:
        message = as_dict(value.get("message"))
        if {"message_id", "updated_at"} <= value.keys() and isinstance(
            message.get("content"), list
        ):
            return "messages of a session (message, message_id, updated_at)"
    return None


def _read(source: Source) -> Iterator[Event]:
    """Yields the conversation of each agent of a session, or of the messages in a file."""
    agents: dict[str, dict[int, Source]] = {}
    removed: dict[str, bool] = {}
    for member in source.members:
        match = _FILE.fullmatch(member.name)
        if match is not None and match[2]:
            agents.setdefault(match[1], {})[int(match[2])] = member
            continue
        source.count_records()
        yield Ignored("metadata")
        if match is not None:
            state = member.document()
            manager = (
                as_dict(state, "conversation_manager_state") if isinstance(state, dict) else {}
            )
            removed[match[1]] = bool(manager.get("removed_message_count"))
    for name, files in agents.items():
        found: dict[int, Json | Problem] = {at: files[at].document() for at in sorted(files)}
        source.count_records(len(found))
        yield from _conversation(source, name, found, is_cut=removed.get(name, False))
    if not source.members:
        listed = list(source.records())
        rows = {at: one if isinstance(one, Problem) else one.value for at, one in enumerate(listed)}
        yield from _conversation(source, "session", rows, is_cut=False)


def _conversation(
    source: Source, name: str, found: dict[int, Json | Problem], *, is_cut: bool
) -> Iterator[Event]:
    history = SessionHistory(_NAME, name, f"{source.name}/{name}")
    missing = {"system", "tools", *(["history"] if is_cut else [])}
    used, last = 0, -1
    for at, value in found.items():
        where = f"message {at}"
        row = as_dict(value) if not isinstance(value, Problem) else {}
        number = row.get("message_id", at)
        if not row or (source.members and at != last + 1):
            missing |= {"history"}
            history.append(lost_message(), where)
        last = at
        if isinstance(value, Problem):
            yield replace(value, where=f"agent {name} {where}")
            continue
        if not row:
            yield Problem("not_object", f"agent {name} {where}", "no message")
            continue
        used += 1
        redacted = as_dict(row.get("redact_message"))
        body = redacted or as_dict(row.get("message"))
        for message in bedrock.history({"messages": [body]}).messages:
            if message.role != "assistant":
                history.append(message, where)
                continue
            code = "inserted" if redacted else cut_code(row)
            answer = replace(message, turn=str(number), untrained=code)
            answer = replace(answer, context=Context.lacking(missing))
            history.append(answer, where, RequestHead())
    if used:
        yield from history.conversations(used)


READER = declared(_NAME, recognise=_recognise, read=_read, is_store=_is_store)
