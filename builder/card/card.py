"""Writes README.md: contents, origin, verification, losses, audit and limits of a dataset.

Its bytes depend only on the configuration, the versions and the samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

import yaml

from builder.audit.benchmarks import EVALUATION_RUN
from builder.audit.result import Audit, AuditFinding, AuditTable, GateAction, Histogram
from builder.card.context import context, parity, recorded, trained
from builder.card.front import front_matter, license_id
from builder.card.markdown import Cell, Code, code, indented, plain, table
from builder.card.result import BuildResult
from builder.card.training import LOADS, training
from builder.config import Config, presets_in
from builder.conversation import Json
from builder.jsonio import dumps, loads
from builder.ledger import Ledger
from builder.normalize.as_options import option_for
from builder.normalize.options import Unit
from builder.normalize.remedies import record_remedy, recovery
from builder.output.manifest import Manifest
from builder.qwen3.style import Style
from builder.qwen3.templates import TEMPLATES
from builder.qwen3.tokenizer import Target
from builder.report.charts import bin_counts, description
from builder.report.judgement import verdict_on
from builder.report.pictures import bars_picture, histogram_picture
from builder.text import number, without_folders
from builder.trainers.record import Targets

SHOWN = 50
"""Rows of a table; the rest is counted in a line."""

_INPUTS = (
    "The input files are listed with their sha256 in `manifest.json`: the same files, options and"
    " versions give the same bytes."
)
_PROOF = (
    "Every sample was rendered through the tokenizer's chat template and passed the checks render,"
    " spec, structured, inverse, calls, pairing, order, tools and tokens: its text is byte for byte"
    " what a server renders for the same conversation, and parses back to exactly the sample. Then"
    " the folder was loaded with `datasets.load_dataset`, and every row gave the same bytes."
    " Samples that failed are in `rejects.jsonl`, not here."
)
_WORDS = (
    "*Duplicate*: the same is in the dataset already. *Ignored*: nothing to train, or left out on"
    " request. *Rejected*: lost, although it could have been trained. A call that occurs several"
    " times in a log counts once."
)
_AGAIN = """## Verify again

To check, in a copy of this repository, every sample against the template and every file
against the manifest:

    pip install toolcall-builder
    builder verify .

To check what the Hub serves: `builder verify hf://OWNER/NAME`."""

_GATES = {
    GateAction.report: "left as it is",
    GateAction.change: "changed",
    GateAction.reject: "left out",
    GateAction.drop: "left out",
}


def card(
    config: Config,
    built: BuildResult,
    target: Target,
    *,
    style: Style,
    made: Manifest,
    audit: Audit | None,
) -> str:
    """Returns the text of the file.

    `style` is that of the target's template; the target would have to load the tokenizer to
    determine it. `made` is the manifest so far, without folders. `audit` is
    None if nothing was audited; the card then says so.
    """
    ledger = built.ledger
    front = front_matter(
        config.name,
        ledger.samples,
        sorted({origin.license for origin in built.origins}),
        built.data_files,
        built.digest,
        audit,
        weighted=built.is_weighted,
        beside=style.beside,
    )
    head = yaml.safe_dump(front, sort_keys=False, allow_unicode=True)
    sections = [
        f"---\n{head}---\n\n# {plain(config.name)}",
        _summary(built, config, target),
        LOADS,
        _making(made, config, target),
        _proof(target, config, built),
        *context(built),
        *recorded(built),
        _ledger(ledger),
        _sources(built),
        _audited(audit),
        _limits(config, built, audit),
        training(audit, sorted(built.data_files), _targets(config, built), target),
        _AGAIN,
    ]
    return "\n\n".join(sections) + "\n"


def pictures(audit: Audit | None) -> dict[str, bytes]:
    """Returns {path in the dataset: SVG} of the charts in the card."""
    made = {}
    for path, item in _charts(audit):
        data = histogram_picture(item) if isinstance(item, Histogram) else bars_picture(item)
        if data is not None:
            made[path] = data
    return made


def _charts(audit: Audit | None) -> Iterator[tuple[str, Histogram | AuditTable]]:
    if audit is None or not audit.samples:
        return
    names = {"tokens": "lengths", "turns": "turns", "calls": "calls"}
    for histogram in audit.histograms:
        if histogram.key in names and any(histogram.counts):
            yield f"assets/{names[histogram.key]}.svg", histogram
    for item in audit.tables:
        if item.key == "patterns" and any(row[1] for row in item.rows):
            yield "assets/behaviour.svg", item


def _summary(built: BuildResult, config: Config, target: Target) -> str:
    ledger = built.ledger
    estimated = "about " if target.missing else ""
    every = "every assistant turn" + (" of weight 1" if built.is_weighted else "")
    unit = {
        "conversation": f"A sample is a whole conversation; {every} is trained.",
        "query": "A sample is a conversation up to one query's answer; the turns since the query"
        " are trained.",
        "turn": "A sample is a conversation up to one assistant turn, which alone is trained.",
    }[config.normalize.unit]
    verdict = ""
    if built.judgements:
        grade, reasons = verdict_on(built.judgements)
        verdict = f"\n\nVerdict: {grade}{': ' if reasons else ''}{plain('; '.join(reasons), 400)}."
    parts = ", ".join(f"{name} {number(count)}" for name, count in built.splits.items())
    if target.missing:
        verdict = f"\n\nCounts and lengths are estimates: {target.missing}.{verdict}"
    return (
        f"{number(ledger.samples)} training samples ({estimated}{number(built.tokens)} tokens"
        f"{f'; {parts}' if len(built.splits) > 1 else ''}) of agents that call tools, in the Qwen3"
        " format: `messages` (system, user, assistant; calls as `<tool_call>` text, results as"
        " user turns of `<tool_response>` blocks) and `tools`."
        f" {unit} `meta/` has a line for each sample, in the same order: source, model, licence,"
        " every change to logged text, token count, the sha256 of the rendering, and the offsets of"
        " the trained text in it. `rejects.jsonl` has what was left out, with reasons."
        f"{verdict}"
    )


def _making(made: Manifest, config: Config, target: Target) -> str:
    rows = [
        (Code(name), Code(str(version or "not installed")))
        for name, version in made.versions.items()
    ]
    differs = _changed(dict(made.config), Config().resolved())
    changed = differs if isinstance(differs, dict) else {}
    command = "builder build -c config.yaml -o OUT"
    if made.merged:
        changed = {key: value for key, value in changed.items() if key != "inputs"}
        command = " ".join(["builder merge", *(quote(item.name) for item in made.merged), "-o OUT"])
        command += " -c config.yaml" if changed else ""
    chosen = "All options have their defaults."
    if changed:
        # Copied by way of JSON, because YAML would write shared objects as references.
        text = yaml.safe_dump(loads(dumps(changed)), sort_keys=False, allow_unicode=True)
        chosen = "`config.yaml` has the options that differ from the defaults"
        chosen += ", some of which are those of the merged builds" if made.merged else ""
        chosen += " (`manifest.json` has all):"
        chosen += f"\n\n{indented(text.rstrip())}"
        if presets := " and ".join(f"`--preset {name}`" for name in presets_in(made.config)):
            chosen += f"\n\nWith the defaults, they contain those of {presets}."
    if config.verify.tokenizer.located.is_dir():
        chosen += f"\n\n{_folder_of_tokenizer(made, target)}"
    lines = [
        "## How it was made",
        "",
        indented(command),
        "",
        chosen,
        "",
        _INPUTS,
        "",
        *table(("package", "version"), rows),
    ]
    return "\n".join(lines)


def _folder_of_tokenizer(made: Manifest, target: Target) -> str:
    """Returns what identifies a tokenizer that was read from a folder of the author's machine."""
    name = code(str(without_folders(made.tokenizer.name)))
    digest = made.tokenizer.files.get("tokenizer.json")
    text = f"The tokenizer {name} was a local folder"
    if digest:
        text += f", whose `tokenizer.json` has the sha256 `{digest}`"
    if target.template_sha256 in TEMPLATES:
        text += f"; its chat template is that of `{target.model}`"
    return f"{text}. `--tokenizer` names a folder or a repository with the same files."


def _changed(value: Json, default: Json) -> Json:
    """Returns the part of the configuration that differs from the defaults, and SHOWN inputs."""
    if not isinstance(value, dict) or not isinstance(default, dict):
        return value
    left: dict[str, Json] = {}
    for key, item in value.items():
        if key == "inputs" and isinstance(item, list):
            left[key] = [_non_default(one) for one in item[:SHOWN]]
        elif item != default.get(key):
            left[key] = _changed(item, default.get(key))
    return left


def _non_default(item: Json) -> Json:
    """Returns the values of an input that differ from the defaults."""
    if not isinstance(item, dict):
        return item
    return {key: value for key, value in item.items() if value not in (None, "auto", 1.0, [])}


def _proof(target: Target, config: Config, built: BuildResult) -> str:
    samples = number(built.ledger.samples)
    rows: list[tuple[Cell, ...]] = [
        ("samples verified", f"{samples} of {samples}"),
        *trained(built.audit),
        ("tokenizer", Code(str(without_folders(config.verify.tokenizer.published)))),
        ("chat template", Code(target.template_name)),
        ("its sha256", Code(target.template_sha256)),
    ]
    return "\n".join(["## Verification", "", _PROOF, "", *table(("", ""), rows)])


def _ledger(ledger: Ledger) -> str:
    rows = [
        (one.unit, one.found, one.used, one.duplicates, _codes(one.ignored), _codes(one.rejected))
        for one in ledger.accounts
    ]
    lines = ["## What was read and what became of it", ""]
    lines += table(("", "found", "used", "duplicate", "ignored", "rejected"), rows)
    lines += ["", _WORDS]
    if ledger.cut:
        lines += [
            "",
            f"Conversations used up to a turn that cannot be trained: {_codes(ledger.cut)}.",
        ]
    found = {name: record_remedy(name) for name in ledger.rejected}
    found |= {name: recovery(ledger, name)[1] for name in ledger.recoverable}
    remedies = [
        f"- {code(name)}: {code(option_for(option))}"
        for name, option in sorted(found.items())
        if option
    ]
    if remedies:
        lines += ["", "Options that would keep more:", "", *remedies]
    return "\n".join(lines)


def _codes(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{code(name)} {number(n)}" for name, n in sorted(counts.items()) if n) or "0"


def _sources(built: BuildResult) -> str:
    rows = [
        (Code(origin.format), Code(origin.model), Code(origin.license), count)
        for origin, count in sorted(built.origins.items(), key=lambda item: (-item[1], item[0]))
    ]
    lines = ["## Sources", ""]
    lines += table(("format", "model", "licence", "samples"), rows[:SHOWN])
    if len(rows) > SHOWN:
        lines += ["", f"and {number(len(rows) - SHOWN)} more; `meta/` has all."]
    lines += ["", *table(("tool definitions", "samples"), sorted(built.tools_sources.items()))]
    return "\n".join(lines)


def _audited(audit: Audit | None) -> str:
    lines = ["## Audit", ""]
    if audit is None:
        return "\n".join([*lines, "Nothing was audited."])
    findings = [
        (_finding(item), item.count, item.samples, _GATES[item.gate]) for item in audit.findings
    ]
    lines += (
        table(("found", "places", "samples", "what was done"), findings)
        if findings
        else ["No findings."]
    )
    for path, item in _charts(audit):
        lines += ["", f"### {item.title}", ""]
        if isinstance(item, Histogram):
            lines += [f"![{description(item)}]({path})", ""]
            lines += table((item.unit, "samples"), bin_counts(item))
        else:
            lines += [f"![{item.title}: the shares in the table below]({path})", ""]
            lines += table(item.columns, [_shares(item, row) for row in item.rows])
    for item in audit.tables:
        if item.key in ("lengths", "languages", "tools") and item.rows:
            lines += ["", f"### {item.title}", ""]
            lines += table(item.columns, [_named(item, row) for row in item.rows[:SHOWN]])
            lines += ["", item.note] if item.note else []
    lines += ["", "`report.html` has the rest, with samples; `builder audit .` reproduces it."]
    return "\n".join(lines)


def _finding(item: AuditFinding) -> str:
    return f"{code(item.code)}: {plain(item.message, 160)}"


def _shares(item: AuditTable, row: Sequence[Cell]) -> list[Cell]:
    column = item.columns.index("share") if "share" in item.columns else -1
    return [
        f"{100 * value:.1f} %" if place == column and isinstance(value, int | float) else value
        for place, value in enumerate(row)
    ]


def _named(item: AuditTable, row: Sequence[Cell]) -> list[Cell]:
    """Returns a row with its name, which may come from a log, as code."""
    return [Code(str(row[0])), *_shares(item, row)[1:]]


def _targets(config: Config, built: BuildResult) -> Targets:
    """Returns which assistant turns of a sample are trained."""
    if built.is_weighted:
        return "some"
    targets: dict[Unit, Targets] = {"conversation": "every", "query": "some", "turn": "last"}
    return targets[config.normalize.unit]


def _limits(config: Config, built: BuildResult, audit: Audit | None) -> str:
    limits = [config.audit.scrub.summary, *_left(audit), *parity(config.normalize.unit, audit)]
    inferred = built.tools_sources["inferred"] + built.tools_sources["mixed"]
    if inferred:
        limits.append(
            f"In {number(inferred)} samples tool definitions were inferred from the calls (names"
            " and types only). They name only the tools that will be called, unlike the definitions"
            " at inference: supply the real ones with `inputs[].tools` if you have them."
        )
    elif not built.tools_sources["shared"]:
        limits.append("All tool definitions are the logged or supplied ones.")
    if built.tools_sources["shared"]:
        limits.append(
            f"In {number(built.tools_sources['shared'])} samples the tool definitions were logged"
            " by other sessions of the same version of the agent."
        )
    unknown = sum(
        count for origin, count in built.origins.items() if license_id(origin.license) == "unknown"
    )
    if unknown:
        limits.append(
            f"The licence of {number(unknown)} samples is not known: neither the logs nor"
            " `inputs[].license` name one."
        )
    limits.append("Nothing was checked for truth or usefulness: answers are as logged.")
    return "\n".join(["## Limits", "", *(f"- {item}" for item in limits)])


def _left(audit: Audit | None) -> Iterator[str]:
    """Yields sentences on the findings of the audit that are still in the dataset."""
    left: Counter[str] = Counter()
    for item in audit.findings if audit is not None else ():
        if item.gate is GateAction.report:
            left[item.audit] += item.count
            if item.code == "near_duplicate":
                yield (
                    f"Near duplicates were kept: {number(item.count)}, in {number(item.samples)}"
                    " samples (`audit.near_duplicates: drop` keeps one of each)."
                )
            elif item.code == "contaminated":
                yield f"{number(item.samples)} samples contain items of evaluation sets."
            elif item.code == EVALUATION_RUN:
                yield (
                    f"{number(item.samples)} samples are {plain(item.message, 400)}. A model"
                    " that is trained on them must not be evaluated on these benchmarks."
                )
    if left["personal_data"]:
        yield (
            f"Personal data were found in {number(left['personal_data'])} places and left in place"
            " (`audit.personal_data: pseudonymise` replaces them). Names of people in running text"
            " are not searched for."
        )
    if left["secrets"]:
        yield f"Probable secrets were found in {number(left['secrets'])} places and left in place."
