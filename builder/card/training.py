"""How each trainer loads the dataset: the variant, and settings with lengths from its own audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from builder.audit.result import Audit
from builder.audit.turns import BARE, FOLLOWING
from builder.card.front import rows
from builder.card.markdown import table
from builder.export.variants import VARIANTS
from builder.report.html import number
from builder.trainers.configs import Facts, configurations

LOADS = """## Load it

Needs `datasets` 4.7 or later: earlier versions do not know the declared type of `tools`.

```python
import datasets

rows = datasets.load_dataset("OWNER/NAME")  # or the path of this folder
```"""

PREFERRED = {
    "trl": ("TRL", "messages"),
    "axolotl": ("axolotl", "messages-str"),
    "llama-factory": ("LLaMA-Factory", "messages-str"),
    "ms-swift": ("ms-swift", "messages-str"),
    "unsloth": ("unsloth", "messages"),
    "openrlhf": ("OpenRLHF", "tools-in-system"),
    "verl": ("verl", "verl"),
    "nemo-rl": ("NeMo-RL", "messages"),
}
"""{trainer: (its name, the variant that it reads best)}."""


def facts(found: Audit | None) -> Facts:
    """What the configurations are made of, from the audit's tables."""
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
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def training(found: Audit | None, splits: Sequence[str]) -> str:
    """The section, empty of configurations if the dataset is."""
    if found is None or not found.samples:
        return LOADS
    known = facts(found)
    names = [
        (name, f"`builder export . --to {variant} -o {variant}`")
        for name, variant in PREFERRED.values()
    ]
    lengths = (
        f"The longest sample has {number(known.longest)} tokens: set the length to"
        f" {known.setting}, or {known.wide} where the trainer writes an empty think block before"
        " every turn, or what is longer is cut. Each trainer reads one of the exports, which"
        " also writes the configurations below:"
    )
    parts = [LOADS, lengths, "\n".join(table(("trainer", "export"), names))]
    for trainer, (name, variant) in PREFERRED.items():
        parts.append(f"### {name}")
        files = configurations(variant, VARIANTS[variant].kind, (trainer,), known, splits, variant)
        for path, text in sorted(files.items()):
            shown = PurePosixPath(variant, "configs", path)
            kind = shown.suffix.lstrip(".").replace("py", "python")
            parts.append(f"`{shown}`".replace("configs/../", ""))
            parts.append(f"```{kind}\n{text.strip()}\n```")
    return "\n\n".join(parts)
