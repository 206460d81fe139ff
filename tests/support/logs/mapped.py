"""Logs for mappings, and what a mapping reads in them, as plain values."""

import json

from builder import Source
from builder.conversation import Conversation, Data, Reasoning, Text, ToolCall, ToolResult
from builder.readers.toolkit.narrow import as_dict


def written(folder, rows, name="log.jsonl"):
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Source(path.name, path)


def plain(part):
    """Returns a part of a message: text, (name, the argument q, or all arguments) of a call."""
    match part:
        case ToolCall(name=name, arguments=arguments):
            values = json.loads(arguments) if isinstance(arguments, str) else arguments
            return name, as_dict(values).get("q", values)
        case ToolResult(content=[Data(value=value)]):
            return value
        case ToolResult(content=content):
            return "".join(plain(one) for one in content)
        case Text(text=text) | Reasoning(text=text):
            return text
    raise AssertionError(part)


def contents(events):
    return [
        [(message.role, *map(plain, message.parts)) for message in event.messages]
        for event in events
        if isinstance(event, Conversation)
    ]
