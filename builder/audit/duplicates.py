"""Finds exact duplicates, samples that are the beginning of another, and near duplicates.

Near duplicates are found by MinHash with 128 permutations over three-word shingles, with candidates
from 32 bands of four. System prompts and tool definitions repeat by design and are not compared.
Two samples are near duplicates if `SIMILAR` of the permutations agree, which estimates the Jaccard
similarity with a standard error of 0.035. The longest sample of a cluster is kept, the first among
equals. Memory: about 640 bytes per sample, and 12 per assistant turn.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from builder.audit.notes import EXAMPLES, AuditRow
from builder.audit.result import AuditTable, Pick
from builder.conversation import session_name
from builder.finding import AuditFinding, FindingExample
from builder.qwen3.render import last_query

# -- hashes words and runs of words, to find near duplicates and contamination ---------------------

BLOCK = 1 << 15
"""Code points processed at a time; a longer word counts as several."""
_FACTOR = 0x9E3779B97F4A7C15
"""The odd number nearest to 2^64 divided by the golden ratio: its bits have no pattern."""
_IN_WORDS = bytes(chr(at).isascii() and (chr(at).isalnum() or chr(at) == "_") for at in range(256))
"""Entry n tells whether character n is ASCII and part of a word."""


def _powers(base: int) -> NDArray[np.uint64]:
    """Returns the powers of an odd number modulo 2^64, one for each position in a block."""
    powers = np.full(BLOCK, base, dtype=np.uint64)
    powers[0] = 1
    return np.cumprod(powers)


_POWERS = _powers(_FACTOR)
_INVERSES = _powers(pow(_FACTOR, -1, 1 << 64))


def word_numbers(text: str) -> NDArray[np.uint64]:
    """Returns a 64-bit hash of each word of the text, in order.

    The code points are the digits of a number in base `_FACTOR`, the least significant first.
    """
    lower = text.lower()
    blocks = []
    start = 0
    while start < len(lower):
        points, inside, letters = _characters(lower[start : start + BLOCK])
        end = len(points)
        if start + end < len(lower):  # end the block at the last character outside words
            after = int(inside[::-1].argmin())
            end -= after if not inside[end - 1 - after] else 0
        blocks.append(_numbers(points[:end], inside[:end], letters[letters < end]))
        start += end
    return np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.uint64)


def _characters(
    lower: str,
) -> tuple[NDArray[np.uint8 | np.uint32], NDArray[np.bool_], NDArray[np.int64]]:
    """Returns the code points, a mask of those in ASCII words, the positions of other letters."""
    if lower.isascii():
        data = lower.encode("ascii")
        inside = np.frombuffer(data.translate(_IN_WORDS), dtype=np.bool_)
        return np.frombuffer(data, dtype=np.uint8), inside, np.zeros(0, dtype=np.int64)
    points = np.frombuffer(lower.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    inside = np.frombuffer(_IN_WORDS, dtype=np.bool_)[np.minimum(points, 128)]
    foreign = np.flatnonzero(points >= 128)
    return points, inside, foreign[_are_letters(points[foreign])]


def _numbers(
    points: NDArray[np.uint8 | np.uint32], inside: NDArray[np.bool_], letters: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Returns the hashes of the words.

    `inside` marks the code points of ASCII words; `letters` are the positions of other letters.
    """
    around = np.zeros(len(inside) + 2, dtype=np.bool_)
    around[1:-1] = inside
    borders = np.flatnonzero(around[1:] != around[:-1])
    starts, ends = borders[::2], borders[1::2]
    if len(letters):
        starts = np.sort(np.concatenate((starts, letters)))
        ends = np.sort(np.concatenate((ends, letters + 1)))
    sums = np.zeros(len(points) + 1, dtype=np.uint64)
    np.cumsum(points * _POWERS[: len(points)], out=sums[1:])
    # Sums and differences are modulo 2^64, where every odd number has an inverse.
    return (sums[ends] - sums[starts]) * _INVERSES[starts]


def _are_letters(points: NDArray[np.uint8 | np.uint32]) -> NDArray[np.bool_]:
    kinds, which = np.unique(points, return_inverse=True)
    known = np.array([chr(point).isalpha() for point in kinds.tolist()], dtype=bool)
    return known[which] if len(kinds) else np.zeros(0, dtype=bool)


def shingles(numbers: NDArray[np.uint64], size: int) -> NDArray[np.uint64]:
    """Returns a 64-bit hash of each run of `size` words; a shorter text is a single run."""
    size = min(size, len(numbers))
    runs = np.zeros(max(len(numbers) - size + 1, 0) if size else 0, dtype=np.uint64)
    for at in range(size):
        runs = (runs + numbers[at : at + len(runs)] + np.uint64(1)) * np.uint64(_FACTOR)
        runs ^= runs >> np.uint64(29)
    return runs


MESSAGES = {
    "exact_duplicate": "samples that another repeats word for word",
    "prefix_of_another": "samples that are the beginning of another",
    "near_duplicate": "samples that are nearly equal to another",
    "duplicate_across_splits": "samples of one split that equal or nearly equal one of another",
}
_PERMUTATIONS = 128
_BANDS = 32
_SHINGLE = 3
SIMILAR = 0.8
_HASHED = 1024
"""Shingles hashed at a time, so that the intermediate arrays fit into a core's cache."""
_MIN_WORDS = 8
"""Shorter texts are compared only exactly."""
SHOWN = 20
"""Clusters in the table."""


_SEEDS = hashlib.shake_128(b"near duplicates").digest(8 * _PERMUTATIONS)
_NUMBERS = np.frombuffer(_SEEDS, dtype="<u4").astype(np.uint32)
_FACTORS = (_NUMBERS[:_PERMUTATIONS] | np.uint32(1))[:, None]
_OFFSETS = _NUMBERS[_PERMUTATIONS:][:, None]


def signature(runs: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Returns the minima of 128 multiply-shift hashes (32 bits) of the shingles."""
    high = (runs >> np.uint64(32)).astype(np.uint32)
    least = np.full(_PERMUTATIONS, 0xFFFFFFFF, dtype=np.uint32)
    for start in range(0, len(high), _HASHED):
        mixed = _FACTORS * high[None, start : start + _HASHED]
        mixed += _OFFSETS
        np.minimum(least, mixed.min(axis=1), out=least)
    return least


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The numbers of nearly equal samples, the kept one first, and their lowest similarity."""

    rows: tuple[int, ...]
    similarity: float


def clusters(signatures: NDArray[np.uint32], words: NDArray[np.uint32]) -> list[_Cluster]:
    """Returns the clusters, ordered by kept sample, from signatures and numbers of words.

    Within a band, samples with equal keys are compared only with the first of them, so the time is
    linear in the number of samples. Samples of fewer than MIN_WORDS words are in no cluster.
    """
    parents = list(range(len(words)))
    lowest: dict[int, float] = {}

    def root(row: int) -> int:
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = parents[row]
        return row

    candidates = np.flatnonzero(words >= _MIN_WORDS)
    width = _PERMUTATIONS // _BANDS
    for band in range(_BANDS):
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
        _Cluster(tuple(sorted(rows, key=lambda at: (-int(words[at]), at))), lowest.get(top, 1.0))
        for top, rows in members.items()
        if len(rows) > 1
    ]
    return sorted(found, key=lambda cluster: cluster.rows[0])


class DuplicateAudit:
    """Collects signatures, digests and locations of all samples."""

    def __init__(self) -> None:
        self._signatures = array("I")
        self._words = array("I")
        self._whole = array("Q")
        self._begins = array("Q")
        self._begins_of = array("I")
        self._splits: list[str] = []
        self._sources: list[str] = []
        self._sessions: list[str] = []
        self._places: list[tuple[str, int]] = []

    def add(self, row: AuditRow, numbers: NDArray[np.uint64]) -> None:
        """Adds a sample; `numbers` are those of its words (`word_numbers`)."""
        runs = shingles(numbers, _SHINGLE)
        self._signatures.frombytes(signature(runs).tobytes())
        self._words.append(len(numbers))
        digests = _prefixes(row)
        self._whole.append(digests[-1])
        if row.meta.unit in ("", "conversation"):  # others share prefixes by design
            for digest in digests[:-1]:
                self._begins.append(digest)
                self._begins_of.append(row.number)
        self._splits.append(row.split)
        self._sources.append(sys.intern(row.meta.source))
        session = session_name(row.meta.conversation) if row.meta.conversation else row.where
        self._sessions.append(f"{row.meta.source}\n{session}")
        file, _, line = row.where.rpartition(":")
        self._places.append((sys.intern(file), int(line)))

    def merge(self, later: DuplicateAudit) -> None:
        """Appends the samples that follow."""
        before = len(self._words)
        self._signatures += later._signatures
        self._words += later._words
        self._whole += later._whole
        self._begins += later._begins
        self._begins_of.extend(before + at for at in later._begins_of)
        self._splits += later._splits
        self._sources += later._sources
        self._sessions += later._sessions
        self._places += later._places

    def finish(self) -> _Duplicates:
        """Returns the duplicates among all samples that were added."""
        count = len(self._words)
        signatures = np.frombuffer(self._signatures, dtype=np.uint32).reshape(count, _PERMUTATIONS)
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
            _Cluster(rows, cluster.similarity)
            for cluster in clusters(signatures, words)
            if len(rows := _of_others(cluster, self._sessions, repeats)) > 1
        ]
        return _Duplicates(exact, longer, near, self._splits, self._sources, self._places)


@dataclass(frozen=True, slots=True)
class _Duplicates:
    """The duplicates of a dataset, by the numbers of the samples.

    exact     (kept sample, its duplicate)
    prefixes  (longer sample, its beginning)
    """

    exact: list[tuple[int, int]]
    prefixes: list[tuple[int, int]]
    near: list[_Cluster]
    split_of: Sequence[str]
    source_of: Sequence[str]
    places: Sequence[tuple[str, int]]

    def where(self, number: int) -> str:
        """Returns the location of a sample as `file:line`."""
        file, line = self.places[number]
        return f"{file}:{line}"

    def _pairs(self) -> dict[str, list[tuple[int, int]]]:
        """Returns {code: pairs of kept sample and other} for each kind of duplicate."""
        near = [(group.rows[0], at) for group in self.near for at in group.rows[1:]]
        return {
            "exact_duplicate": self.exact,
            "prefix_of_another": self.prefixes,
            "near_duplicate": near,
        }

    def findings(self) -> Iterator[AuditFinding]:
        """Yields a finding for each kind of duplicate."""
        found = self._pairs()
        every = [pair for pairs in found.values() for pair in pairs]
        across = [(one, two) for one, two in every if self.split_of[one] != self.split_of[two]]
        for code, pairs in {**found, "duplicate_across_splits": across}.items():
            if pairs:
                yield self._finding(code, pairs)

    def _finding(self, code: str, pairs: list[tuple[int, int]]) -> AuditFinding:
        examples = tuple(
            FindingExample(self.where(two), detail=f"of {self.where(one)}")
            for one, two in pairs[:EXAMPLES]
        )
        samples = len({two for _, two in pairs})
        return AuditFinding(
            "duplicates", code, MESSAGES[code], len(pairs), samples, examples=examples
        )

    def tables(self) -> list[AuditTable]:
        """Returns the number of duplicates of each kind, and the largest clusters."""
        kinds = tuple(
            (
                code,
                len(pairs),
                sum(self.source_of[one] != self.source_of[two] for one, two in pairs),
                sum(self.split_of[one] != self.split_of[two] for one, two in pairs),
            )
            for code, pairs in self._pairs().items()
        )
        columns = ("duplicates", "samples", "of another source", "of another split")
        largest = sorted(self.near, key=lambda group: (-len(group.rows), group.rows[0]))[:SHOWN]
        rows = tuple(
            (
                self.where(group.rows[0]),
                len(group.rows),
                round(group.similarity, 3),
                ", ".join(map(self.where, group.rows[1:5])),
            )
            for group in largest
        )
        heads = ("kept", "samples", "lowest similarity", "others")
        note = f"{len(self.near)} clusters; the largest {SHOWN}" if len(self.near) > SHOWN else ""
        return [
            AuditTable("duplicates", "Duplicates", columns, kinds, bars="samples"),
            AuditTable(
                "clusters", "Clusters of near duplicates", heads, rows, note, bars="samples"
            ),
        ]

    def picks(self) -> Iterator[Pick]:
        """Yields the first pairs of near duplicates, to be shown in the report."""
        for group in self.near[:3]:
            yield from (Pick("near_duplicate", at) for at in group.rows[:2])


def _prefixes(row: AuditRow) -> list[int]:
    """Returns a 64-bit digest of the tools and the messages up to each assistant turn.

    Without assistant turns, returns the digest of the tools and all messages.
    """
    digest = hashlib.blake2b(
        "\n".join(row.sample.definitions).encode("utf-8", "replace"), digest_size=8
    )
    prefixes = []
    for role, content in row.sample.messages:
        digest.update(f"{len(content)} {role}\n{content}".encode("utf-8", "replace"))
        if role == "assistant":
            prefixes.append(int.from_bytes(digest.digest(), "big"))
    return prefixes or [int.from_bytes(digest.digest(), "big")]


def compared_text(
    messages: Sequence[tuple[str, str]], unit: str, trained: Sequence[bool] = ()
) -> str:
    """Returns the text to compare: all but the system turn, for a query or turn its own part.

    `trained` says which messages are: what precedes the query of the first one is context that
    samples share by design (windows, copies of a session).
    """
    begin = last_query(messages) if unit in ("query", "turn") else 0
    first = next((at for at, is_target in enumerate(trained) if is_target), None)
    if first is not None and any(role == "assistant" for role, _ in messages[:first]):
        begin = max(begin, last_query(messages[:first]))
    return "\n".join(content for role, content in messages[begin:] if role != "system")


def near_repeats(texts: Iterable[str], sessions: Sequence[Hashable] = ()) -> dict[int, int]:
    """Returns {index of a text to drop: index of the text kept instead}.

    `sessions` are those of the texts: the parts of one session share context, but are no
    duplicates. Empty: each text is one of its own.
    """
    signatures, words = array("I"), array("I")
    for text in texts:
        numbers = word_numbers(text)
        words.append(len(numbers))
        signatures.frombytes(signature(shingles(numbers, _SHINGLE)).tobytes())
    table = np.frombuffer(signatures, dtype=np.uint32).reshape(len(words), _PERMUTATIONS)
    found = clusters(table, np.frombuffer(words, dtype=np.uint32)) if words else []
    groups = sessions or range(len(words))
    kept = {cluster.rows[0]: _of_others(cluster, groups)[1:] for cluster in found}
    return {at: first for first, rows in kept.items() for at in rows}


def _of_others(
    cluster: _Cluster, sessions: Sequence[Hashable], without: Collection[int] = ()
) -> tuple[int, ...]:
    rows = [at for at in cluster.rows if at not in without]
    return tuple(at for at in rows if at == rows[0] or sessions[at] != sessions[rows[0]])
