"""Loads a written export as trainers do, and names the samples that it does not give back.

`datasets` reads a file as a whole, so one row can change how others are read, or stop the loader.
Such samples are left out of the export and counted; no row stops an export.
"""

from __future__ import annotations

import hashlib
import tempfile
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.credentials import reason
from builder.export.variants import Variant
from builder.parallel.host import quiet_datasets
from builder.qwen3.tokenizer import Target
from builder.verify.as_loaded import culprits

ROUNDS = 10
"""Maximum number of times that an export is written without the samples found so far."""


@dataclass(slots=True)
class SplitRows:
    """What is known of the rows of a split in the order of its file.

    digests  the sha256 of the text that each row must give
    samples  the number of each row's sample
    """

    digests: list[bytes] = field(default_factory=list)
    samples: array[int] = field(default_factory=lambda: array("Q"))

    def add(self, text: str, sample: int) -> None:
        """Adds a row."""
        self.digests.append(hashlib.sha256(text.encode("utf-8")).digest())
        self.samples.append(sample)


@dataclass(slots=True)
class Loaded:
    """The outcome of loading an export.

    equal    rows that give the text which was proven
    changed  {number of a sample: how a row of it differs}
    failure  why the rows could not be compared, or ""
    """

    equal: int = 0
    changed: dict[int, str] = field(default_factory=dict)
    failure: str = ""


def load(root: Path, written: dict[str, SplitRows], variant: Variant, target: Target) -> Loaded:
    """Loads the folder as trainers do, and compares the text of each row with the proven one."""
    import datasets  # noqa: PLC0415 - two seconds of import

    loaded_rows = Loaded()
    with quiet_datasets(), tempfile.TemporaryDirectory(dir=root.parent) as cache:
        try:
            splits = datasets.load_dataset(str(root), cache_dir=cache)
            for split, rows in written.items():
                _compare(split, rows, splits[split], variant, target, loaded_rows)
        except Exception as error:  # any exception of the loader means that the files are at fault
            loaded_rows.failure = f"it cannot be loaded: {reason(error)}"
    return loaded_rows


def _compare(
    split: str, rows: SplitRows, loaded: Any, variant: Variant, target: Target, result: Loaded
) -> None:
    if len(loaded) != len(rows.digests):
        result.failure = f"{split}: {len(loaded)} of {len(rows.digests)} rows are loaded"
        return
    _ = target.tokenizer  # if it cannot be loaded, that is no fault of a row
    for number, row in enumerate(loaded):
        try:
            text = variant.text(row, target)
            is_equal = hashlib.sha256(text.encode("utf-8")).digest() == rows.digests[number]
            fault = "" if is_equal else "the loaded row gives different text"
        except Exception as error:  # any exception of a template is a fault of the row
            fault = f"the loaded row does not render: {reason(error)}"
        if fault:
            result.changed.setdefault(rows.samples[number], f"{split} row {number + 1}: {fault}")
        else:
            result.equal += 1


def to_leave_out(
    result: Loaded, written: dict[str, SplitRows], loads_only: Callable[[Sequence[int]], bool]
) -> dict[int, str]:
    """Returns {number of a sample to leave out: why}; {} if no sample is to blame.

    `loads_only` says whether an export of just these samples can be loaded: with it the samples are
    found at which the loader fails as a whole.
    """
    if not result.failure:
        return result.changed
    numbers = sorted({number for rows in written.values() for number in rows.samples})
    if not any(loads_only([number]) for number in {numbers[0], numbers[-1]}):
        return {}  # the loader itself fails
    return dict.fromkeys(culprits(numbers, loads_only), result.failure)
