"""Counts what the witnesses testify, and how many turns drift when they are sent back."""

from __future__ import annotations

import atexit
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from builder.conversation import Json
from builder.problem import known_names
from builder.qwen3.parity import Spans
from builder.qwen3.tokenizer import Target, target_for
from builder.sample import Sample
from builder.verify.witnesses.case import Case, NotAskedError, Witness, case_of
from builder.verify.witnesses.engines import WITNESSES
from builder.verify.witnesses.replay import Drift, drift

Examine = Callable[[Sample, str, Spans, Target], Mapping[str, Any]]

SHOWN = 3
"""Differences that are kept with their texts."""


@dataclass(slots=True)
class Testimony:
    """What one witness found.

    version    the engine and its version
    agreed     samples that it renders or reads as we do
    differs    samples that it does not
    not_asked  {reason: samples} that it could not be asked about
    examples   the first differences
    """

    version: str = ""
    agreed: int = 0
    differs: int = 0
    not_asked: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def merge(self, other: Testimony) -> None:
        """Adds what was found for later samples."""
        self.version = self.version or other.version
        self.agreed += other.agreed
        self.differs += other.differs
        self.not_asked.update(other.not_asked)
        self.examples = (self.examples + other.examples)[:SHOWN]


def witnesses_named(names: Sequence[str]) -> list[str]:
    """Returns the witnesses of names, which may be joined by commas. Raises UsageError."""
    return known_names(names, WITNESSES, "witnesses", "witness")


@dataclass(frozen=True, slots=True)
class Examination:
    """Examines a proven sample: asks witnesses, counts turns that drift, and calls `also`.

    Results are {"witness:NAME": Testimony} and {"replay:SERVER": Drift}, with those of `also`.
    Witnesses are asked about a `share` of the samples, drawn with the `seed`.
    """

    witnesses: tuple[str, ...]
    servers: tuple[str, ...] = ()
    also: Examine | None = None
    share: float = 1.0
    seed: int = 0

    def __call__(
        self, sample: Sample, text: str, spans: Spans, target: Target
    ) -> Mapping[str, Any]:
        """Returns the results. Raises UsageError if a witness is not installed."""
        answers: dict[str, Any] = dict(self.also(sample, text, spans, target)) if self.also else {}
        is_asked = bool(self.witnesses) and is_drawn(sample.line, self.share, self.seed)
        if not is_asked and not self.servers:
            return answers
        case = case_of(sample, text, spans, target)
        for name in self.witnesses if is_asked else ():
            answers[f"witness:{name}"] = _testimony(witness_for(name, target.reference), case)
        for server in self.servers:
            answers[f"replay:{server}"] = drift(server, case)
        return answers


def is_drawn(line: bytes, share: float, seed: int) -> bool:
    """Returns whether a sample, given as its line in data/, is in the share that is asked about."""
    if share >= 1:
        return True
    digest = hashlib.blake2b(b"witness %d\n" % seed + line, digest_size=8).digest()
    return int.from_bytes(digest) / 2**64 < share


def testimonies(results: Mapping[str, Any], witnesses: Sequence[str]) -> dict[str, Testimony]:
    """Returns what each witness found in all samples; nothing if it was asked about none."""
    return {name: results.get(f"witness:{name}", Testimony()) for name in witnesses}


def drifts(results: Mapping[str, Any], servers: Sequence[str]) -> dict[str, Drift]:
    """Returns the turns that drift, by server."""
    return {name: results.get(f"replay:{name}", Drift()) for name in servers}


@cache
def witness_for(name: str, reference: str) -> Witness:
    """Returns this process's witness for a target. Raises UsageError if it is not installed."""
    atexit.register(witness_for.cache_clear)  # WASM complains if it is freed after its modules
    return WITNESSES[name](target_for(reference))


def _testimony(witness: Witness, case: Case) -> Testimony:
    testimony = Testimony(witness.version)
    try:
        fault = witness.fault(case)
    except NotAskedError as error:
        testimony.not_asked[str(error)] += 1
        return testimony
    testimony.agreed, testimony.differs = int(fault is None), int(fault is not None)
    testimony.examples += [fault] if fault is not None else []
    return testimony


def as_json(item: Testimony) -> dict[str, Json]:
    """Returns what a witness found as JSON."""
    return {
        "version": item.version,
        "agreed": item.agreed,
        "differs": item.differs,
        "not_asked": dict(sorted(item.not_asked.items())),
        "examples": list(item.examples),
    }


def lines(asked: Mapping[str, Testimony]) -> list[str]:
    """Returns a line for each witness, and its first differences."""
    shown: list[str] = []
    for name, item in asked.items():
        version = f" ({item.version})" if item.version else ""
        shown.append(f"witness {name}{version}: {result(item)}")
        shown += [f"    {example}" for example in item.examples]
    return shown


def result(item: Testimony) -> str:
    """Returns the counts in words."""
    asked = item.agreed + item.differs
    others = [f"{count:,}: {reason}" for reason, count in sorted(item.not_asked.items())]
    left_out = f"; not asked: {', '.join(others)}" if others else ""
    return f"agrees on {item.agreed:,} of {asked:,} samples{left_out}"
