"""Defines the options of the files in data/."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DEFAULT_NAME = "dataset"
"""The name of a dataset that the user did not name."""


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Options of `output:` in the configuration.

    formats   kinds of files in data/; loaders read those of the first kind
    shard_mb  a file is closed once its samples reach this many MB (2^20 bytes)
    compress  applies to the JSONL in data/: Parquet has its own compression, and meta/ must be
              readable by page
    """

    formats: tuple[Literal["jsonl", "parquet"], ...] = ("jsonl",)
    shard_mb: int = 256
    compress: Literal["none", "zstd"] = "none"

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Returns the file name suffixes in data/, one for each of `formats`."""
        jsonl = "jsonl.zst" if self.compress == "zstd" else "jsonl"
        return tuple(jsonl if kind == "jsonl" else kind for kind in self.formats)
