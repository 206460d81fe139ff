"""Finds the samples that `datasets` does not give back, so that a build can leave them out.

Checks before writing (`builder.verify.loader`) know some faults of the loader. These are for all
others: whatever the loader changes or refuses concerns samples, which are left out and counted, and
never the build.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from builder.card.front import loading
from builder.dataset.meta import SampleMeta
from builder.jsonio import loads
from builder.qwen3.tokenizer import Target
from builder.readers.toolkit.narrow import as_dict
from builder.sample import Sample
from builder.verify.as_loaded import as_loaded
from builder.verify.summary import LineReport

ROUNDS = 10
"""Maximum number of times that the dataset is written without the samples found so far."""


def changed_samples(folder: Path, reports: Sequence[LineReport]) -> dict[str, str]:
    """Returns {sample id: what the loader changes} of the reports that name a row."""
    wanted: dict[str, dict[int, str]] = {}
    for report in reports:
        if report.line and report.findings:
            name = Path(report.file).name.partition(".")[0]
            wanted.setdefault(name, {}).setdefault(report.line, report.findings[0].message)
    changed = {}
    for name, lines in wanted.items():
        for number, sample_id in _ids_of(folder / "meta" / f"{name}.jsonl"):
            if number in lines:
                changed[sample_id] = lines[number]
    return changed


def sample_ids(folder: Path) -> list[str]:
    """Returns the ids of the written samples in the order of the files."""
    paths = sorted((folder / "meta").glob("*.jsonl"))
    return [sample_id for path in paths for _, sample_id in _ids_of(path)]


def _ids_of(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            yield number, SampleMeta.read(as_dict(loads(line))).id


def can_load(scratch: Path, target: Target) -> bool:
    """Returns whether the loader works at all: whether it gives back one plain sample."""
    sample = Sample((("user", "a"), ("assistant", "b")))
    with tempfile.TemporaryDirectory(dir=scratch) as name:
        folder = Path(name)
        (folder / "data").mkdir()
        path = "data/train-00000-of-00001.jsonl"
        (folder / path).write_bytes(sample.line + b"\n")
        card = yaml.safe_dump(loading({"train": [path]}, "", weighted=False))
        (folder / "README.md").write_text(f"---\n{card}---\n", encoding="utf-8")
        return not list(as_loaded(folder, target, scratch))
