"""Tells roles from the structure of conversations, where their names are unknown."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from builder.conversation import Json
from builder.jsonio import dumps
from builder.readers.mapping.calls import scalar_paths
from builder.readers.mapping.check import key_paths
from builder.readers.mapping.names import is_usual, rank
from builder.readers.mapping.proposal import Proposal, prose_paths
from builder.readers.mapping.spec import value_at
from builder.readers.toolkit.unknown_keys import has_words

_SPEAKERS = 6
"""The most roles that are told apart by structure."""
_ALTERNATING = 0.6
"""The share of messages whose role is not that of the message before them."""


def plain(value: Json) -> str:
    """Returns a value of a role as `roles` names it."""
    if isinstance(value, str):
        return value
    return dumps(value) if isinstance(value, bool | int) else ""


def alternating_path(messages: Sequence[Json]) -> str | None:
    """Returns the path of few values, in all messages, that alternate as speakers do; or None."""
    if len(messages) < 2:
        return None
    prose = prose_paths(messages)
    paths = [
        path
        for path in scalar_paths(messages)
        if path not in prose and not is_usual("id", path) and not _counts(path, messages)
    ]
    for path in sorted(paths, key=lambda path: (rank("role", path), path.count("."))):
        values = [plain(value_at(path, one)) for one in messages]
        names = {*values}
        is_few = 2 <= len(names) <= _SPEAKERS and (
            len(names) < len(values) or is_usual("role", path)
        )
        changes = sum(one != other for one, other in pairwise(values)) / (len(values) - 1)
        if not is_few or "" in names or changes < _ALTERNATING or any(map(has_words, names)):
            continue
        talking = {
            name
            for one, name in zip(messages, values, strict=True)
            if any(has_words(value_at(text, one)) for text in prose)
        }
        if len(talking) > 1:
            return path
    return None


def _counts(path: str, messages: Sequence[Json]) -> bool:
    """Returns whether a path with a usual name of an order has numbers."""
    values = [str(value_at(path, one)) for one in messages]
    return is_usual("order", path) and all(value.isdigit() for value in values)


def assign_speakers(
    meanings: dict[str, str], before: Mapping[str, Collection[str | None]], found: Proposal
) -> None:
    """Decides which unknown values speak for the user and for the assistant, where two do.

    The one that speaks first is the user. One that stands only at the beginning, before both, is
    the system.
    """
    rest = [value for value, name in meanings.items() if not name]
    missing = [name for name in ("user", "assistant") if name not in meanings.values()]
    first = [value for value in rest if {*before[value]} == {None}]
    if len(rest) == 3 and len(missing) == 2 and len(first) == 1:
        one, other = (value for value in rest if value not in first)
        if one in before[other] and other in before[one] and "system" not in meanings.values():
            meanings[first[0]] = "system"
            rest.remove(first[0])
    if not missing or len(rest) != len(missing):
        return
    opening = {None, *(value for value, name in meanings.items() if name == "system")}
    rest.sort(key=lambda value: opening.isdisjoint(before[value]))
    meanings |= zip(rest, missing, strict=True)
    taken = " and ".join(f"{value!r} {name}" for value, name in zip(rest, missing, strict=True))
    found.decisions.append(f"message.roles: is {taken}? Only the structure of the log says so")


def following(
    conversations: Sequence[Sequence[Json]],
    role: str,
    calls: Collection[int],
    meanings: Mapping[str, str],
) -> set[str]:
    """Returns the values whose messages all follow calls, or each other, and precede no results.

    `calls` are id() of the messages that have calls.
    """
    follows: dict[str, bool] = {}
    for conversation in conversations:
        last, last_value = -1, ""
        for one in conversation:
            value = plain(value_at(role, one))
            is_next = last in calls or (value == last_value and follows.get(value, False))
            follows[value] = follows.get(value, True) and is_next
            if meanings.get(value) == "tool":
                follows[last_value] = False
            last, last_value = id(one), value
    return {value for value, is_next in follows.items() if is_next}


def answers_of_calls(
    meanings: Mapping[str, str],
    conversations: Sequence[Sequence[Json]],
    role: str,
    callers: Collection[str],
) -> Iterator[str]:
    """Yields the values taken for `skip` that follow calls which nothing else answers."""
    open_calls: dict[str, list[bool]] = {}
    for conversation in conversations:
        values = [plain(value_at(role, one)) for one in conversation]
        for last, (value, after) in zip(values, pairwise([*values[1:], ""]), strict=False):
            if meanings.get(value) == "skip":
                is_answer = last in callers and meanings.get(after) != "tool"
                open_calls.setdefault(value, []).append(is_answer)
    for value, answers in open_calls.items():
        if all(answers):
            yield value


def has_text(items: Sequence[Json], found: Proposal) -> bool:
    """Returns whether messages have a text, of any length, that nothing reads yet."""
    return any(
        isinstance(value_at(path, one), str | int | float) and not found.is_taken(path)
        for one in items
        for path in key_paths(one)
    )


def find_fragments(
    conversations: Sequence[Sequence[Json]], role: str, answering: Collection[str], found: Proposal
) -> Iterator[tuple[str, str]]:
    """Yields (value, `fragment` or `skip`) of the role for pieces of answers, as streams log them.

    `answering` are the values that mean an answer. Pieces are skipped if an answer that follows
    them has all of their text.
    """
    for value in answering:
        broken = whole = repeated = 0
        for conversation in conversations:
            texts: list[str] = []
            for one in [*conversation, {}]:
                text = value_at(found.section.get("text"), one)
                if plain(value_at(role, one)) == value and isinstance(text, str):
                    texts.append(text)
                    continue
                pieces = [_is_broken(*pair) for pair in pairwise(texts)]
                broken, whole = broken + sum(pieces), whole + len(pieces) - sum(pieces)
                repeated += bool(pieces) and text == "".join(texts)
                texts = []
        is_named = found.section.get("roles", {}).get(value) == "fragment"
        if broken > whole or (is_named and repeated):
            yield value, "skip" if repeated else "fragment"
            if not repeated and not is_named:
                what = f"are messages of {value!r} pieces of one answer? They are joined"
                found.decisions.append(f"message.roles: {what}")


def _is_broken(text: str, following: str) -> bool:
    """Returns whether a text ends, or the next one begins, within a sentence."""
    if text[-1:].isspace() or following[:1].isspace():
        return True
    return text[-1:].isalnum() and not following[:1].isupper()
