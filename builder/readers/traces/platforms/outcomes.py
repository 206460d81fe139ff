"""Collects the outcome of a trace as its platform logs it: scores, feedback, errors, tags.

Source: docs/formats/langfuse.md and docs/formats/langsmith.md, "Outcome".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from builder.conversation import Json
from builder.readers.toolkit.narrow import as_dict, as_list, first_of, name_or_none
from builder.readers.toolkit.outcomes import has_content


@dataclass(slots=True)
class TraceFacts:
    """Facts about a trace other than its steps, added as its records are read.

    outcome  as `Conversation.outcome`; named scores and feedback are objects keyed by name
    """

    id: str
    session: str = ""
    outcome: dict[str, Json] = field(default_factory=dict)

    def add_scores(self, scores: Iterable[Json]) -> None:
        """Adds Langfuse scores; values of the same name become a list."""
        for score in map(as_dict, scores):
            name = name_or_none(score.get("name"))
            if name is None:
                continue
            value = first_of(score, "value", "stringValue", "string_value")
            if first_of(score, "dataType", "data_type") == "CATEGORICAL":
                value = first_of(score, "stringValue", "string_value", "value")
            self._put("score", name, value)
            self._put("evaluator", name, score.get("source"))
            self._put("feedback", name, score.get("comment"))

    def add(self, key: str, value: Json) -> None:
        """Sets a key that has no value yet, unless the value is empty."""
        if has_content(value):
            self.outcome.setdefault(key, value)

    def outcome_with(self, error: str) -> Mapping[str, Json] | None:
        """Returns the outcome of a conversation in this trace; None if nothing was logged."""
        outcome = {**self.outcome, "error": error} if error else self.outcome
        return dict(sorted(outcome.items())) or None

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
