"""Advises on the model and its template: match with inference, thoughts, calls in XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builder.audit.result import AuditFacts
from builder.codes import UNTRAINED
from builder.normalize.targets import LOST
from builder.output.manifest import Manifest
from builder.qwen3.parity import MODES
from builder.qwen3.style import SPECIFIED, Style, Thoughts
from builder.qwen3.templates import TEMPLATES
from builder.report.remedy import Advice, Remedy
from builder.report.survey import Survey
from builder.text import counted, number
from builder.verify.options import mode_named

_THINKING = 0.1
"""The share of turns with thoughts from which on training them is advised."""


def of_model(surveyed: Survey, manifest: Manifest, facts: AuditFacts) -> Iterator[Advice]:
    """Yields what depends on the model that is trained."""
    yield from _matching(surveyed, manifest, facts)
    yield from _thoughts(surveyed, manifest, facts)
    yield from _without_thoughts(surveyed, facts.thinking_turns)
    yield from _unwritable(surveyed, manifest)


def _matching(surveyed: Survey, manifest: Manifest, facts: AuditFacts) -> Iterator[Advice]:
    mode = mode_named(manifest.mode)
    if not surveyed.turns or mode not in surveyed.parity or surveyed.parity[mode] >= surveyed.turns:
        return
    differing = surveyed.turns - surveyed.parity[mode]
    model = manifest.tokenizer.template_name or manifest.tokenizer.name or "the model"
    known = TEMPLATES.get(manifest.tokenizer.template_sha256)
    detail = f"At inference, {model} sees other bytes before these turns."
    is_hybrid = known is not None and known.style.thoughts is Thoughts.hybrid
    if is_hybrid and mode == "non-thinking":
        detail = (
            "At inference, the template writes an empty think block before every answer; in a"
            " sample, only before the last one."
        )
    verb = "does" if differing == 1 else "do"
    finding = (
        f"{number(differing)} of {counted(surveyed.turns, 'trained turn')} {verb} not match"
        f" {mode} inference: in use, the model may act otherwise."
    )
    if known is not None and _never_matches(known.style) and not any(surveyed.parity.values()):
        finding = (
            f"No trained turn matches inference: {model} begins every answer with a thought, but"
            " its template takes thoughts out of the history, so its samples have none."
        )
    remedies = tuple(_matching_more(surveyed, manifest, mode, facts))
    if remedies:
        yield Advice(differing / surveyed.turns, finding, remedies, detail)


def _never_matches(style: Style) -> bool:
    """Returns whether samples have no thoughts although the model thinks (QwQ)."""
    return style.thoughts in (Thoughts.last, Thoughts.dropped)


def _matching_more(
    surveyed: Survey, manifest: Manifest, mode: str, facts: AuditFacts
) -> Iterator[Remedy]:
    """Yields what makes more turns match inference, that with the fewest tokens first.

    Without thoughts to train, a model without thoughts is before a mode in which it would think.
    """
    known = TEMPLATES.get(manifest.tokenizer.template_sha256)
    has_thoughts = bool(surveyed.by_field.get("reasoning", Counter[str]())["kept"])
    modes = list(_other_modes(surveyed, mode, has_thoughts=has_thoughts))
    without = []
    # The other writes all else as this one.
    if known is not None and (
        known.style == SPECIFIED or (known.style.is_specified and _never_matches(known.style))
    ):
        without = [
            Remedy(
                "Train a model whose template has no thoughts"
                " (`--tokenizer Qwen/Qwen3-4B-Instruct-2507`)",
                "no more tokens, another model",
            )
        ]
    yield from (*modes, *without) if has_thoughts else (*without, *modes)
    # A smaller unit ends samples at more turns: futile if no turn matches where samples end now,
    # or if the others have thoughts, which the prompt of this mode excludes.
    thoughts = facts.thinking_turns if mode == "non-thinking" else 0
    if not 0 < surveyed.parity[mode] < surveyed.turns - thoughts:
        return
    by_query = known is not None and known.style.thoughts is Thoughts.current
    if manifest.unit == "conversation" and by_query:
        yield Remedy(
            "Write a sample for each question (`normalize.unit: query`)",
            _times(facts.query_tokens, surveyed),
        )
    if manifest.unit != "turn":
        price = _times(surveyed.turn_tokens, surveyed)
        yield Remedy("Write a sample for each turn (`normalize.unit: turn`)", price)


def _other_modes(surveyed: Survey, mode: str, *, has_thoughts: bool) -> Iterator[Remedy]:
    """Yields the modes of inference that more turns match; the bytes of the data stay the same."""
    for other in MODES:
        count = surveyed.parity[other]
        if count > surveyed.parity[mode]:
            matching = "all" if count == surveyed.turns else number(count)
            silent = other == "thinking" and not has_thoughts
            yield Remedy(
                f"Run the model in {other} mode, where {matching} match; this changes how the model"
                f" is run, not the data: `verify.mode: {other}`",
                "no more tokens" + (", but it answers without thinking" if silent else ""),
            )


def _times(tokens: int, surveyed: Survey) -> str:
    """Returns the price of a dataset of so many tokens; "" if it is no larger than this one."""
    times = tokens / surveyed.tokens if surveyed.tokens else 0
    return f"about {times:.1f} times the tokens" if times > 1 else ""


def _thoughts(surveyed: Survey, manifest: Manifest, facts: AuditFacts) -> Iterator[Advice]:
    dropped = surveyed.changes["reasoning_dropped"]
    times = (_times(facts.query_tokens, surveyed), _times(facts.windowed_tokens, surveyed))
    remedies = _with_thoughts(manifest, *times, dropped)
    share = min(dropped / max(surveyed.turns, 1), 1.0)
    if share >= _THINKING and remedies:
        yield Advice(
            share,
            f"{counted(dropped, 'thought')} left out: the model learns to answer without thinking.",
            remedies,
            severity=0.6,
        )


def _with_thoughts(
    manifest: Manifest, times: str, windowed: str, thoughts: int
) -> tuple[Remedy, ...]:
    """Returns what keeps the thoughts that were left out; () if the template shows none of them.

    `times` is the price of a sample for each question, `windowed` that of the windows of those with
    thoughts, as in the preset.
    """
    known = TEMPLATES.get(manifest.tokenizer.template_sha256)
    shows = known.style.thoughts if known is not None else Thoughts.hybrid
    if not shows.has_blocks:
        return ()
    if shows is Thoughts.every or manifest.unit in ("query", "turn"):
        is_set = manifest.reasoning == "keep"
        price = "the tokens of the thoughts"
        return () if is_set else (Remedy("`normalize.reasoning: keep`", price),)
    price = f"{times}, and those of the thoughts" if times else "the tokens of the thoughts"
    return (
        Remedy(
            "A sample for each question, trained where it has a thought: `--preset sft-thinking`",
            f"{windowed or 'no more tokens'}, about {counted(thoughts, 'trained turn')},"
            " before near duplicates are left out",
        ),
        Remedy(
            "The same with all its turns: `normalize.reasoning: keep` and `normalize.unit: query`",
            price,
        ),
    )


def _without_thoughts(surveyed: Survey, with_one: int) -> Iterator[Advice]:
    """Yields the trained turns without a thought, where others have one."""
    trained = surveyed.turns
    if not 0 < with_one < trained:
        return
    verb = "has" if with_one == 1 else "have"
    remedies = (
        Remedy(
            "Train only these: `train.no_thought: mask`",
            f"{counted(trained - with_one, 'trained turn')} fewer; they stay as context",
        ),
        Remedy("Train answers without thoughts: `--preset sft`", "the thoughts"),
    )
    if with_one < _THINKING * trained:
        remedies = remedies[::-1]
    yield Advice(
        (trained - with_one) / trained,
        f"{number(with_one)} of {counted(trained, 'trained turn')} {verb} a thought; the others"
        " teach to answer without one.",
        remedies,
        severity=0.5,
    )


def _unwritable(surveyed: Survey, manifest: Manifest) -> Iterator[Advice]:
    """Yields the turns that a target with XML calls cannot hold as they were made."""
    counts = [(code, surveyed.changes[f"{UNTRAINED}{code}"]) for code in LOST]
    turns = sum(count for _, count in counts)
    if not turns:
        return
    named = manifest.tokenizer.template_name or "the target"
    listed = ", ".join(f"{code} {number(count)}" for code, count in counts if count)
    typed = Remedy("Supply typed definitions (`--tools FILE`), for `xml_types`")
    yield Advice(
        turns / max(turns + surveyed.turns, 1),
        f"{counted(turns, 'turn')} not trained: a server would read their calls, as {named} writes"
        f" them, otherwise ({listed}).",
        (
            *([typed] if surveyed.changes[f"{UNTRAINED}xml_types"] else []),
            Remedy(
                "Train a model whose calls are JSON (`--tokenizer Qwen/Qwen3-4B-Instruct-2507`)",
                "no more tokens, another model",
            ),
        ),
        "docs/templates.md has the values that XML cannot hold.",
    )
