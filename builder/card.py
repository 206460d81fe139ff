"""The dataset card: what the dataset is, how it was made, what was proven and what was lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import yaml

from builder.config import Config
from builder.ledger import Ledger
from builder.normalize import NormalizeOptions, remedy
from builder.qwen3.tokenizer import Target

if TYPE_CHECKING:
    from builder.settle import Built

_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)


def card(config: Config, built: Built, options: NormalizeOptions, target: Target) -> str:
    """The text of README.md: front matter with explicit features, then what people ask."""
    ledger = built.ledger
    front: dict[str, object] = {
        "pretty_name": config.name,
        "license": _license(built.licenses),
        "task_categories": ["text-generation"],
        "tags": ["tool-calling", "function-calling", "qwen3", "sft", "agent-traces"],
        "size_categories": [next((s for n, s in _SIZES if ledger.samples < n), "n>10M")],
    }
    if built.data_files:
        front.update(loading(built.data_files))
    head = yaml.safe_dump(front, sort_keys=False, allow_unicode=True)
    summary = (
        f"{ledger.samples} training samples ({built.tokens} tokens) in the Qwen3 tool-calling"
        " format: `messages` (system, user, assistant; calls as `<tool_call>` text, results as user"
        " turns of `<tool_response>` blocks) and `tools`. `meta/` holds a line for each sample, in"
        " the same order: source, model, changes, counts."
    )
    parts = [
        f"---\n{head}---\n\n# {_plain(config.name)}",
        summary,
        _proof(target),
        _ledger(ledger, options),
        _sources(built),
        f"## Limits\n\n{config.audit.scrub.told} " + _tools_note(built.tools_sources),
        "## Verify again\n\n    pip install toolcall-dataset-builder\n    builder verify .",
    ]
    return "\n\n".join(parts) + "\n"


def loading(data_files: Mapping[str, Sequence[str]]) -> dict[str, object]:
    """What loaders read: the files of the first kind (a dataset has one loader) and the features.

    Declared, they are not inferred: Arrow would re-order keys and invent nulls in definitions.
    """
    kind = next(iter(data_files.values()))[0].partition(".")[2]
    return {
        "configs": [
            {
                "config_name": "default",
                "data_files": [
                    {"split": split, "path": f"data/{split}-*.{kind}"} for split in data_files
                ],
            }
        ],
        "dataset_info": {
            "features": [
                {
                    "name": "messages",
                    "list": [
                        {"name": "role", "dtype": "string"},
                        {"name": "content", "dtype": "string"},
                    ],
                },
                {"name": "tools", "list": "json"},
            ]
        },
    }


def _license(licenses: Counter[str]) -> str:
    names = sorted(licenses)
    return names[0] if len(names) == 1 else "other" if names else "unknown"


def _proof(target: Target) -> str:
    return (
        "## Verification\n\nEvery sample was rendered through the chat template of the tokenizer"
        f" `{_plain(target.name)}` (template: {target.template_name}, sha256"
        f" `{target.template_sha256}`) and passed the checks render, spec, structured, inverse,"
        " calls, pairing, order, tools and tokens: its text is byte for byte what a server renders"
        " for the same conversation, and reads back to exactly the sample."
    )


def _ledger(ledger: Ledger, options: NormalizeOptions) -> str:
    rows = [
        ("records", ledger.read, ledger.used, ledger.ignored, ledger.rejected),
        (
            "conversations",
            ledger.found,
            ledger.built,
            Counter({"duplicate": ledger.duplicates}),
            ledger.conversations_rejected,
        ),
        ("calls", ledger.calls_logged, ledger.calls_kept, Counter[str](), ledger.calls_dropped),
    ]
    lines = ["## What was read and what became of it", ""]
    lines += ["| | found | used | left out by design | rejected |", "|---|---|---|---|---|"]
    for name, found, used, ignored, rejected in rows:
        lines.append(f"| {name} | {found} | {used} | {_codes(ignored)} | {_codes(rejected)} |")
    codes = sorted({*ledger.rejected, *ledger.conversations_rejected})
    remedies = [f"- `{_plain(code)}`: `{way}`" for code in codes if (way := remedy(code, options))]
    if remedies:
        lines += ["", "What would keep some of it:", "", *remedies]
    return "\n".join(lines)


def _codes(counts: Counter[str]) -> str:
    return ", ".join(f"{_plain(c)} {n}" for c, n in sorted(counts.items()) if n) or "0"


def _sources(built: Built) -> str:
    lines = ["## Sources", "", "| | samples |", "|---|---|"]
    for title, counts in (
        ("format", built.formats),
        ("model", built.models),
        ("licence", built.licenses),
        ("tool definitions", built.tools_sources),
    ):
        lines += [f"| {title}: {_plain(name)} | {n} |" for name, n in sorted(counts.items())]
    return "\n".join(lines)


def _tools_note(sources: Counter[str]) -> str:
    inferred = sources["inferred"] + sources["mixed"]
    if not inferred:
        return "All tool definitions are the logged or supplied ones."
    return (
        f"In {inferred} samples tool definitions were inferred from the calls (names and types"
        " only). Such a list names just the tools that will be called, which the list at inference"
        " does not: supply the real definitions with `inputs[].tools` where you have them."
    )


def _plain(text: str) -> str:
    """Text of a log inside Markdown: no markup, no line breaks, no HTML."""
    shown = "".join(char if char.isprintable() else " " for char in text)[:80]
    return "".join(f"&#{ord(char)};" if char in "<>&|`[]*_" else char for char in shown)
