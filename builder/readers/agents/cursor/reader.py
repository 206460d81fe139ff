"""Reads Cursor's chats: agent transcripts, state.vscdb of the IDE and store.db of the CLI.

Source: docs/formats/cursor.md. Cursor publishes none of these formats. Transcripts contain no
results of tools; state.vscdb contains calls and results as the client keeps them; store.db
contains the messages with the system prompt. None contains tool definitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from builder.conversation import Event, Ignored
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.cursor.chat_store import read_store
from builder.readers.agents.cursor.composers import COMPOSERS, orphans, read_composer
from builder.readers.agents.cursor.transcripts import is_line, read_transcript
from builder.readers.homes import APPDATA, Home
from builder.sources.source import Source
from builder.sources.sqlite_file import first_column, guarded, open_sqlite, tables

NAME = "cursor"
_OLD_TRANSCRIPT = re.compile(
    rb"\s*(user|assistant):\r?\n(.*\n)??(\[(Tool call|Thinking)\]|<user_query>)", re.S
)
"""The beginning of a transcript (.txt) of older versions."""


def recognise(source: Source) -> str | None:
    """Claims the table cursorDiskKV, the tables blobs and meta, and lines of role and message."""
    if source.peek.kind == "sqlite":
        found = tables(source)
        if {"key", "value"} <= found.get("cursorDiskKV", frozenset()):
            return "Cursor's database (cursorDiskKV)"
        if {"id", "data"} <= found.get("blobs", frozenset()) and "key" in found.get("meta", ()):
            return "the store of Cursor's CLI (blobs, meta)"
        return None
    if source.peek.kind in ("jsonl", "json") and any(map(is_line, source.peek.objects)):
        return "lines with role and message only"
    if source.peek.kind == "text" and _OLD_TRANSCRIPT.match(source.head):
        return "a transcript of an older version (user:, [Tool call])"
    return None


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of a transcript or of each chat of a database."""
    name = source.name.rpartition("/")[2].partition(".")[0] or "session"
    if source.peek.kind == "text":
        source.count_records()
        detail = "turns, calls and results are not marked apart from the text"
        yield Problem("unverified_format", "file", detail)
    elif source.peek.kind != "sqlite":
        yield from read_transcript(source, name, NAME)
    elif "cursorDiskKV" in tables(source):
        yield from guarded(source, _read_composers(source))
    else:
        yield from guarded(source, read_store(source, name))


def _read_composers(source: Source) -> Iterator[Event]:
    with open_sqlite(source) as connection:
        composers: Sequence[str] = first_column(connection, COMPOSERS)
        for key in composers:
            yield from read_composer(source, connection, key)
        if left := orphans(source, connection, composers):
            yield Ignored("not_in_conversation", left)


READER = Reader(
    name=NAME,
    summary=(
        "Cursor: agent transcripts (lines with role and message only), state.vscdb "
        "(cursorDiskKV), store.db of its CLI (blobs, meta)"
    ),
    evidence=("files", "parsers"),
    recognise=recognise,
    homes=(
        Home("Cursor", "~/.cursor/chats/*/*/store.db"),
        Home("Cursor", f"{APPDATA}/Cursor/User/globalStorage/state.vscdb"),
        Home("Cursor", "~/.cursor/projects/*/agent-transcripts"),
    ),
    is_agent=True,
    read=read,
)
