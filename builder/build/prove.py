"""Turns a conversation into verified samples: normalises, scrubs, divides, shortens, verifies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from builder.conversation import PARTIAL, Context, Conversation, lowest
from builder.finding import CheckFinding
from builder.normalize.normalise import Normalised, normalise
from builder.normalize.options import LengthOptions, NormalizeOptions
from builder.normalize.units import (
    TrainingExample,
    Window,
    example,
    examples,
    plan_windows,
    shorten_responses,
    turn_sizes,
    with_history,
)
from builder.problem import Problem
from builder.qwen3.flat import flatten
from builder.qwen3.templates import Style
from builder.qwen3.tokenizer import Target
from builder.sample import Sample
from builder.scrub.redact import Scrubber
from builder.verify.as_loaded import loader_fault
from builder.verify.verifier import Verdict, Verifier


@dataclass(frozen=True, slots=True)
class VerifiedExample:
    """An example as a sample, with its verdict and the contexts and models of its targets.

    `models` has each name once, in the order of the targets; None: not logged. `problem` is why it
    is not proven, or None.
    """

    example: TrainingExample
    sample: Sample
    verdict: Verdict
    contexts: tuple[Context, ...]
    models: tuple[str | None, ...]
    problem: Problem | None


def prepare(
    conversation: Conversation,
    options: NormalizeOptions,
    limits: LengthOptions,
    target: Target,
    scrubber: Scrubber,
) -> tuple[Normalised, bool]:
    """Normalises a conversation, scrubs it, and shortens long tool responses.

    Returns also whether the texts of the dialogue were searched for secrets, and there was none.
    Counts `response_shortened`. A conversation that is rejected for a secret has no dialogue.
    """
    normalised = normalise(conversation, options)
    if normalised.dialogue is None:
        return normalised, False
    scrubbed = scrubber.dialogue(normalised.dialogue)
    if scrubbed.problem is not None:
        return replace(normalised, dialogue=None, problem=scrubbed.problem), False
    dialogue, changes = scrubbed.dialogue, {**normalised.changes, **scrubbed.changes}
    if limits.tool_response_tokens is not None:
        dialogue, count = shorten_responses(dialogue, limits.tool_response_tokens, target.encode)
        if count:
            changes["response_shortened"] = count
    ready = replace(normalised, dialogue=dialogue, changes=dict(sorted(changes.items())))
    return ready, scrubbed.without_secrets and "response_shortened" not in changes


def prove(
    normalised: Normalised, options: NormalizeOptions, limits: LengthOptions, verifier: Verifier
) -> Iterator[VerifiedExample]:
    """Flattens and verifies the examples of a dialogue; yields a proof for each.

    An example that is too long is divided into windows (`too_long: split`) or cut to its beginning
    (`cut`). If targets do not fit, a proof of the whole example follows, with the problem
    `turn_too_long`, or `max_tokens` where windows might hold them.
    """
    assert normalised.dialogue is not None, "it was not rejected"
    for whole in examples(normalised.dialogue, options.unit, verifier.target.style):
        proof = _proof(whole, normalised, options, limits, verifier)
        is_long = proof.problem is not None and proof.problem.code in ("max_tokens", "too_long")
        if not is_long or limits.max_tokens is None or limits.too_long == "reject":
            yield proof
            continue
        proof = replace(proof, example=whole)
        fitting, left_out = _shorter(proof, options, limits.max_tokens, limits.too_long, verifier)
        for item in fitting:
            yield _proof(item, normalised, options, limits, verifier)
        if left_out:
            detail = (
                f"{left_out} of {len(whole.targets)} turns do not fit into limits.max_tokens:"
                f" {limits.max_tokens}"
            )
            code = "turn_too_long" if limits.too_long == "split" else "max_tokens"
            yield replace(proof, problem=Problem(code, "rendering", detail, records=0))


def _proof(
    item: TrainingExample,
    normalised: Normalised,
    options: NormalizeOptions,
    limits: LengthOptions,
    verifier: Verifier,
) -> VerifiedExample:
    if options.history != "logged":
        item = with_history(item, options.history, verifier.target.style)
    sample = flatten(item.dialogue, verifier.target.style)
    late_system = options.late_system == "keep"
    verdict = verifier.check(sample, item.dialogue, item.targets, late_system=late_system)
    origins = [item.origins[at] for at in item.targets]
    contexts = tuple(normalised.contexts[origin] for origin in origins)
    models = dict.fromkeys(name for origin in origins for name in normalised.models[origin])
    problem = _problem_of_check(verdict.findings[0]) if verdict.findings else None
    if problem is None and limits.max_tokens is not None and verdict.tokens > limits.max_tokens:
        detail = f"{verdict.tokens} tokens, more than limits.max_tokens: {limits.max_tokens}"
        problem = Problem("max_tokens", "rendering", detail, records=0)
    if problem is None and (fault := loader_fault(sample)) is not None:
        problem = Problem("loader", "sample", fault, records=0)
    if problem is None and "complete" in verifier.options.require:
        problem = _context_problem(contexts)
    return VerifiedExample(item, sample, verdict, contexts, tuple(models), problem)


def _shorter(
    proof: VerifiedExample, options: NormalizeOptions, limit: int, too_long: str, verifier: Verifier
) -> tuple[list[TrainingExample], int]:
    """Returns examples of at most `limit` tokens, and the number of targets in none of them."""
    whole = proof.example
    turns = whole.dialogue.turns
    answers = [at for at, turn in enumerate(turns) if turn.role == "assistant"]
    windows, left_out = plan_windows(
        turns,
        frozenset(answers[at] for at in whole.targets),
        turn_sizes(proof.sample, len(turns), verifier.target),
        limit,
        only_first=too_long == "cut",
    )
    weighted = options.unit == "conversation"  # other units train the last turns of a sample
    style = verifier.target.style
    shorter = [_windowed(whole, window, style, weighted=weighted) for window in windows]
    if too_long == "cut":
        shorter = [
            replace(item, changes={**item.changes, "turns_cut_to_length": len(left_out)})
            for item in shorter
        ]
    return shorter, len(left_out)


def _windowed(
    whole: TrainingExample, window: Window, style: Style, *, weighted: bool
) -> TrainingExample:
    """Makes the example of a window, whose repeated turns are context."""
    item = example(whole.dialogue, window.places, window.targets, style, weighted=weighted)
    added = {
        "history_left_out": window.skipped,
        "untrained_turns": len(window.repeated) if weighted else 0,
    }
    return replace(
        item,
        origins=tuple(whole.origins[at] for at in item.origins),
        changes=Counter(whole.changes) + Counter(item.changes) + Counter(added),
    )


def _context_problem(contexts: Sequence[Context]) -> Problem | None:
    context = lowest(contexts)
    assert context is not None, "a sample has a target"
    if context.level != PARTIAL:
        return None
    detail = f"partial (missing: {', '.join(context.missing)})"
    return Problem("context", "sample", detail, records=0)


def _problem_of_check(finding: CheckFinding) -> Problem:
    """Converts a finding of the verifier to a problem, with its location and both texts."""
    detail = finding.message
    if finding.expected is not None:
        detail += f"; expected {finding.expected!r}"
    if finding.found is not None:
        detail += f"; found {finding.found!r}"
    where = f"message {finding.turn}" if finding.turn is not None else "rendering"
    if finding.offset is not None:
        where += f", offset {finding.offset}"
    return Problem(finding.code, where, detail, records=0)
