"""Writes how each trainer loads the dataset: the export, and a configuration that fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from builder.audit.result import Audit
from builder.card.markdown import table
from builder.export.variants import VARIANTS
from builder.qwen3.style import Thoughts
from builder.qwen3.tokenizer import Target
from builder.text import number
from builder.trainers import TRAINERS, configurations
from builder.trainers.record import Targets

LOADS = """## Load it

Needs `datasets` 4.7 or later: earlier versions do not know the declared type of `tools`.

```python
import datasets

rows = datasets.load_dataset("OWNER/NAME")  # or the path of this folder
```

The text that the model reads and writes is that of `tokenizer.apply_chat_template` with a row's
`messages`, and its `tools` if there are any. `meta/` is not loaded: its lines are those of `data/`,
in the same order."""

UNABLE = "none: it would train turns that are context only, or another text"


def training(audit: Audit | None, splits: Sequence[str], targets: Targets, target: Target) -> str:
    """Returns the section on training, without configurations if the dataset is empty."""
    if audit is None or not audit.samples:
        return "## Train with it\n\nThere are no samples."
    style = target.style
    known = replace(
        audit.facts.training,
        targets=targets,
        hybrid=style.thoughts is Thoughts.hybrid,
        model=target.model,
        measured=style.is_specified,
        missing=target.missing,
    )
    chosen = [(item, item.variant_for(targets, target)) for item in TRAINERS.values()]
    names = [
        (item.title, f"`builder export . --to {variant} -o {variant}`" if variant else UNABLE)
        for item, variant in chosen
    ]
    is_wider = known.wide_length != known.length
    blocks = (
        f", or {known.wide_length} if the trainer writes an empty think block before every turn"
    )
    wide = blocks if is_wider else ""
    lengths = (
        f"The longest sample has {'about ' if target.missing else ''}{number(known.longest)}"
        " tokens: set the length to at least"
        f" {known.length}{wide}; longer samples are cut. Each trainer reads one of the"
        " exports, which also"
        " contains the configurations below. Their first lines say whether they train exactly the"
        " tokens of `meta.spans`:"
    )
    parts = ["## Train with it", lengths, "\n".join(table(("trainer", "export"), names))]
    for item, variant in chosen:
        if variant is None:
            continue
        parts.append(f"### {item.title}")
        files = configurations(variant, VARIANTS[variant].kind, (item,), known, splits, variant)
        for path, text in sorted(files.items()):
            place = PurePosixPath(variant, "configs", path)
            kind = place.suffix.lstrip(".").replace("py", "python")
            parts.append(f"`{place}`".replace("configs/../", ""))
            parts.append(f"```{kind}\n{text.strip()}\n```")
    return "\n\n".join(parts)
