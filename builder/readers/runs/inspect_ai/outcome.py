"""Reads the outcome of an Inspect AI sample: scores, error, limit."""

from __future__ import annotations

from collections.abc import Mapping

from builder.conversation import Json
from builder.readers.runs.inspect_ai.messages import Texts
from builder.readers.toolkit import as_dict, as_str, logged_outcome


def outcome_of(sample: dict[str, Json], task: str, texts: Texts) -> Mapping[str, Json] | None:
    """Returns the outcome as logged; None if there is none.

    score, feedback  objects with each scorer's value and explanation, by its name
    error            message of the error
    exit_status      type of the limit that ended the sample
    benchmark        the task
    """
    scores = as_dict(sample.get("scores"))
    if not scores and "score" in sample:  # before version 2: a single score without a name
        scores = {"score": sample["score"]}
    feedback = {name: texts.text(as_dict(one).get("explanation")) for name, one in scores.items()}
    values = {name: as_dict(one).get("value") for name, one in scores.items()}
    return logged_outcome(
        benchmark=task,
        error=texts.text(as_dict(sample.get("error")).get("message")),
        exit_status=as_str(as_dict(sample.get("limit")).get("type")),
        feedback={name: text for name, text in feedback.items() if text},
        score={name: value for name, value in values.items() if value is not None},
    )
