"""Renders the first screen of a report: is the dataset ready, and what should be done first?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from builder.audit.result import Audit, AuditFinding, GateAction
from builder.codes import AUDIT_OPTIONS, SECRETS_LEFT, meaning
from builder.normalize.options import NormalizeOptions
from builder.normalize.remedies import remedy
from builder.output.manifest import Manifest
from builder.report.html import EMPTY, Html, counted, join, prose, shorten, statement, tag, text
from builder.report.ledger_stages import LedgerCounts
from builder.report.survey import Survey
from builder.text import number
from builder.verify.options import mode_named

ADVICE = 5
"""Number of recommendations shown; everything else is in the sections below."""

_REMEDIES = {
    **{name: f"`{option}`" for name, option in AUDIT_OPTIONS.items()},
    "contaminated": "Remove the samples that `builder audit --contamination` names.",
}


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding, the share of the dataset that it affects, and its remedy.

    Code in `remedy` is between backticks.
    """

    share: float
    finding: str
    remedy: str


def verdict(
    found: Survey, ledger: LedgerCounts | None, manifest: Manifest, audit: Audit | None
) -> Html:
    """Returns the verdict: what is proven, the main counts, the losses, and what to do first."""
    parts = (
        _sentence(found, manifest, audit),
        _converted(audit),
        _shares(found, manifest, audit),
        _lost(ledger),
        _advice(found, ledger, manifest, audit),
    )
    return join(parts)


def _samples(found: Survey, manifest: Manifest, audit: Audit | None) -> int:
    """Returns the number of samples; without a manifest, some rows may not be samples."""
    return audit.samples if audit is not None and manifest.is_empty else found.samples


def _sentence(found: Survey, manifest: Manifest, audit: Audit | None) -> Html:
    if not found.samples:
        return statement("No samples. ", "There is nothing to train on here.", "verdict open")
    turns = f" with {number(found.turns)} trained turns" if found.turns else ""
    samples = _samples(found, manifest, audit)
    rows = f"{number(samples)} of {number(found.samples)} rows are samples"
    head = rows if samples != found.samples else f"{number(samples)} samples"
    head += f"{turns}. "
    if not manifest.tokenizer.template_sha256:
        words = (
            "There is no manifest: this dataset was not made by `builder build`. Check it with"
            " `builder verify`."
        )
        return statement(f"{head}Not proven. ", words, "verdict open")
    words = (
        "its text is what the tokenizer's own chat template renders for the conversation, and it"
        " parses back to the same messages. Parity with inference and the level of context of each"
        " trained turn are counted below."
    )
    return statement(f"{head}Every sample is proven in bytes: ", words, "verdict good")


def _converted(audit: Audit | None) -> Html:
    """Returns how many rows were converted from which form, and the changes this made."""
    if audit is None or not audit.read_as:
        return EMPTY
    rows = audit.samples + sum(item.count for item in audit.findings if item.code == "bad_row")
    forms = ", ".join(
        f"{number(count)} of {number(rows)} rows {'was' if count == 1 else 'were'} read as {form}"
        for form, count in sorted(audit.read_as.items())
    )
    changed = ", ".join(f"{code} {number(n)}" for code, n in sorted(audit.conversion.items()))
    words = f"{forms}. Changed by the conversion: {changed}." if changed else f"{forms}."
    return statement("Converted from other forms: ", words)


def _shares(found: Survey, manifest: Manifest, audit: Audit | None) -> Html:
    """Returns the main counts and shares with their labels."""
    tiles: list[tuple[str, str]] = [("samples", number(_samples(found, manifest, audit)))]
    if found.has_tokens:
        tiles.append(("tokens", number(found.tokens)))
    trained = audit.facts.trained if audit is not None else None
    if trained is not None:
        label = "of the text is trained"
        if found.has_tokens:
            label += f", about {number(_about(found.tokens * trained))} tokens"
        tiles.append((label, _percent(trained)))
    if found.turns:
        tiles.append(("trained turns", number(found.turns)))
    mode = mode_named(manifest.mode)
    if found.turns and mode in found.parity:
        share = found.parity[mode] / found.turns
        tiles.append((f"trained turns in the bytes of {mode} inference", _percent(share)))
    levels = found.context
    if levels.total():
        known = levels["proven"] + levels["rendered"]
        tiles.append(("context as the model saw it (proven or rendered)",
                      _percent(known / levels.total())))  # fmt: skip
    if found.calls:
        tiles.append(("tool calls", number(found.calls)))
    drawn = [tag("div", tag("dd", text(value)), tag("dt", text(name))) for name, value in tiles]
    return tag("dl", *drawn, class_="tiles")


def _about(value: float) -> int:
    """Rounds an estimate to two significant digits."""
    unit: int = 10 ** max(len(str(int(value))) - 2, 0)
    return round(value / unit) * unit


def _lost(ledger: LedgerCounts | None) -> Html:
    if ledger is None:
        return EMPTY
    lost = [
        f"{number(loss.count)} of {number(stage.found)} {stage.unit} {loss.name}"
        for stage in (ledger.records, ledger.conversations, ledger.calls)
        for loss in stage.losses
        if loss.count and not loss.by_design
    ]
    words = "; ".join(lost) if lost else "nothing"
    return statement("Lost: ", f"{words}.")


def _advice(
    found: Survey, ledger: LedgerCounts | None, manifest: Manifest, audit: Audit | None
) -> Html:
    ranked = sorted(advice(found, ledger, manifest, audit), key=lambda item: -item.share)
    if not ranked:
        return EMPTY
    items = [tag("li", text(f"{item.finding} "), prose(item.remedy)) for item in ranked[:ADVICE]]
    return tag("section", tag("h3", text("What to do first")), tag("ol", *items, class_="advice"))


def advice(
    found: Survey, ledger: LedgerCounts | None, manifest: Manifest, audit: Audit | None
) -> Iterator[Advice]:
    """Yields everything that has a remedy, unordered."""
    for finding in audit.findings if audit is not None else ():
        if advised := _of_finding(finding, found.samples, manifest):
            yield advised
    if ledger is not None:
        for loss in ledger.conversations.losses:
            for code, count in loss.codes:
                if option := remedy(code, NormalizeOptions()):
                    share = count / max(ledger.conversations.found, 1)
                    lost = f"{counted(count, 'conversation')} rejected ({shorten(code, 40)})"
                    yield Advice(share, f"{lost}: {meaning(code) or code}.", f"`{option}`")
    mode = mode_named(manifest.mode)
    if found.turns and mode in found.parity and found.parity[mode] < found.turns:
        missing = found.turns - found.parity[mode]
        yield Advice(
            missing / found.turns,
            f"{counted(missing, 'trained turn')} without parity with {mode} inference: the"
            " template writes an empty think block before the last turn only. One sample for each"
            " turn, or a template without thoughts, makes the bytes equal.",
            "`normalize.unit: turn`",
        )
    if found.context.total() and found.context["partial"]:
        partial = found.context["partial"]
        missing_codes = ", ".join(shorten(code, 30) for code, _ in found.missing.most_common(4))
        yield Advice(
            partial / found.context.total(),
            f"{counted(partial, 'trained turn')} whose context is only partly known (missing:"
            f" {missing_codes}). Supply the prompt and the tools if you have them.",
            "`inputs[].system, inputs[].tools`",
        )
    sources = found.by_field.get("tools_source", Counter[str]())
    inferred = sources["inferred"] + sources["mixed"]
    if inferred:
        yield Advice(
            inferred / max(found.samples, 1),
            f"{counted(inferred, 'sample')} with tool definitions inferred from the calls: they"
            " name only the tools that will be called, unlike the definitions at inference.",
            "`inputs[].tools: tools.json`",
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
    where = f"{number(finding.count)} in {counted(finding.samples, 'sample')}"
    return Advice(share, f"{shorten(finding.code, 40)}, {where}: {finding.message}.", option)


def _percent(share: float) -> str:
    """Formats a share so that 100 % and 0 % appear only if they are exact."""
    if 0 < share < 1:
        share = min(max(share, 0.001), 0.999)
    return f"{100 * share:.1f} %".replace(".0 %", " %")
