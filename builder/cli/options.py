"""Declares the options that several commands have, each with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_args

import typer


def choices(kind: Any) -> str:
    """Returns the placeholder for one of the values of a Literal."""
    return "|".join(get_args(kind))


OF_DATASET = typer.Option(
    metavar="NAME",
    help="A tokenizer: qwen3 (included), a folder or a Hub id, with or without @REVISION. Default:"
    " the one the dataset was built for.",
)

DATASET_OUT = typer.Option(
    "--out",
    "-o",
    metavar="FOLDER",
    help="Write the dataset here: a folder, or s3://BUCKET/NAME.",
)
DatasetOut = Annotated[str | None, DATASET_OUT]

Dataset = Annotated[
    str,
    typer.Argument(
        metavar="DATASET", help="A built folder, a data file, or hf://OWNER/NAME (docs/verify.md)."
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Read options from this YAML file (configs/default.yaml lists every key).",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set one key, as in normalize.unit=turn.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if anything is rejected.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Workers = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Use N processes. Default: one per core."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print every detail.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
ForModel = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="MODEL",
        help="The model you train: a Hub id or its last part, such as Qwen3-4B-Instruct-2507, or"
        " the folder of a fine-tune. Tokenizer, template, mode and length follow from it.",
    ),
]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="For experts, instead of --for: a tokenizer: qwen3 (included), a folder or a Hub id,"
        " with or without @REVISION.",
    ),
]
DatasetTokenizer = Annotated[str | None, OF_DATASET]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Use this reader (`builder formats`). Default: the one that recognizes the content.",
    ),
]
MappingFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Read a format of your own by this mapping (docs/mapping.md)."
    ),
]
AllowEval = Annotated[bool, typer.Option("--allow-eval", help="Also use benchmark data.")]
ChatTemplate = Annotated[
    str | None,
    typer.Option(
        "--chat-template",
        metavar="FILE|SHA256",
        help="For experts: a chat template other than the tokenizer's (docs/choose.md).",
    ),
]
