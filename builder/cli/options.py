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
    help="qwen3 (included), a folder, or a Hub id, also with @REVISION; without it, the one that"
    " the dataset was built for.",
)

Dataset = Annotated[
    str,
    typer.Argument(
        metavar="DATASET", help="A built folder, a data file or hf://OWNER/NAME (docs/verify.md)."
    ),
]
ConfigFile = Annotated[
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
ForModel = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="MODEL",
        help="The model that you train: a Hub id or its last part, such as Qwen3-4B-Instruct-2507,"
        " or the folder of a fine-tune. Tokenizer, template, mode and length follow.",
    ),
]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The model's tokenizer: qwen3 (included), a folder, or a Hub id, also with @REVISION.",
    ),
]
DatasetTokenizer = Annotated[str | None, OF_DATASET]
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
ChatTemplate = Annotated[
    str | None,
    typer.Option(
        "--chat-template",
        metavar="FILE|SHA256",
        help="Another chat template than the tokenizer's (docs/choose.md).",
    ),
]
