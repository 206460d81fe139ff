"""Classifies the behaviour of a sample by its turns.

The first class that applies is chosen:

error_recovery  a tool response is an error, and a later turn makes another call
clarification   before the first turn with calls, the model asks (a turn without calls that ends
                with a question mark) and the user answers
parallel        a turn makes more than one call
chain           two turns make calls with no user turn between them
single_call     a turn makes a call
direct_answer   no turn makes a call

Samples of the units "query" and "turn" are classified by all their turns, context included.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal, get_args

from builder.jsonio import JsonFault, loads
from builder.sample import Dialogue, Turn

Pattern = Literal[
    "direct_answer", "single_call", "chain", "parallel", "clarification", "error_recovery"
]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)


def pattern(dialogue: Dialogue) -> Pattern:
    """Returns one of PATTERNS."""
    turns = dialogue.turns
    calling = [at for at, turn in enumerate(turns) if turn.calls]
    if not calling:
        return "direct_answer"
    failed = next((at for at, turn in enumerate(turns) if any(map(is_error, turn.responses))), None)
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


_ERROR = re.compile(
    r"\s{0,8}(?:\[?(?:fatal |runtime |internal |tool |execution |command )?error(?:\]|[:!.\n]|$)"
    r"|<(?:tool_use_)?error>|traceback \(most recent call last\)|\w{1,60}(?:error|exception): "
    r"|exception\b[:\s]|(?:command )?failed\b[:\s]|exit(?:ed with)? (?:code|status):? ?[1-9]"
    r"|(?:unable|failed) to |permission denied|access denied|[^\n]{1,100}: command not found"
    r"|no such (?:file|tool|function|command)|unknown (?:tool|function)"
    r"|invalid (?:arguments|input))",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"(?:exit|return) ?code:? ?(?:-\d|[1-9])|\nTraceback \(most recent call last\):\n"
)
_EDGE = 400
"""Code points at both ends of a response that are searched for errors."""


def is_error(response: str) -> bool:
    """Returns whether a tool response reports an error, judging by its text: there is no flag."""
    begin = response[:_EDGE]
    if _ERROR.match(begin):
        return True
    if begin.lstrip()[:1] == "{" and len(response) < 1 << 16:
        return _is_error_object(response)
    return _reports_failure(begin) or (
        len(response) > _EDGE and _reports_failure(response[-_EDGE:])
    )


def _reports_failure(piece: str) -> bool:
    if "code" not in piece and "Traceback" not in piece:
        return False  # the most frequent case, tested without the pattern
    return _FAILED.search(piece) is not None


def _is_error_object(response: str) -> bool:
    try:
        value = loads(response)
    except JsonFault:
        return False
    if not isinstance(value, dict):
        return False
    status = value.get("status")
    if isinstance(status, str) and status.lower() in ("error", "failed", "failure"):
        return True
    if value.get("success") is False or value.get("ok") is False:
        return True
    return bool(value.get("error") or value.get("is_error") or value.get("isError"))
