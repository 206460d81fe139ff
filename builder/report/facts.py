"""Reads the facts of a manifest as plain values; it may be of any origin and is not trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from builder.conversation import Json
from builder.report.html import shorten
from builder.verify.options import Mode

IGNORED = "ignored by design"
"""The name of the loss of records that contain no part of a conversation."""


@dataclass(frozen=True, slots=True)
class Loss:
    """One kind of loss at a stage, such as "rejected", with counts by code, highest first.

    meant  nothing that could have been a sample is lost this way
    """

    name: str
    count: int
    codes: tuple[tuple[str, int], ...] = ()
    meant: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of the flow: the number that came in, that went on, and every loss.

    what   "records"
    came   "read", and went "used": the labels of the two counts
    """

    what: str
    came: str
    found: int
    went: str
    kept: int
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class LedgerCounts:
    """The ledger of a build (contract.md, "Ledger") in stages."""

    records: Stage
    conversations: Stage
    calls: Stage
    samples: int


def read_ledger(manifest: dict[str, Json]) -> LedgerCounts | None:
    """Returns the ledger of a manifest; None if it has none."""
    ledger = manifest.get("ledger")
    if not isinstance(ledger, dict):
        return None
    records = as_object(ledger.get("records"))
    conversations = as_object(ledger.get("conversations"))
    calls = as_object(ledger.get("calls"))
    return LedgerCounts(
        Stage(
            "records",
            "read",
            whole(records.get("read")),
            "used",
            whole(records.get("used")),
            (
                _loss(IGNORED, records.get("ignored"), meant=True),
                _loss("rejected", records.get("rejected")),
            ),
        ),
        Stage(
            "conversations",
            "found",
            whole(conversations.get("found")),
            "built",
            whole(conversations.get("built")),
            (
                Loss("duplicates", whole(conversations.get("duplicates")), meant=True),
                _loss("rejected", conversations.get("rejected")),
            ),
        ),
        Stage(
            "calls",
            "logged",
            whole(calls.get("logged")),
            "kept",
            whole(calls.get("kept")),
            (_loss("dropped", calls.get("dropped")),),
        ),
        whole(ledger.get("samples")),
    )


def _loss(name: str, codes: Json, *, meant: bool = False) -> Loss:
    counts = sorted(
        ((shorten(code, 60), whole(count)) for code, count in as_object(codes).items()),
        key=lambda item: (-item[1], item[0]),
    )
    return Loss(name, sum(count for _, count in counts), tuple(counts), meant)


def mode_of(manifest: Mapping[str, Json]) -> Mode:
    """Returns the inference mode for which spans and parity of the dataset were measured."""
    verify = as_object(as_object(manifest.get("config")).get("verify"))
    modes: tuple[Mode, ...] = get_args(Mode)
    return next((mode for mode in modes if mode == verify.get("mode")), "non-thinking")


def as_object(value: Json) -> dict[str, Json]:
    """Returns the JSON object, or an empty one."""
    return value if isinstance(value, dict) else {}


def whole(value: Json) -> int:
    """Returns the count, or 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def as_text(value: Json) -> str:
    """Returns the text, or ""."""
    return value if isinstance(value, str) else ""
