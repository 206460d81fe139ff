"""Writes README.md: contents, origin, verification, losses, audit and limits of a dataset.

Its bytes depend only on the configuration, the versions and the samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from shlex import quote

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from builder.audit.counts import Counts
from builder.audit.result import Audit, AuditTable, Histogram
from builder.card.front import Cell, Code, code, front_matter, indented, license_id, plain, table
from builder.card.result import BuildResult
from builder.config import Config, presets_in
from builder.conversation import LEVEL_MEANINGS, LEVELS, MISSING, Json
from builder.dataset.meta import EQUAL
from builder.finding import GateAction
from builder.jsonio import dumps, loads
from builder.ledger import Ledger, ranked
from builder.normalize.options import Unit
from builder.normalize.remedies import option_for, recovery
from builder.output.manifest import Manifest
from builder.qwen3.templates import TEMPLATES, Style
from builder.qwen3.tokenizer import Target
from builder.report.charts import bin_counts, description, picture
from builder.text import number, without_folders
from builder.trainers.table import TRAINERS, Targets

# -- names the export for each trainer -------------------------------------------------------------

UNABLE = "none: it would train turns that are context only, or another text"


def training(audit: Audit | None, targets: Targets, target: Target) -> dict[str, object] | None:
    """Returns the lengths and exports; None if the dataset is empty."""
    if audit is None or not audit.samples:
        return None
    known = audit.counts.training
    exports = [
        (item.title, f"`builder export . --to {item.name} -o {item.name}`"
         if item.variant_for(targets, target) else UNABLE)
        for item in TRAINERS.values()
    ]  # fmt: skip
    return {
        "longest": known.longest,
        "length": known.length,
        "wide": known.wide_length if known.wide_length != known.length else 0,
        "exports": exports,
    }


SHOWN = 50
"""Rows of a table; the rest is counted in a line."""

_GATES = {
    GateAction.report: "left as it is",
    GateAction.change: "changed",
    GateAction.reject: "left out",
    GateAction.drop: "left out",
}
_UNITS: Mapping[Unit, str] = {
    "conversation": "A sample is a whole conversation; every assistant turn{} is trained.",
    "query": "A sample is a conversation up to one query's answer; the turns since the query are"
    " trained.",
    "turn": "A sample is a conversation up to one assistant turn, which alone is trained.",
}


@cache
def _template() -> Template:
    """Returns the template of the card, whose text is Markdown."""
    made = Environment(  # noqa: S701 - no HTML: `code` and `plain` escape text from logs
        loader=PackageLoader("builder.card"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"code": code, "plain": plain, "number": number, "indented": indented}
    made.globals |= {"table": lambda columns, rows: "\n".join(table(columns, rows))}
    return made.get_template("card.md")


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
    ledger, compared, levels = built.ledger, built.tokens_recorded, built.context_levels
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
    changed, command = _changed(made)
    found = audit.findings if audit is not None else ()
    left = {item.code: item for item in found if item.gate is GateAction.report}
    left_of: Counter[str] = Counter()
    for item in left.values():
        left_of[item.audit] += item.count
    origins = sorted(built.origins.items(), key=lambda item: (-item[1], item[0]))
    differing = [
        f"{code(name)} {number(count)}" for name, count in ranked(compared) if name != EQUAL
    ]
    return _template().render(
        front=yaml.safe_dump(front, sort_keys=False, allow_unicode=True),
        config=config,
        target=target,
        built=built,
        made=made,
        audit=audit,
        splits=[f"{name} {number(count)}" for name, count in built.splits.items()],
        unit=_UNITS[config.normalize.unit].format(" of weight 1" if built.is_weighted else ""),
        judged=[(item.name, plain(item.text, 400)) for item in built.judgements],
        command=command,
        changed=changed,
        presets=" and ".join(f"`--preset {name}`" for name in presets_in(made.config)),
        local_tokenizer=_folder_of_tokenizer(config, made, target),
        versions=[
            (Code(name), Code(str(version or "not installed")))
            for name, version in made.versions.items()
        ],
        verified=[*_verified(config, built, target, audit)],
        levels=[
            (name, levels[name], f"{100 * levels[name] / levels.total():.1f} %", meaning)
            for name, meaning in ((name, LEVEL_MEANINGS[name]) for name in reversed(LEVELS))
            if levels[name]
        ],
        missing=[
            (Code(name), count, MISSING.get(name, ""))
            for name, count in ranked(built.context_missing)[:SHOWN]
        ],
        compared=compared.total(),
        equal=compared[EQUAL],
        differing=", ".join(differing),
        accounts=[
            (one.unit, one.found, one.used, one.duplicates, *map(_codes, left))
            for one in ledger.accounts
            for left in ((one.ignored, one.rejected),)
        ],
        cut=_codes(ledger.cut) if ledger.cut else "",
        remedies=_remedies(ledger),
        sources=[
            (Code(origin.format), Code(origin.model), Code(origin.license), count)
            for origin, count in origins[:SHOWN]
        ],
        more_sources=len(origins) - SHOWN,
        findings=[
            (f"{code(item.code)}: {plain(item.message, 160)}", item.count, item.samples,
             _GATES[item.gate])
            for item in found
        ],
        charts=[*_shown(audit)],
        counts=audit.counts if audit is not None else Counts(),
        left=left,
        left_of=left_of,
        inferred=built.tools_sources["inferred"] + built.tools_sources["mixed"],
        unlicensed=sum(n for one, n in origins if license_id(one.license) == "unknown"),
        training=training(audit, _targets(config, built), target),
    )  # fmt: skip


def pictures(audit: Audit | None) -> dict[str, bytes]:
    """Returns {path in the dataset: SVG} of the charts in the card."""
    drawn = ((path, picture(item)) for path, item in _charts(audit))
    return {path: data for path, data in drawn if data is not None}


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


def _shown(audit: Audit | None) -> Iterator[dict[str, object]]:
    """Yields the charts with their numbers, then the tables that have none."""
    for path, item in _charts(audit):
        if isinstance(item, Histogram):
            rows: Sequence[Sequence[Cell]] = bin_counts(item)
            columns: Sequence[str] = (item.unit, "samples")
            alt = description(item)
        else:
            rows = [_shares(item, row) for row in item.rows]
            columns, alt = item.columns, f"{item.title}: the shares in the table below"
        yield {"title": item.title, "alt": alt, "path": path, "columns": columns, "rows": rows,
               "note": ""}  # fmt: skip
    for item in audit.tables if audit else ():
        if item.key in ("lengths", "languages", "tools") and item.rows:
            # The name may come from a log.
            rows = [[Code(str(row[0])), *_shares(item, row)[1:]] for row in item.rows[:SHOWN]]
            yield {"title": item.title, "alt": "", "path": "", "columns": item.columns,
                   "rows": rows, "note": item.note}  # fmt: skip


def _shares(item: AuditTable, row: Sequence[Cell]) -> list[Cell]:
    column = item.columns.index("share") if "share" in item.columns else -1
    return [
        f"{100 * value:.1f} %" if place == column and isinstance(value, int | float) else value
        for place, value in enumerate(row)
    ]


def _changed(made: Manifest) -> tuple[str, str]:
    """Returns the options that differ from the defaults as YAML, and the command of the build."""
    differs = _differing(dict(made.config), Config().resolved())
    changed = differs if isinstance(differs, dict) else {}
    command = "builder build -c config.yaml -o OUT"
    if made.merged:
        changed = {key: value for key, value in changed.items() if key != "inputs"}
        command = " ".join(["builder merge", *(quote(item.name) for item in made.merged), "-o OUT"])
        command += " -c config.yaml" if changed else ""
    if not changed:
        return "", command
    # Copied by way of JSON, because YAML would write shared objects as references.
    text = yaml.safe_dump(loads(dumps(changed)), sort_keys=False, allow_unicode=True)
    return text.rstrip(), command


def _differing(value: Json, default: Json) -> Json:
    """Returns the part of the configuration that differs from the defaults, and SHOWN inputs."""
    if not isinstance(value, dict) or not isinstance(default, dict):
        return value
    left: dict[str, Json] = {}
    for key, item in value.items():
        if key == "inputs" and isinstance(item, list):
            left[key] = [_non_default(one) for one in item[:SHOWN]]
        elif item != default.get(key):
            left[key] = _differing(item, default.get(key))
    return left


def _non_default(item: Json) -> Json:
    if not isinstance(item, dict):
        return item
    return {key: value for key, value in item.items() if value not in (None, "auto", 1.0, [])}


def _folder_of_tokenizer(config: Config, made: Manifest, target: Target) -> str:
    """Returns what identifies a tokenizer from a folder of the author's machine; "" for others."""
    if not config.verify.tokenizer.located.is_dir():
        return ""
    text = f"The tokenizer {code(str(without_folders(made.tokenizer.name)))} was a local folder"
    if digest := made.tokenizer.files.get("tokenizer.json"):
        text += f", whose `tokenizer.json` has the sha256 `{digest}`"
    if target.template_sha256 in TEMPLATES:
        text += f"; its chat template is that of `{target.model}`"
    return f"{text}."


def _verified(
    config: Config, built: BuildResult, target: Target, audit: Audit | None
) -> Iterator[tuple[Cell, ...]]:
    samples = number(built.ledger.samples)
    yield "samples verified", f"{samples} of {samples}"
    if audit is not None and audit.counts.trained_share is not None:
        counts = audit.counts
        of_all = f"{counts.trained_share:.1%} of all (the rest is context)"
        yield "trained tokens", f"{number(counts.trained_tokens)}, {of_all}"
        if counts.thinking:
            yield "trained turns with a thought", number(counts.thinking)
        for mode, count in sorted(counts.parity.items()):
            title = f"trained turns that match {mode} inference"
            yield title, f"{number(count)} of {number(counts.turns)} (see Limits)"
    yield "tokenizer", Code(str(without_folders(config.verify.tokenizer.published)))
    yield "chat template", Code(target.template_name)
    yield "its sha256", Code(target.template_sha256)


def _codes(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{code(name)} {number(n)}" for name, n in sorted(counts.items()) if n) or "0"


def _remedies(ledger: Ledger) -> list[tuple[str, str]]:
    found = {name: recovery(ledger, name)[1] for name in ledger.recoverable}
    return [(name, option_for(option)) for name, option in sorted(found.items()) if option]


def _targets(config: Config, built: BuildResult) -> Targets:
    if built.is_weighted:
        return "some"
    targets: dict[Unit, Targets] = {"conversation": "every", "query": "some", "turn": "last"}
    return targets[config.normalize.unit]
