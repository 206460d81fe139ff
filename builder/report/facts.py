"""Reads values from a manifest, which is not trusted: it may come from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from builder.audit.result import AuditFinding
from builder.conversation import Json
from builder.readers.toolkit.narrow import as_dict
from builder.report.html import shorten
from builder.verify.options import Mode

IGNORED = "ignored by design"
"""The loss that counts records without any part of a conversation."""


@dataclass(frozen=True, slots=True)
class Loss:
    """One kind of loss at a stage, such as "rejected", with counts by code, highest first.

    by_design  nothing that could have become a sample is lost
    """

    name: str
    count: int
    codes: tuple[tuple[str, int], ...] = ()
    by_design: bool = False

    @property
    def style(self) -> str:
        """Returns the CSS class of the loss in drawings."""
        return "by-design" if self.by_design else "lost"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of the flow: how many units were found and kept, and how the others were lost.

    unit         "records"
    found_label  what the ledger calls the first count: "read"
    kept_label   what it calls the second: "used"
    """

    unit: str
    found_label: str
    found: int
    kept_label: str
    kept: int
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class LedgerCounts:
    """The ledger of a build in stages."""

    records: Stage
    conversations: Stage
    calls: Stage
    samples: int


def read_ledger(manifest: dict[str, Json]) -> LedgerCounts | None:
    """Returns the ledger of a manifest; None if it has none."""
    ledger = manifest.get("ledger")
    if not isinstance(ledger, dict):
        return None
    records = as_dict(ledger.get("records"))
    conversations = as_dict(ledger.get("conversations"))
    calls = as_dict(ledger.get("calls"))
    return LedgerCounts(
        _stage(
            "records", "read", "used", records,
            _loss(IGNORED, records.get("ignored"), by_design=True),
            _loss("rejected", records.get("rejected")),
        ),
        _stage(
            "conversations", "found", "built", conversations,
            Loss("duplicates", whole(conversations.get("duplicates")), by_design=True),
            _loss("rejected", conversations.get("rejected")),
        ),
        _stage("calls", "logged", "kept", calls, _loss("dropped", calls.get("dropped"))),
        whole(ledger.get("samples")),
    )  # fmt: skip


def _stage(unit: str, found: str, kept: str, counts: dict[str, Json], *losses: Loss) -> Stage:
    return Stage(unit, found, whole(counts.get(found)), kept, whole(counts.get(kept)), losses)


def _loss(name: str, codes: Json, *, by_design: bool = False) -> Loss:
    counts = sorted(
        ((shorten(code, 60), whole(count)) for code, count in as_dict(codes).items()),
        key=lambda item: (-item[1], item[0]),
    )
    return Loss(name, sum(count for _, count in counts), tuple(counts), by_design)


def mode_of(manifest: Mapping[str, Json]) -> Mode:
    """Returns the inference mode for which spans and parity of the dataset were measured."""
    mode = _option(manifest, "verify", "mode")
    modes: tuple[Mode, ...] = get_args(Mode)
    return next((known for known in modes if known == mode), "non-thinking")


def is_left_by_design(finding: AuditFinding, manifest: Mapping[str, Json]) -> bool:
    """Returns whether the finding can only be the results of password generators.

    A build that redacts or rejects secrets leaves these in place (docs/audit.md). They never have
    the form of a token.
    """
    return (
        finding.audit == "secrets"
        and finding.code in ("secret", "scanned_secret")
        and _option(manifest, "audit", "secrets") in ("redact", "reject")
    )


def _option(manifest: Mapping[str, Json], section: str, key: str) -> Json:
    return as_dict(as_dict(manifest.get("config")).get(section)).get(key)


def whole(value: Json) -> int:
    """Returns the count, or 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
