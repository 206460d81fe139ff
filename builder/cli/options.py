"""Declares the options and arguments that commands share, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from builder.api import EngineName
from builder.normalize.options import Unit
from builder.options import Preset
from builder.verify.options import Mode, ParityPolicy, SchemaPolicy


def _choices(kind: Any) -> str:
    """Returns the placeholder for one of the values of a Literal."""
    return "|".join(get_args(kind))


_OF_DATASET = (
    "qwen3 (included), a folder, or a Hub id, also with @REVISION; without it, the one that the"
    " dataset was built for."
)

Dataset = Annotated[
    str,
    typer.Argument(
        metavar="DATASET", help="A built folder, a data file or hf://OWNER/NAME (docs/verify.md)."
    ),
]
Before = Annotated[str, typer.Argument(metavar="A", help="A built folder, or any other dataset.")]
After = Annotated[str, typer.Argument(metavar="B", help="The dataset to compare with it.")]
LocalDataset = Annotated[
    str, typer.Argument(metavar="DATASET", help="A built folder or a data file.")
]
BuiltDataset = Annotated[
    str, typer.Argument(metavar="DATASET", help="A folder made by build or merge.")
]
BuiltDatasets = Annotated[
    list[str], typer.Argument(metavar="DATASET…", help="Folders made by build or merge.")
]
Repository = Annotated[str, typer.Argument(metavar="REPO_ID", help="OWNER/NAME on the Hub.")]
LogFile = Annotated[
    str, typer.Argument(metavar="FILE", help="A log file, a store or a folder of them.")
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Take options from this YAML file."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything is rejected.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output, and no words.")
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Use N processes; without it, one for each core."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print every detail.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The model's tokenizer: qwen3 (included), a folder, or a Hub id, also with @REVISION.",
    ),
]
DatasetTokenizer = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=_OF_DATASET),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Read with this reader (`builder formats`); without it, by the content.",
    ),
]
MappingFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Read logs of your own by this mapping (docs/mapping.md)."),
]
AllowEval = Annotated[
    bool, typer.Option("--allow-eval", help="Also build from the questions of benchmarks.")
]
Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT…",
        help="Files, folders, globs, `-` for standard input, hf://OWNER/NAME or s3://…; none: list"
        " the logs of this machine.",
    ),
]
ToolsFile = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="Tool definitions (JSON, or a file of `capture --definitions`) for logs that have"
        " none.",
    ),
]
SystemFile = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="A system prompt (text, or a file of `capture --definitions`) for logs that have"
        " none.",
    ),
]
Engine = Annotated[
    EngineName,
    typer.Option(
        metavar=_choices(EngineName), help="Where it runs: here, or on a cluster (docs/scale.md)."
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="The Ray cluster; without it, RAY_ADDRESS or one that is started here.",
    ),
]

Public = Annotated[
    bool,
    typer.Option("--public/--private", help="Who can see a new repository; without it, only you."),
]
Branch = Annotated[str, typer.Option(metavar="NAME", help="The branch, created if needed.")]
CreatePr = Annotated[
    bool, typer.Option("--create-pr", help="Open a pull request instead of changing the branch.")
]
Prune = Annotated[bool, typer.Option("--prune", help="Remove files that only the Hub has.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(metavar="CODE", help="Push although this gate fails (docs/push.md)."),
]
Logs = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="The logs it was made from, to show raw records."),
]
ReviewCsv = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write the review to this file as a table (CSV), and exit."),
]
Port = Annotated[
    int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0: any that is free.")
]
Opens = Annotated[bool, typer.Option("--open/--no-open", help="Open a browser, or only print.")]
FailOn = Annotated[
    str | None,
    typer.Option(
        metavar="CODE,…", help="Exit with 1 if one of these codes or audits has findings."
    ),
]
Contamination = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SET", help="Look for this evaluation set in it: a file or hf://OWNER/NAME."
    ),
]
Parity = Annotated[
    ParityPolicy,
    typer.Option(
        metavar=_choices(ParityPolicy),
        help="Whether each trained turn must match inference, or is only counted.",
    ),
]
InferenceMode = Annotated[
    Mode,
    typer.Option(
        metavar=_choices(Mode), help="The mode of inference that trained turns should match."
    ),
]
Schema = Annotated[
    SchemaPolicy,
    typer.Option(
        metavar=_choices(SchemaPolicy),
        help="Whether arguments that violate their schema are findings, or are only counted.",
    ),
]
Masks = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TRAINER", help="Show which tokens this trainer trains by default; all: each one."
    ),
]
Witness = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME,…",
        help="Ask other engines too: llama.cpp, sglang, transformers, xgrammar.",
    ),
]
WitnessShare = Annotated[
    float,
    typer.Option(min=0, max=1, metavar="SHARE", help="Ask about this share of the samples."),
]
Replay = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SERVER,…",
        help="Count turns that these servers change when sent back: vllm, sglang.",
    ),
]
AsLoaded = Annotated[
    bool, typer.Option("--as-loaded", help="Also load it with `datasets`, and compare.")
]
Explain = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Show which readers claim this file, and why."),
]
ExportVariant = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="A trainer, such as trl, for the best form that it reads; or a form: messages,"
        " messages-str, tools-in-system, openai, prompt-completion, prompt-completion-text,"
        " sharegpt, preference, tokenized or verl; atif or hf-session-traces, for viewing"
        " (docs/export.md).",
    ),
]
ChatTemplate = Annotated[
    str | None,
    typer.Option(
        "--chat-template",
        metavar="FILE|SHA256",
        help="Another chat template than the tokenizer's (docs/templates.md).",
    ),
]

Destination = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FOLDER",
        help="Write the dataset here: a folder, or s3://BUCKET/NAME.",
    ),
]
MergeDestination = Annotated[
    str,
    typer.Option(
        "--out",
        "-o",
        metavar="FOLDER",
        help="Write the dataset here: a folder, or s3://BUCKET/NAME.",
    ),
]
ExportDestination = Annotated[
    Path, typer.Option("--out", "-o", metavar="FOLDER", help="Write the rows here.")
]
ReportFile = Annotated[
    Path, typer.Option("--out", "-o", metavar="FILE", help="Write the page here.")
]
CollectDestination = Annotated[
    Path, typer.Option("--out", "-o", metavar="FOLDER", help="Keep the copies here.")
]
BuildConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Take options from this YAML file (configs/default.yaml has every key).",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set one key of the configuration, as in normalize.unit=turn.",
    ),
]
MergeSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set one key that a merge uses, as in select.max_tokens_total=1000.",
    ),
]
ChosenPreset = Annotated[
    Preset | None,
    typer.Option(
        metavar=_choices(Preset),
        help="Start from options for a purpose (docs/presets.md); -c and --set override them.",
    ),
]
Review = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Leave out the samples that this review rejects."),
]
TrainingUnit = Annotated[
    Unit | None,
    typer.Option(
        metavar=_choices(Unit),
        help="What a row trains; without it, what meta/ says, else conversation.",
    ),
]
Tokenizers = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help=_OF_DATASET),
]
Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="-- COMMAND…", help="The command whose requests are kept."),
]
Captures = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FOLDER",
        help="Write the captures here (default: captures); with --definitions, the file.",
    ),
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
    typer.Option(
        "--own-settings", help="With --definitions: use your own settings, not a new home."
    ),
]
Upstream = Annotated[
    list[str] | None,
    typer.Option(metavar="VARIABLE=URL", help="The provider behind a variable."),
]
Fresh = Annotated[
    bool,
    typer.Option("--fresh", help="Start over; without it, an earlier run is continued."),
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
    typer.Argument(metavar="INPUT…", help="Files and folders; none: the logs of all agents."),
]
ReviewFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Keep decisions in this file; default: DATASET.review.jsonl."
    ),
]
MergeConfig = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="Take options from this YAML file (docs/merge.md)."
    ),
]
Index = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Show conversation N, from 0; without it, the first that can be built.",
    ),
]
Full = Annotated[bool, typer.Option("--full", help="Print the whole text, however long.")]
EveryLine = Annotated[
    bool, typer.Option("--verbose", "-v", "--all", help="Print every line with a finding.")
]
Tag = Annotated[str | None, typer.Option(metavar="NAME", help="Tag the pushed commit.")]
Version = Annotated[
    bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
]
