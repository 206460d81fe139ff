"""Reads the outcome of a trace as its platform logs it: scores, feedback, errors, tags.

Source: langfuse.md "Pitfalls" (scores), langsmith.md "Record" (feedback_stats, error, tags).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from builder.conversation import Json
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none


@dataclass(slots=True)
class TraceFacts:
    """Facts about a trace other than its steps; filled in as its records arrive.

    outcome  keyed as `Conversation.outcome`; a key with several values contains an object keyed by
             the name of the score or feedback
    """

    id: str
    session: str = ""
    outcome: dict[str, Json] = field(default_factory=dict)

    def add_scores(self, scores: Iterable[Json]) -> None:
        """Adds Langfuse scores; a name that occurs twice contains the list of its values."""
        for score in map(as_dict, scores):
            name = name_or_none(score.get("name"))
            if name is None:
                continue
            value = _first(score, "value", "stringValue", "string_value")
            if as_str(_first(score, "dataType", "data_type")) == "CATEGORICAL":
                value = _first(score, "stringValue", "string_value", "value")
            self._put("score", name, value)
            self._put("evaluator", name, score.get("source"))
            self._put("feedback", name, score.get("comment"))

    def add(self, key: str, value: Json) -> None:
        """Sets a key that has no value yet, unless the value is empty."""
        if value not in (None, "", [], {}) and key not in self.outcome:
            self.outcome[key] = value

    def outcome_with(self, error: str) -> Mapping[str, Json] | None:
        """Returns the outcome of a conversation of this trace; None if nothing was logged."""
        found = {**self.outcome, "error": error} if error else self.outcome
        return dict(sorted(found.items())) or None

    def _put(self, key: str, name: str, value: Json) -> None:
        if value is None or value == "":
            return
        named = self.outcome.setdefault(key, {})
        if not isinstance(named, dict):
            return
        if name in named:
            before = named[name]
            named[name] = [*(as_list(before) or [before]), value]
        else:
            named[name] = value


def _first(score: Mapping[str, Json], *keys: str) -> Json:
    return next((score[key] for key in keys if score.get(key) is not None), None)
