"""Advises on what the logs lack of the context: what the user can supply, or leave out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from builder.ledger import ranked
from builder.normalize.captured import definitions_command, definitions_file
from builder.report.html import shorten
from builder.report.judgement import missing_words
from builder.report.remedy import Advice, Remedy
from builder.report.survey import Survey
from builder.text import counted, number, percent

_MEANT = {"system": "the system prompt", "tools": "the tool definitions"}
"""What the user can supply of a context, in words."""
_OPTIONS = {"tools": "--tools", "system": "--system"}
_NAMES = 4
"""Tools and versions that a line names."""
_SOME = 0.5
"""Samples with gaps are advised to be left out if they are no more than this share."""
_KEPT = Remedy("Capture the agent's requests from now on: `builder capture` has what was sent")


def of_context(surveyed: Survey, inferred: Mapping[str, int], *, given: bool) -> Iterator[Advice]:
    """Yields what the logs lack of the contexts: what can be supplied, and gaps that cannot.

    `inferred` has {tool: samples} of the definitions that were inferred from calls; `given` says
    that the user gave definitions.
    """
    turns = surveyed.context.total()
    lacking = surveyed.missing - surveyed.supplied
    names = [name for name in ("system", "tools") if lacking[name]]
    if turns and names:
        share = max(lacking[name] for name in names) / turns
        unknown = given and "tools" in names and bool(inferred)
        finding = _undefined(inferred) if unknown else _lacking(names, lacking, turns)
        remedies = tuple(_supplies(surveyed, names, by_version=unknown))
        yield Advice(share, finding, remedies, _detail(surveyed, inferred, given=given))
    if others := surveyed.changes["other_version"]:
        finding = f"{_others(others)} These logs are of {_versions(surveyed)}."
        remedies = tuple(_supplies(surveyed, ["system", "tools"], by_version=True))
        yield Advice(others / surveyed.samples, finding, remedies, severity=0.5)
    if surveyed.gap_samples:
        yield _gaps(surveyed)


def _lacking(names: list[str], lacking: Mapping[str, int], turns: int) -> str:
    shares = {name: percent(lacking[name] / turns) for name in names}
    first, *rest = names
    text = f"{shares[first]} of the trained turns lack {_MEANT[first]}"
    for name in rest:
        text += f" and {'' if shares[name] == shares[first] else shares[name] + ' '}{_MEANT[name]}"
    return f"{text} that the model saw."


def _undefined(inferred: Mapping[str, int]) -> str:
    named = ", ".join(
        f"{shorten(name, 40)} {number(count)}" for name, count in ranked(inferred)[:_NAMES]
    )
    more = f" and {number(len(inferred) - _NAMES)} more" if len(inferred) > _NAMES else ""
    verb = "is" if len(inferred) == 1 else "are"
    tools = counted(len(inferred), "called tool")
    return f"{tools} {verb} in none of your files (samples: {named}{more})."


def _detail(surveyed: Survey, inferred: Mapping[str, int], *, given: bool) -> str:
    """Returns what follows from inferred definitions, and where those of the log may be found."""
    texts = []
    sources = surveyed.by_field.get("tools_source", Counter[str]())
    if samples := sources["inferred"] + sources["mixed"]:
        texts.append(
            f"The tools of {counted(samples, 'sample')} are inferred from the calls: only tools"
            " that are called are shown, unlike at inference."
        )
    if given and (versions := _versions(surveyed)):
        texts.append(f"These logs are of {versions}.")
    return " ".join(texts)


def _others(samples: int) -> str:
    files = "tools or a system prompt of another version of the agent, from your files"
    return f"{counted(samples, 'sample')} {'has' if samples == 1 else 'have'} {files}."


def _versions(surveyed: Survey) -> str:
    return "; ".join(
        f"{name} {', '.join(version for version, _ in ranked(versions)[:_NAMES])}"
        + (f" and {number(len(versions) - _NAMES)} more" if len(versions) > _NAMES else "")
        for name, versions in sorted(surveyed.versions.items())
    )


def _supplies(surveyed: Survey, names: list[str], *, by_version: bool) -> Iterator[Remedy]:
    """Yields how the user supplies what the logs lack, for the agent of most samples first."""
    price = "longer samples"
    agents = sorted(surveyed.models.items(), key=lambda item: (-item[1].total(), item[0]))
    is_known = False
    if names == ["system"] and surveyed.supplied["tools"]:
        agents = []  # a file that was captured has both
    for agent, models in agents:
        model = next((model for model, _ in ranked(models) if model), None)
        versions = ranked(surveyed.versions.get(agent, Counter[str]())) if by_version else ()
        version = versions[0][0] if versions else None
        command = definitions_command(agent, model, version)
        if command is None:
            continue
        file = definitions_file(agent, version)
        options = " ".join(f"{_OPTIONS[name]} {file}" for name in names)
        text = "Capture them, then add" if by_version else "Capture them, build with"
        yield Remedy(f"{text} `{options}`", price, (command,))
        is_known = True
    if not is_known:
        options = " ".join(f"{_OPTIONS[name]} FILE" for name in names)
        yield Remedy(f"Supply them, and build with `{options}`", price)


def _gaps(surveyed: Survey) -> Advice:
    """Returns the advice to leave out the samples whose context has gaps that nobody can fill."""
    codes = [code for code, _ in ranked(surveyed.gaps)]
    listed = ", ".join(f"{missing_words(code)} {number(surveyed.gaps[code])}" for code in codes[:4])
    without = ", ".join(codes)
    left_out = Remedy(
        f"`select.where: {{context.missing: {{not: [{without}]}}}}` leaves them out",
        f"{counted(surveyed.gap_samples, 'sample')} with"
        f" {counted(surveyed.gap_turns, 'trained turn')}",
    )
    return Advice(
        surveyed.gap_turns / max(surveyed.turns, 1),
        f"In {counted(surveyed.gap_samples, 'sample')}, the model saw what the log does not hold"
        f" ({listed}).",
        (left_out if surveyed.gap_samples <= _SOME * surveyed.samples else _KEPT,),
        "A model trained on this learns to state what it cannot see.",
        severity=0.7,
    )
