"""The part of the Xet storage protocol that an upload and a download use (v1 endpoints).

Shards and xorbs are laid out as the published Xet specification says: 48-byte entries, and
chunks behind 8-byte headers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

ENTRY = 48
END = b"\xff" * 32
VERIFIED, HAS_METADATA = 0x80000000, 0x40000000


@dataclass(frozen=True)
class Term:
    xorb: str
    size: int
    start: int  # the first chunk
    end: int  # after the last chunk


@dataclass
class Storage:
    """`files`: terms by Xet hash; `hashes`: Xet hash by sha256."""

    xorbs: dict[str, bytes] = field(default_factory=dict)
    files: dict[str, list[Term]] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)

    def add_shard(self, shard: bytes) -> None:
        at = ENTRY
        while shard[at : at + 32] != END:
            name = _hex(shard[at : at + 32])
            flags, count = struct.unpack_from("<II", shard, at + 32)
            at += ENTRY
            self.files[name] = [_term(shard, at + ENTRY * number) for number in range(count)]
            at += ENTRY * count * (2 if flags & VERIFIED else 1)
            if flags & HAS_METADATA:
                self.hashes[_hex(shard[at : at + 32])] = name
                at += ENTRY

    def reconstruction(self, name: str, first: int, last: int, base: str) -> dict[str, object]:
        """Returns how to assemble bytes `first` to `last` of a file."""
        terms, skipped, at = [], 0, 0
        for term in self.files[name]:
            if at + term.size > first and at <= last:
                terms.append(term)
            elif not terms:
                skipped = at + term.size
            at += term.size
        fetch = {}
        for xorb in {term.xorb for term in terms}:
            chunks, size = _extent(self.xorbs[xorb])
            fetch[xorb] = [
                {
                    "range": {"start": 0, "end": chunks},
                    "url": f"{base}/xorb-bytes/{xorb}",
                    "url_range": {"start": 0, "end": size - 1},
                }
            ]
        return {
            "offset_into_first_range": first - skipped,
            "terms": [
                {
                    "hash": term.xorb,
                    "unpacked_length": term.size,
                    "range": {"start": term.start, "end": term.end},
                }
                for term in terms
            ],
            "fetch_info": fetch,
        }

    def size(self, name: str) -> int:
        return sum(term.size for term in self.files[name])


def _term(shard: bytes, at: int) -> Term:
    _, size, start, end = struct.unpack_from("<IIII", shard, at + 32)
    return Term(_hex(shard[at : at + 32]), size, start, end)


def _hex(hashed: bytes) -> str:
    """Returns a hash in Xet's form: four little-endian numbers."""
    return "".join(f"{number:016x}" for number in struct.unpack("<4Q", hashed))


def _extent(xorb: bytes) -> tuple[int, int]:
    """Returns (number of chunks, their bytes) of a serialised xorb."""
    chunks = at = 0
    while at + 8 <= len(xorb) and xorb[at] == 0:
        at += 8 + int.from_bytes(xorb[at + 1 : at + 4], "little")
        chunks += 1
    return chunks, at
