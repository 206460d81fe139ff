"""Finds samples that are equal to others, the beginning of others, or nearly equal to others.

Near duplicates: MinHash with 128 permutations over three-word shingles of all turns except the
system's (system prompts and definitions repeat by design), with candidates from 32 bands of four.
Two samples are near duplicates if at least `SIMILAR` of the 128 agree (an estimate of the Jaccard
similarity, with a standard error of 0.035 there). The sample with the most words of a cluster is
kept, the first among equals. Memory: 520 bytes per sample, and eight per assistant turn.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from builder.audit.notes import EXAMPLES, AuditRow
from builder.audit.result import AuditFinding, AuditTable, FindingExample, Pick
from builder.audit.shingles import shingles, word_numbers
from builder.qwen3.render import last_query

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CODES = (
    "duplicate_across_splits",
    "exact_duplicate",
    "near_duplicate",
    "prefix_of_another",
)
PERMUTATIONS = 128
BANDS = 32
SHINGLE = 3
SIMILAR = 0.8
BLOCK = 1024
"""Shingles that are hashed together: the intermediate arrays fit into a core's cache."""
MIN_WORDS = 8
"""A shorter text is only compared exactly."""
SHOWN = 20


class MinHash:
    """Computes signatures: the minima of 128 hashes of the shingles (multiply-shift on 32 bits)."""

    def __init__(self) -> None:
        import numpy as np  # noqa: PLC0415 - 0.1 s, only where texts are compared

        seeds = hashlib.shake_128(b"near duplicates").digest(8 * PERMUTATIONS)
        numbers = np.frombuffer(seeds, dtype="<u4").astype(np.uint32)
        self._factors = (numbers[:PERMUTATIONS] | np.uint32(1))[:, None]
        self._offsets = numbers[PERMUTATIONS:][:, None]

    def signature(self, runs: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Returns 128 numbers of 32 bits."""
        import numpy as np  # noqa: PLC0415 - as above

        high = (runs >> np.uint64(32)).astype(np.uint32)
        least = np.full(PERMUTATIONS, 0xFFFFFFFF, dtype=np.uint32)
        for start in range(0, len(high), BLOCK):
            mixed = self._factors * high[None, start : start + BLOCK]
            mixed += self._offsets
            np.minimum(least, mixed.min(axis=1), out=least)
        return least


@cache
def minhash() -> MinHash:
    """Returns the instance of this process."""
    return MinHash()


@dataclass(frozen=True, slots=True)
class Cluster:
    """Samples that are nearly equal, by number; the first is kept."""

    rows: tuple[int, ...]
    similarity: float


def clusters(signatures: NDArray[np.uint32], words: NDArray[np.uint32]) -> list[Cluster]:
    """Returns the clusters, by the number of the kept sample. `words` are the samples' lengths.

    Within a band, samples with an equal key are compared with the first of them, so the time is
    linear in the number of samples. Rows of fewer than MIN_WORDS words are in no cluster.
    """
    import numpy as np  # noqa: PLC0415 - as above

    parents = list(range(len(words)))
    lowest: dict[int, float] = {}

    def root(at: int) -> int:
        while parents[at] != at:
            parents[at] = parents[parents[at]]
            at = parents[at]
        return at

    candidates = np.flatnonzero(words >= MIN_WORDS)
    width = PERMUTATIONS // BANDS
    for band in range(BANDS):
        part = np.ascontiguousarray(signatures[candidates, band * width : (band + 1) * width])
        keys = part.view([("key", f"V{4 * width}")])["key"].ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        leaders = candidates[first[inverse.ravel()]]
        others = np.flatnonzero(leaders != candidates)
        for at in range(0, len(others), 4096):
            one, two = leaders[others[at : at + 4096]], candidates[others[at : at + 4096]]
            same = (signatures[one] == signatures[two]).mean(axis=1)
            for near in np.flatnonzero(same >= SIMILAR):
                roots = sorted((root(int(one[near])), root(int(two[near]))))
                worst = min(lowest.get(roots[0], 1.0), lowest.get(roots[1], 1.0))
                lowest[roots[0]] = min(worst, float(same[near]))
                parents[roots[1]] = roots[0]
    members: dict[int, list[int]] = {}
    for at in candidates.tolist():
        members.setdefault(root(at), []).append(at)
    found = [
        Cluster(tuple(sorted(rows, key=lambda at: (-int(words[at]), at))), lowest.get(top, 1.0))
        for top, rows in members.items()
        if len(rows) > 1
    ]
    return sorted(found, key=lambda cluster: cluster.rows[0])


class Places:
    """The locations of the samples, twelve bytes each."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._files = array("I")
        self._lines = array("Q")

    def add(self, where: str) -> None:
        """Appends a location: file, colon, line."""
        name, _, line = where.rpartition(":")
        self._files.append(self._names.setdefault(name, len(self._names)))
        self._lines.append(int(line))

    def merge(self, later: Places) -> None:
        """Appends the locations of the samples that follow."""
        numbers = [self._names.setdefault(name, len(self._names)) for name in later._names]
        self._files.extend(numbers[at] for at in later._files)
        self._lines += later._lines

    def at(self, number: int) -> str:
        """Returns a location as it was added."""
        name = list(self._names)[self._files[number]]
        return f"{name}:{self._lines[number]}"


class DuplicateAudit:
    """Signatures, digests and locations of all samples."""

    def __init__(self) -> None:
        self._signatures = array("I")
        self._words = array("I")
        self._whole = array("Q")
        self._begins = array("Q")
        self._begins_of = array("I")
        self._splits: dict[str, int] = {}
        self._split_of = array("B")
        self._sources: dict[str, int] = {}
        self._source_of = array("I")
        self._places = Places()

    def add(self, row: AuditRow, numbers: NDArray[np.uint64]) -> None:
        """Stores what is needed of a sample; `numbers` are those of its words."""
        runs = shingles(numbers, SHINGLE)
        self._signatures.frombytes(minhash().signature(runs).tobytes())
        self._words.append(len(numbers))
        digests = _prefixes(row)
        self._whole.append(digests[-1])
        whole = row.meta_text("unit") in (
            "",
            "conversation",
        )  # others share their prefixes by design
        for digest in digests[:-1] if whole else ():
            self._begins.append(digest)
            self._begins_of.append(row.number)
        split = self._splits.setdefault(row.split, len(self._splits))
        self._split_of.append(min(split, 255))
        source = row.meta_text("source")
        self._source_of.append(self._sources.setdefault(source, len(self._sources)))
        self._places.add(row.where)

    def merge(self, later: DuplicateAudit) -> None:
        """Appends the samples that follow."""
        before = len(self._words)
        self._signatures += later._signatures
        self._words += later._words
        self._whole += later._whole
        self._begins += later._begins
        self._begins_of.extend(before + at for at in later._begins_of)
        splits = [self._splits.setdefault(name, len(self._splits)) for name in later._splits]
        self._split_of.extend(min(splits[at], 255) for at in later._split_of)
        sources = [self._sources.setdefault(name, len(self._sources)) for name in later._sources]
        self._source_of.extend(sources[at] for at in later._source_of)
        self._places.merge(later._places)

    def finish(self) -> Duplicates:
        """Returns the duplicates among all samples that were added."""
        import numpy as np  # noqa: PLC0415 - as above

        count = len(self._words)
        signatures = np.frombuffer(self._signatures, dtype=np.uint32).reshape(count, PERMUTATIONS)
        words = np.frombuffer(self._words, dtype=np.uint32)
        whole = np.frombuffer(self._whole, dtype=np.uint64)
        _, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
        leaders = first[inverse.ravel()]
        exact = [(int(leaders[at]), int(at)) for at in np.flatnonzero(leaders != np.arange(count))]
        order = np.argsort(np.frombuffer(self._begins, dtype=np.uint64), kind="stable")
        begins = np.frombuffer(self._begins, dtype=np.uint64)[order]
        at_begin = np.searchsorted(begins, whole)
        inside = np.minimum(at_begin, max(len(begins) - 1, 0))
        prefixed = begins[inside] == whole if len(begins) else np.zeros(count, dtype=bool)
        longer = [
            (int(self._begins_of[order[inside[at]]]), int(at)) for at in np.flatnonzero(prefixed)
        ]
        repeats = {at for _, at in exact}
        near = [
            Cluster(rows, cluster.similarity)
            for cluster in clusters(signatures, words)
            if len(rows := tuple(at for at in cluster.rows if at not in repeats)) > 1
        ]
        return Duplicates(exact, longer, near, self._split_of, self._source_of, self._places)


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Returns (kept, repeated) exact duplicates, (longer, its beginning) pairs, near clusters."""

    exact: list[tuple[int, int]]
    prefixes: list[tuple[int, int]]
    near: list[Cluster]
    split_of: array[int]
    source_of: array[int]
    places: Places

    def _pairs(self) -> tuple[tuple[str, str, list[tuple[int, int]]], ...]:
        """Returns (code, message, pairs of kept sample and other) for each kind of duplicate."""
        near = [(group.rows[0], at) for group in self.near for at in group.rows[1:]]
        return (
            ("exact_duplicate", "samples that another repeats word for word", self.exact),
            ("prefix_of_another", "samples that are the beginning of another", self.prefixes),
            ("near_duplicate", "samples that are nearly equal to another", near),
        )

    def findings(self) -> Iterator[AuditFinding]:
        """Yields a finding for each kind of duplicate."""
        for code, message, pairs in self._pairs():
            if pairs:
                yield self._finding(code, message, pairs)
        across = [
            (one, two)
            for _, _, pairs in self._pairs()
            for one, two in pairs
            if self.split_of[one] != self.split_of[two]
        ]
        if across:
            message = "samples of one split that equal or nearly equal a sample of another"
            yield self._finding("duplicate_across_splits", message, across)

    def _finding(self, code: str, message: str, pairs: list[tuple[int, int]]) -> AuditFinding:
        examples = tuple(
            FindingExample(self.places.at(two), detail=f"of {self.places.at(one)}")
            for one, two in pairs[:EXAMPLES]
        )
        samples = len({two for _, two in pairs})
        return AuditFinding("duplicates", code, message, len(pairs), samples, examples=examples)

    def tables(self) -> list[AuditTable]:
        """Returns pairs within and between sources and splits, and the largest clusters."""
        table_rows = tuple(
            (
                code,
                len(pairs),
                sum(self.source_of[one] != self.source_of[two] for one, two in pairs),
                sum(self.split_of[one] != self.split_of[two] for one, two in pairs),
            )
            for code, _, pairs in self._pairs()
        )
        columns = ("duplicates", "samples", "of another source", "of another split")
        order = sorted(self.near, key=lambda group: (-len(group.rows), group.rows[0]))[:SHOWN]
        rows = tuple(
            (
                self.places.at(group.rows[0]),
                len(group.rows),
                round(group.similarity, 3),
                ", ".join(self.places.at(at) for at in group.rows[1:5]),
            )
            for group in order
        )
        heads = ("kept", "samples", "lowest similarity", "others")
        note = f"{len(self.near)} clusters; the largest {SHOWN}" if len(self.near) > SHOWN else ""
        return [
            AuditTable("duplicates", "Duplicates", columns, table_rows, bars="samples"),
            AuditTable(
                "clusters", "Clusters of near duplicates", heads, rows, note, bars="samples"
            ),
        ]

    def picks(self) -> Iterator[Pick]:
        """Returns the first near-duplicate pairs."""
        for group in self.near[:3]:
            yield from (Pick("near_duplicate", at) for at in group.rows[:2])


def _prefixes(row: AuditRow) -> list[int]:
    """Returns 64-bit digests of the messages up to each assistant turn, with tools and system.

    There is at least one: without such turns that of all messages.
    """
    digest = hashlib.blake2b(
        "\n".join(row.sample.definitions).encode("utf-8", "replace"), digest_size=8
    )
    found = []
    for role, content in row.sample.messages:
        digest.update(f"{len(content)} {role}\n{content}".encode("utf-8", "replace"))
        if role == "assistant":
            found.append(int.from_bytes(digest.digest(), "big"))
    return found or [int.from_bytes(digest.digest(), "big")]


def compared_text(messages: Sequence[tuple[str, str]], unit: str) -> str:
    """Returns the compared text: all but the system turn; for a query or turn, its own part."""
    begin = last_query(messages) if unit in ("query", "turn") else 0
    return "\n".join(content for role, content in messages[begin:] if role != "system")


def near_repeats(texts: Iterable[str]) -> dict[int, int]:
    """Returns {number of a text: number of the one kept in its place}, for texts in order."""
    import numpy as np  # noqa: PLC0415 - as above

    signatures, words = array("I"), array("I")
    for text in texts:
        numbers = word_numbers(text)
        words.append(len(numbers))
        signatures.frombytes(minhash().signature(shingles(numbers, SHINGLE)).tobytes())
    table = np.frombuffer(signatures, dtype=np.uint32).reshape(len(words), PERMUTATIONS)
    found = clusters(table, np.frombuffer(words, dtype=np.uint32)) if words else []
    return {at: cluster.rows[0] for cluster in found for at in cluster.rows[1:]}
