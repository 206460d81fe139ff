"""Declares the features of rows to loaders, and writes rows of declared features as Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from builder.conversation import Json
from builder.jsonio import dumps, loads

Feature = dict[str, Any]
"""A feature as the card of a dataset declares it: its name, and a dtype, a list or a struct."""

TEXT: Feature = {"dtype": "string"}
TOOLS: Feature = {"name": "tools", "list": "json"}


def messages_feature(
    name: str = "messages", *, beside: bool = False, weights: Iterable[Feature] = ()
) -> Feature:
    """Declares messages; `beside`: with `reasoning_content`, `weights`: with these columns."""
    columns = ["role", "content", *(["reasoning_content"] if beside else [])]
    return {"name": name, "list": [*({"name": one, **TEXT} for one in columns), *weights]}


def sample_features(*, weighted: bool, beside: bool) -> tuple[Feature, ...]:
    """Declares the rows that `build` writes, for which Arrow would reorder keys and add nulls.

    `weighted`: some message has a weight; the loader then returns null for messages without one.
    """
    weights = [{"name": "weight", "dtype": "int8"}] if weighted else []
    return messages_feature(beside=beside, weights=weights), TOOLS


def declarations(
    splits: Iterable[str], kind: str, digest: str, features: Sequence[Feature]
) -> dict[str, Json]:
    """Returns the part of a card that loaders read: the files in data/ and their features.

    `digest` is declared because `datasets` (measured: 5.2) caches a folder by its name and the
    declarations of its card, and would otherwise return the rows of an earlier folder.
    """
    configuration: Json = {
        "config_name": "default",
        "description": f"sha256 {digest}",
        "data_files": [{"split": split, "path": f"data/{split}-*.{kind}"} for split in splits],
    }
    # Copied through JSON, because YAML would write shared objects as references, which loaders do
    # not resolve.
    declared = loads(dumps({"features": list(features)}))
    return {"configs": [configuration], "dataset_info": declared}


def row_file(path: Path, features: Sequence[Feature]) -> BinaryIO | ParquetFile:
    """Creates a file of the kind that its suffix names, to which lines of JSONL are written."""
    return ParquetFile(path, features) if path.suffix == ".parquet" else path.open("wb")


_ROWS = 1000
_BATCH_BYTES = 16 << 20


class ParquetFile:
    """A Parquet file being written; values of the feature `json` are written as their JSON text."""

    def __init__(self, path: Path, features: Sequence[Feature]) -> None:
        import datasets  # noqa: PLC0415 - two seconds of import, only for Parquet
        import pyarrow.parquet  # noqa: PLC0415 - as above

        declared = datasets.Features._from_yaml_list(loads(dumps(list(features))))
        self._schema = declared.arrow_schema
        self._texts = {feature["name"] for feature in features if feature.get("list") == "json"}
        self._writer = pyarrow.parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._lines: list[bytes] = []
        self._size = 0

    def write(self, line: bytes) -> None:
        """Adds the row of a line of JSONL."""
        self._lines.append(line)
        self._size += len(line)
        if len(self._lines) >= _ROWS or self._size >= _BATCH_BYTES:
            self._flush()

    def close(self) -> None:
        """Writes the remaining rows and the end of the file."""
        if self._lines:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow  # noqa: PLC0415 - as above

        rows: list[Any] = [loads(line) for line in self._lines]
        columns = []
        for field in self._schema:
            values = [row[field.name] for row in rows]
            if field.name in self._texts:
                texts = [[dumps(item) for item in value] for value in values]
                column = pyarrow.array(texts, type=pyarrow.list_(pyarrow.string()))
                columns.append(column.cast(field.type))
            else:
                columns.append(pyarrow.array(values, type=field.type))
        self._writer.write_table(pyarrow.table(columns, schema=self._schema))
        self._lines, self._size = [], 0
