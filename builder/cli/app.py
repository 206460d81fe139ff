"""Declares the command line. Heavy imports are inside the commands, so that `--help` is fast."""

from __future__ import annotations

from pathlib import Path

import typer

from builder.cli import options
from builder.cli.command import command
from builder.cli.help import HelpGroup
from builder.cli.output import Output
from builder.problem import UsageError
from builder.verify.options import VerifyOptions

app = typer.Typer(
    name="builder",
    cls=HelpGroup,
    help="Turn raw agent logs into fine-tuning data for Qwen models, verified byte for byte.",
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback()
def common(version: options.Version = False) -> None:
    """Turn raw agent logs into fine-tuning data for Qwen models, verified byte for byte."""
    if version:
        from builder.cli.version import print_version

        print_version()
        raise typer.Exit


@command(app, verbose=True)
def build(
    inputs: options.Inputs = None,
    out: options.Destination = None,
    config: options.BuildConfig = None,
    preset: options.ChosenPreset = None,
    settings: options.Settings = None,
    tools: options.ToolsFile = None,
    system: options.SystemFile = None,
    format: options.Format = None,  # noqa: A002 - the option's name
    mapping: options.MappingFile = None,
    tokenizer: options.Tokenizer = None,
    chat_template: options.ChatTemplate = None,
    workers: options.Workers = None,
    engine: options.Engine = "local",
    ray_address: options.RayAddress = None,
    review: options.Review = None,
    fresh: options.Fresh = False,
    allow_eval: options.AllowEval = False,
    strict: options.Strict = False,
    *,
    output: Output,
) -> int:
    """Turn logs into a dataset: read, normalise, verify and write."""
    from builder.build.engine import preloading
    from builder.config import load_config, override
    from builder.parallel.pool import default_workers, prepare_for
    from builder.paths import UserPath

    decided = UserPath(review) if review is not None else None
    chosen = load_config(config, preset, settings or (), review=decided)
    chosen = override(
        chosen,
        inputs=inputs or (),
        format=format,
        mapping=str(mapping) if mapping is not None else None,
        tools=[UserPath(item) for item in tools or ()],
        system=[UserPath(item) for item in system or ()],
    )
    if allow_eval:
        chosen = chosen.with_evaluation()
    if tokenizer is not None:
        chosen = chosen.with_tokenizer(UserPath(tokenizer))
    if chat_template is not None:
        chosen = chosen.with_chat_template(UserPath(chat_template))
    if out and engine == "local":
        prepare_for(chosen.paths, workers or default_workers(), preloading(chosen.verify.target))
    from builder.cli.build import list_stores, run_build

    if not chosen.inputs:
        return list_stores(output)
    if not out:
        raise UsageError("build: -o FOLDER is missing: where should the dataset go?")
    return run_build(
        chosen,
        out,
        engine=engine,
        workers=workers,
        ray_address=ray_address,
        fresh=fresh,
        strict=strict,
        output=output,
    )


@command(app)
def verify(
    dataset: options.Dataset,
    tokenizer: options.Tokenizers = None,
    chat_template: options.ChatTemplate = None,
    masks: options.Masks = None,
    witness: options.Witness = None,
    witness_share: options.WitnessShare = 1.0,
    replay: options.Replay = None,
    schema: options.Schema = "report",
    unit: options.TrainingUnit = None,
    loaded: options.AsLoaded = False,
    parity: options.Parity = "report",
    mode: options.InferenceMode = "non-thinking",
    show_all: options.EveryLine = False,
    workers: options.Workers = None,
    *,
    output: Output,
) -> int:
    """Check a dataset of any origin against the chat template, line by line."""
    from builder.cli.verify import run_verify

    return run_verify(
        dataset,
        tokenizers=tokenizer or [None],
        chat_template=chat_template,
        masks=masks or [],
        witnesses=witness or [],
        witness_share=witness_share,
        replay=replay or [],
        options=VerifyOptions(schema, parity, mode),
        unit=unit,
        loaded=loaded,
        workers=workers,
        show_all=show_all,
        output=output,
    )


@command(app)
def inspect(
    file: options.LogFile,
    index: options.Index = None,
    full: options.Full = False,
    format: options.Format = None,  # noqa: A002 - the option's name
    mapping: options.MappingFile = None,
    suggest_mapping: options.SuggestMapping = False,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
    tokenizer: options.Tokenizer = None,
    chat_template: options.ChatTemplate = None,
    allow_eval: options.AllowEval = False,
    *,
    output: Output,
) -> int:
    """Show the format of a file or folder, and one conversation as the model will see it."""
    from builder.cli.inspect import run_inspect
    from builder.config import load_config

    chosen = load_config(config, settings=settings or ())
    if allow_eval:
        chosen = chosen.with_evaluation()
    return run_inspect(
        file,
        index=index,
        full=full,
        format=format,
        mapping=mapping,
        suggests=suggest_mapping,
        config=chosen,
        tokenizer=tokenizer,
        chat_template=chat_template,
        output=output,
    )


@command(app)
def export(
    dataset: options.Dataset,
    to: options.ExportVariant,
    out: options.ExportDestination,
    tokenizer: options.DatasetTokenizer = None,
    chat_template: options.ChatTemplate = None,
    fresh: options.ReplacesExport = False,
    *,
    output: Output,
) -> int:
    """Write a variant for a trainer; every row is loaded again and compared."""
    from builder.cli.export import run_export

    return run_export(
        dataset,
        to=to,
        out=out,
        tokenizer=tokenizer,
        chat_template=chat_template,
        fresh=fresh,
        output=output,
    )


@command(app)
def push(
    dataset: options.BuiltDataset,
    repo: options.Repository,
    dry_run: options.DryPush = False,
    public: options.Public = False,
    revision: options.Branch = "main",
    create_pr: options.CreatePr = False,
    tag: options.Tag = None,
    prune: options.Prune = False,
    allow: options.Allow = None,
    tokenizer: options.DatasetTokenizer = None,
    *,
    output: Output,
) -> int:
    """Publish a built dataset on the Hugging Face Hub after it passes the gates; read it back."""
    from builder.cli.push import run_push
    from builder.push.job import PushOptions

    chosen = PushOptions(
        public=public,
        revision=revision,
        create_pr=create_pr,
        tag=tag,
        prune=prune,
        allow=tuple(allow or ()),
        tokenizer=tokenizer,
        dry_run=dry_run,
    )
    return run_push(dataset, repo, chosen, output=output)


@command(app)
def report(
    dataset: options.Dataset,
    out: options.ReportFile = Path("report.html"),
    tokenizer: options.DatasetTokenizer = None,
    *,
    output: Output,
) -> int:
    """Write a report of a dataset as one HTML file that can be read offline."""
    from builder.cli.report import run_report

    return run_report(dataset, out, tokenizer=tokenizer, output=output)


@command(app)
def view(
    dataset: options.LocalDataset,
    logs: options.Logs = None,
    review: options.ReviewFile = None,
    review_csv: options.ReviewCsv = None,
    port: options.Port = 0,
    opens: options.Opens = True,
    tokenizer: options.DatasetTokenizer = None,
    *,
    output: Output,
) -> int:
    """Browse every sample: served to this machine only, read from disk page by page."""
    from builder.cli.report import run_view

    return run_view(
        dataset,
        logs,
        review,
        review_csv,
        port,
        opens=opens,
        tokenizer=tokenizer,
        output=output,
    )


@command(app)
def audit(
    dataset: options.Dataset,
    fail_on: options.FailOn = None,
    contamination: options.Contamination = None,
    config: options.ConfigFile = None,
    settings: options.Settings = None,
    tokenizer: options.Tokenizer = None,
    workers: options.Workers = None,
    *,
    output: Output,
) -> int:
    """Analyse a dataset: its contents, what leaked into it, and what is wrong with it."""
    from builder.cli.audit import run_audit
    from builder.config import load_config

    return run_audit(
        dataset,
        load_config(config, settings=settings or ()),
        fail_on=fail_on,
        contamination=contamination or (),
        tokenizer=tokenizer,
        workers=workers,
        output=output,
    )


@command(app)
def formats(
    explain: options.Explain = None,
    *,
    output: Output,
) -> int:
    """List the readers, with the format that each recognises."""
    from builder.cli.formats import explain as explain_path
    from builder.cli.formats import list_formats

    return list_formats(output=output) if explain is None else explain_path(explain, output=output)


@command(app)
def collect(
    out: options.CollectDestination,
    inputs: options.Collected = None,
    dry_run: options.DryCollect = False,
    *,
    output: Output,
) -> int:
    """Copy new and changed logs of this machine's agents into a folder, before they are deleted."""
    from builder.cli.collect import run_collect

    return run_collect(out, inputs or (), output, dry_run=dry_run)


@command(app, context_settings={"allow_interspersed_args": False})
def capture(
    command: options.Command = None,
    out: options.Captures = None,
    serve: options.Serve = None,
    definitions: options.Definitions = False,
    own_settings: options.OwnSettings = False,
    upstream: options.Upstream = None,
    *,
    output: Output,
) -> int:
    """Run an agent with its requests passing through, and keep requests and answers as logs."""
    from builder.cli.capture import run_capture

    return run_capture(
        command or (),
        out,
        serve=serve,
        definitions=definitions,
        own_settings=own_settings,
        upstream=upstream or (),
        output=output,
    )


@command(app, verbose=True)
def merge(
    datasets: options.BuiltDatasets,
    out: options.MergeDestination,
    config: options.MergeConfig = None,
    settings: options.MergeSettings = None,
    workers: options.Workers = None,
    strict: options.Strict = False,
    *,
    output: Output,
) -> int:
    """Combine built datasets into one, without duplicates and without reading logs again."""
    from builder.cli.merge import run_merge
    from builder.config import load_config

    return run_merge(
        datasets,
        load_config(config, settings=settings or (), for_merge=True),
        out,
        workers=workers,
        strict=strict,
        output=output,
    )


@command(app)
def diff(
    before: options.Before,
    after: options.After,
    *,
    output: Output,
) -> int:
    """Compare two datasets: samples added, removed or changed, and other differences."""
    from builder.cli.diff import run_diff

    return run_diff(before, after, output=output)


COMMANDS = tuple(
    str(item.name or item.callback.__name__) for item in app.registered_commands if item.callback
)
"""The names of the commands."""
