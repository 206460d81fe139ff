"""Over all parts: duplicates, the ledger, splits, and the samples into their files.

What is held in memory is digests and counts, never texts: the parts are read from their files, once
to learn which conversations there are and once to write.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

from builder.build.results import DIGEST_BYTES, ChunkResult, ConversationEntry, reject_line
from builder.card.built import Built, Origin
from builder.config import Config
from builder.jsonio import loads
from builder.ledger import CallOutcomes
from builder.output.folder import SplitWriter, Writer
from builder.problem import Problem
from builder.select.mix import Candidate, left_out
from builder.select.splits import SPLITS, assign, is_taken


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which samples are written: a byte for each proven sample, in order; 0: it is left out.

    `near` says of near duplicates which sample is kept in their place; `drawn` of those that are
    left out for a share why: `weight` or `mix`. All others that are left out are duplicates.
    `conversations` are (session, beginning) of the conversations that have any, where a split needs
    them; `sizes` how many samples each of those has.
    """

    samples: bytearray
    near: dict[int, int]
    drawn: dict[int, str]
    conversations: list[tuple[bytes, bytes]]
    sizes: list[int]


def finalize(
    parts: Sequence[ChunkResult],
    weights: Sequence[float],
    unreadable: Sequence[Problem],
    config: Config,
    writer: Writer,
) -> Built:
    """Write data/, meta/ and rejects.jsonl and account for everything. Raises LedgerFault.

    `weights`: the share of each part's conversations that is taken.
    """
    built = Built(writer)
    choice = _choose(parts, weights, built, config)
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
    ids = _write(parts, choice, built, config)
    built.rejects += len(choice.near) + len(choice.drawn)
    unused = _unused(parts, choice, ids)
    writer.write("rejects.jsonl", chain(_rejects(parts, unreadable), unused))
    return built


def _choose(
    parts: Sequence[ChunkResult], weights: Sequence[float], built: Built, config: Config
) -> _Choice:
    """Decide on every conversation and sample, and count."""
    drawn = dict.fromkeys(_unweighed(parts, weights, config.split.seed), "weight")
    samples = _distinct(parts, drawn, in_pieces=config.normalize.unit != "conversation")
    near = _near(parts, samples) if config.audit.options.near_duplicates == "drop" else {}
    for position in near:
        samples[position] = 0
    for position in _mixed(parts, samples, config) if config.mix else ():
        samples[position] = 0
        drawn[position] = "mix"
    choice = _Choice(samples, near, drawn, [], [])
    splitting = bool(config.split.validation or config.split.test)
    outcomes = CallOutcomes()
    ledger = built.ledger
    position = 0
    for part in parts:
        for entry in part.entries():
            if not entry.samples:
                ledger.conversations_rejected[str(entry.code)] += 1
                outcomes.add(entry.calls)
                continue
            own = range(position, position + len(entry.samples))
            position = own.stop
            written = [bool(samples[at]) for at in own]
            if any(written):
                ledger.built += 1
                built.duplicate_samples += len(written) - sum(written)
                outcomes.add(entry.calls)
                _count(built, entry, written, part)
                if splitting:
                    choice.conversations.append((entry.session, entry.prefixes[0]))
                    choice.sizes.append(sum(written))
                continue
            lost = next((drawn[at] for at in own if at in drawn), "duplicate")
            if lost != "weight" and any(at in near for at in own):
                lost = "near_duplicate"
            if lost == "duplicate":
                ledger.duplicates += 1
            else:
                ledger.conversations_rejected[lost] += 1
            outcomes.add((key, code or lost) for key, code in entry.calls)
        outcomes.end_source()
    outcomes.count(ledger)
    return choice


def _unweighed(parts: Sequence[ChunkResult], weights: Sequence[float], seed: int) -> Iterator[int]:
    """Positions of the samples of the sessions that are not within the share of their input."""
    position = 0
    for part, weight in zip(parts, weights, strict=True):
        if weight >= 1:
            position += part.summary.samples
            continue
        for entry in part.entries():
            own = range(position, position + len(entry.samples))
            position = own.stop
            if not is_taken(entry.session, weight, seed):
                yield from own


def _distinct(parts: Sequence[ChunkResult], drawn: Container[int], *, in_pieces: bool) -> bytearray:
    """A byte for each proven sample, in order: 1, or 0 if another says it or it is `drawn`.

    A conversation whose messages are those of another, or the beginning of another's, is a
    duplicate: the longest is kept, of equal ones the first. Of two conversations with a common
    beginning each turn is taught once, where a sample is less than a conversation (`in_pieces`).
    """
    told = [
        (b"".join(entry.prefixes), b"".join(item.prefix for item in entry.samples), is_drawn)
        for entry, is_drawn in _proven(parts, drawn)
    ]
    whole = {prefixes[-DIGEST_BYTES:] for prefixes, _, is_drawn in told if not is_drawn}
    beginnings = {
        prefix
        for prefixes, _, is_drawn in told
        if not is_drawn
        for prefix in _digests(prefixes[:-DIGEST_BYTES])
        if prefix in whole
    }
    samples = bytearray()
    taught: set[bytes] = set()
    for prefixes, own, is_drawn in told:
        last = prefixes[-DIGEST_BYTES:]
        known = is_drawn or last not in whole or last in beginnings
        samples.extend(not known and prefix not in taught for prefix in _digests(own))
        if known:
            continue
        whole.discard(last)  # the next one like it is a duplicate
        if in_pieces:
            taught.update(_digests(own))
    return samples


def _digests(joined: bytes) -> Iterator[bytes]:
    return (joined[at : at + DIGEST_BYTES] for at in range(0, len(joined), DIGEST_BYTES))


def _proven(
    parts: Sequence[ChunkResult], drawn: Container[int]
) -> Iterator[tuple[ConversationEntry, bool]]:
    """(entry, is it drawn) of each conversation that has samples."""
    position = 0
    for part in parts:
        for entry in part.entries():
            if entry.samples:
                yield entry, position in drawn
            position += len(entry.samples)


def _near(parts: Sequence[ChunkResult], samples: bytearray) -> dict[int, int]:
    """{position of a near duplicate: of the sample that is kept} among those to be written."""
    from builder.audit.duplicates import compared_text, near_repeats  # noqa: PLC0415 - numpy

    chosen = [position for position, is_written in enumerate(samples) if is_written]

    def texts() -> Iterator[str]:
        for position, (line, meta) in enumerate(_spooled(parts)):
            if samples[position]:
                row = cast("dict[str, Any]", loads(line))
                about = cast("dict[str, Any]", loads(meta))
                messages = [(item["role"], item["content"]) for item in row["messages"]]
                yield compared_text(messages, about["unit"])

    return {chosen[at]: chosen[kept] for at, kept in near_repeats(texts()).items()}


def _mixed(parts: Sequence[ChunkResult], samples: bytearray, config: Config) -> frozenset[int]:
    """Positions of the samples that are left out so that the others have the shares of `mix`."""
    spooled = enumerate(_spooled(parts))
    candidates: list[Candidate] = []
    places: list[list[int]] = []
    for part in parts:
        for entry in part.entries():
            own = [next(spooled) for _ in entry.samples]
            written = [(position, meta) for position, (_, meta) in own if samples[position]]
            if written:
                about = cast("dict[str, Any]", loads(written[-1][1]))
                name = about["pattern"]
                candidates.append(Candidate(name, len(written), entry.prefixes[-1]))
                places.append([position for position, _ in written])
    gone = left_out(candidates, config.shares, config.split.seed)
    return frozenset(position for at in gone for position in places[at])


def _spooled(parts: Sequence[ChunkResult]) -> Iterator[tuple[bytes, bytes]]:
    """(line, meta line) of each proven sample, in order."""
    for part in parts:
        yield from part.samples()


def _count(
    built: Built, entry: ConversationEntry, written: Sequence[bool], part: ChunkResult
) -> None:
    samples = sum(written)
    built.tokens += sum(
        item.tokens for item, is_written in zip(entry.samples, written, strict=True) if is_written
    )
    names = (part.summary.format, entry.model, entry.license)
    built.origins[Origin(*(name or "unknown" for name in names))] += samples
    built.tools_sources[entry.tools_source] += samples


def _write(
    parts: Sequence[ChunkResult], choice: _Choice, built: Built, config: Config
) -> dict[int, str]:
    """Write the chosen samples; {position: id} of those that stand for their near duplicates."""
    shard_bytes = config.output.shard_mb << 20
    writers: dict[str, SplitWriter] = {}
    splits = _splits(choice, config)
    ids: dict[int, str] = dict.fromkeys(choice.near.values(), "")
    for position, (line, meta) in enumerate(_spooled(parts)):
        if not choice.samples[position]:
            continue
        if position in ids:
            ids[position] = cast("dict[str, Any]", loads(meta))["id"]
        split = next(splits)
        if split not in writers:
            writers[split] = SplitWriter(built.writer, split, config.output.suffixes, shard_bytes)
        writers[split].add(line, meta)
    built.data_files = {name: writers[name].close() for name in SPLITS if name in writers}
    return ids


def _unused(parts: Sequence[ChunkResult], choice: _Choice, ids: dict[int, str]) -> Iterator[bytes]:
    """Lines for rejects.jsonl of what was left out for a share, or as a near duplicate."""
    if not choice.near and not choice.drawn:
        return
    for position, (_, meta) in enumerate(_spooled(parts)):
        if position in choice.near:
            detail = f"nearly says what sample {ids[choice.near[position]]} says"
            problem = Problem("near_duplicate", "sample", detail, records=0)
        elif position in choice.drawn:
            code = choice.drawn[position]
            problem = Problem(code, "sample", f"left out for the share of {code}", records=0)
        else:
            continue
        about = cast("dict[str, Any]", loads(meta))
        yield reject_line(problem, about["source"], about["format"], about["record"])


def _splits(choice: _Choice, config: Config) -> Iterator[str]:
    """The split of each sample that is written, in order."""
    if not choice.conversations:
        while True:
            yield "train"
    assigned = assign(choice.conversations, config.split)
    for split, size in zip(assigned, choice.sizes, strict=True):
        for _ in range(size):
            yield split


def _rejects(parts: Sequence[ChunkResult], unreadable: Sequence[Problem]) -> Iterator[bytes]:
    for problem in unreadable:
        yield reject_line(problem, problem.where, None, "file")
    for part in parts:
        yield from part.rejects()
