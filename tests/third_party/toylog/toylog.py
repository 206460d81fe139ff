"""Toy logs: text files that begin with `#toylog` and hold one entry a line.

    #toylog
    user What is the weather in Bergen?
    call weather {"city": "Bergen"}
    result 8 °C, rain
    model It rains in Bergen at 8 °C.

A record is a line. Calls that follow one another are one turn; results answer them in order.
"""

from collections.abc import Iterator

from builder.conversation import Conversation, Event, Message, Part, Text, ToolCall, ToolResult
from builder.problem import Problem
from builder.readers import Reader
from builder.sources.source import Source

MARK = b"#toylog"


def recognise(source: Source) -> str | None:
    """Claims text whose first line is the marker."""
    return "the first line is #toylog" if source.head.split(b"\n", 1)[0] == MARK else None


def read(source: Source) -> Iterator[Event]:
    """Yields one conversation; a line that is not an entry as above is a Problem."""
    messages: list[Message] = []
    records = 0
    for item in source.lines():
        if isinstance(item, Problem):
            yield item
            continue
        number, line, _ = item
        message = _message(line)
        if message is None and line != MARK:
            yield Problem("bad_entry", f"line {number}", repr(line[:40]))
            continue
        records += 1
        if message is not None:
            messages.append(message)
    if messages:
        yield Conversation(id="toylog", record="file", messages=tuple(messages), records=records)
    elif records:
        yield Problem("no_messages", "file", "no entry", records)


def _message(line: bytes) -> Message | None:
    try:
        kind, _, rest = line.decode("utf-8").partition(" ")
    except UnicodeDecodeError:
        return None
    name, _, arguments = rest.partition(" ")
    part: Part
    match kind:
        case "user":
            return Message("user", (Text(rest),))
        case "model":
            return Message("assistant", (Text(rest),))
        case "call":
            part = ToolCall(name, arguments)
            return Message("assistant", (part,))
        case "result":
            part = ToolResult((Text(rest),))
            return Message("tool", (part,))
    return None


READER = Reader(
    name="toylog",
    summary="toy logs: text that begins with #toylog",
    recognise=recognise,
    read=read,
)
