"""The finished work on one part of the input, kept in `OUT/.state/parts` for the next run.

A part is a source, or a piece of a large one. Its folder is named by everything that its content
follows from: the bytes read, the configuration, the versions. So a run that goes on after a kill,
or runs again over inputs of which a few are new, takes what is finished as it is and never mixes it
with the work of another configuration. A folder appears whole, by one rename.

- `samples`: for each proven sample its line and its meta line
- `entries.jsonl`: what became of each conversation (`builder.shard.Entry`)
- `rejects.jsonl`: its lines of rejects.jsonl
- `done.json`: the counts, and the sizes of the other files
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, BinaryIO

from builder.audit.redact import Scrubber
from builder.conversation import Json
from builder.jsonio import JsonFault, dumps, loads
from builder.ledger import Ledger
from builder.problem import Problem

PART_FILES = ("samples", "entries.jsonl", "rejects.jsonl")
DONE = "done.json"


@dataclass(frozen=True, slots=True)
class Spooled:
    """A sample that waits among a part's samples.

    size    bytes of its line and of its meta line, newlines included
    prefix  digest of the dialogue's messages up to its end
    calls   how many calls it holds: the dialogue's first ones
    """

    size: tuple[int, int]
    prefix: bytes
    calls: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of one conversation.

    code     why it, or one of its samples, was rejected; None: nothing was
    samples  those that are proven, in order; none: the conversation is rejected
    prefixes digests of the dialogue's messages up to each assistant turn; the last is all of it
    calls    (call key, drop code or None) of each call; a key that is known by its place alone
             begins with a zero byte
    session  what the conversations of one session share (`builder.splits`)
    """

    code: str | None
    samples: tuple[Spooled, ...] = ()
    prefixes: tuple[bytes, ...] = ()
    calls: tuple[tuple[bytes, str | None], ...] = ()
    tools_source: str = "none"
    model: str | None = None
    session: bytes = b""
    license: str | None = None

    def to_json(self) -> str:
        """A line of entries.jsonl."""
        samples: list[Json] = [
            [*item.size, item.prefix.hex(), item.calls, item.tokens] for item in self.samples
        ]
        return dumps(
            [
                self.code,
                samples,
                [prefix.hex() for prefix in self.prefixes],
                [[key.hex(), code] for key, code in self.calls],
                self.tools_source,
                self.model,
                self.session.hex(),
                self.license,
            ]
        )

    @classmethod
    def from_json(cls, line: bytes) -> Entry:
        """The entry that `to_json` wrote."""
        told: Any = loads(line)
        code, samples, prefixes, calls, tools_source, model, session, license_ = told
        return cls(
            code,
            tuple(
                Spooled((line, meta), bytes.fromhex(prefix), held, tokens)
                for line, meta, prefix, held, tokens in samples
            ),
            tuple(map(bytes.fromhex, prefixes)),
            tuple((bytes.fromhex(key), drop) for key, drop in calls),
            tools_source,
            model,
            bytes.fromhex(session),
            license_,
        )


@dataclass(slots=True)
class PartSummary:
    """The counts of a part. `bytes` and `sha256` are those of the file as it lies there.

    `keyed` names the key that its stand-ins for secrets follow from, "" if it has none.
    """

    name: str
    format: str | None = None
    bytes: int = 0
    sha256: str = ""
    ledger: Ledger = field(default_factory=Ledger)
    samples: int = 0
    rejects: int = 0
    bugs: int = 0
    keyed: str = ""


def reject_line(problem: Problem, source: str, format: str | None, record: str) -> bytes:  # noqa: A002 - the column's name
    """A line of rejects.jsonl."""
    row: Json = {
        "source": source,
        "format": format,
        "record": record,
        "code": problem.code,
        "message": problem.detail,
    }
    return dumps(row).encode("utf-8", "replace") + b"\n"


class Part:
    """A part being made, or one that is there."""

    def __init__(self, folder: Path, summary: PartSummary) -> None:
        self.folder = folder
        self.summary = summary

    def entries(self) -> Iterator[Entry]:
        """The entries, in order."""
        with (self.folder / "entries.jsonl").open("rb") as stream:
            for line in stream:
                yield Entry.from_json(line)

    def rejects(self) -> Iterator[bytes]:
        """The lines for rejects.jsonl, newlines included."""
        with (self.folder / "rejects.jsonl").open("rb") as stream:
            yield from stream

    @property
    def samples(self) -> Path:
        """The file of the samples."""
        return self.folder / "samples"


class PartWriter:
    """Writes a part into a folder of its own. Use as a context manager; `keep` makes it whole.

    `scrubber` takes what must not be written out of the texts of rejects.
    """

    def __init__(
        self, folder: Path, summary: PartSummary, scrubber: Scrubber | None = None
    ) -> None:
        self.folder = folder
        self.summary = summary
        self.scrubber = scrubber
        self.first_code: str | None = None
        self._stack = ExitStack()
        self._streams: dict[str, BinaryIO] = {}

    def __enter__(self) -> PartWriter:
        """Begin anew, whatever an earlier try left."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name in PART_FILES:
            self._streams[name] = self._stack.enter_context((self.folder / name).open("wb"))
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        self._stack.close()

    def sample(self, line: bytes, meta: bytes) -> None:
        """Add a proven sample."""
        self._streams["samples"].write(line)
        self._streams["samples"].write(meta)
        self.summary.samples += 1

    def entry(self, entry: Entry) -> None:
        """Add what became of a conversation."""
        line = entry.to_json().encode("utf-8", "replace")
        self._streams["entries.jsonl"].write(line + b"\n")

    def reject(self, problem: Problem) -> None:
        """Note a fault for rejects.jsonl."""
        name = self.summary.name
        told = problem
        if self.scrubber is not None:
            name, told = self.scrubber.text(name), self.scrubber.problem(problem)
        line = reject_line(told, name, self.summary.format, told.where)
        self._streams["rejects.jsonl"].write(line)
        self.summary.rejects += 1
        self.first_code = self.first_code or problem.code

    def keep(self, final: Path | None) -> Part:
        """The part, whole: on the disk, under its final name. None: it stays where it is."""
        sizes: dict[str, Json] = {}
        for name, stream in self._streams.items():
            stream.flush()
            if final is not None:
                os.fsync(stream.fileno())
            sizes[name] = stream.tell()
        self._stack.close()
        if final is None:
            return Part(self.folder, self.summary)
        summary = _fields(self.summary)
        summary["ledger"] = _fields(self.summary.ledger)
        done = {"sizes": sizes, "summary": summary}
        with (self.folder / DONE).open("wb") as stream:
            stream.write(json.dumps(done).encode("utf-8", "replace"))
            os.fsync(stream.fileno())
        final.parent.mkdir(parents=True, exist_ok=True)
        there = find_part(final)
        if there is not None and there.summary == self.summary:
            # of another worker, which had been given up for lost: it may be in use by now
            shutil.rmtree(self.folder, ignore_errors=True)
            return there
        shutil.rmtree(final, ignore_errors=True)
        self.folder.replace(final)
        return Part(final, self.summary)


def _fields(item: PartSummary | Ledger) -> dict[str, Any]:
    # asdict cannot copy a Counter
    return {one.name: getattr(item, one.name) for one in fields(item)}


def find_part(folder: Path) -> Part | None:
    """The part in the folder if it is whole."""
    try:
        done = read_done((folder / DONE).read_bytes())
        if done is None:
            return None
        sizes, summary = done
        whole = all((folder / name).stat().st_size == sizes[name] for name in PART_FILES)
    except (OSError, KeyError):
        return None
    return Part(folder, summary) if whole else None


def read_done(data: bytes) -> tuple[dict[str, int], PartSummary] | None:
    """(sizes of the part's files, its counts) out of done.json; None: it is damaged."""
    try:
        done: Any = loads(data)
        told = done["summary"]
        ledger = told.pop("ledger")
        counted: dict[str, Any] = {
            key: Counter(value) if isinstance(value, dict) else value
            for key, value in ledger.items()
        }
        return dict(done["sizes"]), PartSummary(**told, ledger=Ledger(**counted))
    except (JsonFault, KeyError, TypeError, ValueError, AttributeError):
        return None
