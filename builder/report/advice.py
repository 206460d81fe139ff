"""Says what to do first with a dataset: findings, each with its remedies and their prices.

The report, the viewer and the summary of a build show the same judgements and the same advice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from builder.audit.result import Audit, AuditFinding, GateAction
from builder.audit.unread import UNMAPPED
from builder.codes import AUDIT_OPTIONS, SECRETS_LEFT, meaning
from builder.ledger import Ledger, ranked
from builder.normalize.captured import definitions_command
from builder.normalize.remedies import recovery
from builder.normalize.targets import LOST, UNTRAINED
from builder.output.manifest import Manifest
from builder.qwen3.parity import MODES
from builder.qwen3.style import SPECIFIED, Thoughts
from builder.qwen3.templates import TEMPLATES
from builder.report.html import shorten
from builder.report.judgement import Judgement, judgements, percent
from builder.report.survey import Survey, with_contexts
from builder.text import counted, number
from builder.trainers import LONG
from builder.verify.options import mode_named

_REMEDIES = {
    **{name: f"`{option}`" for name, option in AUDIT_OPTIONS.items()},
    UNMAPPED: "Name what the model saw in the mapping: calls, results, texts (docs/mapping.md).",
    "contaminated": "Remove the samples that `builder audit --contamination` names.",
}
_SUPPLIED = {
    "tools": "the tools with `--tools FILE` (`inputs[].tools`)",
    "system": "the system prompt with `--system FILE` (`inputs[].system`)",
}
"""How the user can supply what the log lacks of a context."""
_MISSING = {"system": "system prompt", "reminders": "reminders of the agent program"}
"""Words for codes of what a context lacks; the others are words themselves."""
_OF_A_MERGE = ("`audit.near_duplicates", "`select.", "Remove the samples", "Run the model")
"""Beginnings of the remedies that apply to a merged dataset itself."""
_THINKING = 0.1
"""The share of turns with thoughts from which on training them is advised."""
_STOPPED = (("denied", "refused by the user or a policy"), ("interrupted", "interrupted"))
"""Failures of calls that are no fault of the tool, with words for them."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What can be done: code is between backticks, and `commands` are ready to paste.

    `price` is what it costs, or "".
    """

    text: str
    price: str = ""
    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding in a sentence, the share of the dataset that it affects, and what can be done.

    `detail` has more on the finding, or "". The first of the `remedies` costs least. `training`: it
    changes what a model learns; other advice is about losses, or about publishing.
    """

    share: float
    finding: str
    remedies: tuple[Remedy, ...]
    detail: str = ""
    training: bool = False


def judge(
    surveyed: Survey, manifest: Manifest, audit: Audit | None
) -> tuple[list[Judgement], list[Advice]]:
    """Returns the judgements on a dataset, and the advice, that of the largest effect first."""
    surveyed = with_contexts(surveyed, manifest)
    advised = sorted(advice(surveyed, manifest, audit), key=lambda item: -item.share)
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
    for finding in audit.findings if audit is not None else ():
        if advised := _of_finding(finding, surveyed.samples, manifest):
            yield advised
    if manifest.ledger is not None:
        yield from _recoverable(manifest.ledger)
    queries = audit.facts.query_tokens if audit is not None else 0
    yield from _matching(surveyed, manifest, queries)
    yield from _context(surveyed, given=manifest.has_given_tools)
    yield from _thoughts(surveyed, manifest, queries)
    yield from _refused(surveyed)
    yield from _unwritable(surveyed, manifest)
    yield from _long(surveyed, manifest)
    yield from _windows(surveyed)


def _recoverable(ledger: Ledger) -> Iterator[Advice]:
    for code in ledger.recoverable:
        count, option = recovery(ledger, code)
        if not count:
            continue
        lost = f"{counted(ledger.conversations_rejected[code], 'conversation')} rejected"
        kept = counted(count, "conversation")
        yield Advice(
            count / max(ledger.found, 1),
            f"{lost} ({shorten(code, 40)}): {meaning(code) or code}.",
            (Remedy(f"`{option}` keeps {kept}"),),
        )


def _matching(surveyed: Survey, manifest: Manifest, queries: int) -> Iterator[Advice]:
    mode = mode_named(manifest.mode)
    if not surveyed.turns or mode not in surveyed.parity or surveyed.parity[mode] >= surveyed.turns:
        return
    differing = surveyed.turns - surveyed.parity[mode]
    model = manifest.tokenizer.template_name or manifest.tokenizer.name or "the model"
    known = TEMPLATES.get(manifest.tokenizer.template_sha256)
    detail = "At inference, the model sees other bytes before these turns."
    is_hybrid = known is not None and known.style.thoughts is Thoughts.hybrid
    if is_hybrid and mode == "non-thinking":
        detail = (
            "At inference, the template writes an empty think block before every answer; in a"
            " sample, only before the last one."
        )
    remedies = tuple(_matching_more(surveyed, manifest, mode, queries))
    if remedies:
        yield Advice(
            differing / surveyed.turns,
            f"{number(differing)} of {number(surveyed.turns)} trained turns do not match {mode}"
            f" inference of {model}.",
            remedies,
            detail,
            training=True,
        )


def _matching_more(
    surveyed: Survey, manifest: Manifest, mode: str, queries: int
) -> Iterator[Remedy]:
    """Yields what makes more turns match inference, that with the fewest tokens first.

    `queries` are the tokens of a sample for each question.
    """
    for other in MODES:
        count = surveyed.parity[other]
        if count > surveyed.parity[mode]:
            matching = "all" if count == surveyed.turns else number(count)
            answers = surveyed.by_field.get("reasoning", Counter[str]())["kept"]
            silent = other == "thinking" and not answers
            yield Remedy(
                f"Run the model in {other} mode, where {matching} match (`verify.mode: {other}`"
                " measures that)",
                "no more tokens" + (", but it will answer without thinking" if silent else ""),
            )
    known = TEMPLATES.get(manifest.tokenizer.template_sha256)
    if known is not None and known.style == SPECIFIED:  # the other writes all else as this one
        yield Remedy(
            "Train a model whose template has no thoughts"
            " (`--tokenizer Qwen/Qwen3-4B-Instruct-2507`)",
            "no more tokens, another model",
        )
    by_query = known is not None and known.style.thoughts is Thoughts.current
    if manifest.unit == "conversation" and by_query:
        yield Remedy(
            "Write a sample for each question (`normalize.unit: query`): the template shows the"
            " turns since the last question as at inference",
            _times(queries, surveyed),
        )
    if manifest.unit != "turn":
        price = _times(surveyed.turn_tokens, surveyed)
        yield Remedy("Write a sample for each turn (`normalize.unit: turn`)", price)


def _times(tokens: int, surveyed: Survey) -> str:
    """Returns the price of a dataset of so many tokens; "" if it is no larger than this one."""
    times = tokens / surveyed.tokens if surveyed.tokens else 0
    return f"about {times:.1f} times the tokens" if times > 1 else ""


def _captures(surveyed: Survey) -> Iterator[str]:
    """Yields the commands that capture the missing definitions of agents, with the usual model."""
    for agent, models in sorted(surveyed.inferred.items(), key=lambda item: -item[1].total()):
        named = next((model for model, _ in ranked(models) if model), None)
        command = definitions_command(agent, named)
        if command is not None:
            yield command


def _context(surveyed: Survey, *, given: bool) -> Iterator[Advice]:
    sources = surveyed.by_field.get("tools_source", Counter[str]())
    inferred = sources["inferred"] + sources["mixed"]
    turns, partial = surveyed.context.total(), surveyed.context["partial"]
    missing = surveyed.missing - surveyed.supplied
    codes = [code for code, _ in missing.most_common() if not (inferred and code == "tools")]
    own = [name for name in _SUPPLIED if surveyed.missing[name] and surveyed.supplied[name]]
    texts, shares = [], []
    if partial and codes:
        listed = ", ".join(
            f"{_MISSING.get(code) or shorten(code.replace('_', ' '), 30)} {number(missing[code])}"
            for code in codes[:4]
        )
        texts.append(
            f"{number(partial)} of {number(turns)} trained turns lack a part of what the model saw:"
            f" {listed}."
        )
        shares.append(missing[codes[0]] / turns)
    if inferred:
        whose = f"The tools of {counted(inferred, 'sample')}"
        whose += f" that no file you supplied defines ({surveyed.agents})" if given else ""
        texts.append(
            f"{whose} are inferred from the calls: only tools that are called are shown, unlike at"
            " inference."
        )
        shares.append(inferred / max(surveyed.samples, 1))
    if texts:
        supplied = [name for name in _SUPPLIED if name in codes or (inferred and name == "tools")]
        if own:
            named = " and ".join(f"the {_MISSING.get(name, name)}" for name in own)
            texts.append(f"You supplied {named}, which the log neither has nor confirms.")
        detail = " ".join(texts[1:])
        remedies = (_supply(surveyed, supplied, inferred, given=given),)
        yield Advice(max(shares), texts[0], remedies, detail, training=True)


def _supply(surveyed: Survey, names: Sequence[str], inferred: int, *, given: bool) -> Remedy:
    """Returns how the user supplies what the log lacks, or else leaves such samples out."""
    if not names:
        return Remedy(
            "`verify.context: logged` leaves out the samples with such turns", "these samples"
        )
    commands = tuple(_captures(surveyed)) if inferred else ()
    how = " and ".join(_SUPPLIED[name] for name in names)
    how = how.replace("the tools", "those tools, of the versions in the logs,") if given else how
    return Remedy(
        f"Supply {how}" + (". This captures them:" if commands else ""),
        commands=commands,
    )


def _thoughts(surveyed: Survey, manifest: Manifest, queries: int) -> Iterator[Advice]:
    dropped = surveyed.changes["reasoning_dropped"]
    remedy = _with_thoughts(manifest, _times(queries, surveyed))
    share = min(dropped / max(surveyed.turns, 1), 1.0)
    if share >= _THINKING and remedy is not None:
        yield Advice(
            share,
            f"{counted(dropped, 'thought')} left out: a model trained on this answers without"
            " thinking.",
            (remedy,),
            training=True,
        )


def _with_thoughts(manifest: Manifest, times: str) -> Remedy | None:
    """Returns what keeps thoughts that were left out; None if the template shows none of them.

    `times` is the price of a sample for each question.
    """
    known = TEMPLATES.get(manifest.tokenizer.template_sha256)
    shows = known.style.thoughts if known is not None else Thoughts.hybrid
    if not shows.has_blocks:
        return None
    if shows is Thoughts.every or manifest.unit in ("query", "turn"):
        is_set = manifest.reasoning == "keep"
        price = "the tokens of the thoughts"
        return None if is_set else Remedy("`normalize.reasoning: keep`", price)
    price = f"{times}, and those of the thoughts" if times else "the tokens of the thoughts"
    return Remedy(
        "Write a sample for each question, with its thoughts (`normalize.reasoning: keep` and"
        " `normalize.unit: query`)",
        price,
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
        (
            Remedy(
                "`--preset agentic`, or `train: {denied: mask, interrupted: mask}` with"
                " `normalize.untrained_turns: weight`",
                f"{counted(turns, 'turn')} fewer to train on; they stay as context, with weight 0",
            ),
        ),
        training=True,
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
        f"{counted(turns, 'turn')} not trained: the parser of a server would read their calls, as"
        f" {named} writes them, otherwise ({listed}). They stay as context.",
        (
            *([typed] if surveyed.changes[f"{UNTRAINED}xml_types"] else []),
            Remedy(
                "Train a model whose calls are JSON (`--tokenizer Qwen/Qwen3-4B-Instruct-2507`)",
                "no more tokens, another model",
            ),
        ),
        "docs/templates.md has the values that XML cannot hold.",
        training=True,
    )


def _windows(surveyed: Survey) -> Iterator[Advice]:
    if surveyed.windows:
        yield Advice(
            surveyed.window_turns / max(surveyed.turns, 1),
            f"{counted(surveyed.windows, 'sample')} with"
            f" {counted(surveyed.window_turns, 'trained turn')} lack earlier turns of their"
            " conversation, which were left out for the length: the model answered with them.",
            (Remedy("`limits.max_tokens`: a larger number", "longer samples"),),
            training=True,
        )


def _long(surveyed: Survey, manifest: Manifest) -> Iterator[Advice]:
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
            (
                Remedy(
                    f"`limits: {{max_tokens: {LONG}, too_long: split}}`",
                    _price_of_windows(manifest),
                ),
            ),
            training=True,
        )


def _price_of_windows(manifest: Manifest) -> str:
    lacks = "their context lacks turns between"
    if manifest.unit != "conversation":
        return "the context of such samples lacks turns between the first message and the last"
    return f"windows repeat the system prompt, the tools and the first message; {lacks}"


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
        return Advice(share, text, (Remedy(option),), training=True)
    where = f"{number(finding.count)} in {counted(finding.samples, 'sample')}"
    text = f"{shorten(finding.code, 40)}, {where}: {finding.message}."
    return Advice(share, text, (Remedy(option),))
