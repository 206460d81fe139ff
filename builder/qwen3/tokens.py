"""Computes the tokens of a text and their positions from ids alone.

The tokens of a byte-level vocabulary concatenate to the text, so the ids determine where each token
starts and whether they decode to the text. No offsets are needed from the tokenizer, so the ids may
come from a faster one, gigatoken (extra `fast`). `tokenizers` is the reference: its ids are
compared on `PROBE` when gigatoken is opened, and on one text in CHECKED.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any
from unicodedata import is_normalized

import numpy as np
from numpy.typing import NDArray

from builder.parallel.host import is_own_process
from builder.problem import UsageError

WORTH_LOADING = 1 << 19
"""Code points after which opening gigatoken pays off where `tokenizers` is open."""

CHECKED = 128
"""One text (or piece of a long text) in this many is tokenised by both tokenizers."""

PROBE = (
    "<|im_start|>user\nIt's 1234.5 % of <b>all</b>,  don't: x_y = f(a[0])\r\n\tif n >= 10:\n\n"
    "caf\u00e9 na\u00efve \u4f60\u597d\uff0c\u4e16\u754c \u0417\u0434\u0440\u0430 \U0001f680\u200d"
    '<|im_end|>\n<tool_call>\n{"name": "f", "arguments": {"p": "\\n\\u00e9"}}\n</tool_call>'
)
"""Words, numbers, code, scripts, control tokens: what two tokenizers might split differently."""

_SHIFTED = 0x100
"""GPT-2's table maps bytes that are not printable characters to code points from here on."""

PIECE = 1 << 16
"""Code points that are tokenised at a time: the tokenizer allocates 100 bytes per token."""
BLOCK = 1 << 18
"""Tokens that are decoded at a time: their positions take 16 bytes per token."""

_QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN_STEPS = [
    {"type": "Split", "pattern": {"Regex": _QWEN_WORDS}, "behavior": "Isolated", "invert": False},
    {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
]
"""The steps in which Qwen's tokenizer.json splits a text into words (`_QWEN_WORDS`).

`trim_offsets` is left out, since ids do not depend on it: AutoTokenizer sets it, the file does not.
"""
_WORD_END = re.compile(r"(?<=[A-Za-z])(?=[\x00-\x40\x5b-\x60\x7b-\x7f])|(?<=[0-9])(?=[\x00-\x7f])")
"""Positions where a word of _QWEN_WORDS ends in any text: only letters continue a word after a
letter, and nothing continues one after a digit."""

Ids = NDArray[np.uint32]
Encode = Callable[[str], Ids]
"""Returns the ids of a text."""


class TokenSequence:
    """The tokens of one text in NFC: their ids (`numbers`) and positions.

    `control` lists (offset in code points, token) of the added tokens.
    """

    def __init__(self, text: str, numbers: Ids, table: TokenTable) -> None:
        self.text = text
        self.numbers = numbers
        self._table = table
        self._indices = indices = numbers.astype(
            np.intp
        )  # bound once: a table lookup per id is slow
        self._lengths = lengths = table.lengths.take(indices)
        self._ends = lengths.cumsum()
        places = np.flatnonzero(indices >= table.first_added)
        offsets = self._offsets((self._ends.take(places) - lengths.take(places)).tolist())
        self.control = [
            (offset, table.added[number])
            for offset, number in zip(offsets, numbers[places].tolist(), strict=True)
        ]

    def __len__(self) -> int:
        """Returns the number of tokens."""
        return len(self.numbers)

    @cached_property
    def ids(self) -> list[int]:
        """The ids, in order."""
        ids: list[int] = self.numbers.tolist()
        return ids

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Returns [start, end) of each token in code points; tokens may share a character."""
        starts, ends = self._ends - self._lengths, self._ends
        if not self.text.isascii():
            begun = np.frombuffer(self._raw, dtype=np.uint8) & 0xC0 != 0x80
            characters = begun.cumsum()
            starts, ends = characters.take(starts) - 1, characters.take(ends - 1)
        return list(zip(starts.tolist(), ends.tolist(), strict=True))

    @cached_property
    def _raw(self) -> bytes:
        return self.text.encode("utf-8", "surrogatepass")

    def _blocks(self) -> Iterator[bytes]:
        """Yields the bytes of the tokens, BLOCK tokens at a time."""
        for start in range(0, len(self), BLOCK):
            end = start + BLOCK
            lengths = self._lengths[start:end]
            first = self._table.begins.take(self._indices[start:end])
            first += lengths
            first -= self._ends[start:end]
            places = first.repeat(lengths)
            begin = int(self._ends[start] - lengths[0])
            places += np.arange(begin, begin + len(places))
            yield self._table.joined.take(places).tobytes()

    def decode(self) -> str:
        """Decodes the ids, control tokens included, without clean-up."""
        return b"".join(self._blocks()).decode("utf-8", "replace")

    def first(self, count: int) -> str:
        """Returns the text of the first tokens, without an incomplete last character."""
        return self._raw[: self._byte_end(count)].decode("utf-8", "ignore")

    def last(self, count: int) -> str:
        """Returns the text of the last tokens, without an incomplete first character."""
        return self._raw[self._byte_end(len(self) - count) :].decode("utf-8", "ignore")

    def _byte_end(self, count: int) -> int:
        return int(self._ends[count - 1]) if count > 0 else 0

    @property
    def are_exact(self) -> bool:
        """Returns whether the ids decode to the text."""
        at = 0
        for block in self._blocks():
            if not self._raw.startswith(block, at):
                return False
            at += len(block)
        return at == len(self._raw)

    def across(self, borders: Sequence[int]) -> list[int]:
        """Returns those of the sorted positions (code points) that are inside a token."""
        if not len(self):
            return []
        places = np.asarray(self._places(borders), dtype=self._ends.dtype)
        ends = self._ends.take(np.searchsorted(self._ends, places), mode="clip")
        whole = ((ends == places) | (places == 0)).tolist()
        return [border for border, is_whole in zip(borders, whole, strict=True) if not is_whole]

    def inside(self, spans: Sequence[tuple[int, int]]) -> int:
        """Returns the number of tokens that begin inside spans, which are in order and disjoint."""
        return sum(self.inside_each(spans))

    def inside_each(self, spans: Sequence[tuple[int, int]]) -> list[int]:
        """Returns the number of tokens that begin inside each span; see `inside`."""
        places = self._places([border for span in spans for border in span])
        before: list[int] = np.searchsorted(self._ends - self._lengths, places).tolist()
        return [end - start for start, end in zip(before[::2], before[1::2], strict=True)]

    def count_before(self, offset: int) -> int:
        """Returns the number of tokens that end at or before a position (code points)."""
        (place,) = self._places([offset])
        return int(np.searchsorted(self._ends, place, side="right"))

    def _places(self, borders: Sequence[int]) -> Sequence[int]:
        """Converts sorted positions from code points to bytes."""
        if self.text.isascii():
            return borders
        text, pairs = self.text, pairwise((0, *borders))
        pieces = (text[start:end].encode("utf-8", "surrogatepass") for start, end in pairs)
        return list(accumulate(map(len, pieces)))

    def _offsets(self, places: Sequence[int]) -> Sequence[int]:
        """Converts sorted positions at starts of characters from bytes to code points."""
        if self.text.isascii():
            return places
        raw, pairs = self._raw, pairwise((0, *places))
        pieces = (raw[start:end].decode("utf-8", "ignore") for start, end in pairs)
        return list(accumulate(map(len, pieces)))


class TokenTable:
    """The bytes of each token of a byte-level tokenizer.

    `joined` are those of the ids below the added tokens, of the `lengths`; `added` maps ids to
    added tokens.
    """

    def __init__(self, joined: bytes, lengths: Sequence[int], added: Mapping[int, str]) -> None:
        self.added = added
        self.first_added = len(lengths)
        last = range(self.first_added, max(added, default=-1) + 1)
        tokens = [added.get(at, "").encode() for at in last]
        self.lengths = np.array([*lengths, *map(len, tokens)], dtype=np.int64)
        self.joined = np.frombuffer(joined + b"".join(tokens), dtype=np.uint8)
        self.begins = np.cumsum(self.lengths) - self.lengths

    @classmethod
    def of(cls, backend: Any) -> TokenTable:
        """Returns the table of a `tokenizers.Tokenizer`; raises ValueError for another kind."""
        if "ByteLevel" not in str(backend.decoder):
            raise ValueError("its decoder is not byte-level")
        decoder = backend.get_added_tokens_decoder()
        added = {number: token.content for number, token in decoder.items()}
        size = backend.get_vocab_size(with_added_tokens=True)
        found = list(map(backend.id_to_token, range(min(added, default=size))))
        if len(found) - found.count(None) + len(added) != size:
            raise ValueError("its vocabulary does not fill exactly the ids below its added tokens")
        pieces = [piece or "" for piece in found]
        try:
            joined = "".join(pieces).translate(_BYTES).encode("latin-1")
        except UnicodeEncodeError:
            what = "its tokens are not made of the characters that represent bytes"
            raise ValueError(what) from None
        return cls(joined, [*map(len, pieces)], added)

    @classmethod
    def read(cls, path: Path, added: Mapping[int, str]) -> TokenTable:
        """Returns the table of a file in tiktoken's format: each token in base64, and its id."""
        pieces = [a2b_base64(line.partition(b" ")[0]) for line in path.read_bytes().splitlines()]
        return cls(b"".join(pieces), [*map(len, pieces)], added)


def _byte_table() -> Mapping[int, int]:
    """Returns {code point in a byte-level vocabulary (GPT-2's table): its byte}.

    A printable character that represents no byte is mapped to one that is none.
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    shifted = [byte for byte in range(0x100) if byte not in set(plain)]
    none = dict.fromkeys(shifted, _SHIFTED)
    return none | {_SHIFTED + at: byte for at, byte in enumerate(shifted)}


_BYTES = _byte_table()


class Encoder:
    """Tokenises texts without special tokens. Raises UsageError if gigatoken gives other ids.

    `open_reference` opens the tokenizer of `tokenizers`, which takes half a second; `open_fast`
    opens gigatoken, or returns None if it cannot be used. `added` are the added tokens, `probed` is
    the digest of the reference's ids for PROBE: with it, gigatoken is opened first, and else only
    after WORTH_LOADING code points.
    """

    def __init__(
        self,
        open_reference: Callable[[], Any],
        open_fast: Callable[[], Encode | None],
        added: Sequence[str],
        probed: str = "",
    ) -> None:
        self._fast: Encode | None = None
        self._open_reference = open_reference
        self._open_fast: Callable[[], Encode | None] | None = open_fast
        self._added = added
        self._probed = probed
        self._encoded = 0

    @cached_property
    def _reference(self) -> Any:
        return self._open_reference()

    def load(self) -> None:
        """Opens gigatoken once. Raises UsageError if it gives other ids for a probe."""
        if self._open_fast is None:
            return
        fast, self._open_fast = self._open_fast(), None
        if fast is not None and digest(ids := fast(PROBE)) != self._probed:
            self._compare(PROBE, ids)
        self._fast = fast

    def __call__(self, text: str) -> Ids:
        """Returns the tokens of a text."""
        self._encoded += len(text)
        if self._probed or self._encoded >= WORTH_LOADING:
            self.load()
        encode = self._checked_ids if self._fast is not None else self._true_ids
        return _joined(map(encode, self.pieces(text)))

    def _checked_ids(self, text: str) -> Ids:
        assert self._fast is not None, "it was opened"
        if not (text.isascii() or is_normalized("NFC", text)):
            return self._true_ids(text)  # added tokens are found before a text is normalised
        ids = self._fast(text)
        if int(ids.sum()) % CHECKED == 0:
            self._compare(text, ids)
        return ids

    def _compare(self, text: str, ids: Ids) -> None:
        if not np.array_equal(ids, self._true_ids(text)):
            raise UsageError(
                "gigatoken and tokenizers give different ids: uninstall gigatoken (extra fast)"
            )

    def _true_ids(self, text: str) -> Ids:
        """Returns the ids of `tokenizers`.

        Without offsets it takes a quarter less time: 7 % of a build without gigatoken. There, it
        asks for threads, of which a caller's program that forks would be warned.
        """
        if is_own_process():
            (encoding,) = self._reference.encode_batch_fast([text], add_special_tokens=False)
        else:
            encoding = self._reference.encode(text, add_special_tokens=False)
        return np.array(encoding.ids, dtype=np.uint32)

    def pieces(self, text: str) -> Iterator[str]:
        """Yields the text in pieces of about PIECE code points whose ids join to those of the text.

        A piece ends at the end of a word, outside added tokens. A tokenizer that splits texts into
        other words than Qwen's gets the whole text.
        """
        start = 0
        if len(text) > PIECE and self._has_qwen_words:
            while end := self._word_end(text, start + PIECE):
                yield text[start:end]
                start = end
        yield text[start:] if start else text

    def _word_end(self, text: str, start: int) -> int | None:
        """Returns the first place from `start` on where the text can be cut, or None."""
        for match in _WORD_END.finditer(text, start):
            end = match.start()
            spans = (
                text.find(token, max(end - len(token) + 1, 0), end + len(token) - 1) >= 0
                for token in self._added
            )
            if not any(spans):
                return end
        return None

    @cached_property
    def _has_qwen_words(self) -> bool:
        if self._probed:
            return True
        if (
            str(self._reference.normalizer) not in ("None", "NFC()")
            or not self._reference.pre_tokenizer
        ):
            return False
        definition = json.loads(self._reference.pre_tokenizer.__getstate__())
        steps = definition.get("pretokenizers", ())
        for step in steps:
            step.pop("trim_offsets", None)
        return bool(steps == _QWEN_STEPS)


def digest(ids: Ids) -> str:
    """Returns a short digest of ids."""
    return hashlib.sha256(ids.astype("<u4").tobytes()).hexdigest()[:16]


def _joined(pieces: Iterable[Ids]) -> Ids:
    first, *others = pieces
    return np.concatenate([first, *others]) if others else first


def gigatoken() -> Any:
    """Returns the module of gigatoken's tokenizers; None if the extra is not installed."""
    try:
        return importlib.import_module("gigatoken.gigatoken_rs")
    except ImportError:
        return None


def fast_from_file(path: Path, added: Mapping[str, int]) -> Encode | None:
    """Opens Qwen's vocabulary from a file in tiktoken's format, twice as fast as `fast_from_json`.

    Returns None if the extra is not installed.
    """
    if (module := gigatoken()) is None:
        return None
    encode: Encode = module.BPETokenizer.from_tiktoken(path, "qwen2", dict(added)).encode
    return encode


def fast_from_json(definition: str) -> Encode | None:
    """Opens a tokenizer.json; returns None if it is of another kind, or without the extra."""
    if (module := gigatoken()) is None:
        return None
    try:
        encode: Encode = module.load_hf_json(definition).encode
    except (ValueError, RuntimeError):
        return None
    return encode
