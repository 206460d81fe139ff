"""The work of a run: a task for each source or chunk, and the job that all tasks share."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from builder.normalize.joined import JoinedAnswers
from builder.normalize.options import LengthOptions, NormalizeOptions
from builder.readers import Reader, readers, recognise
from builder.readers.mapping.read import mapped_reader
from builder.readers.mapping.spec import MappingSpec
from builder.scrub.options import ScrubOptions
from builder.sources.source import Source
from builder.verify.options import VerifyOptions

_DEFAULT_LENGTHS = LengthOptions()


@dataclass(frozen=True, slots=True)
class Task:
    """A source, or a chunk of one, with the options of its input.

    `mapping` describes a log of the user's own, in place of a `format`. `origin` identifies the
    source in the run; its chunks share it. `weight` is the share of its conversations to select.
    `joined` is what other sources of the run say about its answers, known in a second pass.
    """

    source: Source
    options: NormalizeOptions
    origin: str
    format: str = "auto"
    mapping: MappingSpec | None = None
    license: str | None = None
    lengths: LengthOptions = _DEFAULT_LENGTHS
    weight: float = 1.0
    joined: JoinedAnswers | None = None


def sole_reader(task: Task) -> Reader | None:
    """Returns the reader of a task; None unless exactly one reader claims its source."""
    if task.mapping is not None:
        return mapped_reader(task.mapping)
    names = reader_names(task)
    return readers()[names[0]] if len(names) == 1 else None


def reader_names(task: Task) -> list[str]:
    """Returns the names of the readers that claim a task's source."""
    return [task.format] if task.format != "auto" else list(recognise(task.source))


@dataclass(frozen=True, slots=True)
class Job:
    """The data that all tasks of a run share.

    `identity` is that of `builder.build.identity`. `results` is the folder for finished results,
    `work` the one for unfinished results, `spools` the one for saved events, which workers of one
    machine share. `store` is the address of the state folder for machines without a common file
    system. `key` is the key of the replacements for secrets; it is never written to disk.
    """

    tokenizer: str
    verify: VerifyOptions
    identity: str
    results: Path
    work: Path
    store: str | None = None
    spools: Path | None = None
    scrub: ScrubOptions = field(default_factory=ScrubOptions)
    key: bytes = b""

    @property
    def key_name(self) -> str:
        """Returns a name that distinguishes the key from others without revealing it."""
        return hashlib.blake2b(self.key, digest_size=8, person=b"builder-key").hexdigest()
