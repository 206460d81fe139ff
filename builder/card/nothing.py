"""Says why a build has no samples."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from builder.card.result import BuildResult
from builder.codes import SELECTED
from builder.config import Config
from builder.dataset.rejects import read_rejects
from builder.ledger import Ledger
from builder.text import counted

MAX_REJECTS = 20
"""Maximum number of rejects that are named."""


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
    """Yields the first lines of rejects.jsonl as messages."""
    rejects = (item for item in read_rejects(folder) if not item.code.startswith(SELECTED))
    for item in islice(rejects, MAX_REJECTS):
        place = "" if item.record in ("", "file") else f" {item.record}:"
        yield f"{item.source}:{place} {item.code}: {item.message}"


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
