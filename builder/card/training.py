"""Describes how each trainer loads the dataset: the export, and a configuration that fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from builder.audit.result import Audit
from builder.export.variants import VARIANTS
from builder.qwen3.templates import Thoughts
from builder.qwen3.tokenizer import Target
from builder.trainers import TRAINERS, configurations
from builder.trainers.record import Targets

UNABLE = "none: it would train turns that are context only, or another text"


def training(
    audit: Audit | None, splits: Sequence[str], targets: Targets, target: Target
) -> dict[str, object] | None:
    """Returns the lengths, exports and configurations; None if the dataset is empty."""
    if audit is None or not audit.samples:
        return None
    style = target.style
    known = replace(
        audit.counts.training,
        targets=targets,
        hybrid=style.thoughts is Thoughts.hybrid,
        model=target.model,
        measured=style.is_specified,
        missing=target.missing,
    )
    chosen = [(item, item.variant_for(targets, target)) for item in TRAINERS.values()]
    exports, configured = [], []
    for item, variant in chosen:
        command = f"`builder export . --to {variant} -o {variant}`" if variant else UNABLE
        exports.append((item.title, command))
        if variant is None:
            continue
        files = configurations(variant, VARIANTS[variant].kind, (item,), known, splits, variant)
        listed = []
        for path, text in sorted(files.items()):
            place = PurePosixPath(variant, "configs", path)
            kind = place.suffix.lstrip(".").replace("py", "python")
            listed.append((str(place).replace("configs/../", ""), kind, text.strip()))
        configured.append((item.title, listed))
    return {
        "longest": known.longest,
        "length": known.length,
        "wide": known.wide_length if known.wide_length != known.length else 0,
        "exports": exports,
        "configurations": configured,
    }
