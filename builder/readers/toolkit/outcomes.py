"""Builds `Conversation.outcome`: how a run ended according to its log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from builder.conversation import Conversation, Event, Json

OUTCOME_KEYS = (
    *("benchmark", "correct", "error", "exit_status", "feedback", "is_correct", "labels", "passed"),
    *("resolved", "reward", "rewards", "score", "success"),
)
"""Keys of an outcome that logs use as well."""

_SCORES = frozenset({
    "correct", "exit_status", "is_correct", "passed", "resolved", "reward", "rewards", "score",
    "success",
})  # fmt: skip
"""Keys next to a conversation that say how it ended, whatever the format."""

_NESTED = (
    "extra_info", "reward_model", "info", "metrics", "metadata", "verification", "result", "extra",
    "final_metrics",
)  # fmt: skip
"""Columns that may hold these keys (verl, verifiers, NeMo Gym, ATIF)."""

_SWE_BENCH_IMAGE = re.compile(r"(?:docker\.io/)?(?:swebench/)?sweb\.eval\.")


def logged_outcome(*places: Mapping[str, Json], **known: Json) -> dict[str, Json] | None:
    """Returns the `known` values, completed by the values of `OUTCOME_KEYS` in `places`.

    `known` has precedence, then the first place that has a value. Leaves out None, "" and empty
    lists and objects; returns None if nothing remains.
    """
    outcome = dict(known)
    for key in OUTCOME_KEYS:
        for place in places:
            if not has_content(outcome.get(key)) and key in place:
                outcome[key] = place[key]
    return {key: value for key, value in sorted(outcome.items()) if has_content(value)} or None


def outcome_beside(row: Json) -> dict[str, Json] | None:
    """Returns the outcome next to a conversation in a row, or next to a request and response."""
    if not isinstance(row, dict):
        return None
    places = [row, *(inner for key in _NESTED if isinstance(inner := row.get(key), dict))]
    return logged_outcome(
        *({key: place[key] for key in _SCORES & place.keys()} for place in places)
    )


def outcome_of_records(records: Iterable[Json]) -> dict[str, Json] | None:
    """Returns the outcome beside the records of one conversation; the last to state it counts."""
    outcome: dict[str, Json] = {}
    for record in records:
        outcome |= outcome_beside(record) or {}
    return outcome or None


def with_outcome(events: Iterable[Event], row: Json) -> Iterator[Event]:
    """Yields the events of a row; conversations without an outcome get that of the row."""
    for event in events:
        if isinstance(event, Conversation) and event.outcome is None:
            event = replace(event, outcome=outcome_beside(row))  # noqa: PLW2901 - completed
        yield event


def benchmark_of_image(image: Json) -> str | None:
    """Returns "SWE-bench" for a container image of its tasks, else None.

    The images are called `swebench/sweb.eval.ARCH.INSTANCE`, without the namespace if built locally
    (swebench/harness/test_spec). Other training sets use the name in namespaces of their own.
    """
    is_swe_bench = isinstance(image, str) and _SWE_BENCH_IMAGE.match(image)
    return "SWE-bench" if is_swe_bench else None


def has_content(value: Json) -> bool:
    """Returns whether a value is neither None nor empty; False and 0 have content."""
    return value is not None and value not in ("", [], {})
