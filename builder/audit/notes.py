"""Defines the input of the audits, and how they collect findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from builder.audit.counts import NAMES, OTHERS
from builder.dataset.meta import SampleMeta
from builder.finding import AuditFinding, FindingExample, GateAction
from builder.ledger import ranked
from builder.sample import Dialogue, Sample
from builder.scrub.redact import value_strings

EXAMPLES = 5
"""Examples kept for each code."""
NAMED = 5

EVALUATION_RUN = "evaluation_run"
"""The code of samples that come from a run of a public benchmark."""
UNREAD = "unread_text"
"""The code of samples whose log had text that no reader knows."""
UNMAPPED = "unmapped_text"
"""The code of samples whose log had text, or calls, that the mapping does not read."""
REDACTED = "redacted"
"""The code of placeholders in place of secrets."""
_IN_META = " in meta/"


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A sample of the dataset.

    number    counts from 0 over the samples of all files
    dialogue  None if the text cannot be parsed (`builder verify` says why)
    meta      its line of meta/; numbers that a dataset of another origin lacks are measured
    failed_calls  {place: failure} as the log states them; None if it states none
    without_secrets  whether its texts were searched for secrets before, and there was none
    """

    number: int
    split: str
    where: str
    sample: Sample
    dialogue: Dialogue | None
    meta: SampleMeta
    failed_calls: Mapping[str, str] | None = None
    without_secrets: bool = False

    def texts(self) -> Iterator[tuple[str, str, str]]:
        """Yields every text of the sample as (part, name of the JSON member or "", text)."""
        if self.dialogue is None:
            for at, (_, content) in enumerate(self.sample.messages):
                yield f"messages[{at}].content", "", content
        for at, turn in enumerate(self.dialogue.turns if self.dialogue is not None else ()):
            part = f"messages[{at}]"
            for text in (turn.content, turn.reasoning):
                if text:
                    yield f"{part}.content", "", text
            for number, call in enumerate(turn.calls):
                yield f"{part}.calls[{number}].name", "", call.name
                arguments = f"{part}.calls[{number}].arguments"
                for name, text in value_strings(call.arguments):
                    yield arguments, name, text
            for number, text in enumerate(turn.responses):
                yield f"{part}.responses[{number}]", "", text
        for at, tool in enumerate(self.sample.tools):
            part = f"tools[{at}]"
            for name, text in value_strings(tool):
                yield part, name, text


@dataclass(slots=True)
class _Note:
    count: int = 0
    samples: int = 0
    last: int = -1
    examples: list[FindingExample] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)

    def name(self, name: str, count: int) -> None:
        known = name in self.names or len(self.names) < NAMES
        self.names[name if known else OTHERS] += count


class FindingNotes:
    """Occurrences by code: their numbers, the first few as examples, and names with counts."""

    def __init__(self) -> None:
        self._notes: dict[str, _Note] = {}

    def add(
        self,
        code: str,
        row: AuditRow,
        part: str = "",
        detail: str | Callable[[], str] = "",
        count: int = 1,
        names: Mapping[str, int] = MappingProxyType({}),
        *,
        in_meta: bool = False,
    ) -> None:
        """Notes `count` occurrences in a sample, and what of each name was found.

        `in_meta`: only its line of meta/ has them. `detail` must not contain what was found. A
        function is called only for examples, because masking is slower than finding.
        """
        note = self._notes.setdefault(code + _IN_META if in_meta else code, _Note())
        note.count += count
        if note.last != row.number:
            note.samples += 1
            note.last = row.number
        for name, number in names.items():
            note.name(name, number)
        if len(note.examples) < EXAMPLES:
            text = detail if isinstance(detail, str) else detail()
            example = FindingExample(row.where, row.meta.source, row.meta.record, part, text)
            note.examples.append(example)

    def add_elsewhere(self, code: str, example: FindingExample) -> None:
        """Notes an occurrence that is not in a sample."""
        note = self._notes.setdefault(code, _Note())
        note.count += 1
        if len(note.examples) < EXAMPLES:
            note.examples.append(example)

    def merge(self, later: FindingNotes) -> None:
        """Adds the notes of the samples that follow."""
        for code, other in later._notes.items():
            note = self._notes.setdefault(code, _Note())
            note.count += other.count
            note.samples += other.samples
            note.examples += other.examples[: EXAMPLES - len(note.examples)]
            for name, number in other.names.items():
                note.name(name, number)

    def findings(self, audit: str, messages: Mapping[str, str]) -> Iterator[AuditFinding]:
        """Yields a finding for each code of an audit that was found; names follow its message.

        Its count is that of the samples, with or without meta/: the message has that of meta/.
        """
        for code in sorted(messages):
            note, in_meta, message = self._notes.get(code), self._notes.get(code + _IN_META), ""
            if note is not None and in_meta is not None:
                message = f", and {in_meta.count:,} more in meta/"
            elif in_meta is not None:
                note, message = in_meta, ", in meta/"
            if note is None:
                continue
            if note.names:
                message = f": {named(note.names)}"
            gate = GateAction.change if code == REDACTED else GateAction.report
            yield AuditFinding(audit, code, messages[code] + message, note.count, note.samples,
                               gate, tuple(note.examples))  # fmt: skip


def named(counts: Mapping[str, int]) -> str:
    """Returns the five most frequent names with their counts: "tau-bench (12) and 3 more"."""
    listed = ", ".join(f"{name} ({count:,})" for name, count in ranked(counts)[:NAMED])
    return listed + (f" and {len(counts) - NAMED} more" if len(counts) > NAMED else "")


def benchmark_of(meta: SampleMeta) -> str:
    """Returns the public benchmark that a sample is a run of, on one line, or ""."""
    return " ".join(meta.benchmark.split())[:60]
