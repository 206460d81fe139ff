"""What a build has made: the facts that the card describes."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field

from builder.ledger import Ledger
from builder.output.folder import Writer
from builder.verify.dataset import LineReport


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Where samples come from, each "unknown" if nothing says it."""

    format: str
    model: str
    license: str


@dataclass(slots=True)
class Built:
    """What a run has made: the ledger, its bugs, and the numbers that the card shows."""

    writer: Writer
    ledger: Ledger = field(default_factory=Ledger)
    bugs: int = 0
    rejects: int = 0
    tokens: int = 0
    duplicate_samples: int = 0
    origins: Counter[Origin] = field(default_factory=Counter)
    tools_sources: Counter[str] = field(default_factory=Counter)
    data_files: dict[str, list[str]] = field(default_factory=dict)
    changed_by_loader: list[LineReport] = field(default_factory=list)

    @property
    def digest(self) -> str:
        """Of the files in data/, in order."""
        whole = hashlib.sha256()
        for item in self.writer.files:
            if item.path.startswith("data/"):
                whole.update(f"{item.path} {item.sha256}\n".encode())
        return whole.hexdigest()
