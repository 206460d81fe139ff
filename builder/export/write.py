"""Write a variant, then load it as a trainer does and compare every row with what was proven."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from builder.conversation import Json
from builder.dataset.files import DatasetRow
from builder.export.tokens import BorderFault
from builder.export.variants import ExportItem, Row, Variant
from builder.jsonio import dumps, loads
from builder.problem import UsageError
from builder.qwen3.parse import to_dialogue
from builder.qwen3.render import is_bare, is_following
from builder.qwen3.tokenizer import Target
from builder.sample import Sample
from builder.trainers.configs import DEFAULT_LENGTHS, Facts, configurations, data_file, wider
from builder.verify.dataset import checked_rows
from builder.verify.verifier import Verdict, Verifier

BATCH = 500


@dataclass(slots=True)
class Exported:
    """Counts: samples read and written, rows of them, rows loaded again with equal text, faults.

    edges: samples that some trainer changes (`Facts`).
    """

    samples: int = 0
    written: int = 0
    rows: int = 0
    equal: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    longest: int = 0
    widest: int = 0
    beyond: Counter[str] = field(default_factory=Counter)
    edges: Counter[str] = field(default_factory=Counter)
    splits: list[str] = field(default_factory=list)


def export(dataset: str, variant: Variant, out: Path, verifier: Verifier) -> Exported:
    """Write the variant of every sample that is proven. Raises UsageError.

    Nothing is put in place unless every row, loaded again, gives the text that was proven.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"output {str(out)!r}: is not an empty folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    exported = Exported()
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".export-") as scratch:
        made = Path(scratch) / "out"
        (made / "data").mkdir(parents=True)
        digests = Path(scratch) / "digests"
        with digests.open("wb") as texts:
            _write(dataset, variant, made, verifier, exported, texts)
        if exported.rows:
            _companions(variant, made, exported, out.resolve().name)
            _compare(variant, made, verifier.target, digests, exported)
        if exported.rows and not exported.problems:
            shutil.rmtree(out, ignore_errors=True)
            made.replace(out)
    return exported


def _write(
    dataset: str,
    variant: Variant,
    made: Path,
    verifier: Verifier,
    exported: Exported,
    texts: BinaryIO,
) -> None:
    writers: dict[str, _RowWriter] = {}
    for found, sample, verdict in proven_rows(dataset, verifier, exported):
        item = ExportItem(sample, to_dialogue(sample), verdict.text, verdict.spans)
        split, tokens = found.split, verdict.tokens
        try:
            rows = list(variant.rows(item, verifier.target))
        except BorderFault:
            exported.left_out["span_border"] += 1
            continue
        if split not in writers:
            path = made / data_file(split, variant.kind)
            writers[split] = _RowWriter(path, variant)
            exported.splits.append(split)
        exported.written += 1
        exported.edges.update(bare=is_bare(item.sample), following=is_following(item.sample))
        exported.longest = max(exported.longest, tokens)
        turns = sum(role == "assistant" for role, _ in item.sample.messages)
        exported.widest = max(exported.widest, wider(tokens, turns))
        for name, limit in DEFAULT_LENGTHS.items():
            exported.beyond[name] += tokens > limit
        for row, text in rows:
            writers[split].write(row)
            texts.write(hashlib.sha256(text.encode("utf-8")).digest())
            exported.rows += 1
    for writer in writers.values():
        writer.close()


def proven_rows(
    dataset: str, verifier: Verifier, exported: Exported
) -> Iterator[tuple[DatasetRow, Sample, Verdict]]:
    """Each row that is proven, its sample and the verdict; the others are counted and left out."""
    for row, sample, verdict in checked_rows(dataset, verifier):
        exported.samples += 1
        if sample is None or verdict.findings:
            exported.left_out[verdict.findings[0].code] += 1
        else:
            yield row, sample, verdict


class _RowWriter:
    """Rows into one JSONL or Parquet file."""

    def __init__(self, path: Path, variant: Variant) -> None:
        self._variant = variant
        self._path = path
        self._rows: list[Row] = []
        self._parquet: Any = None
        self._stream = path.open("wb") if variant.kind == "jsonl" else None

    def write(self, row: Row) -> None:
        if self._stream is not None:
            self._stream.write(dumps(row).encode("utf-8") + b"\n")
            return
        self._rows.append(row)
        if len(self._rows) >= BATCH:
            self._flush()

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            return
        self._flush()
        self._parquet.close()

    def _flush(self) -> None:
        import pyarrow  # noqa: PLC0415 - only for Parquet
        import pyarrow.parquet  # noqa: PLC0415 - as above

        if self._parquet is None:
            message = pyarrow.struct([("role", pyarrow.string()), ("content", pyarrow.string())])
            kinds = {"messages": pyarrow.list_(message), "length": pyarrow.int64()}
            names = [str(feature["name"]) for feature in self._variant.features]
            listed = pyarrow.list_(pyarrow.int64())
            schema = pyarrow.schema([(name, kinds.get(name, listed)) for name in names])
            self._parquet = pyarrow.parquet.ParquetWriter(self._path, schema, compression="zstd")
        if self._rows:
            table = pyarrow.Table.from_pylist(self._rows, schema=self._parquet.schema)
            self._parquet.write_table(table)
        self._rows = []


def _companions(variant: Variant, made: Path, exported: Exported, folder: str) -> None:
    """The card that declares the features, and the trainers' configurations."""
    front: Json = {
        "configs": [
            {
                "config_name": "default",
                # datasets' cache knows a folder by its name and its card alone
                "description": f"sha256 {_digest(made)}",
                "data_files": [
                    {"split": split, "path": f"data/{split}-*.{variant.kind}"}
                    for split in exported.splits
                ],
            }
        ],
        "dataset_info": {"features": list(variant.features)},
    }
    # Decoded anew: YAML would write what is shared as references, which loaders do not resolve.
    text = yaml.safe_dump(loads(dumps(front)), sort_keys=False, allow_unicode=True)
    facts = Facts(
        exported.written,
        exported.longest,
        exported.widest,
        dict(exported.beyond),
        exported.edges["bare"],
        exported.edges["following"],
    )
    splits = exported.splits
    files = configurations(variant.name, variant.kind, variant.trainers, facts, splits, folder)
    listing = "\n".join(f"- `{Path('configs', name).as_posix()}`" for name in sorted(files))
    listing = listing.replace("configs/../", "")
    body = (
        f"---\n{text}---\n\n# {variant.name}\n\n{variant.summary}.\n\n{exported.rows} rows from"
        f" {exported.written} samples, the longest {exported.longest} tokens. Written by `builder"
        f" export --to {variant.name}`; every row was loaded again and gives the proven text.\n\n"
        f"Configurations (adapt the model, batch and learning rate):\n\n{listing}\n"
    )
    (made / "README.md").write_text(body, encoding="utf-8")
    (made / "configs").mkdir()
    for name, content in files.items():
        path = (made / "configs" / name).resolve()
        path.write_text(content, encoding="utf-8")


def _digest(made: Path) -> str:
    """Of the files in data/, in order."""
    whole = hashlib.sha256()
    for path in sorted((made / "data").iterdir()):
        with path.open("rb") as stream:
            whole.update(hashlib.file_digest(stream, "sha256").digest())
    return whole.hexdigest()


def _compare(
    variant: Variant, made: Path, target: Target, digests: Path, exported: Exported
) -> None:
    """Load the folder as trainers do; each row must give its text again."""
    import datasets  # noqa: PLC0415 - two seconds of import

    datasets.disable_progress_bars()
    datasets.utils.logging.set_verbosity(datasets.utils.logging.CRITICAL)
    with tempfile.TemporaryDirectory(dir=made.parent) as cache, digests.open("rb") as texts:
        try:
            loaded = datasets.load_dataset(str(made), cache_dir=cache)
        except Exception as error:  # whatever the loader raises is a verdict on the files
            exported.problems.append(f"it cannot be loaded: {' '.join(str(error).split())[:200]}")
            return
        for split in exported.splits:
            for number, row in enumerate(loaded[split], start=1):
                digest = hashlib.sha256(variant.text(row, target).encode("utf-8")).digest()
                if digest == texts.read(len(digest)):
                    exported.equal += 1
                else:
                    exported.problems.append(f"{split} row {number}: loaded, it gives other text")
        if texts.read(1):
            exported.problems.append("fewer rows were loaded than written")


def result(exported: Exported) -> dict[str, Json]:
    """What `--json` prints."""
    return {
        "samples": exported.samples,
        "rows": exported.rows,
        "equal": exported.equal,
        "left_out": dict(sorted(exported.left_out.items())),
        "problems": list(exported.problems[:100]),
        "longest": exported.longest,
    }
