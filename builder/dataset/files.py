"""Lists the files of a dataset, with their splits and their files of meta/."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from builder.paths import expand_home
from builder.problem import UsageError
from builder.sources.store import is_hub_name

_DATA_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet", ".arrow")
"""Suffixes of data files in a folder that `build` did not make."""

_DESCRIPTIONS = frozenset(
    {
        "dataset_info.json",
        "dataset_infos.json",
        "dataset_dict.json",
        "state.json",
        "manifest.json",
        "verified.json",
    }
)
"""JSON files in a dataset's folder that contain no rows."""

SPLITS = ("train", "validation", "test")

REVIEW_SUFFIX = ".review.jsonl"
"""The suffix of review files (`builder.dataset.review`)."""

NOT_A_FILE = "neither a file nor a folder"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of rows: its path, its name in the dataset, its split, its file of meta/ or None.

    folder  the dataset's folder; None if the dataset is this file
    built   `build` made the folder, so rows are read as they are and not converted from other forms
    """

    path: Path
    name: str
    split: str
    meta: Path | None = None
    folder: Path | None = None
    built: bool = False

    @property
    def foreign(self) -> bool:
        """Returns whether its rows may be in a form other than that of `build`."""
        return self.meta is None and not self.built


def dataset_files(dataset: str) -> list[DataFile]:
    """Returns the files of a file or folder; [] if neither exists.

    A folder that `build` made may have its samples in several formats: only files of the first
    format are returned, so that no sample is read twice. Raises UsageError if a file cannot be
    opened, or a folder contains no data, or data that is not in a regular file.
    """
    path = dataset_path(dataset)
    if path.is_file():
        return [readable_file(path, dataset)]
    if not path.is_dir():
        return []
    check_folder(path, dataset)
    files = data_files(path)
    built = [item for item in files if item.parent == path / "data"]
    if built:
        kind = min(item.name.partition(".")[2] for item in built)  # lines before tables
        files = [item for item in built if item.name.partition(".")[2] == kind]
    if not files:
        raise UsageError(f"dataset {dataset!r}: contains no data files")
    for item in filter(is_special, files):
        raise UsageError(f"dataset {dataset!r}: {item.name!r} is {NOT_A_FILE}")
    return [data_file(path, item.relative_to(path).as_posix()) for item in files]


def check_folder(path: Path, dataset: str) -> None:
    """Raises UsageError for a built folder without data/, and for a folder of built folders."""
    if is_built(path) and (path / "meta").is_dir() and not (path / "data").is_dir():
        raise UsageError(f"dataset {dataset!r}: a folder made by `builder build` without its data/")
    if is_built(path):
        return
    try:
        inner = sorted(item.name for item in path.iterdir() if (item / "manifest.json").is_file())
    except OSError as error:
        raise UsageError(f"dataset {dataset!r}: {error.strerror or error}") from None
    inner = [name for name in inner if (path / name / "data").is_dir()]
    if inner:
        listed = ", ".join(inner[:8]) + (", …" if len(inner) > 8 else "")
        raise UsageError(
            f"dataset {dataset!r}: holds built folders ({listed}): name one of them, or combine"
            " them with `builder merge`"
        )


def readable_file(path: Path, dataset: str) -> DataFile:
    """Returns a dataset that is one file. Raises UsageError if it cannot be opened."""
    if path.is_file():
        try:
            path.open("rb").close()
        except OSError as error:
            raise UsageError(f"dataset {dataset!r}: {error.strerror or error}") from None
    return DataFile(path, path.name, "train")


def data_file(folder: Path, name: str) -> DataFile:
    """Returns the file of that name in a folder, with its file of meta/ if there is one."""
    path = folder / name
    named = (path.name.partition(".")[0].partition("-")[0], path.parent.name)
    split = next((part for part in named if part in SPLITS), "train")
    meta = folder / "meta" / f"{path.name.partition('.')[0]}.jsonl"
    has_meta = path.parent == folder / "data" and meta.is_file()
    return DataFile(path, name, split, meta if has_meta else None, folder, is_built(folder))


def is_built(folder: Path) -> bool:
    """Returns whether `build` made the folder."""
    return (folder / "manifest.json").is_file() or (folder / "meta").is_dir()


def data_files(folder: Path) -> list[Path]:
    """Returns the data files below a folder, sorted, including pipes with the name of one.

    JSON documents and CSV files are data only if there is no other data file; a review never is.
    """
    paths = [path for path in sorted(folder.rglob("*")) if not path.is_dir()]
    paths = [path for path in paths if not path.name.endswith(REVIEW_SUFFIX)]
    documents = [
        path for path in paths if path.suffix == ".json" and path.name not in _DESCRIPTIONS
    ]
    tables = [path for path in paths if path.suffix == ".csv"]
    return [path for path in paths if path.name.endswith(_DATA_SUFFIXES)] or documents or tables


def is_special(path: Path) -> bool:
    """Returns whether it is a pipe, a socket or a device, from which reading may not end."""
    return path.exists() and not path.is_file() and not path.is_dir()


def dataset_path(dataset: str) -> Path:
    """Returns the local path of the dataset that a user named.

    Only `hf://OWNER/NAME` names a dataset on the Hub: nothing is looked for there by a mistyped
    path. Raises UsageError for an empty name, and if there is neither a file nor a folder.
    """
    if not dataset:
        raise UsageError("dataset '': names nothing")
    path = expand_home(dataset)
    if is_special(path):
        raise UsageError(f"dataset {dataset!r}: {NOT_A_FILE}")
    if not path.exists() and not dataset.startswith("hf://"):
        known = f"; for the Hub's dataset: hf://{dataset}" if is_hub_name(dataset) else ""
        raise UsageError(f"dataset {dataset!r}: no such file or folder{known}")
    return path
