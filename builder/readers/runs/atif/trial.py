"""Reads the result of a trial of Harbor: the verifier's rewards, and why the run ended.

Source: harbor 0.25.0 models/trial/result.py, models/verifier/result.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from builder.conversation import Json
from builder.readers.toolkit import as_dict, logged_outcome, name_or_none


def is_result(value: dict[str, Json]) -> bool:
    """Returns whether an object is the result of a trial."""
    return {"task_name", "trial_name"} <= value.keys()


def outcome_of(result: dict[str, Json]) -> Mapping[str, Json] | None:
    """Returns the outcome of a trial.

    reward     the only reward if it is named `reward`, else the object of all rewards
    error      type of the exception that ended the run
    benchmark  the dataset that contains the task, if there is one
    """
    rewards = as_dict(as_dict(result.get("verifier_result")).get("rewards"))
    reward: Json = rewards["reward"] if rewards.keys() == {"reward"} else dict(rewards)
    return logged_outcome(
        benchmark=name_or_none(result.get("source")),
        error=name_or_none(as_dict(result.get("exception_info")).get("exception_type")),
        reward=reward,
    )
