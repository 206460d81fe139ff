"""Defines the result of a build, which the card describes."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from builder.audit.counts import Counts
from builder.audit.result import Audit
from builder.codes import SELECTED
from builder.config import Config
from builder.conversation import Json
from builder.dataset.rejects import Reject, read_rejects
from builder.dataset.review import Review
from builder.dataset.rows import DatasetRow, dataset_rows
from builder.ledger import Ledger
from builder.output.folder import Writer
from builder.readers.toolkit.narrow import as_dict
from builder.report.advice import Advice, Judgement, unshowable
from builder.text import counted
from builder.verify.summary import LineReport


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """The origin of samples; an unknown field is "unknown", several models are in one text."""

    format: str
    model: str
    license: str


@dataclass(frozen=True)
class _Rows(Sequence[dict[str, Json]]):
    """A part of each row of a dataset, read from its folder whenever it is asked for."""

    folder: str
    size: int
    part: Callable[[DatasetRow], dict[str, Json]] = field(repr=False)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[dict[str, Json]]:
        return map(self.part, dataset_rows(self.folder))

    def __getitem__(self, at: Any) -> Any:
        return [*self][at]


@dataclass(slots=True, repr=False)
class BuildResult:
    """The ledger of a build, and other counts that the card and the summary show.

    It can be passed where a dataset is expected.

    folder           the folder or address of the dataset, as the caller wrote it
    judged           samples that were compared with the conditions of `select.where`
    unmet            those that did not meet a condition, by its field
    review           the decisions of `select.review`; `reviewed`: ids of samples that have one
    bugs             rejects that only a bug of this program explains
    context_levels   targets by the level of their context (`builder.conversation.LEVELS`)
    context_missing  targets by each code of what their context lacks (`MISSING`)
    is_weighted      whether some message in data/ has a weight
    is_beside        whether messages may have `reasoning_content`
    tokens_recorded  samples whose tokens are in the log: "equal", or the cause of a difference
    audit            the results of the audits; None without samples
    is_in_place      whether the output was put in place; not if there is an earlier dataset or
                     no conversation
    reasons          why there are no samples: rejects, conditions that none met, or empty inputs;
                     [] if there are some
    changed_by_loader  what `datasets` still does not give back as written; empty in almost every
                     build, since samples that it changes are left out
    judgements       four lines on the dataset; `advice` says how to improve it, by effect
    pairs            preference pairs in meta/; `pairs_left_out` counts uncertain ones by code
    without_secrets  for each split and each sample in it, 1 if redaction searched its texts and
                     found no secret
    """

    writer: Writer
    folder: str = ""
    ledger: Ledger = field(default_factory=Ledger)
    judged: int = 0
    unmet: Counter[str] = field(default_factory=Counter)
    review: Review | None = None
    reviewed: set[str] = field(default_factory=set)
    bugs: int = 0
    rejects: int = 0
    tokens: int = 0
    origins: Counter[Origin] = field(default_factory=Counter)
    tools_sources: Counter[str] = field(default_factory=Counter)
    context_levels: Counter[str] = field(default_factory=Counter)
    context_missing: Counter[str] = field(default_factory=Counter)
    is_weighted: bool = False
    is_beside: bool = False
    tokens_recorded: Counter[str] = field(default_factory=Counter)
    data_files: dict[str, list[str]] = field(default_factory=dict)
    changed_by_loader: list[LineReport] = field(default_factory=list)
    audit: Audit | None = None
    is_in_place: bool = True
    reasons: list[str] = field(default_factory=list)
    judgements: Sequence[Judgement] = ()
    advice: Sequence[Advice] = ()
    pairs: int = 0
    pairs_left_out: Counter[str] = field(default_factory=Counter)
    without_secrets: dict[str, bytearray] = field(default_factory=dict)

    @property
    def samples(self) -> Sequence[dict[str, Json]]:
        """Returns the rows of data/, as they are written; none if no dataset was put in place."""
        return self._rows(lambda row: as_dict(row.value))

    @property
    def meta(self) -> Sequence[dict[str, Json]]:
        """Returns the lines of meta/, one for each of `samples` (docs/output.md has the keys)."""
        return self._rows(lambda row: row.meta_values)

    @property
    def unshowable(self) -> Sequence[tuple[str, int]]:
        """Returns what the logs cannot show of the contexts, with the trained turns."""
        counts = self.audit.counts if self.audit is not None else Counts()
        return unshowable(replace(counts, missing=self.context_missing))

    @property
    def splits(self) -> dict[str, int]:
        """Returns {split: number of samples} for each split that has some."""
        return {name: len(flags) for name, flags in sorted(self.without_secrets.items())}

    def as_json(self) -> dict[str, Json]:
        """Returns the accounting, the lines on the dataset, the context and the advice."""
        levels = self.context_levels
        advice: list[Json] = [
            {
                "finding": item.finding,
                "share": round(item.share, 4),
                "remedies": [{**asdict(one), "commands": [*one.commands]} for one in item.remedies],
            }
            for item in self.advice
        ]
        return {
            **self.ledger.to_json(),
            "tokens": self.tokens,
            "trained_turns": levels.total(),
            "judgements": [asdict(item) for item in self.judgements],
            "context": dict(sorted(levels.items())),
            "context_missing": dict(sorted(self.context_missing.items())),
            "advice": advice,
        }

    def _rows(self, part: Callable[[DatasetRow], dict[str, Json]]) -> Sequence[dict[str, Json]]:
        is_there = bool(self.data_files) and self.is_in_place
        return _Rows(self.folder, self.ledger.samples, part) if is_there else ()

    def __fspath__(self) -> str:
        """Returns the folder, so that functions that take a path take the result."""
        return self.folder

    def __repr__(self) -> str:
        """Returns the main counts; the others have names."""
        _, conversations, *_ = self.ledger.accounts
        counts = f"samples={self.ledger.samples}, tokens={self.tokens}"
        counts += f", conversations_lost={conversations.lost}, calls={self.ledger.calls_kept}"
        return f"BuildResult(folder={self.folder!r}, {counts}, reasons={self.reasons!r})"

    @property
    def digest(self) -> str:
        """Returns the sha256 over the paths and digests of the files in data/, in order."""
        whole = hashlib.sha256()
        for item in self.writer.files:
            if item.path.startswith("data/"):
                whole.update(f"{item.path} {item.sha256}\n".encode())
        return whole.hexdigest()


# -- says why a build has no samples ---------------------------------------------------------------

MAX_REJECTS = 20
"""Maximum number of files and codes of rejects that are named."""


def why_nothing(built: BuildResult, config: Config, folder: Path) -> list[str]:
    """Returns why nothing was built, in lines: unmet conditions, else rejects, else the inputs.

    `folder` holds the rejects.jsonl of the build.
    """
    reasons = [
        f"select.where.{name}: met by {built.judged - built.unmet[name]:,} of"
        f" {counted(built.judged, 'sample')}"
        for name in (config.select.where if built.judged else ())
    ]
    reasons += [applied] if (applied := review_applied(built)) else []
    if not built.unmet.total():  # else rejects are not why: samples were built and not selected
        reasons += _rejects(folder)
    return reasons or [nothing_in(built.ledger, config)]


def review_applied(built: BuildResult) -> str:
    """Returns how many decisions of the review apply to samples of the build, or ""."""
    if built.review is None:
        return ""
    applied, total = len(built.reviewed), built.review.total
    text = (
        f"{applied:,} of {counted(total, 'decision')} of the review apply to samples of this build"
    )
    return f"{text}; the others are on samples of other bytes" if applied < total else text


def _rejects(folder: Path) -> Iterator[str]:
    """Yields the first reject of each code in each file, and how many are like it."""
    first: dict[tuple[str, str], Reject] = {}
    counts = Counter[tuple[str, str]]()
    for item in read_rejects(folder):
        if not item.code.startswith(SELECTED):
            counts[item.source, item.code] += 1
            first.setdefault((item.source, item.code), item)
    for key, item in islice(first.items(), MAX_REJECTS):
        place = "" if item.record in ("", "file") else f" {item.record}:"
        more = f", and {counts[key] - 1:,} more" if counts[key] > 1 else ""
        yield f"{item.source}:{place} {item.code}: {item.message}{more}"
    if len(first) > MAX_REJECTS:
        yield f"and {len(first) - MAX_REJECTS:,} more files with rejects"


def nothing_in(ledger: Ledger, config: Config) -> str:
    """Explains why the inputs contain no conversation."""
    empty = ledger.ignored["empty_file"]
    if not ledger.read:
        return "the inputs contain no file"
    if not empty:
        ignored = ", ".join(f"{code} ({count:,})" for code, count in ledger.ignored.most_common(5))
        return f"nothing in the inputs is a conversation{f': {ignored}' if ignored else ''}"
    if empty < ledger.read:
        files = f"{counted(empty, 'file')} {'is' if empty == 1 else 'are'} empty"
        return f"nothing in the inputs is a conversation; {files}"
    names = ", ".join(item.path.written for item in config.inputs[:5])
    what = "is empty" if empty == 1 else f"{empty:,} files, all of them empty"
    return f"{names}: {what}"
