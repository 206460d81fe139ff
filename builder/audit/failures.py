"""Decides which calls failed: by the log's own flags; by the wording of results if it has none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

from builder.jsonio import JsonFault, loads
from builder.sample import Dialogue, Turn

ERROR = "error"
"""The failure of a call that the tool reports; others are `denied` and `interrupted`."""

_PART = re.compile(r"messages\[(\d{1,9})\]\.calls\[(\d{1,9})\]")


class CallPlace(NamedTuple):
    """A call of a sample: the number of its message, and of the call in it, both from 0."""

    turn: int
    call: int

    def __str__(self) -> str:
        """Returns the place as `meta.failed_calls` and findings name it."""
        return f"messages[{self.turn}].calls[{self.call}]"


def failed_calls(
    dialogue: Dialogue, logged: Mapping[str, str] | None = None
) -> dict[CallPlace, str]:
    """Returns {place: failure} of the calls that failed.

    `logged` are the failures that the log states (`SampleMeta.failed_calls`). Only if that is None
    does the wording of results decide.
    """
    if logged is not None:
        return placed(logged)
    return {
        CallPlace(at - 1, number): ERROR
        for at, turn in enumerate(dialogue.turns)
        for number, response in enumerate(turn.responses)
        if is_error(response)
    }


def placed(logged: Mapping[str, str]) -> dict[CallPlace, str]:
    """Returns {place: failure} of `SampleMeta.failed_calls`; places that are none are left out."""
    matches = ((_PART.fullmatch(part), failure) for part, failure in logged.items())
    return {
        CallPlace(int(match[1]), int(match[2])): failure
        for match, failure in matches
        if match is not None
    }


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
    r"(?:exit|return)[ _]?code[:>=]? ?(?:-\d|[1-9])|\nTraceback \(most recent call last\):\n"
)
_EDGE = 400
"""Code points at both ends of a response that are searched for errors."""


def is_error(response: str) -> bool:
    """Returns whether a tool response reports an error, judging by its text alone."""
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


# -- classifies the behaviour of a sample by its turns ---------------------------------------------

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
