"""Decides whether a recorded response contains an answer, or why it contains none.

Every capture uses this for each of its exchanges, also for those whose request continues an earlier
one, so that no failed, cut, empty or undecodable response is counted as a mere repetition.
"""

from __future__ import annotations

from collections.abc import Sequence

from builder.problem import Problem
from builder.readers.api.capture.api import ApiAnswer
from builder.readers.api.capture.envelope import Exchange
from builder.readers.toolkit.narrow import as_dict, as_str

_PENDING = frozenset({"queued", "in_progress", "searching"})
"""States of a response that the client asks for again later (Responses, Interactions)."""


def response_problem(exchange: Exchange, answers: Sequence[ApiAnswer]) -> Problem | None:
    """Returns the reject of an exchange whose response was recorded but contains no answer.

    None if there is an answer, even a truncated one, if no response was recorded, or if the
    response only states that it will be available later.
    """
    is_answered = exchange.sent is not None or any(answer.has_content for answer in answers)
    if is_answered or not _is_final(exchange):
        return None
    return Problem("no_response", exchange.where, why_unanswered(exchange))


def _is_final(exchange: Exchange) -> bool:
    """Returns whether a response was recorded, as far as the server had one at that time."""
    if exchange.failed or exchange.text or exchange.is_empty:
        return True
    bodies = (exchange.response, *(exchange.events or ())[-1:])
    states = {as_str(as_dict(body).get("response", body), "status") for body in bodies}
    is_recorded = exchange.response is not None or exchange.events is not None
    return is_recorded and _PENDING.isdisjoint(states)


def why_unanswered(exchange: Exchange) -> str:
    """Returns why an exchange has no answer; quotes nothing of its bodies but an error type."""
    if exchange.failed:
        bodies = (exchange.response, *(exchange.events or ()))
        errors = [as_dict(body, "error") for body in bodies]
        kind = next((as_str(error.get("type")) for error in errors if error), "")
        status = f"status {exchange.status}" if (exchange.status or 0) >= 400 else "an error body"
        return f"{status} {kind[:40]}".rstrip()
    if exchange.response is None and exchange.text:
        return "the response is not JSON"
    if exchange.response is None and exchange.events is None and not exchange.is_empty:
        return "no response was recorded"
    has_body = any((exchange.response, exchange.events))
    return "the response contains no answer" if has_body else "the response is empty"
