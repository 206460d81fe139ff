"""A text's tokens and where they lie, from ids alone.

The tokens of a byte-level vocabulary, joined, are the text, so ids say where each token begins and
whether they decode to the text: no offsets are asked of the tokenizer, and ids may come from a
faster one. `tokenizers` is the truth (library-measurements.md); fastokens (extra `fast`) counts
where it is installed, and its ids are compared with the truth on one sample in CHECKED.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import accumulate, compress
from typing import Any

from builder.problem import UsageError

CHECKED = 32
"""The ids of one text in so many, by a digest of its tokens, come from both tokenizers."""

_SHIFTED = 0x100
"""From here on GPT-2's table puts the bytes that are no printable characters of their own."""


class Tokens:
    """The tokens of one text: `ids`, and what follows from their lengths in bytes.

    `control` are (offset, token) of the added ones; offsets are code points. The text is in NFC, to
    which the tokenizer would bring it.
    """

    def __init__(self, text: str, ids: list[int], table: Table) -> None:
        self.text = text
        self.ids = ids
        self.ends = list(accumulate(map(table.lengths.__getitem__, ids)))
        self._pieces = table.pieces
        places = list(compress(range(len(ids)), map(table.first_added.__le__, ids)))
        begins = [self.ends[at] - table.lengths[ids[at]] for at in places]
        offsets = _offsets(text, begins)
        self.control = [
            (offset, table.pieces[ids[at]].decode("utf-8", "replace"))
            for offset, at in zip(offsets, places, strict=True)
        ]

    def decode(self) -> str:
        """The text of the ids, control tokens included, nothing cleaned up."""
        return b"".join(map(self._pieces.__getitem__, self.ids)).decode("utf-8", "replace")

    def across(self, borders: Iterable[int]) -> list[int]:
        """Those of the borders (code points, in order) that lie inside a token."""
        found = []
        chars = place = 0
        for border in borders:
            place += len(self.text[chars:border].encode("utf-8", "surrogatepass"))
            chars = border
            at = bisect_left(self.ends, place)
            if place and (at == len(self.ends) or self.ends[at] != place):
                found.append(border)
        return found


def _offsets(text: str, places: Iterable[int]) -> list[int]:
    """Code points for places in bytes, in order; each is the beginning of a character."""
    if text.isascii():
        return list(places)
    raw = text.encode("utf-8", "surrogatepass")
    found = []
    chars = last = 0
    for place in places:
        chars += len(raw[last:place].decode("utf-8", "ignore"))
        last = place
        found.append(chars)
    return found


class Table:
    """The bytes of each id of a byte-level tokenizer (`tokenizers.Tokenizer`).

    Raises ValueError: it is of another kind.
    """

    def __init__(self, backend: Any) -> None:
        if "ByteLevel" not in str(backend.decoder):
            raise ValueError("its decoder is not byte-level")
        vocabulary: dict[str, int] = backend.get_vocab(with_added_tokens=True)
        added = {
            number: token.content for number, token in backend.get_added_tokens_decoder().items()
        }
        size = max(vocabulary.values()) + 1
        table = _byte_table()
        self.pieces: list[bytes] = [b""] * size
        for token, number in vocabulary.items():
            if number not in added:
                self.pieces[number] = bytes(table[char] for char in token)
        for number, content in added.items():
            self.pieces[number] = content.encode("utf-8")
        self.lengths = [len(piece) for piece in self.pieces]
        self.first_added = min(added, default=size)
        if any(
            number >= self.first_added and number not in added for number in vocabulary.values()
        ):
            raise ValueError("its added tokens do not follow the others")


def _byte_table() -> dict[str, int]:
    """The characters that stand for bytes in a byte-level vocabulary (GPT-2's table)."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    shifted = [byte for byte in range(0x100) if byte not in set(plain)]
    table = {chr(byte): byte for byte in plain}
    return table | {chr(_SHIFTED + at): byte for at, byte in enumerate(shifted)}


Encode = Callable[[str], list[int]]


def encoder(backend: Any) -> tuple[Encode, str]:
    """(text to ids, no special tokens added; the name of what gives them)."""

    def true_ids(text: str) -> list[int]:
        ids: list[int] = backend.encode(text, add_special_tokens=False).ids
        return ids

    try:
        import fastokens  # noqa: PLC0415 - an extra, only there where it was asked for
    except ImportError:
        return true_ids, "tokenizers"
    fast = fastokens.Tokenizer.from_json_str(backend.to_str())
    fast.no_truncation()
    fast.no_padding()

    def fast_ids(text: str) -> list[int]:
        ids = list(fast.encode(text, add_special_tokens=False).ids)
        if sum(ids) % CHECKED == 0 and ids != true_ids(text):
            raise UsageError(
                "fastokens gives other ids than tokenizers: uninstall it (the extra `fast`)"
            )
        return ids

    return fast_ids, "fastokens"
