"""Determines which assistant turns of a request are answers that the log contains.

A request repeats earlier answers as the client has them. If the log does not contain an answer, the
turn may be an example, an edited answer, or composed by a framework from the model's text and a
tool's result: it is context, but not a target.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace

from builder.conversation import Message
from builder.readers.toolkit.call_keys import looks_random
from builder.readers.toolkit.comparison import calls, digests

MAX_REMEMBERED = 100_000
"""Maximum number of remembered digests and call ids; the oldest are dropped."""


class LoggedAnswers:
    """Remembers the answers of a source, most recent last."""

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes | str, None] = OrderedDict()

    def add(self, answers: Iterable[Message]) -> None:
        """Remembers the assistant turns among the messages."""
        for message in answers:
            if message.role != "assistant":
                continue
            keys: list[bytes | str] = [*digests([message]), *_random_ids(message)]
            for key in keys:
                self._seen[key] = None
                self._seen.move_to_end(key)
        while len(self._seen) > MAX_REMEMBERED:
            self._seen.popitem(last=False)

    def contains(self, message: Message) -> bool:
        """Returns whether a turn equals a logged answer, apart from call ids and reasoning."""
        return digests([message])[0] in self._seen

    def shares_call(self, message: Message) -> bool:
        """Returns whether a turn has a call of a logged answer, identified by a random id."""
        return any(call_id in self._seen for call_id in _random_ids(message))

    def mark(self, message: Message) -> Message:
        """Marks an assistant turn of a request as `inserted` if it is not a logged answer."""
        if message.role != "assistant" or message.untrained is not None:
            return message
        if self.contains(message) or self.shares_call(message):
            return message
        return replace(message, untrained="inserted")


def _random_ids(message: Message) -> list[str]:
    return [call.id for call in calls(message) if call.id and looks_random(call.id)]
