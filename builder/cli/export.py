"""Implements `builder export`: writes a variant of a dataset for a trainer."""

from __future__ import annotations

import shlex

from builder.api import export_dataset
from builder.cli.command import Output, command
from builder.cli.terminal import BOLD, WARNING, escaped, painted, print_json, print_wrapped, warn
from builder.cli.tokenizer import BY_DEFAULT, say_tokenizer
from builder.export.outcome import TARGETS, Exported, TrainerRun, left_out_line, result
from builder.export.variants import VARIANTS
from builder.output.manifest import Manifest
from builder.paths import expand_home
from builder.qwen3.models import model_named, target_of
from builder.text import counted
from builder.trainers.table import LONG, TRAINERS


@command()
def export(
    dataset: str,
    to: str,
    out: str,
    model: str | None = None,
    tokenizer: str | None = None,
    chat_template: str | None = None,
    max_tokens: int | None = None,
    fresh: bool = False,
    *,
    output: Output,
) -> int:
    """Write a variant for a trainer; every row is loaded again and compared."""
    if model is not None and tokenizer is None:
        tokenizer = target_of(model_named(model))
    recorded = Manifest.of(expand_home(dataset)).tokenizer.template_sha256
    default = "" if recorded or tokenizer else f", for {BY_DEFAULT}"
    of_tokens = to == "tokenized"
    say_tokenizer(dataset, tokenizer, chat_template, output, of_tokens=of_tokens)
    exported = export_dataset(
        dataset,
        to,
        out,
        tokenizer=tokenizer,
        chat_template=chat_template,
        fresh=fresh,
        max_tokens=max_tokens,
    )
    if output.as_json:
        print_json({**result(exported), "variant": exported.variant})
    elif not output.quiet:
        _print(to, exported, out, max_tokens, default)
    if lacking := _lacking(to, exported):
        warn(lacking)
    if exported.targets_advice:
        warn(left_out_line(exported, TARGETS))
    for change in [*exported.changed.values()][:20]:
        warn(f"left out: {change}")
    for problem in exported.problems[:20]:
        warn(problem)
    if exported.problems:
        warn("nothing was put in place")
    if not exported.rows:
        warn(_why_empty(exported.variant, Manifest.of(expand_home(dataset))))
    return 1 if exported.problems or not exported.rows else 0


def _lacking(to: str, exported: Exported) -> str:
    """Explains why the trainer that was asked for has no configuration, or returns ""."""
    title = TRAINERS[to].title if to in TRAINERS else ""
    why = exported.without_configuration.get(title)
    if why is None:
        return ""
    able = ", ".join(run.title for run in exported.runs)
    others = f"; the rows are for {able}" if able else ""
    return f"--to {to}: no configuration for {title} was written: {why}{others}"


def _why_empty(to: str, manifest: Manifest) -> str:
    """Explains why nothing was exported; for pairs, with the counts of the manifest."""
    if to not in VARIANTS or not VARIANTS[to].of_pairs:
        return "no sample could be exported"
    left_out = manifest.preferences.left_out
    codes = ", ".join(f"{code} {count}" for code, count in left_out.items())
    why = f"; uncertain: {codes}" if codes else ""
    return f"the dataset contains no preference pair (docs/preference.md){why}"


def _print(to: str, exported: Exported, out: str, max_tokens: int | None, default: str) -> None:
    rows, samples = counted(exported.rows, "row"), counted(exported.samples, "sample")
    print(f"{rows} of {samples} as {exported.variant} in {escaped(out)}{default}")
    if exported.rows:
        print(f"  {exported.equal:,} of {exported.rows:,} verified again as a loader reads them")
    if exported.windowed or exported.turns_too_long:
        windowed = f"{counted(exported.windowed, 'sample')} divided or cut"
        turns = f"{counted(exported.turns_too_long, 'trained turn')} left out"
        parts = [windowed] * bool(exported.windowed) + [turns] * bool(exported.turns_too_long)
        text = f"at {max_tokens:,} tokens a row: {', '.join(parts)}"
        print_wrapped("  ", text, "    ")
    for code in sorted({*exported.left_out} - {TARGETS}):
        print_wrapped("  ", left_out_line(exported, code).replace("`", ""), "    ")
    for code, count in sorted(exported.pairs_left_out.items()):
        print(f"  {counted(count, 'pair')} left out: {code}")
    variant = VARIANTS.get(exported.variant)
    is_of_prompts = variant is not None and variant.distinct
    trainers = variant.trainers if variant is not None and not is_of_prompts else ()
    unit = "row" if exported.rows == exported.written else "sample"
    for trainer in [item for item in trainers if item.name == to] or trainers:
        beyond = exported.longer_than_default[trainer.name]
        if beyond:
            verb = "is" if beyond == 1 else "are"
            remedy = "" if max_tokens is not None else ", --max-tokens divides them"
            print(
                f"  {beyond:,} of {counted(exported.written, unit)} {verb} longer than"
                f" {trainer.title}'s default length ({trainer.default_length:,}): configs/ sets"
                f" {exported.length_for(trainer):,}{remedy}"
            )
    if exported.beyond_model:
        print_wrapped("  ", exported.beyond_model, "    ", WARNING)
    elif exported.longest > LONG:
        text = (
            f"{counted(exported.over[LONG], unit)} longer than {LONG:,} tokens, the longest"
            f" {exported.longest:,}, and the trainers {'read' if is_of_prompts else 'train'} them"
            f" whole: few machines have the memory. `--max-tokens {LONG}` makes windows of them"
        )
        print_wrapped("  ", text, "    ", WARNING)
    asked = TRAINERS[to].title if to in TRAINERS else ""
    for title, why in exported.without_configuration.items() if not asked else ():
        print_wrapped("  ", f"no configuration for {title}: {why}", "    ")
    if exported.rows and not exported.problems and exported.runs:
        print(painted("next", BOLD))
        for run in [item for item in exported.runs if item.title == asked] or exported.runs:
            _print_run(run, exported.variant, out)


def _print_run(run: TrainerRun, variant: str, out: str) -> None:
    """Prints the command of a trainer, and how what it trains differs from the verified text."""
    place = shlex.quote(out)
    command = f"cd {place} && {run.command}" if "://" not in out else f"{run.command} in a copy"
    print(f"  {run.title}: {escaped(command)}")  # unwrapped, to be pasted
    if run.drops:
        why = "a query stands right after tool results; --to trl or --to axolotl trains them"
        print_wrapped("    ", f"drops {run.drops} ({why})", "    ", WARNING)
    if not run.difference:
        return
    exact = f". Exact: --to {run.exact}" if run.exact not in (None, variant) else ""
    print_wrapped("    ", f"not exact: {run.difference}{exact}", "    ")
