"""Tokens: long texts are tokenised in pieces with the ids of the whole; the table of all tokens."""

import json
import random
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.templates.targets import automatic
from tokenizers import Tokenizer, pre_tokenizers

from builder.qwen3 import tokens
from builder.qwen3.tokenizer import target_for
from builder.qwen3.tokens import Encoder, TokenSequence, TokenTable

PARTS = [
    *("a", "Z", "\u00e9", "\u65e5\u672c", "'s", "'S", "'", "1", "\u0663", "\u0301", " ", "  "),
    *("\n", "\r\n", "\t", "\u00a0", "\u3000", "<|im_start|>", "<|im_end|>", "<tool_call>"),
    *("</think>", "<|", "|>", "_", "-", "\x1b[31m", "{", '"', ": ", "foo", "bar9", "\U0001f389"),
    *("\u200b", "\x00", "\ufb01", "\u017f", "\u0130", "\u1100"),
]


@pytest.fixture(scope="module", params=["embedded", "folder"])
def backend(request):
    """Returns the tokenizer, and the one that AutoTokenizer loads: their definitions differ."""
    target = target_for("qwen3") if request.param == "embedded" else automatic()
    return target.tokenizer.backend_tokenizer


def encoder_of(backend):
    added = [token.content for token in backend.get_added_tokens_decoder().values()]
    return Encoder(lambda: backend, lambda: None, added)


@pytest.fixture(scope="module")
def table(backend):
    return TokenTable.of(backend)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(tokens, "PIECE", 30)
    monkeypatch.setattr(tokens, "BLOCK", 7)


@given(st.lists(st.sampled_from(PARTS), min_size=20, max_size=300))
def test_pieces_have_the_ids_of_the_whole(backend, table, parts):
    text = unicodedata.normalize("NFC", "".join(parts))
    ids = encoder_of(backend)(text)
    assert ids.tolist() == backend.encode(text, add_special_tokens=False).ids
    found = TokenSequence(text, ids, table)
    assert found.are_exact
    assert found.decode() == text


def test_a_long_text_is_in_several_pieces_none_of_which_cuts_an_added_token(backend):
    rng = random.Random(1)
    text = "".join(rng.choice(["<|im_start|>", "<|object_ref_start|>", "word "]) for _ in range(99))
    encoder = encoder_of(backend)
    pieces = list(encoder.pieces(text))
    assert "".join(pieces) == text
    assert len(pieces) > 5
    assert sum(piece.count("<|im_start|>") for piece in pieces) == text.count("<|im_start|>")


@pytest.mark.slow
def test_another_kind_of_tokenizer_gets_the_whole_text(backend):
    other = Tokenizer.from_str(backend.to_str())
    other.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    text = "some words " * 30
    assert list(encoder_of(other).pieces(text)) == [text]


def test_ids_that_decode_to_another_text_are_not_exact(backend, table):
    text = "one two three four five six seven eight nine ten eleven"
    ids = encoder_of(backend)(text)
    for wrong in (ids[:-1], np.append(ids, ids[:1]), ids[::-1].copy()):
        found = TokenSequence(text, wrong, table)
        assert not found.are_exact
        assert found.decode() == backend.decode(wrong.tolist())


@pytest.mark.quick(1)
@pytest.mark.parametrize("change", ["a plain token above the added ones", "an id without a token"])
def test_a_vocabulary_in_another_order_is_refused(change):
    definition = json.loads(target_for("qwen3").tokenizer.backend_tokenizer.to_str())
    vocabulary = dict(list(definition["model"]["vocab"].items())[:256])
    assert sorted(vocabulary.values()) == list(range(256))
    added = [
        {**definition["added_tokens"][0], "id": 256 + at, "content": text}
        for at, text in enumerate(("<a>", "<b>"))
    ]
    model = {**definition["model"], "merges": [], "vocab": vocabulary}
    definition = {**definition, "added_tokens": added, "model": model}
    table = TokenTable.of(Tokenizer.from_str(json.dumps(definition)))
    assert table.added == {256: "<a>", 257: "<b>"}
    if change.startswith("a plain"):
        vocabulary["zz"] = 300
    else:
        del vocabulary[next(iter(vocabulary))]
    with pytest.raises(ValueError, match="exactly the ids below"):
        TokenTable.of(Tokenizer.from_str(json.dumps(definition)))


@pytest.mark.parametrize("way", ["file", "json"])
def test_gigatoken_gives_the_ids_of_the_embedded_tokenizer(way):
    pytest.importorskip("gigatoken", reason="the extra `fast` is not installed")
    target = target_for("qwen3")
    backend = target.tokenizer.backend_tokenizer
    fast = target.fast if way == "file" else lambda: tokens.fast_from_json(backend.to_str())
    encoder = Encoder(lambda: backend, fast, target.added_tokens)
    encoder.load()  # compares a probe
    assert encoder._fast is not None
    for text in (
        "".join(PARTS),
        unicodedata.normalize("NFC", "".join(PARTS)),
        "e\u0301 \u212b</think>\u0338",
    ):
        assert encoder(text).tolist() == encoder._true_ids(text).tolist()


def test_the_vocabulary_file_and_the_probe_are_those_of_the_tokenizer():
    target = target_for("qwen3")
    probed = target.tokenizer.backend_tokenizer.encode(tokens.PROBE, add_special_tokens=False)
    assert tokens.digest(np.array(probed.ids, dtype=np.uint32)) == target.probed
    ours, theirs = target._table, TokenTable.of(target.tokenizer.backend_tokenizer)
    assert ours.added == theirs.added
    assert np.array_equal(ours.lengths, theirs.lengths)
    assert np.array_equal(ours.joined, theirs.joined)
