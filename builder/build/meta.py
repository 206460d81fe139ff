"""Describes a sample in its line of meta/."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from builder.audit.failures import pattern
from builder.build.prove import VerifiedExample
from builder.build.results import ResultWriter
from builder.conversation import REPEAT, Conversation, Json, lowest
from builder.dataset.meta import EQUAL, SampleMeta, TokenDifference
from builder.normalize.normalise import Normalised
from builder.normalize.options import Unit
from builder.normalize.units import TrainingExample
from builder.qwen3.render import counts
from builder.scrub.redact import Scrubber
from builder.text import clean, map_strings
from builder.verify.verifier import TokenComparison

_OF_TEXT = frozenset({"text", "call", "system", "retokenised", "end"})
"""Causes of a difference to recorded tokens that a placeholder may have."""


@dataclass(frozen=True, slots=True)
class Converted:
    """The data that the samples of one conversation share; `license`: its terms."""

    conversation: Conversation
    normalised: Normalised
    unit: Unit
    license: str | None


def sample_meta(converted: Converted, proof: VerifiedExample, writer: ResultWriter) -> SampleMeta:
    """Returns the sample's line in meta/, without preference pairs.

    `changes` are those of the whole conversation and of the sample. `context`, `assistant_turns`,
    `parity` and `spans` describe the sample's targets.
    """
    conversation, normalised = converted.conversation, converted.normalised
    scrubber, summary = writer.scrubber, writer.summary
    example, sample, verdict = proof.example, proof.sample, proof.verdict
    counted = Counter(normalised.changes) + Counter(example.changes)
    changes = dict(sorted(counted.items()))
    reasoning = normalised.reasoning
    if reasoning == "kept" and not any(turn.reasoning for turn in example.dialogue.turns):
        reasoning = "dropped" if changes.get("reasoning_dropped") else "none"
    context = lowest(proof.contexts)
    assert context is not None, "a sample has a target"
    outcome = conversation.outcome
    failed = normalised.failed_in(example.dialogue, example.origins)
    model = next((name for name in reversed(proof.models) if name), None)
    return SampleMeta(
        id=sample.id,
        source=scrubber.file_name(summary.name),
        format=summary.format,
        record=scrubber.text(conversation.record),
        conversation=scrubber.text(conversation.id),
        model=model and scrubber.text(model),
        license=converted.license,
        context=context,
        outcome=None if outcome is None else _scrubbed_outcome(outcome, scrubber),
        unit=converted.unit,
        tools_source=normalised.tools_source,
        reasoning=reasoning,
        changes=changes,
        pattern=pattern(example.dialogue, failed),
        schema_violations=sum(item.code == "schema" for item in verdict.warnings),
        calls=verdict.calls,
        assistant_turns=len(verdict.spans),
        parity=counts(verdict.parity),
        chars=len(verdict.text),
        tokens=verdict.tokens,
        trained_tokens=verdict.trained_tokens,
        tokens_by_part=verdict.tokens_by_part,
        render_sha256=verdict.render_sha256,
        spans=verdict.spans,
        agent_version=scrubber.text(conversation.version or ""),
        cut=normalised.cut or "",
        failed_turns=_failed_turns(example, normalised),
        untrained_turns=_untrained_turns(example, normalised),
        failed_calls=failed,
        token_counts=verdict.token_counts,
        **_recorded(verdict.recorded, counted, scrubber),
    )


def _failed_turns(example: TrainingExample, normalised: Normalised) -> dict[str, int]:
    """Returns {failure: trained turns with a call that failed so}."""
    failed: Counter[str] = Counter()
    for at in example.targets:
        failed.update({code for code in normalised.failures[example.origins[at]] if code})
    return dict(sorted(failed.items()))


def _untrained_turns(example: TrainingExample, normalised: Normalised) -> dict[str, int]:
    """Returns {reason: turns with weight 0}; a target of the dialogue is one of another sample."""
    answers = (turn for turn in example.dialogue.turns if turn.role == "assistant")
    codes = Counter(
        normalised.untrained[origin] or REPEAT
        for turn, origin in zip(answers, example.origins, strict=True)
        if not turn.trained
    )
    return dict(sorted(codes.items()))


def _recorded(
    comparison: TokenComparison | None, changes: Mapping[str, int], scrubber: Scrubber
) -> dict[str, Any]:
    """Returns the keys of meta/ about the tokens in the log.

    The recorded token of a text that was redacted is not shown, since it may be part of a secret.
    """
    if comparison is None:
        return {}
    if comparison.at is None:
        return {"tokens_recorded": EQUAL}
    cause, recorded = comparison.cause, scrubber.text(comparison.recorded)
    if changes.keys() & {"secret_redacted", "pseudonymised"} and cause in _OF_TEXT:
        cause, recorded = "redacted", ""
    difference = TokenDifference(
        cause=cause, sample=scrubber.text(comparison.sample), recorded=recorded
    )
    return {"tokens_recorded": f"differ at {comparison.at}", "tokens_difference": difference}


def _scrubbed_outcome(outcome: Mapping[str, Json], scrubber: Scrubber) -> Mapping[str, Json] | None:
    """Returns the outcome as logged, without secrets, limited in depth and length."""

    def cleaned(text: str) -> str:
        return scrubber.text(clean(text, Counter()))

    try:
        scrubbed = map_strings(dict(outcome), cleaned)
    except KeyError:  # two keys contain the same secret, or are two spellings of a name
        return None
    return scrubbed if isinstance(scrubbed, dict) else None
