"""The rows of a dataset of any origin, each with what its meta/ line says of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from builder.conversation import Json
from builder.problem import UsageError
from builder.rows import plain_row, raw_rows, read_sample
from builder.sample import Sample
from builder.verify import Verdict, Verifier
from builder.verify_files import CONVERSATION, DATA_SUFFIXES, hub_name


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """One row: where it stands, its decoded value, and its line of meta/ ({} if there is none)."""

    split: str
    file: str
    line: int
    value: Json
    meta: dict[str, Json] = field(default_factory=dict)

    @property
    def unit(self) -> str:
        """The training unit that meta/ names, else "conversation"."""
        unit = self.meta.get("unit")
        return unit if isinstance(unit, str) else CONVERSATION

    @property
    def trained(self) -> int | None:
        """How many of the last assistant turns the row teaches; None: all of them."""
        turns = self.meta.get("assistant_turns")
        return turns if isinstance(turns, int) and self.unit != CONVERSATION else None


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of rows: its path, its name in the dataset, its split, its file of meta/ or None."""

    path: Path
    name: str
    split: str
    meta: Path | None = None


def dataset_files(dataset: str) -> list[DataFile]:
    """The files of a file or folder, of a built one the first kind of files; [] if it is neither.

    Raises UsageError if a folder holds no data.
    """
    path = Path(dataset).expanduser()
    if path.is_file():
        return [DataFile(path, path.name, "train")]
    if not path.is_dir():
        return []
    files = [item for item in sorted(path.rglob("*")) if item.name.endswith(DATA_SUFFIXES)]
    data = [item for item in files if item.parent == path / "data"]
    if data:  # of a built folder: not meta/, and no sample twice
        kind = min(item.name.partition(".")[2] for item in data)  # lines before tables
        files = [item for item in data if item.name.partition(".")[2] == kind]
    if not files:
        raise UsageError(f"dataset {dataset!r}: holds no data files")
    found = []
    for item in files:
        meta = path / "meta" / f"{item.name.partition('.')[0]}.jsonl"
        name = item.relative_to(path).as_posix()
        has_meta = bool(data) and meta.is_file()
        found.append(DataFile(item, name, _split(item.name), meta if has_meta else None))
    return found


def dataset_rows(dataset: str) -> Iterator[DatasetRow]:
    """The rows of a file, a folder (of a built one the first kind of files) or a Hub dataset.

    Raises UsageError if there is no such dataset.
    """
    files = dataset_files(dataset)
    for item in files:
        yield from _file(item)
    if not files and hub_name(dataset).count("/") == 1:
        yield from _hub(dataset)
    elif not files:
        raise UsageError(f"dataset {dataset!r}: no such file or folder")


def _split(name: str) -> str:
    begins = name.partition("-")[0]
    return begins if begins in ("train", "validation", "test") else "train"


def _file(item: DataFile) -> Iterator[DatasetRow]:
    noted = raw_rows(item.meta) if item.meta is not None else iter(())
    try:
        for row, about in zip_longest(raw_rows(item.path), noted):
            if row is None:
                return
            told = about[1] if about is not None else None
            known = told if isinstance(told, dict) else {}
            yield DatasetRow(item.split, item.name, row[0], row[1], known)
    except Exception as error:  # of the disk, or pyarrow's of a damaged file
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"dataset {item.name!r}: cannot be read: {reason}") from None


def _hub(dataset: str) -> Iterator[DatasetRow]:
    import datasets  # noqa: PLC0415 - two seconds of import

    repository, _, revision = hub_name(dataset).partition("@")
    try:
        splits = datasets.load_dataset(repository, revision=revision or None, streaming=True)
        for split, rows in splits.items():
            for number, row in enumerate(rows, start=1):
                yield DatasetRow(str(split), repository, number, plain_row(row))
    except Exception as error:  # a library's many ways of saying that it cannot be had
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"dataset {dataset!r}: cannot be loaded: {reason}") from None


def checked_rows(
    dataset: str, verifier: Verifier, unit: str | None = None
) -> Iterator[tuple[DatasetRow, Sample | None, Verdict]]:
    """Each row, its sample (None: it holds none), and the verdict. Raises UsageError.

    `unit` None: what meta/ says of the row.
    """
    for row in dataset_rows(dataset):
        sample = read_sample(row.value)
        if not isinstance(sample, Sample):
            yield row, None, Verdict(tuple(sample))
            continue
        trained = row.trained if unit is None else 1 if unit == "turn" else None
        yield row, sample, verifier.check(sample, unit=unit or row.unit, trained=trained)
