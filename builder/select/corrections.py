"""Finds failed or refused calls that the model then corrected: pairs within one conversation.

A pair counts only if the log shows that the second call corrects the first: it calls the same tool
in the next turn, alone and without text, and succeeds (docs/preference.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from builder.conversation import Json
from builder.sample import Dialogue, Turn

REASONS = {"denied": "denied", "error": "corrected"}
"""{outcome of the failed call: the reason of its pair}."""

_PLACES = frozenset({"cwd", "workdir", "working_dir", "working_directory", "workingDirectory"})
"""Arguments that say where a tool runs: equal values do not show that the task is the same."""


@dataclass(frozen=True, slots=True)
class Correction:
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
) -> Iterator[Correction]:
    """Yields each turn whose calls all failed in the same way, with the next assistant turn.

    `failures` are those of `Normalised`, for the turns of `dialogue`; `answered` says for each
    whether its calls have results, even if the dialogue ends before them; `violations` are the
    ordinals of turns that violate their tools' definitions as logged.
    """
    answers = [at for at, turn in enumerate(dialogue.turns) if turn.role == "assistant"]
    for ordinal, (at, after) in enumerate(pairwise(answers)):
        kinds = set(failures[ordinal])
        reason = REASONS.get(next(iter(kinds)) or "") if len(kinds) == 1 else None
        if reason is None:
            continue
        one, other = dialogue.turns[at], dialogue.turns[after]
        is_next = after == at + 2
        succeeded = answered[ordinal + 1] and not any(failures[ordinal + 1])
        refused = ordinal in violations and ordinal + 1 not in violations
        fault = _fault(one, other, is_next=is_next, succeeded=succeeded, refused=refused)
        yield Correction(ordinal, ordinal + 1, reason, fault)


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
    if not refused and not _is_same_task(first.arguments, second.arguments):
        return "other_task"
    return ""


def _is_same_task(one: dict[str, Json], other: dict[str, Json]) -> bool:
    """Returns whether a textual argument that identifies the task is equal in both calls."""
    return any(
        isinstance(value, str) and value.strip() and key not in _PLACES and other.get(key) == value
        for key, value in one.items()
    )
