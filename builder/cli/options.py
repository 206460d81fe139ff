"""Declares the options and arguments that commands share, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from builder.api import EngineName
from builder.normalize.options import Unit
from builder.options import Preset
from builder.verify.options import Mode, ParityPolicy, SchemaPolicy

Dataset = Annotated[
    str, typer.Argument(help="A file, a folder or hf://OWNER/NAME (docs/verify.md).")
]
ConfigFile = Annotated[Path | None, typer.Option("--config", "-c", help="A YAML file.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 1 on any reject.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print only one JSON object on stdout.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Worker processes; default: one per core.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print every detail.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Tokenizer = Annotated[
    str | None,
    typer.Option(help="qwen3 (embedded), a folder, or a Hub id with optional @revision."),
]
Format = Annotated[
    str | None, typer.Option(help="The reader to use; default: recognise from content.")
]
MappingFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A mapping for a log of your own (docs/mapping.md)."),
]
AllowEval = Annotated[
    bool, typer.Option("--allow-eval", help="Also build from data of benchmarks.")
]
Inputs = Annotated[
    list[str] | None,
    typer.Argument(metavar="INPUT…", help="Files, folders, globs, '-' or hf://OWNER/NAME."),
]
ToolsFile = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE", help="Tool definitions for logs without them (JSON)."),
]
SystemFile = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE", help="System prompt for logs without it (text)."),
]
Engine = Annotated[EngineName, typer.Option(help="The engine (ray: docs/scale.md).")]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="A Ray cluster; default: RAY_ADDRESS, else one started here."
    ),
]

Public = Annotated[bool, typer.Option("--public/--private", help="Visibility of a new repository.")]
Branch = Annotated[str, typer.Option(help="The branch, created if needed.")]
CreatePr = Annotated[
    bool, typer.Option("--create-pr", help="Open a pull request instead of changing main.")
]
Prune = Annotated[bool, typer.Option("--prune", help="Remove files that only the Hub has.")]
Allow = Annotated[
    list[str] | None, typer.Option(metavar="CODE", help="Overrule a gate by its name.")
]
Logs = Annotated[Path | None, typer.Option(help="The logs it was made from, to show raw records.")]
ReviewCsv = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the review as CSV and exit.")
]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")]
Opens = Annotated[bool, typer.Option("--open/--no-open", help="Open it in a browser.")]
FailOn = Annotated[
    str | None,
    typer.Option(metavar="CODE,…", help="Exit 1 if one of these codes or audits has findings."),
]
Contamination = Annotated[
    list[str] | None,
    typer.Option(metavar="SET", help="An evaluation set: a file or hf://OWNER/NAME."),
]
Parity = Annotated[ParityPolicy, typer.Option(help="Require each trained turn to match inference.")]
InferenceMode = Annotated[
    Mode, typer.Option(help="The mode of inference that trained turns should match.")
]
Schema = Annotated[SchemaPolicy, typer.Option(help="How to treat schema violations.")]
Masks = Annotated[
    list[str] | None, typer.Option(metavar="TRAINER", help="Show its default mask; or: all.")
]
Witness = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME,…", help="Ask other engines: llama.cpp, sglang, transformers, xgrammar."
    ),
]
WitnessShare = Annotated[
    float,
    typer.Option(min=0, max=1, help="The share of the samples that --witness asks about."),
]
Replay = Annotated[
    list[str] | None,
    typer.Option(metavar="SERVER,…", help="Count turns that drift when sent back: vllm, sglang."),
]
AsLoaded = Annotated[
    bool, typer.Option("--as-loaded", help="Also load it with `datasets`; report changes.")
]
Explain = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Show which readers claim this file, and why."),
]
ExportVariant = Annotated[
    str,
    typer.Option(
        metavar="VARIANT",
        help="messages, messages-str, tools-in-system, openai, prompt-completion,"
        " prompt-completion-text, sharegpt, preference, tokenized or verl, for trainers; atif or"
        " hf-session-traces, for viewing; or a trainer, such as trl, for the best that it reads"
        " (docs/export.md).",
    ),
]
ChatTemplate = Annotated[
    str | None,
    typer.Option(
        "--chat-template", metavar="FILE|SHA256", help="Another chat template (docs/templates.md)."
    ),
]

Destination = Annotated[
    str | None,
    typer.Option("--out", "-o", help="The output folder, or its address in a store."),
]
BuildConfig = Annotated[
    Path | None, typer.Option("--config", "-c", help="A YAML file (configs/default.yaml).")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="A key of the configuration: normalize.unit=turn."
    ),
]
MergeSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="A key that a merge uses: select.max_tokens_total=1000."
    ),
]
ChosenPreset = Annotated[
    Preset | None, typer.Option(help="Options by purpose, which -c overrides (configs/presets).")
]
Review = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Leave out the samples that this review rejects."),
]
TrainingUnit = Annotated[
    Unit | None, typer.Option(help="The training unit; default: from meta/, conversation.")
]
Tokenizers = Annotated[list[str] | None, typer.Option(help="qwen3 (embedded), a folder, a Hub id.")]
Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="-- COMMAND…", help="The command whose requests are captured."),
]
Captures = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="The folder of captures (captures), or the FILE."),
]
Serve = Annotated[
    int | None,
    typer.Option(
        min=0, max=65535, metavar="PORT", help="Serve there until Ctrl-C; 0: any free port."
    ),
]
Definitions = Annotated[
    bool,
    typer.Option(
        "--definitions", help="Keep only the prompt and the tools it sends; no provider needed."
    ),
]
OwnSettings = Annotated[
    bool,
    typer.Option("--own-settings", help="Definitions with your own settings, not a new home."),
]
Upstream = Annotated[
    list[str] | None,
    typer.Option(metavar="VARIABLE=URL", help="The provider behind a variable."),
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Start over; default: continue an earlier run.")
]
ReplacesExport = Annotated[
    bool, typer.Option("--fresh", help="Replace an earlier export in the folder.")
]
SuggestMapping = Annotated[
    bool, typer.Option("--suggest-mapping", help="Propose a mapping for a log of your own.")
]
DryPush = Annotated[bool, typer.Option("--dry-run", help="List what would change; change nothing.")]
DryCollect = Annotated[
    bool, typer.Option("--dry-run", help="List what would be copied; copy nothing.")
]
Collected = Annotated[
    list[str] | None,
    typer.Argument(metavar="INPUT…", help="Files and folders; default: those of all agents."),
]
ReviewFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Default: DATASET.review.jsonl, next to it.")
]
MergeConfig = Annotated[
    Path | None, typer.Option("--config", "-c", help="A YAML file (docs/merge.md).")
]
Index = Annotated[
    int | None,
    typer.Option(min=0, help="The conversation to show, from 0; default: the first usable one."),
]
Full = Annotated[bool, typer.Option("--full", help="Print the whole text, however long.")]
EveryLine = Annotated[bool, typer.Option("--all", "--verbose", "-v", help="Print every bad line.")]
Tag = Annotated[str | None, typer.Option(help="Tag the pushed commit.")]
Version = Annotated[
    bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
]
