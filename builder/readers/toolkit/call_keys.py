"""Keys of calls: how the ledger knows that two logged calls are one.

Logs repeat calls: a resumed session replays them, a branch or the segment after a compaction keeps
them, and each API request sends the whole history again. Calls with equal keys are logged once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from builder.conversation import Message, Part, ToolCall
from builder.readers.toolkit.comparison import calls, digests, thoughts

_RUN = re.compile(r"[A-Za-z0-9]{8,}")
_DIGITS = re.compile(r"[0-9]+")
_LETTERS = re.compile(r"[a-z]{3}")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def looks_random(call_id: str) -> bool:
    """Returns whether an id looks drawn at random, so that no other call has it by chance.

    Many servers only count (`call_0`, `functions.search:0`, `toolu_01`), starting over in each
    conversation. A random id has a run of 8 or more letters and digits that contains no words: it
    changes between upper case, lower case and digits at least every third character, or is digits
    alone with more than three different ones; or 12 or more characters with digits, and no three
    small letters in a row; or 24 or more with three groups of digits (base 32 has few digits).
    """
    return any(map(_is_random, _RUN.findall(call_id)))


def _is_random(run: str) -> bool:
    if run.isdigit():
        return len(set(run)) > 3
    groups = len(_DIGITS.findall(run))
    if len(run) >= 24 and groups >= 3:
        return True
    if len(run) >= 12 and groups and not _LETTERS.search(run):
        return True
    return len(run) <= 3 * len(_WORD.findall(run))


class CallKeys:
    """Makes keys for the calls of one session, equal wherever a replay logs the same call again.

    A key consists of the session, the call's id and, where an id returns on another call of the
    same conversation, the number of that occurrence. Make a new one for each conversation of the
    session.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._seen: Counter[str] = Counter()

    def of(self, call_id: str | None) -> str | None:
        """Returns the key of the next call with this id; None without an id."""
        if call_id is None:
            return None
        self._seen[call_id] += 1
        count = self._seen[call_id]
        key = f"{self._session}/{call_id}"
        return key if count == 1 else f"{key}#{count}"


def with_session_keys(
    format_name: str, messages: Iterable[Message], scope: str
) -> Iterator[Message]:
    """Yields the messages of one conversation of a session log with a key on each call.

    A random id identifies the call in every file of the format, whichever session repeats it. Any
    other call is identified by its place in the log, which the reader has left in `ToolCall.key`,
    or else by its number in the conversation; `scope` is where these places and numbers are unique.
    """
    keys = CallKeys(format_name)
    ordinal = 0
    for message in messages:
        if not calls(message):
            yield message
            continue
        parts: list[Part] = []
        for part in message.parts:
            if not isinstance(part, ToolCall):
                parts.append(part)
                continue
            if part.id is not None and looks_random(part.id):
                parts.append(replace(part, key=keys.of(part.id)))
            else:
                parts.append(replace(part, key=f"{scope}/{part.key or ordinal}"))
            ordinal += 1
        yield replace(message, parts=tuple(parts))


def with_request_keys(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Returns the messages of an API request with keys on the calls.

    A later request that repeats a call gives it the same key: the id where it looks random and
    occurs once, else a digest of all messages before the call and its position in its message. A
    call in the first message without a random id has no key.
    """
    messages = tuple(messages)
    ids = Counter(call.id for message in messages for call in calls(message))
    before = ""
    found = []
    for message, digest in zip(messages, digests(messages), strict=True):
        parts: list[Part] = []
        thought = len(thoughts(message))
        for number, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                unique = part.id if part.id and ids[part.id] == 1 and looks_random(part.id) else ""
                place = f"{before}/{number - thought}" if before else None
                parts.append(replace(part, key=unique or place))
            else:
                parts.append(part)
        found.append(replace(message, parts=tuple(parts)) if calls(message) else message)
        before = digest.hex()
    return tuple(found)
