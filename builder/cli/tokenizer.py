"""Says which tokenizer a command takes for a built dataset."""

from __future__ import annotations

from builder.api.datasets import tokenizer_of
from builder.cli.command import Output
from builder.cli.terminal import escaped, warn
from builder.output.manifest import Manifest
from builder.paths import expand_home
from builder.qwen3.reference import EMBEDDED
from builder.qwen3.tokenizer import target_for

BY_DEFAULT = "Qwen3-8B (default; change it with --for)"


def say_tokenizer(
    dataset: str,
    tokenizer: str | None,
    chat_template: str | None,
    output: Output,
    *,
    of_tokens: bool = False,
) -> None:
    """Prints the tokenizer if the manifest of the dataset names another than the default one.

    Warns if the requested one has another template, or is not that of the template's model, which
    the command itself refuses if it is about ids (`of_tokens`). Raises UsageError if it cannot be
    loaded.
    """
    entry = (manifest := Manifest.of(expand_home(dataset))).tokenizer
    target = target_for(tokenizer_of(manifest, tokenizer, chat_template))
    if target.missing and not of_tokens:
        warn(target.missing)
    if not entry.template_sha256:
        return
    if target.template_sha256 != entry.template_sha256:
        warn(
            "the dataset was verified against the chat template of"
            f" {entry.template_name or entry.name}, not against that of"
            f" {target.template_name or target.name}"
        )
    elif tokenizer is None and entry.name != EMBEDDED and output.in_words:
        print(escaped(f"tokenizer: {entry.name}, which the dataset's manifest names"))
