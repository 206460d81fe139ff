"""Compares messages across requests: which answers, calls and histories are the same."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import count, takewhile

from builder.conversation import (
    REPEAT,
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
from builder.readers.toolkit.narrow import json_in_text
from builder.readers.toolkit.thoughts import thought_in_text

# -- dates and times in system prompts, which change with every request ---------------------------

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_WEEKDAY = r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?"
_TIME = (
    r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:\s?[AaPp]\.?[Mm]\b)?"
    r"(?:\s?(?:Z\b|UTC\b|GMT\b|[+-]\d{2}:?\d{2}\b))?"
)
_DATE = (
    r"(?:\d{4}-\d{2}-\d{2}|\d{1,2}/\d{1,2}/\d{4}|\d{1,2}\.\d{1,2}\.\d{4}"
    rf"|{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|\d{{1,2}}\.? {_MONTH}\.?,? \d{{4}})"
)
_VOLATILE = re.compile(rf"\b(?:(?:{_WEEKDAY},? )?{_DATE}(?:(?:T|,? (?:at )?){_TIME})?|{_TIME})")


def without_volatile(text: str) -> str:
    """Replaces each date and time of day in the text by a placeholder.

    Forms: ISO 8601 ("2026-11-22T05:40:22Z"), "Sunday, November 22, 2026 at 5:40 PM",
    "22 Nov 2026", "11/22/2026", "22.11.2026", "17:40", "5:40:22 PM UTC".
    """
    return _VOLATILE.sub("\0time\0", text)


_PROMPTS = frozenset({"system", "developer"})
_BILLING = "x-anthropic-billing-header:"

_MAX_DIGESTED = 16
"""Number of histories that `Marks` caches; requests of several agents may alternate in a log."""


def calls(message: Message) -> list[ToolCall]:
    """Returns the calls of a message, in order."""
    return [part for part in message.parts if isinstance(part, ToolCall)]


def thoughts(message: Message) -> tuple[Part, ...]:
    """Returns the reasoning parts of a message, in order, without summaries."""
    parts = (part for part in message.parts if isinstance(part, Reasoning))
    return tuple(part for part in parts if not part.is_summary)


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
        self._last: deque[_Digested] = deque(maxlen=_MAX_DIGESTED)  # most recent first

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
        value = json_in_text(value)  # encoded twice
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
    text must contain the other: clients add reasoning or shorten the text. Or the log lacks the
    calls of the answer.
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
    if repeated:
        return lacks_calls(answer, rest)
    return bool(text and again) and (text in again or again in text)


def is_whole(answer: Message, messages: Sequence[Message]) -> bool:
    """Returns whether messages begin with the answer, in one message or several.

    They may have more of it than the log: defaults of a call's arguments that a client adds (Claude
    Code adds `replace_all` to Edit), and what `completes` it.
    """
    wanted = digests([answer])
    turn = Message("assistant", ())
    for at, message in enumerate(messages, 1):
        if message.role != "assistant":
            return False
        turn = replace(turn, parts=(*turn.parts, *message.parts))
        if digests([turn]) == wanted or _adds_arguments(answer, turn):
            return True
        if _completes(answer, turn, messages[at:]):
            return True
    return False


def completes(answer: Message, messages: Sequence[Message]) -> bool:
    """Returns whether messages begin with an answer that is incomplete in the log.

    They repeat each of its calls by id, with the arguments that the log lacks, or with further
    calls that have results: a client does not invent these.
    """
    turn = [*takewhile(lambda message: message.role == "assistant", messages)]
    whole = Message("assistant", tuple(part for message in turn for part in message.parts))
    return _completes(answer, whole, messages[len(turn) :])


def _completes(answer: Message, turn: Message, after: Sequence[Message]) -> bool:
    made, sent = calls(answer), calls(turn)
    known = {call.id: call for call in sent if call.id is not None}
    pairs = [(call, known.get(call.id or "")) for call in made]
    if not made or len(known) < len(sent) or words(answer) not in ("", words(turn)):
        return False
    lost = 0
    for one, other in pairs:
        if other is None or one.name != other.name:
            return False
        if canonical(one.arguments) != canonical(other.arguments):
            if not has_no_arguments(one.arguments):
                return False
            lost += 1
    if len(sent) == len(made):
        return lost > 0 and words(answer) == words(turn)
    further = known.keys() - {call.id for call in made}
    return further <= _answered(after)


def lacks_calls(answer: Message, messages: Sequence[Message]) -> bool:
    """Returns whether messages begin with the text of an answer, and calls that it lacks."""
    turn = [*takewhile(lambda message: message.role == "assistant", messages)]
    made = [call for message in turn for call in calls(message)]
    text = "".join(map(words, turn))
    same = bool(text) and text == words(answer) and not calls(answer)
    return same and bool(made) and {call.id for call in made} <= _answered(messages[len(turn) :])


def _answered(messages: Sequence[Message]) -> set[str | None]:
    results = takewhile(lambda message: message.role == "tool", messages)
    parts = (part for message in results for part in message.parts)
    return {part.call_id for part in parts if isinstance(part, ToolResult)} - {None}


def has_no_arguments(arguments: Json) -> bool:
    """Returns whether logged arguments are "", null or nothing, perhaps encoded twice."""
    value = json_in_text(arguments, beginnings='"n', levels=2)
    return value is None or (isinstance(value, str) and not value.strip())


def _adds_arguments(answer: Message, turn: Message) -> bool:
    made, sent = calls(answer), calls(turn)
    if not made or len(made) != len(sent) or words(answer) != words(turn):
        return False
    for one, other in zip(made, sent, strict=True):
        given, completed = (
            json_in_text(call.arguments, beginnings='{["', levels=2) for call in (one, other)
        )
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


# -- keys of calls, by which the ledger recognises repetitions ------------------------------------

_RUN = re.compile(r"[A-Za-z0-9]{8,}")
_DIGITS = re.compile(r"[0-9]+")
_LETTERS = re.compile(r"[a-z]{3}")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def looks_random(call_id: str) -> bool:
    """Returns whether an id looks random, so that no other call has it by chance.

    Many servers only count (`call_0`, `functions.search:0`, `toolu_01`), starting over in each
    conversation. A random id has a run of at least 8 letters and digits, mixed as chance does.
    """
    return any(map(_is_random, _RUN.findall(call_id)))


def _is_random(run: str) -> bool:
    if run.isdigit():
        return len(set(run)) > 3
    groups = len(_DIGITS.findall(run))
    if len(run) >= 24 and groups >= 3:  # base 32 has few digits
        return True
    if len(run) >= 12 and groups and not _LETTERS.search(run):
        return True
    return len(run) <= 3 * len(_WORD.findall(run))  # a change every three characters


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


def with_keys(message: Message, key: Callable[[int, ToolCall], str | None]) -> Message:
    """Returns a message with `key(position, call)` as the key of each call."""
    if not calls(message):
        return message
    parts = (
        replace(part, key=key(at, part)) if isinstance(part, ToolCall) else part
        for at, part in enumerate(message.parts)
    )
    return replace(message, parts=tuple(parts))


def with_session_keys(
    format_name: str, messages: Iterable[Message], scope: str
) -> Iterator[Message]:
    """Yields the messages of a conversation from a session log, with a key for each call.

    A random id identifies a call in all files of the format, in any session. Other calls are
    identified by their place in the log, which the reader has put into `ToolCall.key`, else by
    their number in the conversation; both are unique within `scope`.
    """
    keys, ordinals = CallKeys(format_name), count()

    def key(_: int, call: ToolCall) -> str | None:
        ordinal = next(ordinals)
        is_random = call.id is not None and looks_random(call.id)
        return keys.of(call.id) if is_random else f"{scope}/{call.key or ordinal}"

    return (with_keys(message, key) for message in messages)


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
        place = before
        first = sum(isinstance(part, Reasoning) for part in message.parts)

        def key(at: int, call: ToolCall, place: str = place, first: int = first) -> str | None:
            is_unique = call.id and ids[call.id] == 1 and looks_random(call.id)
            return call.id if is_unique else f"{place}/{at - first}" if place else None

        keyed.append(with_keys(message, key))
        before = digest.hex()
    return tuple(keyed)


# -- answers in several conversations, each a target once -----------------------------------------


def mark_repeats(messages: Iterable[Message], targets: set[str]) -> list[Message]:
    """Marks answers that are in `targets` as repeats and adds the others to `targets`.

    An answer is identified by the log's id of its turn, else by its parts.
    """
    marked = []
    for message in messages:
        if message.role != "assistant" or message.untrained is not None:
            marked.append(message)
            continue
        answer = message.turn or repr([without_key(part) for part in message.parts])
        marked.append(replace(message, untrained=REPEAT) if answer in targets else message)
        targets.add(answer)
    return marked


def without_key(part: Part) -> Part:
    """Returns the part, a call without its key: the keys of an answer and its copy may differ."""
    return replace(part, key=None) if isinstance(part, ToolCall) else part


# -- turns of a request that the log has as answers -----------------------------------------------

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
