"""Calls that are told twice: by a fork, by a branch, by the segment after a compaction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from builder.conversation import Message, Part, ToolCall
from builder.readers.toolkit.session import CallKeys

_RANDOM = re.compile(r"(?=[A-Za-z]*[0-9])[0-9A-Za-z]{12}")
"""Twelve characters with a digit among them: an id that no other call has by chance."""


def with_keys(format_name: str, messages: Iterable[Message], scope: str) -> Iterator[Message]:
    """The messages of one conversation, with the keys of their calls.

    Providers draw most ids of calls at random: such an id names the call in every file of the
    format, whatever session repeats it. An id like `call_0` names nothing. Such a call, or one
    without an id, is known by its place in the log, which the reader has left as its key, or else
    by its number in the conversation; `scope` is where these places and numbers are unique.
    """
    keys = CallKeys(format_name)
    ordinal = 0
    for message in messages:
        if not any(isinstance(part, ToolCall) for part in message.parts):
            yield message
            continue
        parts: list[Part] = []
        for part in message.parts:
            if not isinstance(part, ToolCall):
                parts.append(part)
                continue
            if part.id is not None and _RANDOM.search(part.id):
                parts.append(replace(part, key=keys.of(part.id)))
            else:
                parts.append(replace(part, key=f"{scope}/{part.key or ordinal}"))
            ordinal += 1
        yield replace(message, parts=tuple(parts))
