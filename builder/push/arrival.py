"""Reads a pushed dataset back: the files by hash, and the rows through `load_dataset`."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.credentials import reason
from builder.dataset.forms import read_sample
from builder.dataset.meta import SampleMeta
from builder.dataset.rows import json_objects, plain_row
from builder.parallel.host import quiet_datasets
from builder.push import hub
from builder.push.files import PushFile
from builder.push.hub import Place, is_network_fault
from builder.push.upload import compare
from builder.qwen3.tokenizer import Target
from builder.sample import Sample

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_SAMPLED = 200
"""Rows of a split that are rendered again, at even distances."""

LOADED_BYTES = 2 << 30
"""If data/ is larger, only the first SAMPLED rows of each split are loaded, otherwise all."""


@dataclass(slots=True)
class Arrival:
    """The result of a read-back: what is equal, and every difference.

    files, bytes   equal files of the commit, compared by size and sha256 or git oid
    rows           rows that the loader returned
    is_whole       all rows were loaded and counted, not only the first
    renderings     loaded rows whose rendering has the sha256 that meta/ names
    problems       a message for each difference
    """

    files: int = 0
    bytes: int = 0
    rows: int = 0
    is_whole: bool = True
    renderings: int = 0
    problems: list[str] = field(default_factory=list)


def read_back(
    api: HfApi, place: Place, folder: Path, files: Sequence[PushFile], target: Target
) -> Arrival:
    """Compares the commit `place.revision` with the folder. Passes on the client's exceptions."""
    data = sum(file.size for file in files if file.path.startswith("data/"))
    arrival = Arrival(is_whole=data <= LOADED_BYTES)
    changes = compare(files, hub.repository_at(api, place).files)
    arrival.files = len(changes.equal)
    arrival.bytes = sum(file.size for file in changes.equal)
    arrival.problems += [f"{file.path}: differs on the Hub" for file in changes.send]
    try:
        with quiet_datasets():
            _compare_rows(place, _splits(folder), target, arrival)
    except Exception as error:
        if is_network_fault(error):
            raise
        # any other exception of the loader means that the files are at fault
        arrival.problems.append(f"the loader fails: {reason(error)}")
    return arrival


def _compare_rows(
    place: Place, known: dict[str, list[Path]], target: Target, arrival: Arrival
) -> None:
    """Compares rows with meta/. Streaming makes them come from the Hub and not from a cache."""
    import datasets  # noqa: PLC0415 - two seconds of import

    loaded = datasets.load_dataset(place.repo, revision=place.revision, streaming=True)
    if set(loaded) != set(known):
        arrival.problems.append(
            f"the loader gives the splits {sorted(loaded)}, not {sorted(known)}"
        )
    for split in sorted(set(loaded) & set(known)):
        count = sum(1 for _ in json_objects(known[split])) if arrival.is_whole else _SAMPLED
        limit = None if arrival.is_whole else _SAMPLED
        metas = itertools.islice(json_objects(known[split]), limit)
        rows = itertools.islice(loaded[split], limit)
        for number, (row, meta) in enumerate(itertools.zip_longest(rows, metas)):
            if row is None or meta is None:
                has = "more" if meta is None else "fewer"
                arrival.problems.append(f"{split}: the loader gives {has} rows than meta/ has")
                break
            arrival.rows += 1
            if number % max(1, count // _SAMPLED) == 0:
                problem = _problem(row, SampleMeta.read(meta), target)
                arrival.renderings += problem is None
                arrival.problems += [f"{split} row {number}: {problem}"] if problem else []


def _problem(row: dict[str, Any], meta: SampleMeta, target: Target) -> str | None:
    """Returns how a loaded row differs from the row that was proven, or None."""
    sample = read_sample(plain_row({key: row.get(key) for key in ("messages", "tools")}))
    if not isinstance(sample, Sample):
        return f"as loaded it is not a sample: {sample[0].message}"
    try:
        text = target.render_sample(sample)
    except Exception as error:  # any exception of the template means that the row is at fault
        return f"as loaded it does not render: {error}"[:200]
    if hashlib.sha256(text.encode("utf-8")).hexdigest() != meta.render_sha256:
        return "as loaded it renders to another text than the verified one"
    return None


def _splits(folder: Path) -> dict[str, list[Path]]:
    paths = sorted((folder / "meta").glob("*.jsonl"))
    groups = itertools.groupby(paths, key=lambda path: path.name.partition("-")[0])
    return {name: list(files) for name, files in groups}
