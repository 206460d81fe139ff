"""Defines the lines of rejects.jsonl: every key once, with its type and meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from builder.conversation import Json
from builder.dataset.rows import json_lines
from builder.jsonio import dumps
from builder.keys import TEXT, TEXT_OR_NULL, key, read_keys, write_keys
from builder.problem import Problem

REJECTS = "rejects.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """A line of rejects.jsonl: something that was not used, and why."""

    source: str = key(TEXT, "the file, relative to the input")
    format: str | None = key(TEXT_OR_NULL, "name of the reader; null: no reader read it")
    record: str = key(TEXT, "where it is in the file; `file`: all of it")
    code: str = key(TEXT, "why it was not used (see below)")
    message: str = key(TEXT, "details for people")

    @classmethod
    def of(cls, problem: Problem, source: str, reader: str | None, record: str) -> Reject:
        """Returns the line for a problem."""
        return cls(
            source=source, format=reader, record=record, code=problem.code, message=problem.detail
        )

    @classmethod
    def read(cls, value: Json) -> Reject:
        """Returns the line as far as it can be read: other values have their defaults."""
        return read_keys(cls, value)

    @property
    def line(self) -> bytes:
        """Returns the line, with the newline."""
        return dumps(write_keys(self)).encode("utf-8", "replace") + b"\n"

    @property
    def place(self) -> tuple[str, ...]:
        """Returns source, record and format, as far as they are known."""
        return tuple(filter(None, (self.source, self.record, self.format)))


def read_rejects(folder: Path) -> Iterator[Reject]:
    """Yields every line of a built folder's rejects.jsonl; none if it has no such file."""
    path = folder / REJECTS
    for _, value in json_lines(path) if path.is_file() else ():
        yield Reject.read(value)
