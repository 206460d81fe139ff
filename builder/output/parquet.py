"""Writes samples as Parquet, with the same rows as the JSONL files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from builder.jsonio import dumps, loads

ROWS = 1000
BATCH_BYTES = 16 << 20

_STRING = {"dtype": "string", "_type": "Value"}


def _features(*, weighted: bool, beside: bool) -> dict[str, Any]:
    """Returns the features as `datasets` (4.7 and later) stores them in a file's schema."""
    message: dict[str, Any] = {"role": _STRING, "content": _STRING}
    if beside:
        message["reasoning_content"] = _STRING
    if weighted:
        message["weight"] = {"dtype": "int8", "_type": "Value"}
    return {
        "messages": {"feature": message, "_type": "List"},
        "tools": {"feature": {"_type": "Json"}, "_type": "List"},
    }


class ParquetFile:
    """A Parquet file being written: messages as structs, each tool definition as its JSON text.

    `weighted`: messages have a weight, which is null if the line has none; `beside`: they have
    `reasoning_content`, too.
    """

    def __init__(self, path: Path, *, weighted: bool = False, beside: bool = False) -> None:
        import pyarrow  # noqa: PLC0415 - only for Parquet
        import pyarrow.parquet  # noqa: PLC0415 - as above

        columns = [("role", pyarrow.string()), ("content", pyarrow.string())]
        if beside:
            columns.append(("reasoning_content", pyarrow.string()))
        if weighted:
            columns.append(("weight", pyarrow.int8()))
        message = pyarrow.struct(columns)
        fields = [
            pyarrow.field("messages", pyarrow.list_(message)),
            pyarrow.field("tools", pyarrow.list_(pyarrow.json_())),
        ]
        about = {
            "huggingface": json.dumps(
                {"info": {"features": _features(weighted=weighted, beside=beside)}}
            )
        }
        self._schema = pyarrow.schema(fields, metadata=about)
        self._writer = pyarrow.parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._lines: list[bytes] = []
        self._size = 0

    def write(self, line: bytes) -> None:
        """Adds the row of a line of data/."""
        self._lines.append(line)
        self._size += len(line)
        if len(self._lines) >= ROWS or self._size >= BATCH_BYTES:
            self._flush()

    def close(self) -> None:
        """Writes the remaining rows and the end of the file."""
        if self._lines:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow  # noqa: PLC0415 - as above

        rows: list[Any] = [loads(line) for line in self._lines]
        texts = pyarrow.array(
            [[dumps(tool) for tool in row["tools"]] for row in rows],
            type=pyarrow.list_(pyarrow.string()),
        )
        columns = [
            pyarrow.array([row["messages"] for row in rows], type=self._schema.field(0).type),
            texts.cast(self._schema.field(1).type),
        ]
        self._writer.write_table(pyarrow.table(columns, schema=self._schema))
        self._lines, self._size = [], 0
