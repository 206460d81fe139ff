"""How a sample of Inspect AI ended: its scores, its error, the limit that it reached."""

from __future__ import annotations

import math
from collections.abc import Mapping

from builder.conversation import Json
from builder.readers.runs.inspect_ai.messages import Texts
from builder.readers.toolkit import as_dict, as_str


def outcome_of(sample: dict[str, Json], task: str, texts: Texts) -> Mapping[str, Json] | None:
    """Returns the outcome as logged; None if there is none.

    `score` and `feedback` are objects by the scorer's name: its value and its explanation. `error`
    is the error's message, `exit_status` the limit that ended the sample, `benchmark` the task.
    """
    scores = as_dict(sample.get("scores"))
    if not scores and "score" in sample:  # before version 2 there was one, without a name
        scores = {"score": sample["score"]}
    found: dict[str, Json] = {
        "benchmark": task,
        "error": texts.text(as_dict(sample.get("error")).get("message")),
        "exit_status": as_str(as_dict(sample.get("limit")).get("type")),
        "feedback": {
            name: text
            for name, score in scores.items()
            if (text := texts.text(as_dict(score).get("explanation")))
        },
        "score": {
            name: finite(as_dict(score).get("value"))
            for name, score in scores.items()
            if as_dict(score).get("value") is not None
        },
    }
    return {key: value for key, value in found.items() if value not in ("", {})} or None


def finite(value: Json) -> Json:
    """Returns a value with numbers that are no JSON (NaN, Infinity) as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, list):
        return [finite(item) for item in value]
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    return value
