"""Finds two continuations of one context in a log, for `export --to preference`.

An alternative is an abandoned conversation (rewound, answered again, not preferred). It belongs to
a written sample if one of its turns answers the same messages as a turn of the sample, with the
same tools, but differs from it. A correction is a failed or refused call and the next one.
Uncertain cases are left out and counted by code (docs/preference.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from builder.dataset.meta import Preference
from builder.qwen3.flat import flat_turn
from builder.qwen3.templates import Style
from builder.sample import Dialogue, Turn

_DIGEST_BYTES = 16

REASONS = {
    "rewound": "rewound",
    "retry": "retry",
    "not_chosen": "retry",
    "dispreferred": "dispreferred",
}
"""{code of an abandoned conversation: the reason of its pairs}."""

WITHIN_SESSION = frozenset({"rewound"})
"""Reasons for which the successor is in the same session; for others, in the same source."""

_MUST_CONTINUE = frozenset({"retry"})
"""Reasons for which only the messages after the answer show which one was used."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An assistant turn, as one side of a possible pair.

    context   digest of the messages before it, without thoughts
    content   its message without its thought
    thought   its message with its thought, "" if it has none
    calls     its calls: name and arguments
    """

    context: bytes
    content: str
    thought: str
    calls: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """An abandoned conversation.

    reason   why it was abandoned
    record   its location in its source
    fault    the code of the reason why it gives no pair, "" if there is none
    tools    digest of the definitions, b"" if they depend on the calls
    answers  its assistant turns, in order
    """

    reason: str
    record: str
    fault: str = ""
    tools: bytes = b""
    answers: tuple[Answer, ...] = ()


def answers_of(dialogue: Dialogue, style: Style) -> tuple[Answer, ...]:
    """Returns the assistant turns of a dialogue, each with the digest of its context.

    They are written in the style of the target's template. Where that reads thoughts beside the
    text, they are left out, since a pair has texts only.
    """
    digest = bytes(_DIGEST_BYTES)
    answers = []
    for turn in dialogue.turns:
        bare = replace(turn, reasoning="")
        role, content = flat_turn(bare, style)
        if turn.role == "assistant":
            thought = flat_turn(turn, style)[1] if turn.reasoning and not style.beside else ""
            calls = tuple((call.name, call.plain) for call in turn.calls)
            answers.append(Answer(digest, content, thought, calls))
        text = f"{role}\n{content}".encode()
        digest = hashlib.blake2b(digest + text, digest_size=_DIGEST_BYTES).digest()
    return tuple(answers)


def tools_digest(definitions: Sequence[str] | None) -> bytes:
    """Returns the digest of tool definitions, b"" for None: they must not be compared."""
    if definitions is None:
        return b""
    text = "\n".join(definitions).encode()
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()


def alternative_of(
    reason: str, record: str, dialogue: Dialogue, tools: bytes, usable: Sequence[bool], style: Style
) -> Alternative:
    """Returns the alternative made from an abandoned conversation.

    `usable` says for each of its assistant turns whether it answers exactly its context.
    """
    answers = zip(answers_of(dialogue, style), usable, strict=True)
    return Alternative(reason, record, "", tools, tuple(item for item, fits in answers if fits))


@dataclass(frozen=True, slots=True)
class Successor:
    """A turn of a written sample that may have replaced another answer.

    number   the number of the sample
    ordinal  the position of the turn among the sample's assistant turns
    """

    number: int
    ordinal: int
    answer: Answer
    is_target: bool
    is_continued: bool
    tools: bytes
    names: frozenset[str]


class Successors:
    """The turns in the written samples of one session or source, by context."""

    def __init__(self) -> None:
        self._by_context: dict[bytes, list[Successor]] = {}

    def add(self, successor: Successor) -> None:
        """Adds a turn."""
        self._by_context.setdefault(successor.answer.context, []).append(successor)

    def pair(self, abandoned: Alternative) -> tuple[Successor, Answer] | str:
        """Returns the turn that replaced an answer of an abandoned conversation, and that answer.

        If there is no certain pair, returns the code of the reason.
        """
        if abandoned.fault:
            return abandoned.fault
        if not self._by_context:
            return "no_successor"
        code = "other_context"
        for answer in abandoned.answers:
            same = self._by_context.get(answer.context, [])
            if any(item.answer.content == answer.content for item in same):
                code = "same_answer"  # so far; a later turn may differ
            elif same:
                return _certain(abandoned, answer, same)
            elif code == "same_answer":
                return "other_query"
        return code


def _certain(
    abandoned: Alternative, answer: Answer, others: Sequence[Successor]
) -> tuple[Successor, Answer] | str:
    """Returns the pair of an answer and its successor, or the code of what makes it uncertain."""
    if len({item.answer.content for item in others}) > 1:
        return "several_answers"
    usable = [item for item in others if item.is_target]
    if not usable:
        return "no_target"
    if abandoned.reason in _MUST_CONTINUE and not any(item.is_continued for item in others):
        return "not_continued"
    chosen = usable[0]
    if abandoned.tools and chosen.tools and abandoned.tools != chosen.tools:
        return "other_tools"
    if any(name not in chosen.names for name, _ in answer.calls):
        return "tool_not_defined"
    if answer.calls and answer.calls == chosen.answer.calls:
        return "same_calls"
    return chosen, answer


def replaced(abandoned: Alternative, successor: Successor, answer: Answer) -> Preference:
    """Returns the pair of an answer and its successor, with thoughts if both have one."""
    rejected = answer.thought if successor.answer.thought and answer.thought else answer.content
    return Preference(
        reason=abandoned.reason, turn=successor.ordinal, rejected=rejected, record=abandoned.record
    )


_OF_CORRECTIONS = {"denied": "denied", "error": "corrected"}
"""{outcome of the failed call: the reason of its pair}."""

_PLACES = frozenset({"cwd", "workdir", "working_dir", "working_directory", "workingDirectory"})
"""Arguments that say where a tool runs: equal values do not show that the task is the same."""


@dataclass(frozen=True, slots=True)
class _Correction:
    """A turn that failed and the next one, by their ordinals among the assistant turns.

    `fault` is the code of the reason why they are not a pair, "" if they are one.
    """

    rejected: int
    chosen: int
    reason: str
    fault: str = ""


def corrections(
    dialogue: Dialogue,
    failures: Sequence[Sequence[str | None]],
    answered: Sequence[bool],
    violations: Collection[int],
) -> Iterator[_Correction]:
    """Yields each turn whose calls all failed in the same way, with the next assistant turn.

    `failures` are those of `Normalised`, for the turns of `dialogue`; `answered` says for each
    whether its calls have results, even if the dialogue ends before them; `violations` are the
    ordinals of turns that violate their tools' definitions as logged.
    """
    answers = [at for at, turn in enumerate(dialogue.turns) if turn.role == "assistant"]
    for ordinal, (at, after) in enumerate(pairwise(answers)):
        kinds = set(failures[ordinal])
        reason = _OF_CORRECTIONS.get(next(iter(kinds)) or "") if len(kinds) == 1 else None
        if reason is None:
            continue
        one, other = dialogue.turns[at], dialogue.turns[after]
        is_next = after == at + 2
        succeeded = answered[ordinal + 1] and not any(failures[ordinal + 1])
        refused = ordinal in violations and ordinal + 1 not in violations
        fault = _fault(one, other, is_next=is_next, succeeded=succeeded, refused=refused)
        yield _Correction(ordinal, ordinal + 1, reason, fault)


def _fault(one: Turn, other: Turn, *, is_next: bool, succeeded: bool, refused: bool) -> str:
    """Returns why the second turn is not certain to correct the first, or ""."""
    if not is_next:
        return "new_query"
    if not other.calls:
        return "no_call"
    if len(one.calls) != 1 or len(other.calls) != 1:
        return "several_calls"
    first, second = one.calls[0], other.calls[0]
    if first.name != second.name:
        return "other_tool"
    if first.arguments == second.arguments:
        return "same_calls"
    if other.content or other.reasoning:
        return "refers_back"
    if one.content:
        return "other_form"  # a model would learn the text that only one side has
    if not succeeded:
        return "not_succeeded"
    is_same_task = any(
        isinstance(value, str) and value.strip() and second.arguments.get(key) == value
        for key, value in first.arguments.items()
        if key not in _PLACES
    )
    return "" if refused or is_same_task else "other_task"
