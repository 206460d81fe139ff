"""Classifies the behaviour of a sample by its turns.

The first class that applies is chosen:

error_recovery  a call failed (`builder.audit.failures`), and a later turn makes another call
clarification   before the first turn with calls, the model asks (a turn without calls that ends
                with a question mark) and the user answers
parallel        a turn makes more than one call
chain           two turns make calls with no user turn between them
single_call     a turn makes a call
direct_answer   no turn makes a call

Samples of the units "query" and "turn" are classified by all their turns, context included.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Literal, get_args

from builder.audit.failures import ERROR, failed_calls
from builder.sample import Dialogue, Turn

Pattern = Literal[
    "direct_answer", "single_call", "chain", "parallel", "clarification", "error_recovery"
]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)


def pattern(dialogue: Dialogue, logged: Mapping[str, str] | None = None) -> Pattern:
    """Returns one of PATTERNS; `logged` are the failures that the log states, if it states any."""
    turns = dialogue.turns
    calling = [at for at, turn in enumerate(turns) if turn.calls]
    if not calling:
        return "direct_answer"
    failures = failed_calls(dialogue, logged)
    failed = min((call.turn for call, code in failures.items() if code == ERROR), default=None)
    if failed is not None and calling[-1] > failed:
        return "error_recovery"
    if _asked(turns[: calling[0]]):
        return "clarification"
    if any(len(turns[at].calls) > 1 for at in calling):
        return "parallel"
    for first, second in pairwise(calling):
        if not any(turn.role == "user" for turn in turns[first:second]):
            return "chain"
    return "single_call"


def _asked(turns: tuple[Turn, ...]) -> bool:
    """Returns whether an assistant turn ends with a question and a user turn follows."""
    asked = False
    for turn in turns:
        if turn.role == "assistant":
            asked = turn.content.rstrip("*_)\"' \n").endswith(("?", "\uff1f"))
        elif turn.role == "user" and asked:
            return True
    return False
