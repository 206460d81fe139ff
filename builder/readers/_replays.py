"""Calls that one file repeats from another: a fork, a branch, a resumed session."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from builder.conversation import Message, Part, ToolCall
from builder.readers._session import CallKeys

_RANDOM = re.compile(r"(?=[A-Za-z]*[0-9])[0-9A-Za-z]{12}")
"""Twelve characters with a digit among them: an id that no other call has by chance."""


def with_keys(name: str, messages: Iterable[Message]) -> Iterator[Message]:
    """The messages of one conversation, with the keys of their calls.

    Providers draw most ids of calls at random: such an id names the call in every file of the
    format `name`, whatever the session that repeats it. An id like `call_0` names nothing, and
    its call gets no key.
    """
    keys = CallKeys(name)
    for message in messages:
        yield replace(message, parts=tuple(_with_key(part, keys) for part in message.parts))


def _with_key(part: Part, keys: CallKeys) -> Part:
    if isinstance(part, ToolCall) and part.id is not None and _RANDOM.search(part.id):
        return replace(part, key=keys.of(part.id))
    return part
