"""Says what to do first with a dataset: findings, each with its remedies and their prices.

The report, the viewer and the summary of a build show the same judgements and the same advice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from builder.audit.benchmarks import EVALUATION_RUN
from builder.audit.result import Audit, AuditFacts, AuditFinding, GateAction
from builder.audit.unread import UNMAPPED
from builder.codes import AUDIT_OPTIONS, SECRETS_LEFT, is_loss, meaning
from builder.ledger import Ledger
from builder.normalize.remedies import JOINED, recovery
from builder.output.manifest import Manifest
from builder.report.context_advice import of_context
from builder.report.html import shorten
from builder.report.judgement import Judgement, judgements
from builder.report.model_advice import of_model
from builder.report.remedy import Advice, Remedy
from builder.report.survey import Survey, with_contexts
from builder.text import counted, number, percent
from builder.trainers import LONG

_BENCHMARKS = AUDIT_OPTIONS[EVALUATION_RUN]
_REMEDIES = {
    **{name: f"`{option}`" for name, option in AUDIT_OPTIONS.items()},
    UNMAPPED: "Name what the model saw in the mapping: calls, results, texts (docs/mapping.md).",
    EVALUATION_RUN: f"Never measure the model on them, or leave them out: `{_BENCHMARKS}`",
    "contaminated": "Remove the samples that `builder audit --contamination` names.",
}
_SEVERITY = {UNMAPPED: 1.0, "contaminated": 1.0, "near_duplicate": 0.3}
_OF_A_MERGE = ("`audit.near_duplicates", "`select.", "Remove the samples", "Run the model")
"""Beginnings of the remedies that apply to a merged dataset itself."""
_STOPPED = (("denied", "refused by the user or a policy"), ("interrupted", "interrupted"))
"""Failures of calls that are no fault of the tool, with words for them."""


def judge(
    surveyed: Survey, manifest: Manifest, audit: Audit | None
) -> tuple[list[Judgement], list[Advice]]:
    """Returns the judgements on a dataset, and the advice, that of the largest effect first."""
    surveyed = with_contexts(surveyed, manifest)
    advised = sorted(advice(surveyed, manifest, audit), key=lambda item: -item.effect)
    if manifest.merged:
        advised = [_of_the_parts(item) for item in advised]
    return list(judgements(surveyed, manifest)), advised


def _of_the_parts(advised: Advice) -> Advice:
    """Returns advice for a merged dataset: most of it is for the builds of its parts."""
    remedies = [
        remedy
        if remedy.text.startswith(_OF_A_MERGE)
        else replace(remedy, text=f"In the builds that were merged: {remedy.text}")
        for remedy in advised.remedies
    ]
    return replace(advised, remedies=tuple(remedies))


def advice(surveyed: Survey, manifest: Manifest, audit: Audit | None) -> Iterator[Advice]:
    """Yields everything that has a remedy, unordered."""
    findings = audit.findings if audit is not None else ()
    for name, found in groupby(findings, key=lambda finding: finding.audit):
        yield from _of_findings(name, [*found], surveyed.samples, manifest)
    if manifest.ledger is not None:
        yield from _recoverable(manifest.ledger)
    facts = audit.facts if audit is not None else AuditFacts()
    yield from of_model(surveyed, manifest, facts)
    yield from of_context(surveyed, facts.inferred_tools, given=manifest.has_given_tools)
    yield from _refused(surveyed)
    yield from _long(surveyed, manifest)
    yield from _windows(surveyed, manifest)


def _recoverable(ledger: Ledger) -> Iterator[Advice]:
    for code in ledger.recoverable:
        count, option = recovery(ledger, code)
        if not count or not is_loss(code):  # else it was asked for
            continue
        lost = f"{counted(ledger.conversations_rejected[code], 'conversation')} rejected"
        kept = counted(count, "conversation")
        options = JOINED.join(f"`{part}`" for part in option.split(JOINED))
        yield Advice(
            count / max(ledger.found, 1),
            f"{lost} ({shorten(code, 40)}): {meaning(code) or code}.",
            (Remedy(f"{options} keeps {kept}"),),
            severity=0.5,
        )


def _refused(surveyed: Survey) -> Iterator[Advice]:
    counts = [(surveyed.failed[code], what) for code, what in _STOPPED]
    turns = sum(count for count, _ in counts)  # a turn with both counts twice: it is rare
    if not turns:
        return
    listed = " and ".join(f"{number(count)} {what}" for count, what in counts if count)
    yield Advice(
        min(turns / max(surveyed.turns, 1), 1.0),
        f"{counted(turns, 'trained turn')} with calls that were not wanted ({listed}): the model"
        " learns to make them.",
        (
            Remedy(
                "`train: {denied: mask, interrupted: mask}`",
                f"{counted(turns, 'turn')} fewer to train on; they stay as context, with weight 0",
            ),
            Remedy("`--preset agentic` does so too, for whole sessions"),
        ),
    )


def _windows(surveyed: Survey, manifest: Manifest) -> Iterator[Advice]:
    if surveyed.windows:
        most = manifest.max_tokens or LONG
        yield Advice(
            surveyed.window_turns / max(surveyed.turns, 1),
            f"{counted(surveyed.windows, 'sample')} with"
            f" {counted(surveyed.window_turns, 'trained turn')} lack earlier turns, left out for"
            " the length.",
            (Remedy(f"`limits.max_tokens: {2 * most}`", "fewer but longer samples"),),
            "The model answered with these turns in its context.",
            severity=0.3,
        )


def _long(surveyed: Survey, manifest: Manifest) -> Iterator[Advice]:
    if not surveyed.has_tokens:
        return
    beyond = sum(count for tokens, count in surveyed.lengths.items() if tokens > LONG)
    if beyond:
        tokens = sum(tokens * count for tokens, count in surveyed.lengths.items() if tokens > LONG)
        share = tokens / max(surveyed.tokens, 1)
        more = sum((tokens - 1) // LONG * count for tokens, count in surveyed.lengths.items())
        yield Advice(
            surveyed.long_turns / max(surveyed.turns, 1),
            f"{counted(beyond, 'sample')} ({percent(share)} of the tokens) longer than"
            f" {number(LONG)} tokens: trainers cut them, or run out of memory.",
            (
                Remedy(
                    f"`limits: {{max_tokens: {LONG}, too_long: split}}`",
                    f"at least {counted(more, 'sample')} more, {_lacking_in_windows(manifest)}",
                ),
            ),
            severity=0.6,
        )


def _lacking_in_windows(manifest: Manifest) -> str:
    begin = "beginning" if manifest.unit == "conversation" else "first message"
    return f"which repeat the {begin} and lack the turns after it"


def _of_findings(
    name: str, findings: list[AuditFinding], samples: int, manifest: Manifest
) -> Iterator[Advice]:
    """Yields the remedies of what an audit found and is still in the dataset.

    Findings with one remedy are one piece of advice. Secrets count as affecting every sample,
    except for those that were left by design.
    """
    by_option: dict[str, list[AuditFinding]] = {}
    for finding in findings:
        option = _REMEDIES.get(finding.code) or _REMEDIES.get(finding.audit)
        if finding.gate is GateAction.report and option and finding.count:
            is_left = manifest.leaves_by_design(finding.audit, finding.code)
            by_option.setdefault(SECRETS_LEFT if is_left else option, []).append(finding)
    for option, left in by_option.items():
        most = max(left, key=lambda finding: finding.samples)
        share, severity = most.samples / max(samples, 1), _SEVERITY.get(most.code, 0.2)
        if name == "secrets" and option is not SECRETS_LEFT:
            share, severity = 1.0, 2.0
        text = f"{most.message[:1].upper()}{most.message[1:]}"
        if len(left) > 1:
            codes = ", ".join(f"{shorten(one.code, 40)} {number(one.count)}" for one in left)
            text = f"{name[:1].upper()}{name[1:].replace('_', ' ')}, left in place: {codes}"
        elif most.code not in (UNMAPPED, EVALUATION_RUN):  # their messages count
            text += f": {number(most.count)} in {counted(most.samples, 'sample')}"
        is_dropped = most.code in (EVALUATION_RUN, "near_duplicate")
        price = f"up to {counted(most.samples, 'sample')} fewer" if is_dropped else ""
        yield Advice(share, f"{text}.", (Remedy(option, price),), severity=severity)
