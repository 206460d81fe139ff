"""How each trainer loads the dataset: the variant, and settings with lengths from its own audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from builder.audit.result import Audit
from builder.audit.turns import BARE, FOLLOWING, THINKING
from builder.card.front import rows
from builder.card.markdown import table
from builder.export.variants import VARIANTS
from builder.qwen3.style import Style, Thoughts
from builder.report.html import number
from builder.trainers import TRAINERS, configurations
from builder.trainers.record import Facts, Targets

LOADS = """## Load it

Needs `datasets` 4.7 or later: earlier versions do not know the declared type of `tools`.

```python
import datasets

rows = datasets.load_dataset("OWNER/NAME")  # or the path of this folder
```"""

UNABLE = "none: it would train turns that are context only"


def facts(found: Audit | None, targets: Targets, style: Style) -> Facts:
    """Returns what the configurations depend on, from the audit's tables."""
    tables = {item.key: item.rows for item in found.tables} if found is not None else {}
    longest = next((row[-1] for row in tables.get("lengths", ()) if row[0] == "sample"), 0)
    beyond = {str(row[0]): row[2] for row in tables.get("trainers", ())}
    wide = next((row[-1] for row in tables.get("trainers", ()) if row[0] == "llama-factory"), 0)
    edges = dict(rows(found, "edges"))
    return Facts(
        found.samples if found is not None else 0,
        _whole(longest),
        _whole(wide),
        {name: count for name, count in beyond.items() if isinstance(count, int)},
        _whole(edges.get(BARE)),
        _whole(edges.get(FOLLOWING)),
        _whole(edges.get(THINKING)),
        targets,
        style.thoughts is Thoughts.hybrid,
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def training(found: Audit | None, splits: Sequence[str], targets: Targets, style: Style) -> str:
    """Returns the section; without configurations if the dataset is empty."""
    if found is None or not found.samples:
        return LOADS
    known = facts(found, targets, style)
    chosen = {item.name: item.variant_for(targets) for item in TRAINERS.values()}
    names = [
        (item.title, f"`builder export . --to {variant} -o {variant}`" if variant else UNABLE)
        for item, variant in zip(TRAINERS.values(), chosen.values(), strict=True)
    ]
    lengths = (
        f"The longest sample has {number(known.longest)} tokens: set the length to"
        f" {known.length}, or {known.wide_length} where the trainer writes an empty think block"
        " before every turn, or what is longer is cut. Each trainer reads one of the exports, which"
        " also writes the configurations below. The first line of each says whether it trains"
        " exactly the tokens of `meta.spans`:"
    )
    parts = [LOADS, lengths, "\n".join(table(("trainer", "export"), names))]
    for item in TRAINERS.values():
        variant = chosen[item.name]
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
