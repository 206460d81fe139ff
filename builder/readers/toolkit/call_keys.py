"""Call keys, by which the ledger recognises repetitions of a call.

Logs repeat calls: a resumed session replays them, a branch or the segment after a compaction keeps
them, and each API request sends the whole history again. Calls with equal keys count once.
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
    """Returns whether an id looks random, so that no other call has it by chance.

    Many servers only count (`call_0`, `functions.search:0`, `toolu_01`), starting over in each
    conversation. A random id contains a run of at least 8 letters and digits that

    - consists of digits, more than three of them different,
    - or has at least 24 characters with three groups of digits (base 32 has few digits),
    - or has at least 12 characters with digits, but no three lower-case letters in a row,
    - or changes between upper case, lower case and digits every three characters on average.
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
    """Creates keys for the calls of a session; replayed calls get equal keys.

    A key consists of the session, the call id and, if calls of one conversation share the id, the
    number of the call among them. Create one `CallKeys` for each conversation of the session.
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
    """Yields the messages of a conversation from a session log, with a key for each call.

    A random id identifies a call in all files of the format, in any session. Other calls are
    identified by their place in the log, which the reader has put into `ToolCall.key`, else by
    their number in the conversation; both are unique within `scope`.
    """
    keys = CallKeys(format_name)
    ordinal = 0
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                is_random = part.id is not None and looks_random(part.id)
                key = keys.of(part.id) if is_random else f"{scope}/{part.key or ordinal}"
                parts.append(replace(part, key=key))
                ordinal += 1
            else:
                parts.append(part)
        yield replace(message, parts=tuple(parts)) if calls(message) else message


def with_request_keys(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Returns the messages of an API request, with keys that later requests reproduce.

    The key is the call's id if it looks random and occurs once, else a digest of the preceding
    messages with the call's position in its message. In the first message only a call with a
    random id gets a key.
    """
    messages = tuple(messages)
    ids = Counter(call.id for message in messages for call in calls(message))
    before = ""
    keyed = []
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
        keyed.append(replace(message, parts=tuple(parts)) if calls(message) else message)
        before = digest.hex()
    return tuple(keyed)
