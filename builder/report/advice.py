"""Judges whether a dataset is ready for training, and says what to do first.

The report, the viewer and the summary of a build show the same judgements and the same advice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from builder.audit.result import Audit, AuditFinding, GateAction
from builder.audit.unread import UNMAPPED
from builder.codes import AUDIT_OPTIONS, SECRETS_LEFT, meaning
from builder.ledger import Ledger, ranked
from builder.normalize.captured import definitions_command
from builder.normalize.remedies import recovery
from builder.output.manifest import Manifest
from builder.qwen3.parity import MODES
from builder.qwen3.style import SPECIFIED
from builder.qwen3.templates import TEMPLATES
from builder.report.html import shorten
from builder.report.ledger_stages import LedgerCounts, ledger_counts
from builder.report.survey import Survey, with_contexts
from builder.text import counted, number
from builder.verify.options import mode_named

LONG = 32_768
"""Tokens beyond which a sample exceeds the context that Qwen3 models were trained with."""

_REMEDIES = {
    **{name: f"`{option}`" for name, option in AUDIT_OPTIONS.items()},
    UNMAPPED: "Name what the model saw in the mapping: calls, results, texts (docs/mapping.md).",
    "contaminated": "Remove the samples that `builder audit --contamination` names.",
}
_SUPPLIED = {
    "tools": "`--tools FILE` (`inputs[].tools`)",
    "system": "`--system FILE` (`inputs[].system`)",
}
"""How the user can supply what the log lacks of a context."""
_STOPPED = (("denied", "refused by the user or a policy"), ("interrupted", "interrupted"))
"""Failures of calls that are no fault of the tool, with words for them."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A property that decides whether a dataset is ready, as the share of it that is good."""

    text: str
    share: float
    good: float = 0.9
    fair: float = 0.5

    @property
    def grade(self) -> str:
        """Returns good, fair or poor."""
        return "good" if self.share >= self.good else "fair" if self.share >= self.fair else "poor"


def worst(judgements: Sequence[Judgement]) -> str:
    """Returns the worst grade; poor if there are no judgements."""
    grades = {item.grade for item in judgements}
    return next((grade for grade in ("poor", "fair", "good") if grade in grades), "poor")


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding, the share of the dataset that it affects, and its remedy.

    Code in `remedy` is between backticks, and `commands` that it needs are ready to paste. `price`
    is what the remedy costs, or "". `training`: it changes what a model learns; other advice is
    about losses, or about publishing.
    """

    share: float
    finding: str
    remedy: str
    price: str = ""
    commands: tuple[str, ...] = ()
    training: bool = False


def judge(
    surveyed: Survey, manifest: Manifest, audit: Audit | None
) -> tuple[list[Judgement], list[Advice]]:
    """Returns the judgements on a dataset, and the advice, that of the largest effect first."""
    surveyed = with_contexts(surveyed, manifest)
    ledger = ledger_counts(manifest.ledger) if manifest.ledger is not None else None
    advised = sorted(advice(surveyed, manifest, audit), key=lambda item: -item.share)
    return list(judgements(surveyed, ledger, manifest)), advised


def judgements(
    surveyed: Survey, ledger: LedgerCounts | None, manifest: Manifest
) -> Iterator[Judgement]:
    """Yields the judgements: bytes, match with inference, context, loss."""
    is_verified = bool(manifest.tokenizer.template_sha256)
    yield Judgement(
        "every sample verified byte for byte" if is_verified else "not verified",
        1.0 if is_verified else 0.0,
    )
    mode = mode_named(manifest.mode)
    if surveyed.turns and mode in surveyed.parity:
        share = surveyed.parity[mode] / surveyed.turns
        yield Judgement(f"{percent(share)} of the trained turns match {mode} inference", share)
    levels = surveyed.context
    if levels.total():
        share = 1 - levels["partial"] / levels.total()
        yield Judgement(f"{percent(share)} of the trained turns have a complete context", share)
    if ledger is not None and ledger.conversations.found:
        lost = sum(loss.count for loss in ledger.conversations.losses if not loss.by_design)
        share = lost / ledger.conversations.found
        text = f"{percent(share)} of the conversations were rejected"
        yield Judgement(text, 1 - share, good=0.95, fair=0.75)


def advice(surveyed: Survey, manifest: Manifest, audit: Audit | None) -> Iterator[Advice]:
    """Yields everything that has a remedy, unordered."""
    for finding in audit.findings if audit is not None else ():
        if advised := _of_finding(finding, surveyed.samples, manifest):
            yield advised
    if manifest.ledger is not None:
        yield from _recoverable(manifest.ledger)
    yield from _matching(surveyed, manifest)
    yield from _context(surveyed)
    yield from _thoughts(surveyed)
    yield from _refused(surveyed)
    yield from _long(surveyed)


def _recoverable(ledger: Ledger) -> Iterator[Advice]:
    for code in ledger.recoverable:
        count, option = recovery(ledger, code)
        if not count:
            continue
        rejected = ledger.conversations_rejected[code]
        lost = f"{counted(rejected, 'conversation')} rejected ({shorten(code, 40)})"
        kept = "" if count == rejected else f", which keeps {number(count)} of them"
        share = count / max(ledger.found, 1)
        yield Advice(share, f"{lost}: {meaning(code) or code}.", f"`{option}`{kept}")


def _matching(surveyed: Survey, manifest: Manifest) -> Iterator[Advice]:
    mode = mode_named(manifest.mode)
    if not surveyed.turns or mode not in surveyed.parity or surveyed.parity[mode] >= surveyed.turns:
        return
    differing = surveyed.turns - surveyed.parity[mode]
    model = manifest.tokenizer.template_name or manifest.tokenizer.name or "the model"
    text = (
        f"{number(differing)} of {number(surveyed.turns)} trained turns do not match {mode}"
        f" inference of {model}: the bytes before them differ, such as the empty think block that"
        " the template writes before the last turn only."
    )
    other, count = max(((name, surveyed.parity[name]) for name in MODES), key=lambda item: item[1])
    if count > surveyed.parity[mode]:
        text += f" In {other} mode {number(count)} match."
    price = ""
    if surveyed.tokens and surveyed.turn_tokens > surveyed.tokens:
        price = f" ({surveyed.turn_tokens / surveyed.tokens:.1f} times the tokens)"
    known = TEMPLATES.get(manifest.tokenizer.template_sha256)
    remedies = (
        f"`normalize.unit: turn`{price}" if manifest.unit != "turn" else "",
        # It writes everything else as this template does.
        "a template without thoughts (`verify.tokenizer: Qwen/Qwen3-4B-Instruct-2507`)"
        if known is not None and known.style == SPECIFIED
        else "",
    )
    joined = ", or ".join(filter(None, remedies))
    if joined:
        yield Advice(differing / surveyed.turns, text, joined, training=True)


def _captures(surveyed: Survey) -> Iterator[str]:
    """Yields the commands that capture the missing definitions of agents, with the usual model."""
    for agent, models in sorted(surveyed.inferred.items(), key=lambda item: -item[1].total()):
        named = next((model for model, _ in ranked(models) if model), None)
        command = definitions_command(agent, named)
        if command is not None:
            yield command


def _context(surveyed: Survey) -> Iterator[Advice]:
    sources = surveyed.by_field.get("tools_source", Counter[str]())
    inferred = sources["inferred"] + sources["mixed"]
    turns = surveyed.context.total()
    codes = [
        code for code, _ in surveyed.missing.most_common() if not (inferred and code == "tools")
    ]
    texts, shares = [], []
    if surveyed.context["partial"] and codes:
        listed = ", ".join(
            f"{shorten(code, 30)} {number(surveyed.missing[code])}" for code in codes[:4]
        )
        texts.append(
            f"the log lacks a part of the context of {number(surveyed.context['partial'])} of"
            f" {number(turns)} trained turns ({listed})"
        )
        shares.append(surveyed.missing[codes[0]] / turns)
    if inferred:
        texts.append(
            f"the tools of {counted(inferred, 'sample')} are inferred from the calls, so they are"
            " only those that will be called, unlike at inference"
        )
        shares.append(inferred / max(surveyed.samples, 1))
    if not texts:
        return
    supplied = [name for name in _SUPPLIED if name in codes or (inferred and name == "tools")]
    commands = tuple(_captures(surveyed)) if inferred else ()
    how = " and ".join(_SUPPLIED[name] for name in supplied)
    text = "; ".join(texts)
    yield Advice(
        max(shares),
        f"{text[0].upper()}{text[1:]}.",
        f"Supply them with {how}" + (", which this captures:" if commands else "")
        if supplied
        else "`verify.context: logged` leaves these turns out",
        commands=commands,
        training=True,
    )


def _thoughts(surveyed: Survey) -> Iterator[Advice]:
    dropped = surveyed.changes["reasoning_dropped"]
    if dropped:
        yield Advice(
            min(dropped / max(surveyed.turns, 1), 1.0),
            f"{counted(dropped, 'thought')} left out: a model trained on this answers without"
            " thinking.",
            "`normalize.reasoning: keep` with `normalize.unit: query` (`--preset sft-thinking`)",
            "more samples, which repeat their context",
            training=True,
        )


def _refused(surveyed: Survey) -> Iterator[Advice]:
    counts = [(surveyed.failed[code], what) for code, what in _STOPPED]
    turns = sum(count for count, _ in counts)  # a turn with both counts twice: it is rare
    if not turns:
        return
    listed = " and ".join(f"{number(count)} {what}" for count, what in counts if count)
    yield Advice(
        min(turns / max(surveyed.turns, 1), 1.0),
        f"{counted(turns, 'trained turn')} with calls that were not wanted ({listed}): a model"
        " trained on this makes such calls.",
        "`--preset agentic`, or `train: {denied: mask, interrupted: mask}` with"
        " `normalize.untrained_turns: weight`",
        f"{counted(turns, 'turn')} fewer to train on; they stay as context, with weight 0",
        training=True,
    )


def _long(surveyed: Survey) -> Iterator[Advice]:
    if not surveyed.has_tokens:
        return
    beyond = sum(count for tokens, count in surveyed.lengths.items() if tokens > LONG)
    if beyond:
        tokens = sum(tokens * count for tokens, count in surveyed.lengths.items() if tokens > LONG)
        share = tokens / max(surveyed.tokens, 1)
        yield Advice(
            beyond / max(surveyed.samples, 1),
            f"{counted(beyond, 'sample')} ({percent(share)} of the tokens) longer than"
            f" {number(LONG)} tokens, which trainers cut or few machines can hold.",
            f"`limits: {{max_tokens: {LONG}, too_long: split}}`",
            "windows repeat the system prompt, the tools and the first message",
            training=True,
        )


def _of_finding(finding: AuditFinding, samples: int, manifest: Manifest) -> Advice | None:
    """Returns the remedy of a finding that is still in the dataset, or None.

    Secrets count as affecting every sample, except for those that were left by design.
    """
    option = _REMEDIES.get(finding.code) or _REMEDIES.get(finding.audit)
    if finding.gate is not GateAction.report or not option or not finding.count:
        return None
    share = finding.samples / max(samples, 1)
    if manifest.leaves_by_design(finding.audit, finding.code):
        option = SECRETS_LEFT
    elif finding.audit == "secrets":
        share = 1.0
    if finding.code == UNMAPPED:
        text = f"{finding.message[0].upper()}{finding.message[1:]}."
        return Advice(share, text, option, training=True)
    where = f"{number(finding.count)} in {counted(finding.samples, 'sample')}"
    return Advice(share, f"{shorten(finding.code, 40)}, {where}: {finding.message}.", option)


def percent(share: float) -> str:
    """Formats a share so that 100 % and 0 % appear only if they are exact."""
    if 0 < share < 1:
        share = min(max(share, 0.001), 0.999)
    return f"{100 * share:.1f} %".replace(".0 %", " %")
