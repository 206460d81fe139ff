"""Writes rows into one JSONL or Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from builder.export.variant import Row, Variant
from builder.jsonio import dumps

BATCH = 500
"""Rows of Parquet that are written together."""


class RowWriter:
    """Writes rows into one JSONL or Parquet file."""

    def __init__(self, path: Path, variant: Variant, *, beside: bool) -> None:
        self._variant = variant
        self._beside = beside
        self._path = path
        self._rows: list[Row] = []
        self._parquet: Any = None
        self._stream = path.open("wb") if variant.kind == "jsonl" else None

    def write(self, row: Row) -> None:
        """Writes a row."""
        if self._stream is not None:
            self._stream.write(dumps(row).encode("utf-8") + b"\n")
            return
        self._rows.append(row)
        if len(self._rows) >= BATCH:
            self._flush()

    def close(self) -> None:
        """Completes the file."""
        if self._stream is not None:
            self._stream.close()
            return
        self._flush()
        self._parquet.close()

    def _flush(self) -> None:
        import pyarrow  # noqa: PLC0415 - only for Parquet
        import pyarrow.parquet  # noqa: PLC0415 - as above

        if self._parquet is None:
            names = ["role", "content", *(["reasoning_content"] if self._beside else [])]
            message = pyarrow.struct([(name, pyarrow.string()) for name in names])
            kinds = {"messages": pyarrow.list_(message), "length": pyarrow.int64()}
            names = [str(feature["name"]) for feature in self._variant.features]
            listed = pyarrow.list_(pyarrow.int64())
            schema = pyarrow.schema([(name, kinds.get(name, listed)) for name in names])
            self._parquet = pyarrow.parquet.ParquetWriter(self._path, schema, compression="zstd")
        if self._rows:
            table = pyarrow.Table.from_pylist(self._rows, schema=self._parquet.schema)
            self._parquet.write_table(table)
        self._rows = []
