"""Says in four lines what a dataset is, and how to improve it; summary, report, card show them.

A number that is shown twice comes from the same count. A price was computed, or there is none. What
no option remedies is no advice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from builder.audit.counts import SUPPLIABLE, Counts
from builder.audit.notes import EVALUATION_RUN, UNMAPPED
from builder.audit.result import Audit
from builder.capture.commands import (
    agent_command,
    definitions_command,
    definitions_file,
    logs_command,
)
from builder.codes import AUDIT_OPTIONS, SECRETS_LEFT, UNTRAINED, is_loss, is_on_request, meaning
from builder.finding import AuditFinding, GateAction
from builder.ledger import Ledger, ranked
from builder.normalize.remedies import recovery
from builder.normalize.turns import LOST
from builder.output.manifest import Manifest
from builder.qwen3.render import MODES
from builder.qwen3.templates import SPECIFIED, TEMPLATES, Template, Thoughts
from builder.text import counted, number, percent, shorten
from builder.trainers.table import LONG
from builder.verify.options import mode_named

SHOWN = 3
"""Advice that is shown first."""
_INSTRUCT = "--for Qwen3-4B-Instruct-2507"
THOUGHTS = "thoughts"
"""The topic of advice on turns without a thought."""
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
_THINKING = 0.1
"""The share of turns with thoughts from which on training them is advised."""
_WORDS = {
    "system": "prompt",
    "system_template": "the prompt as sent",
    "reminders": "reminders of the agent program",
    "history": "earlier turns as sent",
    "encrypted_context": "encrypted text",
    "server_tool": "results of the provider's tools",
    "reasoning": "earlier thoughts",
    "unknown_part": "parts of unknown kinds",
    "arguments": "exact numbers in arguments",
    "digest": "the request of which the log has a digest",
}
"""Words for codes of what a context lacks; the others are words themselves."""
_CHOSEN = {"near_duplicate": "near duplicates", "no_thought": "without a thought"}
_OPTIONS = {"tools": "--tools", "system": "--system"}
_NAMES = 4


@dataclass(frozen=True, slots=True)
class Judgement:
    """A line on a dataset: how much of it is as it should be.

    name   "text", "inference", "context" or "used"
    text   the line in words
    count  of `whole` samples, trained turns or conversations, those that are as they should be
    """

    name: str
    text: str
    count: int
    whole: int

    @property
    def is_complete(self) -> bool:
        """Returns whether nothing is missing."""
        return self.count >= self.whole

    @property
    def is_wrong(self) -> bool:
        """Returns whether the data are wrong, and not only less than they could be."""
        return self.name == "text" and not self.is_complete


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
    """A finding in a line, the share of the dataset that it affects, and what can be done.

    `remedies` begin with the best. `detail` has more on the finding, or "". `severity` is how much
    the finding changes what a model learns where it occurs: from 0, nothing, to 1, all of it; 2 is
    for what must not be trained at all. `topic` is the name of the audit that found it, or "".
    """

    share: float
    finding: str
    remedies: tuple[Remedy, ...]
    detail: str = ""
    severity: float = 1.0
    topic: str = ""

    @property
    def effect(self) -> float:
        """Returns the number by which advice is ranked: the share times the severity."""
        return self.share * self.severity


def judge(
    counts: Counts, manifest: Manifest, audit: Audit | None
) -> tuple[list[Judgement], list[Advice]]:
    """Returns the lines on a dataset, and the advice, the largest effect first."""
    counts = counts.with_contexts(manifest)
    advised = sorted(advice(counts, manifest, audit), key=lambda item: -item.effect)
    if manifest.merged:
        advised = [_of_the_parts(item) for item in advised]
    return list(judgements(counts, manifest)), advised


# -- the four lines --------------------------------------------------------------------------------


def judgements(counts: Counts, manifest: Manifest) -> Iterator[Judgement]:
    """Yields the lines that can be stated: text, inference, context, used."""
    is_verified = bool(manifest.tokenizer.template_sha256)
    text = "every sample verified byte for byte" if is_verified else "not verified"
    yield Judgement("text", text, counts.samples if is_verified else 0, max(counts.samples, 1))
    mode = mode_named(manifest.mode)
    if counts.turns and mode in counts.parity:
        match = counts.parity[mode]
        text = f"{number(match)} of {number(counts.turns)} trained turns match {mode} inference"
        yield Judgement("inference", text, match, counts.turns)
    if counts.context.total():
        yield _context(counts)
    if manifest.ledger is not None:
        yield from _used(manifest.ledger)


def _context(counts: Counts) -> Judgement:
    turns, partial = counts.context.total(), counts.context["partial"]
    lacking, supplied = _lacking(counts), min(counts.completed, partial)
    complete = turns - partial + supplied
    parts = [f"{number(complete)} of {number(turns)} complete"]
    if supplied:
        parts[0] += f", {number(supplied)} with what you supplied"
    if lacking:
        parts.append(f"{number(lacking)} lack the {_suppliable(counts)}")
    if others := turns - complete - lacking:
        what = [words for words, _ in unshowable(counts)][:3]
        named = f" ({_joined(what)})" if what else ""
        parts.append(f"{number(others)} lack what these logs do not hold{named}")
    if changed := counts.changes["other_version"]:
        parts.append(f"{counted(changed, 'sample')} with tools of another version")
    return Judgement("context", "; ".join(parts), complete, turns)


def unshowable(counts: Counts) -> Sequence[tuple[str, int]]:
    """Returns what the contexts lack and nobody can supply, with the trained turns."""
    own = Counter({"the full list of tools": min(counts.own_tools, counts.missing["tools"])})
    codes = {code: turns for code, turns in counts.missing.items() if code not in SUPPLIABLE}
    return ranked(own + Counter({_word(code): turns for code, turns in codes.items()}))


def _lacking(counts: Counts) -> int:
    """Returns how many trained turns lack what the user can supply."""
    return min(counts.lacking, counts.context["partial"], _open(counts).total())


def _open(counts: Counts) -> Counter[str]:
    """Returns the trained turns by what the user can supply, and did not, the prompt first."""
    missing = counts.missing - counts.supplied - Counter(tools=counts.own_tools)
    return Counter({name: missing[name] for name in SUPPLIABLE[::-1] if missing[name]})


def _suppliable(counts: Counts) -> str:
    names, turns = zip(*_open(counts).items(), strict=True)
    return (" or " if min(turns) < _lacking(counts) else " and ").join(map(_word, names))


def _word(code: str) -> str:
    return _WORDS.get(code) or shorten(code.replace("_", " "), 30)


def _joined(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _used(ledger: Ledger) -> Iterator[Judgement]:
    """Judges what was used of what could be trained; what was left out on request is named.

    Conversations and calls with nothing to train, and duplicates, are counted nowhere.
    """
    _, conversations, _, calls = ledger.accounts
    used, wanted = conversations.used, conversations.wanted
    if not wanted:
        return
    text = f"{number(used)} of {counted(wanted, 'conversation')}"
    if calls.wanted:
        text += f", {number(calls.used)} of {counted(calls.wanted, 'call')}"
    larger = ledger.conversations_rejected | ledger.samples_left_out
    of_calls = {code: n for code, n in ledger.calls_dropped.items() if code not in larger}
    chosen = [
        f"{_CHOSEN.get(code, code.replace('_', ' '))} {count}"
        for code, count in (
            *((code, number(count)) for code, count in ranked(larger) if count),
            *((code, counted(count, "call")) for code, count in ranked(of_calls)),
        )
        if is_on_request(code)
    ]
    if chosen:
        text += f"; left out on request: {', '.join(chosen)}"
    yield Judgement("used", text, wanted - conversations.lost, wanted)


# -- advice ----------------------------------------------------------------------------------------


def advice(counts: Counts, manifest: Manifest, audit: Audit | None) -> Iterator[Advice]:
    """Yields everything that has a remedy, unordered."""
    for name, found in groupby(audit.findings if audit else (), key=lambda one: one.audit):
        yield from _of_findings(name, [*found], counts.samples, manifest)
    if manifest.ledger is not None:
        yield from _recoverable(manifest.ledger)
    yield from _matching(counts, manifest)
    yield from _thoughts(counts, manifest)
    yield from _unwritable(counts, manifest)
    yield from _incomplete(counts, manifest, audit.inferred if audit else {})
    yield from _gaps(counts)
    yield from _refused(counts)
    yield from _lengths(counts, manifest)


def _of_the_parts(advised: Advice) -> Advice:
    """Returns advice for a merged dataset: most of it is for the builds of its parts."""
    remedies = [
        remedy
        if remedy.text.startswith(_OF_A_MERGE)
        else replace(remedy, text=f"In the builds that were merged: {remedy.text}")
        for remedy in advised.remedies
    ]
    return replace(advised, remedies=tuple(remedies))


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
        yield Advice(share, f"{text}.", (Remedy(option, price),), severity=severity, topic=name)


def _recoverable(ledger: Ledger) -> Iterator[Advice]:
    for code in ledger.recoverable:
        count, option = recovery(ledger, code)
        if not count or not is_loss(code):  # else it was asked for
            continue
        lost = f"{counted(ledger.conversations_rejected[code], 'conversation')} rejected"
        yield Advice(
            count / max(ledger.found, 1),
            f"{lost} ({shorten(code, 40)}): {meaning(code) or code}.",
            (Remedy(f"`{option}` keeps {counted(count, 'conversation')}"),),
            severity=0.5,
        )


def _known(manifest: Manifest) -> Template | None:
    return TEMPLATES.get(manifest.tokenizer.template_sha256)


def _times(tokens: int, counts: Counts) -> str:
    """Returns what a dataset with so many tokens costs; "" if it is no larger than this one."""
    times = tokens / counts.tokens if counts.tokens else 0
    return f"about {times:.1f} times the tokens" if times > 1 else ""


def _matching(counts: Counts, manifest: Manifest) -> Iterator[Advice]:
    mode, known = mode_named(manifest.mode), _known(manifest)
    if not counts.turns or mode not in counts.parity or counts.parity[mode] >= counts.turns:
        return
    differing = counts.turns - counts.parity[mode]
    model = manifest.tokenizer.template_name or manifest.tokenizer.name or "the model"
    shows = known.style.thoughts if known is not None else None
    detail = f"At inference, {model} sees other bytes before these turns."
    if shows is Thoughts.hybrid and mode == "non-thinking":
        detail = (
            "At inference, the template writes an empty think block before every answer; in a"
            " sample, only before the last one."
        )
    verb = "does" if differing == 1 else "do"
    finding = (
        f"{number(differing)} of {counted(counts.turns, 'trained turn')} {verb} not match"
        f" {mode} inference: in use, the model may act otherwise."
    )
    # QwQ thinks, and its samples have no thoughts.
    never = shows in (Thoughts.last, Thoughts.dropped)
    if never and not any(counts.parity.values()):
        finding = (
            f"No trained turn matches inference: {model} begins every answer with a thought, but"
            " its template takes thoughts out of the history, so its samples have none."
        )
    # The other model writes all else as this one.
    is_alike = known is not None and (
        known.style == SPECIFIED or (never and known.style.is_specified)
    )
    if remedies := tuple(_matching_more(counts, manifest, mode, is_alike=is_alike)):
        yield Advice(differing / counts.turns, finding, remedies, detail)


def _matching_more(
    counts: Counts, manifest: Manifest, mode: str, *, is_alike: bool
) -> Iterator[Remedy]:
    """Yields what makes more turns match inference, the best first.

    Those without more tokens come before those with more of them. Without thoughts to train, a
    model without thoughts is before a mode in which it would think.
    """
    known = _known(manifest)
    has_thoughts = bool(counts.by_field.get("reasoning", Counter[str]())["kept"])
    modes = []
    for other in MODES:  # the bytes of the data stay the same
        if (count := counts.parity[other]) > counts.parity[mode]:
            matching = "all" if count == counts.turns else number(count)
            silent = other == "thinking" and not has_thoughts
            text = f"Use the model in {other} mode, where {matching} match: `verify.mode: {other}`"
            silence = "; trained without thoughts, it writes none" if silent else ""
            modes.append(Remedy(text, f"the same data{silence}"))
    text = f"Train a model whose template has no thoughts: `{_INSTRUCT}`"
    without = [Remedy(text, "no more tokens, another model")] if is_alike else []
    yield from (*modes, *without) if has_thoughts else (*without, *modes)
    # A smaller unit ends samples at more turns: futile if no turn matches where samples end now,
    # or if the others have thoughts, which the prompt of this mode excludes.
    thoughts = counts.thinking if mode == "non-thinking" else 0
    if not 0 < counts.parity[mode] < counts.turns - thoughts:
        return
    by_query = known is not None and known.style.thoughts is Thoughts.current
    if manifest.unit != "turn":
        most = number(counts.turns - thoughts)
        text = f"Write a sample for each turn, where up to {most} match (`normalize.unit: turn`)"
        yield Remedy(text, _times(counts.turn_tokens, counts))
    if manifest.unit == "conversation" and by_query:
        text = "Write a sample for each question, where fewer match (`normalize.unit: query`)"
        yield Remedy(text, _times(counts.query_tokens, counts))


def _thoughts(counts: Counts, manifest: Manifest) -> Iterator[Advice]:
    """Yields advice on thoughts that were left out, and on turns without one."""
    turns, dropped, known = counts.turns, counts.changes["reasoning_dropped"], _known(manifest)
    shows = known.style.thoughts if known is not None else Thoughts.hybrid
    remedies: tuple[Remedy, ...] = ()
    if not shows.has_blocks:
        pass
    elif shows is Thoughts.every or manifest.unit in ("query", "turn"):
        if manifest.reasoning != "keep":
            remedies = (Remedy("`normalize.reasoning: keep`", "the tokens of the thoughts"),)
    else:
        times = _times(counts.query_tokens, counts)
        remedies = (
            Remedy("A sample for each question, trained where it has a thought:"
                   " `--preset sft-thinking`"),
            Remedy("The same with all its turns: `normalize.reasoning: keep` and"
                   " `normalize.unit: query`",
                   f"{times}, and those of the thoughts" if times else ""),
        )  # fmt: skip
    share = min(dropped / max(turns, 1), 1.0)
    if share >= _THINKING and remedies:
        text = f"{counted(dropped, 'thought')} left out: the model learns to answer without."
        yield Advice(share, text, remedies, severity=0.6)
    if 0 < counts.thinking < turns:
        mask = Remedy(
            "Train only these: `normalize.mask: [no_thought, rewound]`",
            f"{counted(turns - counts.thinking, 'trained turn')} fewer; they stay as context",
        )
        plain = Remedy("Train answers without thoughts: `--preset sft`", "the thoughts")
        verb = "has" if counts.thinking == 1 else "have"
        text = (
            f"{number(counts.thinking)} of {counted(turns, 'trained turn')} {verb} a thought; the"
            " others teach to answer without one."
        )
        both = (plain, mask) if counts.thinking < _THINKING * turns else (mask, plain)
        yield Advice((turns - counts.thinking) / turns, text, both, severity=0.5, topic=THOUGHTS)


def _unwritable(counts: Counts, manifest: Manifest) -> Iterator[Advice]:
    """Yields advice on turns that a target with XML calls cannot hold as they were made."""
    lost = [(code, counts.changes[f"{UNTRAINED}{code}"]) for code in LOST]
    turns = sum(count for _, count in lost)
    if not turns:
        return
    target = manifest.tokenizer.template_name or "the target"
    listed = ", ".join(f"{code} {number(count)}" for code, count in lost if count)
    remedies = [Remedy(f"Train a model whose calls are JSON (`{_INSTRUCT}`)",
                       "no more tokens, another model")]  # fmt: skip
    if counts.changes[f"{UNTRAINED}xml_types"]:
        remedies.insert(0, Remedy("Supply typed definitions (`--tools FILE`), for `xml_types`"))
    text = (
        f"{counted(turns, 'turn')} not trained: a server would read their calls, as {target} writes"
        f" them, otherwise ({listed})."
    )
    detail = "docs/choose.md has the values that XML cannot hold."
    yield Advice(turns / max(turns + counts.turns, 1), text, tuple(remedies), detail)


def _incomplete(
    counts: Counts, manifest: Manifest, inferred: Mapping[str, int]
) -> Iterator[Advice]:
    """Yields advice on what the contexts lack and the user can supply."""
    turns, lacking, names = counts.context.total(), _lacking(counts), [*_open(counts)]
    others = counts.changes["other_version"]
    if turns and lacking:
        finding = (
            f"{number(lacking)} of {number(turns)} trained turns lack the {_suppliable(counts)}"
            " that the model saw."
        )
        share, severity = lacking / turns, 1.0
    elif others:
        names = [*SUPPLIABLE[::-1]]
        verb = "has" if others == 1 else "have"
        finding = f"{counted(others, 'sample')} {verb} the prompt or tools of another version."
        share, severity = others / max(counts.samples, 1), 0.5
    else:
        return
    details = []
    if inferred:
        listed = ", ".join(
            f"{shorten(name, 40)} {number(count)}" for name, count in ranked(inferred)[:_NAMES]
        )
        more = f" and {number(len(inferred) - _NAMES)} more" if len(inferred) > _NAMES else ""
        tools = counted(len(inferred), "tool")
        details.append(
            f"The definitions of {tools} are inferred from the calls (samples: {listed}{more})."
        )
    if versions := _versions(counts):
        details.append(f"These logs are of {versions}.")
    remedies = tuple(_supplies(counts, names, manifest))
    yield Advice(share, finding, remedies, " ".join(details), severity)


def _versions(counts: Counts) -> str:
    return "; ".join(
        f"{name} {', '.join(version for version, _ in ranked(versions)[:_NAMES])}"
        + (f" and {number(len(versions) - _NAMES)} more" if len(versions) > _NAMES else "")
        for name, versions in sorted(counts.versions.items())
    )


def _supplies(counts: Counts, names: list[str], manifest: Manifest) -> Iterator[Remedy]:
    """Yields how the user supplies what the logs lack."""
    agents = sorted(counts.models.items(), key=lambda item: (-item[1].total(), item[0]))
    is_known = False
    if names == ["system"] and counts.supplied["tools"]:
        agents = []  # a file that was captured has both
    versions = sum(len(counts.versions.get(name, ())) for name, _ in agents if agent_command(name))
    if versions:
        command = logs_command(manifest.input_paths)
        if manifest.has_given_tools:
            command += f" --versions {versions}"
        yield Remedy("Capture them, then build with `--definitions definitions`", "", (command,))
        is_known = True
    for agent, models in agents:
        model = next((model for model, _ in ranked(models) if model), None)
        command_of_one = definitions_command(agent, model)
        if command_of_one is not None and not counts.versions.get(agent):
            options = " ".join(f"{_OPTIONS[name]} {definitions_file(agent)}" for name in names)
            yield Remedy(f"Capture them, then build with `{options}`", "", (command_of_one,))
            is_known = True
    if not is_known:
        options = " ".join(f"{_OPTIONS[name]} FILE" for name in names)
        them = "it" if names == ["system"] else "them"
        yield Remedy(f"Supply {them}, and build with `{options}`")


def _gaps(counts: Counts) -> Iterator[Advice]:
    """Yields advice to leave out the samples with gaps that nobody can fill, if most have none."""
    if not counts.gap_samples or 2 * counts.gap_samples > counts.samples:
        return
    codes = [code for code, _ in ranked(counts.gaps)]
    listed = ", ".join(f"{_word(code)}: {number(counts.gaps[code])}" for code in codes[:4])
    samples = counted(counts.gap_samples, "sample")
    yield Advice(
        counts.gap_turns / max(counts.turns, 1),
        f"In {samples}, the model saw what the log does not hold ({listed}).",
        (
            Remedy(
                f"`select.where: {{context.missing: {{not: [{', '.join(codes)}]}}}}` leaves them"
                " out",
                f"up to {samples} with {counted(counts.gap_turns, 'trained turn')} fewer",
            ),
        ),
        "A model trained on this learns to state what it cannot see.",
        severity=0.7,
    )


def _refused(counts: Counts) -> Iterator[Advice]:
    stopped = [(counts.failed[code], what) for code, what in _STOPPED]
    turns = sum(count for count, _ in stopped)  # a turn with both counts twice: it is rare
    if not turns:
        return
    listed = " and ".join(f"{number(count)} {what}" for count, what in stopped if count)
    yield Advice(
        min(turns / max(counts.turns, 1), 1.0),
        f"{counted(turns, 'trained turn')} with calls that were not wanted ({listed}): the model"
        " learns to make them.",
        (
            Remedy(
                "`normalize.mask: [denied, interrupted, rewound]`",
                f"{counted(turns, 'turn')} fewer to train on; they stay as context, with weight 0",
            ),
            Remedy("`--preset agentic` does so too, for whole sessions"),
        ),
    )


def _lengths(counts: Counts, manifest: Manifest) -> Iterator[Advice]:
    """Yields advice on samples that trainers would cut."""
    longer = [tokens for tokens in counts.lengths if tokens > LONG] if counts.has_tokens else []
    if longer:
        share = percent(sum(longer) / max(counts.tokens, 1))
        text = (
            f"{counted(len(longer), 'sample')} with {share} of the tokens"
            f" {'is' if len(longer) == 1 else 'are'} longer than {number(LONG)} tokens: trainers"
            " cut them, or run out of memory."
        )
        begin = "beginning" if manifest.unit == "conversation" else "first message"
        remedy = Remedy(
            f"Windows that repeat the {begin} and lack the turns after it:"
            f" `limits.max_tokens: {LONG}` and `limits.too_long: split`"
        )
        yield Advice(counts.long_turns / max(counts.turns, 1), text, (remedy,), severity=0.6)
