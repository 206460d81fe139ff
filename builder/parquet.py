"""Samples as Parquet: the same rows as in the JSONL files, for loaders that prefer it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from builder.jsonio import dumps, loads

ROWS = 1000
BATCH_BYTES = 16 << 20

_STRING = {"dtype": "string", "_type": "Value"}
_FEATURES = {
    "messages": {"feature": {"role": _STRING, "content": _STRING}, "_type": "List"},
    "tools": {"feature": {"_type": "Json"}, "_type": "List"},
}
"""The features as `datasets` (4.7 and later) keeps them in a file's schema."""


def write_parquet(path: Path, lines: Iterable[bytes]) -> None:
    """Write data lines as rows: messages as structs, each tool definition as its JSON text."""
    import pyarrow  # noqa: PLC0415 - only where asked for
    import pyarrow.parquet  # noqa: PLC0415 - as above

    message = pyarrow.struct([("role", pyarrow.string()), ("content", pyarrow.string())])
    fields = [
        pyarrow.field("messages", pyarrow.list_(message)),
        pyarrow.field("tools", pyarrow.list_(pyarrow.json_())),
    ]
    about = {"huggingface": json.dumps({"info": {"features": _FEATURES}})}
    schema = pyarrow.schema(fields, metadata=about)
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in _batches(lines):
            rows = [loads(line) for line in batch]
            messages = [row["messages"] for row in rows]  # type: ignore[call-overload, index]  # our own lines
            tools = [[dumps(tool) for tool in row["tools"]] for row in rows]  # type: ignore[call-overload, index, union-attr]  # as above
            texts = pyarrow.array(tools, type=pyarrow.list_(pyarrow.string()))
            columns = [
                pyarrow.array(messages, type=fields[0].type),
                texts.cast(fields[1].type),
            ]
            writer.write_table(pyarrow.table(columns, schema=schema))


def _batches(lines: Iterable[bytes]) -> Iterable[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if len(batch) >= ROWS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
