"""Over all parts: duplicates, the ledger, splits, and the samples into their files.

What is held in memory is digests and counts, never texts: the parts are read from their files, once
to learn which conversations there are and once to write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from builder.config import Config
from builder.ledger import CallFates, Ledger
from builder.output import SplitWriter, Writer
from builder.parts import Entry, Part, reject_line
from builder.problem import Problem
from builder.splits import SPLITS, assign
from builder.verify_files import LineReport


@dataclass(slots=True)
class Built:
    """What a run has made: the ledger, its bugs, and the numbers that the card shows."""

    writer: Writer
    ledger: Ledger = field(default_factory=Ledger)
    bugs: int = 0
    rejects: int = 0
    tokens: int = 0
    duplicate_samples: int = 0
    formats: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    licenses: Counter[str] = field(default_factory=Counter)
    tools_sources: Counter[str] = field(default_factory=Counter)
    data_files: dict[str, list[str]] = field(default_factory=dict)
    changed_by_loader: list[LineReport] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which samples are written: a byte for each proven sample, in order; 0: a duplicate.

    `conversations` are (session, beginning) of the conversations that have any, where a split needs
    them; `sizes` how many samples each of those has.
    """

    samples: bytearray
    conversations: list[tuple[bytes, bytes]]
    sizes: list[int]


def settle(
    parts: Sequence[Part], unreadable: Sequence[Problem], config: Config, writer: Writer
) -> Built:
    """Write data/, meta/ and rejects.jsonl and account for everything. Raises LedgerFault."""
    built = Built(writer)
    choice = _choose(parts, built, config)
    ledger = built.ledger
    for part in parts:
        ledger.add_records(part.summary.ledger)
        ledger.found += part.summary.ledger.found
        built.bugs += part.summary.bugs
        built.rejects += part.summary.rejects
    for problem in unreadable:
        ledger.read += 1
        ledger.rejected[problem.code] += 1
        built.rejects += 1
    ledger.samples = sum(map(bool, choice.samples))
    ledger.check()
    _write(parts, choice, built, config)
    writer.write("rejects.jsonl", _rejects(parts, unreadable))
    return built


def _choose(parts: Sequence[Part], built: Built, config: Config) -> _Choice:
    """Decide on every conversation and sample, and count.

    A conversation whose messages are those of another, or the beginning of another's, is a
    duplicate: the longest is kept, of equal ones the first. Of two conversations with a common
    beginning each turn is taught once, where a sample is less than a conversation.
    """
    whole = {entry.prefixes[-1] for part in parts for entry in part.entries() if entry.samples}
    beginnings = {
        prefix
        for part in parts
        for entry in part.entries()
        for prefix in entry.prefixes[:-1]
        if prefix in whole
    }
    choice = _Choice(bytearray(), [], [])
    splitting = bool(config.split.validation or config.split.test)
    in_pieces = config.normalize.unit != "conversation"
    fates = CallFates()
    ledger = built.ledger
    taught: set[bytes] = set()
    for part in parts:
        for entry in part.entries():
            if not entry.samples:
                ledger.conversations_rejected[str(entry.code)] += 1
                fates.add(entry.calls)
                continue
            known = entry.prefixes[-1] not in whole or entry.prefixes[-1] in beginnings
            whole.discard(entry.prefixes[-1])  # the next one like it is a duplicate
            written = [not known and item.prefix not in taught for item in entry.samples]
            if in_pieces:
                taught.update(item.prefix for item in entry.samples if not known)
            choice.samples.extend(written)
            if any(written):
                ledger.built += 1
                built.duplicate_samples += len(written) - sum(written)
                fates.add(entry.calls)
                _count(built, entry, written, part)
                if splitting:
                    choice.conversations.append((entry.session, entry.prefixes[0]))
                    choice.sizes.append(sum(written))
            else:
                ledger.duplicates += 1
                fates.add((key, code or "duplicate") for key, code in entry.calls)
        fates.end_source()
    fates.count(ledger)
    return choice


def _count(built: Built, entry: Entry, written: Sequence[bool], part: Part) -> None:
    samples = sum(written)
    built.tokens += sum(
        item.tokens for item, is_written in zip(entry.samples, written, strict=True) if is_written
    )
    built.formats[part.summary.format or "unknown"] += samples
    built.models[entry.model or "unknown"] += samples
    built.licenses[entry.license or "unknown"] += samples
    built.tools_sources[entry.tools_source] += samples


def _write(parts: Sequence[Part], choice: _Choice, built: Built, config: Config) -> None:
    shard_bytes = config.output.shard_mb << 20
    writers: dict[str, SplitWriter] = {}
    splits = _splits(choice, config)
    position = 0
    for part in parts:
        with part.samples.open("rb") as stream:
            for entry in part.entries():
                for item in entry.samples:
                    line, meta = stream.read(item.size[0]), stream.read(item.size[1])
                    position += 1
                    if not choice.samples[position - 1]:
                        continue
                    split = next(splits)
                    if split not in writers:
                        writers[split] = SplitWriter(
                            built.writer, split, config.output.formats, shard_bytes
                        )
                    writers[split].add(line, meta)
    built.data_files = {name: writers[name].close() for name in SPLITS if name in writers}


def _splits(choice: _Choice, config: Config) -> Iterator[str]:
    """The split of each sample that is written, in order."""
    if not choice.conversations:
        while True:
            yield "train"
    assigned = assign(choice.conversations, config.split.options)
    for split, size in zip(assigned, choice.sizes, strict=True):
        for _ in range(size):
            yield split


def _rejects(parts: Sequence[Part], unreadable: Sequence[Problem]) -> Iterator[bytes]:
    for problem in unreadable:
        yield reject_line(problem, problem.where, None, "file")
    for part in parts:
        yield from part.rejects()
