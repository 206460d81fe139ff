"""Writes what the card states about the contexts and the parity of the trained turns."""

from __future__ import annotations

from collections.abc import Iterator

from builder.audit.result import Audit
from builder.card.markdown import Code, table
from builder.card.result import BuildResult
from builder.conversation import LEVEL_MEANINGS, LEVELS, MISSING
from builder.dataset.meta import EQUAL
from builder.ledger import ranked
from builder.normalize.options import Unit
from builder.text import number

_SHOWN = 50
"""Rows of the table of codes: inputs that are datasets may contain any codes."""
_CONTEXT = (
    "The checks above verify the form of a sample. Only the log can show whether its system prompt,"
    " tools and messages are those that the model had when it answered. `meta.context` has the"
    " level of each sample:"
)


def context(built: BuildResult) -> Iterator[str]:
    """Yields the section on how well the contexts of trained turns are known, if it is counted."""
    levels, missing = built.context_levels, ranked(built.context_missing)
    turns = levels.total()
    if not turns:
        return
    rows = [
        (name, levels[name], f"{100 * levels[name] / turns:.1f} %", LEVEL_MEANINGS[name])
        for name in reversed(LEVELS)
        if levels[name]
    ]
    lines = ["## What the model saw", "", _CONTEXT, ""]
    lines += table(("level", "trained turns", "share", "meaning"), rows)
    if missing:
        lines += ["", "What the logs lack for these turns:", ""]
        lines += table(
            ("missing", "trained turns", "meaning"),
            [(Code(name), count, MISSING.get(name, "")) for name, count in missing[:_SHOWN]],
        )
    yield "\n".join(lines)


def parity(unit: Unit, audit: Audit | None) -> Iterator[str]:
    """Yields a sentence on the trained turns in parity with inference, if they were counted."""
    counts = audit.facts.parity if audit is not None else {}
    shares = [
        f"{number(count.in_parity)} of {number(count.trained)} trained turns in {mode} mode"
        for mode, count in counts.items()
    ]
    if shares:
        why = (
            " The template writes an empty think block before the last turn only, the prompt of a"
            " server before every turn; `normalize.unit: turn` makes them equal."
        )
        yield (
            "The bytes before a trained turn equal what a server renders from the same messages in"
            f" these turns: {', '.join(shares)}." + (why if unit != "turn" else "")
        )


def recorded(built: BuildResult) -> Iterator[str]:
    """Yields a sentence on the samples that were compared with the tokens in their logs."""
    compared = built.tokens_recorded
    if not compared.total():
        return
    others = ", ".join(
        f"{code} {number(count)}" for code, count in ranked(compared) if code != EQUAL
    )
    yield (
        f"The logs of {number(compared.total())} samples contain the ids of the tokens that the"
        f" model read and wrote; those of {number(compared[EQUAL])} samples are exactly equal to"
        f" them{f' (differences by probable cause: {others})' if others else ''}."
    )


def trained(audit: Audit | None) -> Iterator[tuple[str, str]]:
    """Yields table rows with the share of the trained tokens, and the turns in parity."""
    if audit is None or audit.facts.trained is None:
        return
    tokens = number(audit.facts.trained_tokens)
    yield "trained tokens", f"{tokens}, {audit.facts.trained:.1%} of all (the rest is context)"
    if audit.facts.thinking_turns:
        yield "trained turns with a thought", number(audit.facts.thinking_turns)
    for mode, count in audit.facts.parity.items():
        title = f"trained turns that match {mode} inference"
        yield title, f"{number(count.in_parity)} of {number(count.trained)} (see Limits)"
