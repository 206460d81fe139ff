"""Reads Aider's chat history (Markdown) and its history of requests. Source: docs/formats/aider.md.

Aider has no tools: edits are text of the answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builder.conversation import Event
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.agents.aider.chat_history import HEADER, NAME, read_session
from builder.readers.agents.aider.llm_history import REQUEST, read_exchange
from builder.readers.toolkit.places import unique_name
from builder.sources.source import Source
from builder.sources.stream import STREAM_ERRORS, stream_problem

_TEXT = frozenset({"text", "jsonl"})


def recognise(source: Source) -> str | None:
    """Claims Markdown with the header of a session, and requests with their time."""
    if source.peek.kind not in _TEXT:
        return None
    if REQUEST.match(source.head.lstrip()):
        return "requests (TO LLM …)"
    return "sessions (# aider chat started at …)" if HEADER.search(source.head) else None


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of each session or request."""
    try:
        data = source.whole()
    except STREAM_ERRORS as error:
        source.count_records()
        yield stream_problem(error, "file")
        return
    if len(data) > source.max_record_bytes:
        source.count_records()
        yield Problem("too_large", "file", f"more than {source.max_record_bytes} bytes")
        return
    is_requests = REQUEST.match(data.lstrip()) is not None
    heads = list((REQUEST if is_requests else HEADER).finditer(data))
    names: Counter[str] = Counter()
    written: set[str] = set()
    ends = [head.start() for head in heads[1:]] + [len(data)] * bool(heads)
    if data[: heads[0].start() if heads else None].strip():
        source.count_records()
        yield Problem("truncated", "line 1", "the beginning of the session is missing")
    for number, (head, end) in enumerate(zip(heads, ends, strict=True), start=1):
        source.count_records()
        where = f"request {number}" if is_requests else f"session {number}"
        try:
            text = data[head.end() : end].decode("utf-8")
        except UnicodeDecodeError as error:
            yield Problem("bad_utf8", where, str(error))
            continue
        name = unique_name(head[1].decode(), names)
        if is_requests:
            yield from read_exchange(number, name, text, written)
        else:
            lines = [one.removesuffix("\r") for one in text.split("\n")]
            yield from read_session(f"{source.name}/{name}", name, where, lines)


READER = Reader(
    name=NAME,
    summary=(
        "Aider: .aider.chat.history.md (# aider chat started at) and the file of "
        "--llm-history-file (TO LLM)"
    ),
    evidence=("source", "files"),
    recognise=recognise,
    checked="0.86.2",
    read=read,
)
