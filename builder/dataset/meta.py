"""Defines the lines of meta/: every key once, with its type and meaning.

To add a key, add a field to `SampleMeta`: reading, writing, conditions (`select.where`), the check
of `builder verify` and the table in docs/output.md follow from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeGuard

from builder.conversation import LEVELS, Context, Json
from builder.jsonio import dumps
from builder.keys import (
    OBJECT_OR_NULL,
    TEXT,
    TEXT_OR_NULL,
    Kind,
    is_count,
    key,
    keys_of,
    one,
    read_keys,
    write_keys,
    wrong_keys,
)  # fmt: skip
from builder.qwen3.render import PARTS

_MOST = (1 << 32) - 1
"""The highest number in a line; a higher one is not read, as audits count in four bytes."""


def _is_number(value: Json) -> TypeGuard[int]:
    return is_count(value) and value <= _MOST


def _numbers(value: Json) -> Mapping[str, int]:
    found = value if isinstance(value, dict) else {}
    return {name: count for name, count in found.items() if _is_number(count)}


def _parts(value: Json) -> Mapping[str, int]:
    return {name: count for name, count in _numbers(value).items() if count and name in PARTS}


COUNT = Kind("number", lambda value: value if _is_number(value) else 0)
COUNTS = Kind("number by code", _numbers)
_TOKENS_BY_PART = Kind("number by part", _parts)


def _context(value: Json) -> Context | None:
    level = value.get("level") if isinstance(value, dict) else None
    missing = value.get("missing") if isinstance(value, dict) else None
    if level not in LEVELS or not isinstance(missing, list):
        return None
    codes = tuple(item for item in missing if isinstance(item, str))
    return Context(level, codes) if bool(codes) == (level == "partial") else None


def _spans(value: Json) -> tuple[tuple[int, int], ...]:
    return tuple(filter(None, map(_span, value))) if isinstance(value, list) else ()


def _span(value: Json) -> tuple[int, int] | None:
    match value:
        case [start, end] if _is_number(start) and _is_number(end):
            return start, end
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """A preference pair: two answers to the same messages (docs/preference.md)."""

    reason: str = key(TEXT, "why the rejected answer is worse")
    turn: int = key(COUNT, "the turn, counted from 0 over the assistant turns of the sample")
    chosen: str | None = key(TEXT_OR_NULL, "the better answer; null: that of the sample")
    rejected: str | None = key(TEXT_OR_NULL, "the worse answer; null: that of the sample")
    record: str = key(TEXT, "the record that contains the rejected answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenDifference:
    """The first token in which a sample differs from the recorded ones (docs/parity.md)."""

    cause: str = key(TEXT, "the probable cause")
    sample: str = key(TEXT, "the text of the token in the sample")
    recorded: str = key(TEXT, "the text of the recorded token")


def _preferences(value: Json) -> tuple[Preference, ...]:
    return tuple(map(_preference, value)) if isinstance(value, list) else ()


def _preference(value: Json) -> Preference:
    """Returns the pair; one without a reason if any of its values is of another type."""
    preference = read_keys(Preference, value)
    is_whole = isinstance(value, dict) and not any(wrong_keys(preference, value))
    return preference if is_whole else Preference()


def _models(value: Json) -> tuple[str | None, ...]:
    names = value if isinstance(value, list) else []
    return tuple(name if isinstance(name, str) else None for name in names)


def _failures(value: Json) -> Mapping[str, str] | None:
    if not isinstance(value, dict):
        return None
    return {place: failure for place, failure in value.items() if isinstance(failure, str)}


MODELS = Kind("list of texts or nulls", _models)
CONTEXT = Kind("object: `level`, `missing`", _context)
SPANS = Kind("list of [start, end]", _spans)
_FAILURES = Kind("failure by call", _failures)
_PREFERENCES = Kind("list of objects", _preferences)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleMeta:
    """A line of meta/: the origin of a sample, what was changed, and numbers about its rendering.

    A row of a dataset without meta/ has the defaults: "", 0, null, nothing.
    """

    id: str = key(TEXT, "sha256 of the sample's line in `data/`")
    source: str = key(TEXT, "the file that it comes from, relative to the input")
    format: str | None = key(TEXT_OR_NULL, "name of the reader")
    record: str = key(TEXT, "where the conversation is in the file")
    conversation: str = key(TEXT, "id of the conversation or session in the log")
    model: str | None = key(TEXT_OR_NULL, "the model that answered; null: not in the log")
    license: str | None = key(TEXT_OR_NULL, "licence of the input or in the log; null: unknown")
    context: Context | None = key(CONTEXT, "the context of the trained turns (docs/context.md)")
    outcome: Mapping[str, Json] | None = key(OBJECT_OR_NULL, "how the run ended, as logged")
    unit: str = key(TEXT, "`normalize.unit`: conversation, query or turn")
    tools_source: str = key(TEXT, "where the tool definitions come from (docs/context.md)")
    reasoning: str = key(TEXT, "what became of the thoughts: kept, dropped or none")
    changes: Mapping[str, int] = key(COUNTS, "every change to logged text")
    pattern: str = key(TEXT, "behaviour: direct_answer, single_call, chain, …")
    schema_violations: int = key(COUNT, "calls whose arguments violate the tool's schema")
    calls: int = key(COUNT, "tool calls")
    assistant_turns: int = key(COUNT, "assistant turns that the sample trains")
    parity: Mapping[str, int] = key(COUNTS, "trained turns that match inference, by its mode")
    chars: int = key(COUNT, "code points of the rendering")
    tokens: int = key(COUNT, "tokens of the rendering")
    trained_tokens: int = key(COUNT, "those of `spans`: the tokens that are trained")
    tokens_by_part: Mapping[str, int] = key(
        _TOKENS_BY_PART, "tokens of each part (docs/audit.md); they add up to `tokens`"
    )
    render_sha256: str = key(TEXT, "sha256 of the rendering in UTF-8")
    spans: tuple[tuple[int, int], ...] = key(
        SPANS, "code points of the trained turns in the rendering"
    )
    models: tuple[str | None, ...] = key(
        MODELS, "models of the trained turns, if several", optional=True
    )
    agent_version: str = key(
        TEXT, "version of the agent program; absent: not in the log", optional=True
    )
    cut: str = key(
        TEXT, "the code for which later turns of the conversation are left out; absent: none are",
        optional=True,
    )  # fmt: skip
    failed_turns: Mapping[str, int] = key(
        COUNTS, "trained turns with a call that ended in `error`, `denied` or `interrupted`",
        optional=True,
    )  # fmt: skip
    untrained_turns: Mapping[str, int] = key(
        COUNTS, "assistant turns with `weight` 0, by reason; `repeat`: another sample trains it",
        optional=True,
    )  # fmt: skip
    failed_calls: Mapping[str, str] | None = key(
        _FAILURES, "how calls failed, as the log says; absent: it does not say which failed",
        optional=True,
    )  # fmt: skip
    preferences: tuple[Preference, ...] = key(_PREFERENCES, "pairs of answers", optional=True)
    token_counts: str = key(
        TEXT, "`estimate`: by another tokenizer than the model's; absent: exact", optional=True
    )
    tokens_recorded: str = key(
        TEXT, "the tokens in the log: `equal` or `differ at N`; none: not in the log", optional=True
    )
    tokens_difference: TokenDifference = key(
        one(TokenDifference), "the first token that differs", optional=True
    )

    @classmethod
    def read(cls, value: Json | Mapping[str, Json]) -> SampleMeta:
        """Returns the line as far as it can be read: other values have their defaults.

        `tokens_by_part` is {} unless the parts add up to `tokens`.
        """
        meta = read_keys(cls, value)
        is_whole = sum(meta.tokens_by_part.values()) == meta.tokens
        return meta if is_whole or not meta.tokens_by_part else replace(meta, tokens_by_part={})

    @property
    def line(self) -> bytes:
        """Returns the line, without the newline."""
        return dumps(write_keys(self)).encode("utf-8", "replace")

    @property
    def place(self) -> tuple[str | None, ...]:
        """Returns what identifies the conversation: format, source, record, conversation."""
        return self.format, self.source, self.record, self.conversation

    @property
    def every_model(self) -> tuple[str | None, ...]:
        """Returns the models that gave the trained turns; None: the log does not name one.

        Each counts for filters and terms of use.
        """
        return self.models or (self.model,)

    @property
    def compared(self) -> str:
        """Returns "equal", the cause of the difference to the tokens in the log, or ""."""
        return self.tokens_difference.cause or self.tokens_recorded

    @property
    def benchmark(self) -> str:
        """Returns the public benchmark that the run is of, or ""."""
        name = (self.outcome or {}).get("benchmark")
        return name if isinstance(name, str) else ""

    def faults(self, value: Mapping[str, Json]) -> list[str]:
        """Returns the keys of the line `value` whose values are of another type than declared."""
        return list(wrong_keys(self, value))

    def differences(self, other: SampleMeta) -> list[str]:
        """Returns the keys in which two lines differ."""
        names = (item.name for item in keys_of(SampleMeta))
        return [name for name in names if getattr(self, name) != getattr(other, name)]


EQUAL = "equal"
"""`SampleMeta.tokens_recorded` of a sample whose tokens are those in the log."""

NAMES = tuple(item.name for item in keys_of(SampleMeta))
"""The keys of a line."""

NO_META = SampleMeta()
"""The line of a row without meta/."""
