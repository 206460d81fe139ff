"""Reads Google Antigravity: the databases of conversations, and the transcripts next to them.

Source: docs/formats/antigravity.md. Google publishes neither format. A database holds the last
request of its conversation; a transcript lacks prompt, tools and ids, and is read if there is no
database with a request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builder.conversation import Event, Ignored
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.antigravity.store import read_store
from builder.readers.agents.antigravity.transcript import is_step, read_transcript
from builder.readers.homes import Home
from builder.readers.toolkit.history import SessionHistory
from builder.sources.listing import Listing
from builder.sources.source import Source
from builder.sources.sqlite_file import guarded, open_sqlite, tables

NAME = "antigravity"

_FULL, _CUT = "transcript_full.jsonl", "transcript.jsonl"
_LOGS = ".system_generated"


def is_store(folder: Listing) -> bool:
    """Returns whether a folder is Antigravity's, with a folder of conversations and of logs."""
    if not (folder.is_dir("conversations") and folder.is_dir("brain")):
        return False
    return any(name.endswith((".db", ".pb")) for name in folder.folder("conversations").names())


def holds(name: str) -> bool:
    """Returns whether a file of the folder is a conversation or a transcript."""
    folder, _, file = name.rpartition("/")
    if folder in ("conversations", "implicit"):
        return file.endswith((".db", ".pb"))
    return folder.startswith("brain/") and _LOGS in folder and file in (_FULL, _CUT)


def recognise(source: Source) -> str | None:
    """Claims a database with steps and gen_metadata, and lines with step_index and source."""
    if source.peek.kind == "folder":
        found = (recognise(item) for item in source.members)
        if reason := next((reason for reason in found if reason), None):
            return reason
        only = all(member.name.endswith(".pb") for member in source.members)
        return "encrypted conversations" if only else None
    if source.peek.kind == "sqlite":
        found_tables = tables(source)
        has_steps = {"idx", "step_payload"} <= found_tables.get("steps", frozenset())
        if has_steps and {"idx", "data"} <= found_tables.get("gen_metadata", frozenset()):
            return "a database with steps and gen_metadata"
        return None
    if any(is_step(value) and "type" in value for value in source.peek.objects):
        return "steps with step_index, source and type"
    return None


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of a database, of a transcript, or of all in a folder."""
    names: Counter[str] = Counter()
    if source.peek.kind != "folder":
        yield from _read_file(source, _session(source), names, "")
        return
    known = set()
    for member in source.members:
        if member.name.endswith(".pb"):
            member.count_records()
            detail = "a conversation that Antigravity encrypted (before 2026)"
            yield Problem("unreadable", member.name, detail)
        elif member.name.endswith(".db"):
            session = _session(member)
            for event in _read_file(member, session, names, f"{member.name} "):
                known |= {session} if not isinstance(event, Problem | Ignored) else set()
                yield event
    full = {item.name.rpartition("/")[0] for item in source.members if item.name.endswith(_FULL)}
    for member in source.members:
        if not member.name.endswith(".jsonl"):
            continue
        folder = member.name.rpartition("/")[0]
        if _session(member) in known or (folder in full and member.name.endswith(_CUT)):
            yield Ignored("repeated_message", sum(1 for _ in member.lines()))
        else:
            yield from _read_file(member, _session(member), names, f"{member.name} ")


def _session(source: Source) -> str:
    """Returns the id in a name: conversations/ID.db, brain/ID/.system_generated/logs/…."""
    parts = source.name.split("/")
    if _LOGS in parts[1:]:
        return parts[parts.index(_LOGS) - 1]
    return parts[-1].partition(".")[0] or "session"


def _read_file(source: Source, session: str, names: Counter[str], prefix: str) -> Iterator[Event]:
    if source.peek.kind == "sqlite":
        yield from guarded(source, _read_database(source, session, names, prefix))
    else:
        history = SessionHistory(NAME, session, f"{NAME}/{session}", prefix)
        yield from read_transcript(source, history, names)


def _read_database(
    source: Source, session: str, names: Counter[str], prefix: str
) -> Iterator[Event]:
    with open_sqlite(source) as connection:
        yield from read_store(source, connection, session, names, prefix)


READER = Reader(
    name=NAME,
    summary=(
        "Google Antigravity: conversations/*.db (tables steps and gen_metadata), transcripts "
        "(JSONL with step_index, source and type), or the folder of both"
    ),
    evidence=("files", "parsers"),
    recognise=recognise,
    homes=(Home("Antigravity", "~/.gemini/antigravity*"),),
    is_agent=True,
    read=read,
    is_store=is_store,
    holds=holds,
)
