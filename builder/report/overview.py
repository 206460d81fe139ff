"""Renders parts of a report: the tokenizer of the proof, the findings, inputs and options."""

from __future__ import annotations

from collections.abc import Mapping

from builder.audit.result import Audit, AuditFinding, FindingExample, GateAction
from builder.conversation import Json
from builder.output.manifest import Manifest
from builder.readers.toolkit.narrow import as_dict, as_str
from builder.report.html import EMPTY, Html, facts_list, shorten, tag, text
from builder.report.page import fit
from builder.text import counted, number

_EXAMPLES = 8
_FINDINGS_BYTES = 600_000

_GATES = {
    GateAction.report: "reported",
    GateAction.change: "changed",
    GateAction.reject: "rejected",
    GateAction.drop: "dropped",
}


def proof(manifest: Manifest) -> Html:
    """Returns the tokenizer and template of the proof, with digests."""
    tokenizer = manifest.tokenizer
    pairs = [
        ("tokenizer", tokenizer.name),
        ("template", tokenizer.template_name),
        ("template sha256", tokenizer.template_sha256),
        *((name, as_str(digest)) for name, digest in list(tokenizer.files.items())[:9]),
        ("inference mode", manifest.mode),
        ("schema", manifest.schema_policy),
        ("parity", manifest.parity_policy),
    ]
    return facts_list(pairs, "facts broad")


def findings(audit: Audit | None, places: Mapping[str, int]) -> Html:
    """Returns every finding with its gate and examples.

    `places` is {location: number} of the samples on the page, to which examples link.
    """
    if audit is None:
        message = (
            "No audit was run for this page, so it says nothing about the contents of the texts."
        )
        return tag("p", text(message), class_="verdict open")
    if not audit.findings:
        return tag("p", text("The audit found nothing."), class_="verdict good")
    rows = fit(
        lambda finding: _finding(finding, places), audit.findings, _FINDINGS_BYTES, "findings"
    )
    return tag("ul", rows, class_="findings")


def _finding(finding: AuditFinding, places: Mapping[str, int]) -> Html:
    where = number(finding.count)
    if finding.samples:
        where += f" in {counted(finding.samples, 'sample')}"
    head = (
        tag("span", text(_GATES[finding.gate]), class_=f"gate {finding.gate.value}"),
        tag("code", text(shorten(f"{finding.audit}: {finding.code}", 80))),
        tag("span", text(where), class_="count"),
        tag("span", text(shorten(finding.message, 240)), class_="message"),
    )
    if not finding.examples:
        return tag("li", tag("div", *head, class_="finding"))
    examples_html = [_example(example, places) for example in finding.examples[:_EXAMPLES]]
    return tag(
        "li", tag("details", tag("summary", *head, class_="finding"), tag("ul", *examples_html))
    )


def _example(example: FindingExample, places: Mapping[str, int]) -> Html:
    place = text(shorten(example.where, 120))
    row = places.get(example.where)
    if row is not None:
        place = tag("a", place, href=f"#sample-{row}")
    more = " · ".join(
        shorten(item, 160) for item in (example.source, example.record, example.part) if item
    )
    detail = tag("q", text(shorten(example.detail, 240))) if example.detail else EMPTY
    return tag("li", place, text(f" · {more} " if more else " "), detail)


def how_made(manifest: Manifest) -> Html:
    """Returns inputs, versions and options of the build, which are enough to repeat it."""
    listed, versions = manifest.inputs, manifest.versions
    if not listed and not versions:
        return tag("p", text("There is no manifest that says how it was made."), class_="note")
    size = sum(item.bytes for item in listed)
    pairs = [("inputs", f"{number(len(listed))} files, {number(size)} bytes")]
    pairs += [(name, as_str(version)) for name, version in list(versions.items())[:20]]
    pairs += _settings(manifest.options, "")[:80]
    return facts_list(pairs)


def _settings(section: dict[str, Json], above: str) -> list[tuple[str, str]]:
    pairs = []
    for key, value in section.items():
        name = f"{above}{key}"
        if isinstance(value, dict) and above.count(".") < 3:
            pairs += _settings(value, f"{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for at, item in enumerate(value[:10]):
                pairs += _settings(as_dict(item), f"{name}[{at}].")
        elif value is not None and value != []:
            display_text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            pairs.append((name, display_text))
    return pairs
