"""Messages compared and completed: what readers of API requests do with `Message` values."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b

from builder.conversation import (
    Data,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.jsonio import JsonFault, loads

_BILLING = "x-anthropic-billing-header:"

MAX_DIGESTED = 16
"""Histories that may go on without being digested again; agents at work side by side take turns."""


def calls(message: Message) -> list[ToolCall]:
    """The calls of a message, in order."""
    return [part for part in message.parts if isinstance(part, ToolCall)]


def thoughts(message: Message) -> tuple[Part, ...]:
    """The thoughts of a message, in order."""
    return tuple(part for part in message.parts if isinstance(part, Reasoning))


def words(message: Message) -> str:
    """The words of a message: its texts as one, without white space at the ends."""
    return "".join(part.text for part in message.parts if isinstance(part, Text)).strip()


def digests(messages: Iterable[Message], session: str = "") -> list[bytes]:
    """A digest of each beginning of the messages, by what a later request repeats of them.

    Thoughts and ids are left out: clients drop the ones and replace the others. Messages of
    another session have other digests.
    """
    return _Digested(session).extended(messages).marks


class Marks:
    """`digests` of histories that repeat one another: what was digested is not digested again."""

    def __init__(self) -> None:
        self._last: deque[_Digested] = deque(maxlen=MAX_DIGESTED)  # the last used first

    def of(self, messages: Sequence[Message], session: str = "") -> list[bytes]:
        """The digests of the messages."""
        known = next((one for one in self._last if one.is_beginning(messages, session)), None)
        if known is None:
            known = _Digested(session)
        else:
            self._last.remove(known)
        found = known.extended(messages)
        self._last.appendleft(found)
        return [*found.marks]


class _Digested:
    """Messages with their digests, and the state that digests what comes after them."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.messages: tuple[Message, ...] = ()
        self.marks: list[bytes] = []
        self._running = blake2b(session.encode("utf-8", "surrogatepass"), digest_size=16)

    def is_beginning(self, messages: Sequence[Message], session: str) -> bool:
        """Whether messages begin with these; it may be denied of some that only look different."""
        if session != self.session or len(messages) < len(self.messages):
            return False
        return all(map(_is_alike, self.messages, messages))

    def extended(self, messages: Iterable[Message]) -> _Digested:
        """The messages, which begin with these, with their digests."""
        found = _Digested(self.session)
        found.messages = tuple(messages)
        found.marks = [*self.marks]
        found._running = self._running.copy()
        for message in found.messages[len(self.messages) :]:
            text = repr((message.role, *_comparable(message)))
            found._running.update(text.encode("utf-8", "surrogatepass"))
            found.marks.append(found._running.digest())
        return found


def _is_alike(one: Message, other: Message) -> bool:
    if one.role != other.role or len(one.parts) != len(other.parts):
        return False
    return all(map(_is_alike_part, one.parts, other.parts))


def _is_alike_part(one: Part, other: Part) -> bool:
    match one:
        case Text() | Reasoning():
            return one == other
        case ToolCall(name=name, arguments=str(text)):
            return isinstance(other, ToolCall) and (name, text) == (other.name, other.arguments)
        case ToolResult(content=content):
            if not isinstance(other, ToolResult) or len(content) != len(other.content):
                return False
            return all(map(_is_alike_part, content, other.content))
        case _:  # values: 1, 1.0 and True are equal, and the order of keys counts
            return repr(one) == repr(other)


def _comparable(message: Message) -> list[object]:
    compared: list[object] = [words(message)]
    for part in message.parts:
        match part:
            case ToolCall(name=name, arguments=arguments):
                compared.append((name, canonical(arguments)))
            case ToolResult(content=content):
                compared.append(content)
            case Data() | Media() | Unparsed():
                compared.append(part)
            case Text() | Reasoning():
                pass  # the words stand first, thoughts are not compared
    return compared


def canonical(arguments: Json) -> str:
    """Arguments as one text, the same for JSON text and for its value in any order of keys."""
    value = arguments
    if isinstance(arguments, str):
        try:
            value = loads(arguments) if arguments.strip() else {}
        except JsonFault:
            return arguments
    return repr(_ordered(value if value is not None else {}))


def _ordered(value: Json) -> object:
    if isinstance(value, dict):
        return sorted((key, _ordered(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(_ordered(item) for item in value)
    return value


def is_same_turn(answer: Message, rest: Sequence[Message]) -> bool:
    """Whether messages begin with the turn that an answer was, as a client sends it back.

    One call with the same id, or the same name and arguments, is enough; without calls the words
    must agree, or the one hold the other (clients add the thoughts, or cut the text).
    """
    turn: list[Message] = []
    for message in rest:
        if message.role != "assistant":
            break
        turn.append(message)
    made = calls(answer)
    repeated = [call for message in turn for call in calls(message)]
    if made:
        ids = {call.id for call in repeated if call.id}
        said = {(call.name, canonical(call.arguments)) for call in repeated}
        return any(
            call.id in ids or (call.name, canonical(call.arguments)) in said for call in made
        )
    text, again = words(answer), "".join(map(words, turn)).strip()
    return bool(text and again and not repeated) and (text in again or again in text)


def cut_off(message: Message, code: str) -> Message:
    """The message as one that is no target: its words become what could not be read, and why."""
    kept = tuple(part for part in message.parts if not isinstance(part, Text))
    return replace(message, parts=(*kept, Unparsed(words(message), code)))


def prefilled(beginning: Message, answer: Message) -> Message:
    """The answer with the beginning that the request gave it, which some servers repeat."""
    before = "".join(part.text for part in beginning.parts if isinstance(part, Text))
    text = next((part for part in answer.parts if isinstance(part, Text)), None)
    if any(not isinstance(part, Text) for part in beginning.parts):  # a turn that was paused
        return replace(answer, parts=(*beginning.parts, *answer.parts))
    if text is not None and text.text.startswith(before):
        return answer
    joined = Text(before + (text.text if text is not None else ""))
    rest = tuple(part for part in answer.parts if part is not text)
    at = len(thoughts(answer))
    return replace(answer, parts=(*rest[:at], joined, *rest[at:]))


def without_billing(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages without Claude Code's accounting line, which differs in every request.

    It begins the system text for Anthropic's server, which takes it out. Source:
    ggml-org/llama.cpp pull request 20623, anthropics/claude-code issue 68900.
    """
    found: list[Message] = []
    for message in messages:
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        if message.role == "system" and any(text.startswith(_BILLING) for text in texts):
            unbilled = map(_unbilled, message.parts)
            parts = tuple(part for part in unbilled if part is not None)
            found += [replace(message, parts=parts)] if parts else []
        else:
            found.append(message)
    return tuple(found)


def _unbilled(part: Part) -> Part | None:
    if not isinstance(part, Text) or not part.text.startswith(_BILLING):
        return part
    rest = part.text.partition("\n")[2].lstrip("\n")
    return replace(part, text=rest) if rest else None
