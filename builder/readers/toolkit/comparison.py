"""Compares messages across requests: which answers and histories are the same."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import takewhile

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
from builder.readers.toolkit.json_text import json_in_text
from builder.readers.toolkit.thoughts import thought_in_text
from builder.readers.toolkit.volatile import without_volatile

_PROMPTS = frozenset({"system", "developer"})
_BILLING = "x-anthropic-billing-header:"

MAX_DIGESTED = 16
"""Number of histories that `Marks` caches; requests of several agents may alternate in a log."""


def calls(message: Message) -> list[ToolCall]:
    """Returns the calls of a message, in order."""
    return [part for part in message.parts if isinstance(part, ToolCall)]


def thoughts(message: Message) -> tuple[Part, ...]:
    """Returns the reasoning parts of a message, in order."""
    return tuple(part for part in message.parts if isinstance(part, Reasoning))


def words(message: Message) -> str:
    """Returns the text of a message as one string, without surrounding white space.

    Leaves out a thought in the text of an answer, which clients may send back without it.
    """
    text = "".join(part.text for part in message.parts if isinstance(part, Text))
    split = thought_in_text(text) if message.role == "assistant" else None
    return (text if split is None else split[1]).strip()


def common_prefix(one: Sequence[object], other: Sequence[object]) -> int:
    """Returns the number of leading items that two sequences share."""
    pairs = zip(one, other, strict=False)
    shorter = min(len(one), len(other))
    return next((at for at, (mine, theirs) in enumerate(pairs) if mine != theirs), shorter)


def digests(messages: Iterable[Message], session: str = "") -> list[bytes]:
    """Returns a digest of each prefix of the messages, for finding the prefix in later requests.

    Ignores reasoning, which clients drop, call ids, which clients replace, and dates and times of
    day in system prompts. The session's name is included.
    """
    return _Digested(session).extended(messages).marks


class Marks:
    """Computes `digests`, reusing those of recent histories that the messages continue."""

    def __init__(self) -> None:
        self._last: deque[_Digested] = deque(maxlen=MAX_DIGESTED)  # most recent first

    def of(self, messages: Sequence[Message], session: str = "") -> list[bytes]:
        """Returns `digests(messages, session)`."""
        known = next((one for one in self._last if one.is_prefix_of(messages, session)), None)
        if known is None:
            known = _Digested(session)
        else:
            self._last.remove(known)
        digested = known.extended(messages)
        self._last.appendleft(digested)
        return [*digested.marks]


class _Digested:
    """Messages, their digests, and the hash state from which to continue."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.messages: tuple[Message, ...] = ()
        self.marks: list[bytes] = []
        self._running = blake2b(session.encode("utf-8", "surrogatepass"), digest_size=16)

    def is_prefix_of(self, messages: Sequence[Message], session: str) -> bool:
        """Returns whether messages begin with these; may miss equal ones in another form."""
        if session != self.session or len(messages) < len(self.messages):
            return False
        return all(map(_is_alike, self.messages, messages))

    def extended(self, messages: Iterable[Message]) -> _Digested:
        """Returns the digests of messages of which these are a prefix."""
        digested = _Digested(self.session)
        digested.messages = tuple(messages)
        digested.marks = [*self.marks]
        digested._running = self._running.copy()
        for message in digested.messages[len(self.messages) :]:
            text = repr((message.role, *_comparable(message)))
            digested._running.update(text.encode("utf-8", "surrogatepass"))
            digested.marks.append(digested._running.digest())
        return digested


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
        case _:  # by repr: 1 == 1.0 == True, and the order of keys counts
            return repr(one) == repr(other)


def _comparable(message: Message) -> list[object]:
    text = words(message)
    compared: list[object] = [without_volatile(text) if message.role in _PROMPTS else text]
    for part in message.parts:
        match part:
            case ToolCall(name=name, arguments=arguments):
                compared.append((name, canonical(arguments)))
            case ToolResult(content=content):
                compared.append(content)
            case Data() | Media() | Unparsed():
                compared.append(part)
            case Text() | Reasoning():
                pass  # the text comes first; reasoning is not compared
    return compared


def canonical(arguments: Json) -> str:
    """Returns arguments as text, the same for JSON text and its value and for any key order."""
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
    """Returns whether messages begin with an answer, as the client sends it back.

    One call with the same id, or with the same name and arguments, is enough. Without calls, one
    text must contain the other: clients add reasoning or shorten the text.
    """
    turn = list(takewhile(lambda message: message.role == "assistant", rest))
    made = calls(answer)
    repeated = [call for message in turn for call in calls(message)]
    if made:
        ids = {call.id for call in repeated if call.id}
        same = {(call.name, canonical(call.arguments)) for call in repeated}
        return any(
            call.id in ids or (call.name, canonical(call.arguments)) in same for call in made
        )
    text, again = words(answer), "".join(map(words, turn)).strip()
    return bool(text and again and not repeated) and (text in again or again in text)


def is_whole(answer: Message, messages: Sequence[Message]) -> bool:
    """Returns whether messages begin with the unchanged answer, in one message or several.

    A client may add the defaults of a call's arguments: Claude Code adds `replace_all` to Edit.
    """
    wanted = digests([answer])
    turn = Message("assistant", ())
    for message in messages:
        if message.role != "assistant":
            return False
        turn = replace(turn, parts=(*turn.parts, *message.parts))
        if digests([turn]) == wanted or _adds_arguments(answer, turn):
            return True
    return False


def _adds_arguments(answer: Message, turn: Message) -> bool:
    """Returns whether a turn differs from an answer only by added arguments of its calls."""
    made, sent = calls(answer), calls(turn)
    if not made or len(made) != len(sent) or words(answer) != words(turn):
        return False
    for one, other in zip(made, sent, strict=True):
        given, completed = json_in_text(one.arguments), json_in_text(other.arguments)
        if one.name != other.name or not isinstance(given, dict) or not isinstance(completed, dict):
            return False
        if any(key not in completed or completed[key] != given[key] for key in given):
            return False
    return True


def cut_off(message: Message, code: str) -> Message:
    """Replaces the text of a message by an `Unparsed`, so that the message is not a target."""
    kept = tuple(part for part in message.parts if not isinstance(part, Text))
    return replace(message, parts=(*kept, Unparsed(words(message), code)))


def prefilled(beginning: Message, answer: Message) -> Message:
    """Joins an answer to its beginning in the request (prefill), unless the server repeats it."""
    before = "".join(part.text for part in beginning.parts if isinstance(part, Text))
    text = next((part for part in answer.parts if isinstance(part, Text)), None)
    if any(not isinstance(part, Text) for part in beginning.parts):  # a turn that was paused
        last, first = beginning.parts[-1], next(iter(answer.parts), None)
        if isinstance(last, Text) and isinstance(first, Text):
            whole = Text(last.text + first.text)
            return replace(answer, parts=(*beginning.parts[:-1], whole, *answer.parts[1:]))
        return replace(answer, parts=(*beginning.parts, *answer.parts))
    if text is not None and text.text.startswith(before):
        return answer
    joined = Text(before + (text.text if text is not None else ""))
    rest = tuple(part for part in answer.parts if part is not text)
    at = len(thoughts(answer))
    return replace(answer, parts=(*rest[:at], joined, *rest[at:]))


def without_billing(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Removes Claude Code's billing line, which differs in every request.

    Anthropic's server removes it from the beginning of the system text. Source: ggml-org/llama.cpp
    pull request 20623, anthropics/claude-code issue 68900.
    """
    kept: list[Message] = []
    for message in messages:
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        if message.role == "system" and any(text.startswith(_BILLING) for text in texts):
            unbilled = map(_unbilled, message.parts)
            parts = tuple(part for part in unbilled if part is not None)
            kept += [replace(message, parts=parts)] if parts else []
        else:
            kept.append(message)
    return tuple(kept)


def _unbilled(part: Part) -> Part | None:
    if not isinstance(part, Text) or not part.text.startswith(_BILLING):
        return part
    rest = part.text.partition("\n")[2].lstrip("\n")
    return replace(part, text=rest) if rest else None
