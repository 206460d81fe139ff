"""Joins the captures of an agent's requests with its logs of the same sessions (docs/capture.md).

An answer is known by the provider's id of its response, else by the provider's ids of its calls,
else by what precedes it: the user's texts and the earlier answers of the conversation. A capture
shows the context of an answer as it was sent, and a log how the session ended, so the captured
answer is trained, with the outcome in the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from builder.conversation import REPEAT, Conversation, Json, Message, Text, ToolCall
from builder.problem import Problem
from builder.readers.toolkit.comparison import looks_random
from builder.text import map_strings

_KEY_DIGITS = 16
"""Hexadecimal digits of a key."""


@dataclass(frozen=True, slots=True)
class JoinedAnswers:
    """What other files of the build contain about the answers of a source, by key.

    captured  answers that are trained in a capture
    outcomes  {key of a captured answer: the outcome of its session in a log}
    rewound   captured answers that the user took back, according to a log
    """

    captured: tuple[str, ...] = ()
    outcomes: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    rewound: tuple[str, ...] = ()

    def applied_to(self, conversation: Conversation) -> Conversation:
        """Returns the conversation with what is known of its answers."""
        if conversation.recorded:
            return self._with_log(conversation)
        return self._without_captured(conversation)

    def _without_captured(self, conversation: Conversation) -> Conversation:
        """Ends a log before the answers that a capture contains; earlier ones are repeats."""
        known = frozenset(self.captured)
        turns = [turn for turn in answers(conversation.messages) if turn.is_target]
        taken = [turn for turn in turns if not known.isdisjoint(turn.keys)]
        if not taken:
            return conversation
        if len(taken) == len(turns):
            problem = Problem("captured", "conversation", "a capture has its answers", records=0)
            return replace(conversation, problems=(*conversation.problems, problem))
        last_own = max(turn.last for turn in turns if known.isdisjoint(turn.keys))
        end = next((turn.first for turn in taken if turn.first > last_own), None)
        repeated = {at for turn in taken for at in range(turn.first, turn.last + 1)}
        messages = [
            replace(message, untrained=REPEAT) if at in repeated else message
            for at, message in enumerate(conversation.messages[:end])
        ]
        changes = {**conversation.changes, "captured_turns": len(taken)}
        return replace(
            conversation,
            messages=tuple(messages),
            changes=changes,
            complete=conversation.complete and end is None,
        )

    def _with_log(self, conversation: Conversation) -> Conversation:
        targets = [turn for turn in answers(conversation.messages) if turn.is_target]
        if conversation.outcome is None:
            keys = (key for turn in reversed(targets) for key in turn.keys)
            outcome = next((self.outcomes[key] for key in keys if key in self.outcomes), None)
            conversation = replace(conversation, outcome=outcome)
        undone = frozenset(self.rewound)
        if any(not undone.isdisjoint(turn.keys) for turn in targets[-1:]):
            problem = Problem("rewound", "conversation", "the user undid it, says the log", 0)
            conversation = replace(conversation, problems=(*conversation.problems, problem))
        return conversation


@dataclass(frozen=True, slots=True)
class _AnswerKeys:
    """The keys of one answer, the surest first: messages `first` to `last` of its conversation."""

    first: int
    last: int
    is_target: bool
    keys: tuple[str, ...]


def answers(messages: Sequence[Message]) -> Iterator[_AnswerKeys]:
    """Yields the answers of a conversation, each in one or more messages, with their keys."""
    chain = anchored = ""
    asked = ""
    position = 0
    while position < len(messages):
        message = messages[position]
        if message.role != "assistant":
            if message.role == "user":
                asked = next(
                    (p.text.strip() for p in reversed(message.parts) if isinstance(p, Text)), asked
                )
            position += 1
            continue
        first = position
        while position < len(messages) and messages[position].role == "assistant":
            position += 1
        parts = [part for one in messages[first:position] for part in one.parts]
        texts = "".join(part.text.strip() for part in parts if isinstance(part, Text))
        calls = [part for part in parts if isinstance(part, ToolCall)]
        content = _digest("\0".join((asked, texts, *(call.name for call in calls))))
        chain, anchored = (_digest(f"{one}\0{content}") for one in (chain, anchored))
        given = ((one.id or "").removeprefix(f"{one.name}__").partition("|")[0] for one in calls)
        ids = [_digest(one) for one in given if looks_random(one)]
        names = dict.fromkeys(one.response or one.turn for one in messages[first:position])
        responses = [_digest(f"response\0{one}") for one in names if one and looks_random(one)]
        keys = (*responses, *ids, chain, anchored)
        is_target = any(one.untrained is None for one in messages[first:position])
        yield _AnswerKeys(first, position - 1, is_target, tuple(dict.fromkeys(keys)))
        anchored = ids[-1] if ids else anchored  # a capture may begin later than the log
        asked = ""


def _digest(text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=_KEY_DIGITS // 2).hexdigest()


@dataclass(slots=True)
class SeenAnswers:
    """Collects the keys of the trained answers of sources.

    captured  of captures, joined to one text
    logged    of agents' logs, joined to one text
    outcomes  {key: outcome} of logs that have one
    rewound   of the answers that the user took back
    """

    captured: str = ""
    logged: str = ""
    outcomes: dict[str, Mapping[str, Json]] = field(default_factory=dict)
    rewound: list[str] = field(default_factory=list)

    def to_json(self, scrubbed: Callable[[str], str]) -> dict[str, Any]:
        """Returns the fields, {} if there are no keys; `scrubbed` cleans the texts of outcomes."""
        if not self.captured and not self.logged:
            return {}
        outcomes = {key: map_strings(dict(one), scrubbed) for key, one in self.outcomes.items()}
        return {
            "captured": self.captured,
            "logged": self.logged,
            "outcomes": outcomes,
            "rewound": self.rewound,
        }

    def take(self, conversation: Conversation) -> None:
        """Adds the answers of a conversation."""
        targets = [turn for turn in answers(conversation.messages) if turn.is_target]
        if conversation.recorded:
            if not conversation.problems:
                self.captured += "".join(key for turn in targets for key in turn.keys)
            return
        keys = [key for turn in targets for key in turn.keys]
        self.logged += "".join(keys)
        if conversation.outcome is not None:
            self.outcomes |= dict.fromkeys(keys, conversation.outcome)
        if any(problem.code == "rewound" for problem in conversation.problems):
            self.rewound += keys


def joined(seen: Sequence[SeenAnswers]) -> dict[int, JoinedAnswers]:
    """Returns what other sources say of each source's answers, by its position; {} if nothing."""
    captured = {key for one in seen for key in _keys(one.captured)}
    if not captured:
        return {}
    outcomes: dict[str, Mapping[str, Json]] = {}
    rewound: set[str] = set()
    kept: set[str] = set()
    for one in seen:
        outcomes |= {key: value for key, value in one.outcomes.items() if key in captured}
        rewound |= captured.intersection(one.rewound)
        kept |= captured.intersection(_keys(one.logged)) - {*one.rewound}
    rewound -= kept
    by_place: dict[int, JoinedAnswers] = {}
    for at, one in enumerate(seen):
        own, logged = {*_keys(one.captured)}, {*_keys(one.logged)}
        one_joined = JoinedAnswers(
            tuple(sorted(logged & captured)),
            {key: outcomes[key] for key in sorted(own & outcomes.keys())},
            tuple(sorted(own & rewound)),
        )
        if one_joined != JoinedAnswers():
            by_place[at] = one_joined
    return by_place


def _keys(text: str) -> Iterator[str]:
    return (text[at : at + _KEY_DIGITS] for at in range(0, len(text), _KEY_DIGITS))
