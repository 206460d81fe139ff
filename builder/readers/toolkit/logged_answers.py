"""Which assistant turns of a request are answers that the log itself contains.

A request repeats what the client says the model answered. Where no step logged such an answer, the
turn may be an example, an edited answer, or one that a framework composed of the model's text and a
tool's result: it is context, but no target.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace

from builder.conversation import Message
from builder.readers.toolkit.call_keys import looks_random
from builder.readers.toolkit.comparison import calls, digests

MAX_REMEMBERED = 100_000
"""Answers that are remembered; beyond, the oldest are forgotten."""


class LoggedAnswers:
    """Remembers the answers of a source, in the order in which they were given."""

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes | str, None] = OrderedDict()

    def add(self, answers: Iterable[Message]) -> None:
        """Remembers the assistant turns among messages that the model gave."""
        for message in answers:
            if message.role != "assistant":
                continue
            for key in _keys(message):
                self._seen[key] = None
                self._seen.move_to_end(key)
        while len(self._seen) > MAX_REMEMBERED:
            self._seen.popitem(last=False)

    def holds(self, message: Message) -> bool:
        """Returns whether a turn is an answer as it was logged, ids and thoughts apart."""
        return digests([message])[0] in self._seen

    def shares_call(self, message: Message) -> bool:
        """Returns whether a turn has a call of a logged answer, by a random id."""
        return any(name in self._seen for name in _ids(message))

    def mark(self, message: Message) -> Message:
        """Returns a message of a request; marked `inserted` if it is not a logged answer."""
        if message.role != "assistant" or message.untrained is not None:
            return message
        if self.holds(message) or self.shares_call(message):
            return message
        return replace(message, untrained="inserted")


def _keys(message: Message) -> list[bytes | str]:
    """Returns what identifies a turn when a client sends it back: its content, its calls' ids.

    Thoughts do not count: clients leave them out.
    """
    return [*digests([message]), *_ids(message)]


def _ids(message: Message) -> list[str]:
    return [call.id for call in calls(message) if call.id and looks_random(call.id)]
