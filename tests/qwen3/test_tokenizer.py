"""Targets: which tokenizers are accepted, which are refused, and with which messages."""

import hashlib
import json
import sys
import types
import unicodedata

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from support.templates.targets import (
    ASSETS,
    NO_THOUGHTS,
    ORIGINAL,
    TEMPLATE,
    automatic,
    small_tokenizer_folder,
)

import builder
from builder import cli
from builder.parallel import pool
from builder.problem import UsageError
from builder.qwen3 import tokenizer, tokens
from builder.qwen3.templates import TEMPLATES
from builder.qwen3.tokenizer import load, target_for
from builder.sample import Sample
from builder.verify.verifier import Verifier, verifier_for

MESSAGES = (("user", "a"), ("assistant", "<think>\nhm\n</think>\n\nb"), ("user", "c"))


@pytest.fixture
def saved(tmp_path):
    """Writes the folder of a small tokenizer; `tokenizer` changes its tokenizer.json."""

    def make(tokenizer=None, **changes):
        folder = small_tokenizer_folder(tmp_path, **changes)
        path = tmp_path / "tokenizer.json"
        definition = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**definition, **(tokenizer or {})}), encoding="utf-8")
        return folder

    return make


def test_the_provenance_note_has_the_digests_of_the_files():
    note = (ASSETS / "PROVENANCE.md").read_text(encoding="utf-8")
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        sha256 = hashlib.sha256((ASSETS / name).read_bytes()).hexdigest()
        assert f"| {name} | {sha256} |" in note
    assert hashlib.sha256(ORIGINAL.encode()).hexdigest() in note
    assert "Apache License" in (ASSETS / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.slow
def test_an_installation_that_cannot_load_the_embedded_tokenizer_gives_no_verdict(
    tmp_path, monkeypatch, capsys
):
    """It ends the run with one line, and the next run treats none of it as finished."""
    row = {"messages": [{"role": role, "content": "a"} for role in ("user", "assistant")]}
    (tmp_path / "in.jsonl").write_text(json.dumps({**row, "tools": []}) + "\n")
    command = ["build", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out"), "--quiet"]
    tokenizer.target_for.cache_clear()
    verifier_for.cache_clear()
    with monkeypatch.context() as broken:
        broken.setitem(sys.modules, "transformers", None)
        assert cli.main(command) == 2
        assert cli.main(["verify", str(tmp_path / "in.jsonl"), "--quiet", "--workers", "1"]) == 2
        assert "tokenizer 'qwen3': cannot be loaded" in capsys.readouterr().err
    assert cli.main(command) == 0
    assert len((tmp_path / "out/data/train-00000-of-00001.jsonl").read_text().splitlines()) == 1


def test_qwen3_is_the_embedded_tokenizer_even_if_a_folder_has_that_name(tmp_path, monkeypatch):
    (tmp_path / "qwen3").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load("qwen3").template_sha256 in TEMPLATES


def test_a_saved_tokenizer_that_truncates_does_not_truncate_here(saved):
    limit = {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
    target = load(saved(tokenizer={"truncation": limit}))
    sample = Sample((("user", "word " * 100), ("assistant", "b")))
    assert Verifier(target).check(sample).findings == ()


def test_a_template_without_thoughts_is_proven_by_its_own_rules(saved):
    assert TEMPLATE != NO_THOUGHTS
    target = load(saved(chat_template=NO_THOUGHTS))
    assert target.style.thoughts == "verbatim"
    assert target.template_name == "unknown"
    verifier = Verifier(target)
    assert verifier.check(Sample((("user", "a"), ("assistant", "b")))).findings == ()
    thought = verifier.check(Sample((*MESSAGES, ("assistant", "d"))))
    assert {"structured", "tokens"} <= {finding.code for finding in thought.findings}


def test_a_template_with_another_tools_text_is_proven_with_its_own(saved):
    target = load(saved(chat_template=TEMPLATE.replace("assist with", "assist  with")))
    tool = {"type": "function", "function": {"name": "f"}}
    verdict = Verifier(target).check(Sample((("user", "a"), ("assistant", "b")), (tool,)))
    assert verdict.findings == ()
    assert "to assist  with the user query" in verdict.text


def test_a_template_with_one_different_byte_that_no_probe_shows_fails(saved):
    target = load(
        saved(chat_template=TEMPLATE.replace('\'", "arguments": \'', '\'",  "arguments": \''))
    )
    assert target.template != TEMPLATE
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    tool = {"type": "function", "function": {"name": "f"}}
    verdict = Verifier(target).check(Sample((("user", "a"), ("assistant", call)), (tool,)))
    assert {finding.code for finding in verdict.findings} == {"structured"}


REFUSED = {
    "no template": ({"chat_template": None}, "no chat template"),
    "a template that does not compile": (
        {"chat_template": TEMPLATE + "{% if %}"},
        "chat template fails",
    ),
    "another dialect": ({"chat_template": TEMPLATE + "<arg_key>"}, "GLM 4.5"),
    "no tool calls": ({"chat_template": "{{ messages }}"}, "neither ChatML"),
    "code of its own": ({"auto_map": {"AutoTokenizer": ["x.Y", "x.Y"]}}, None),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_tokenizers_are_refused_in_one_line(saved, name):
    changes, words = REFUSED[name]
    if name == "code of its own":
        changes = {**changes, "tokenizer_class": "Y"}
    with pytest.raises(UsageError) as error:
        load(saved(**changes))
    assert "\n" not in str(error.value)
    assert words is None or words in str(error.value)


def test_a_vocabulary_with_a_gap_is_not_called_a_fault_of_the_template(saved, tmp_path):
    folder, path = saved(), tmp_path / "tokenizer.json"
    definition = json.loads(path.read_text(encoding="utf-8"))
    del definition["model"]["vocab"]["!"]
    path.write_text(json.dumps(definition), encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be used: its vocabulary does not fill exactly"):
        load(folder)


@pytest.mark.parametrize("name", ["./nowhere", "nobody/nothing", "a b c", "x/y/z"])
def test_a_missing_tokenizer_is_one_line(monkeypatch, name):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UsageError) as error:
        load(name)
    assert "\n" not in str(error.value)
    assert repr(name) in str(error.value)


OFF = {
    "never": lambda text: 0,
    "always": lambda text: 1,
    "later": lambda text: int(text != tokens.PROBE),
}


@pytest.fixture
def fast(monkeypatch):
    """Puts the real tokenizer in gigatoken's place; returns the texts that it gets.

    `off(text)` is added to each id.
    """
    texts = []

    def replace(off=OFF["never"]):
        class Shim:
            def __init__(self, text):
                self.backend = tokenizers.Tokenizer.from_str(text)

            def encode(self, text):
                texts.append(text)
                ids = self.backend.encode(text, add_special_tokens=False).ids
                return np.array([number + off(text) for number in ids], dtype="<u4")

        monkeypatch.setattr(tokens, "gigatoken", lambda: types.SimpleNamespace(load_hf_json=Shim))
        return texts

    return replace


@pytest.mark.parametrize("wrong", OFF)
def test_faster_ids_are_compared_with_the_true_ones(monkeypatch, saved, fast, wrong):
    fast(OFF[wrong])
    monkeypatch.setattr(tokens, "CHECKED", 1)
    target = load(saved())
    text = target.render([{"role": "user", "content": "a b c"}], [])
    if wrong == "always":
        with pytest.raises(UsageError, match="give different ids"):
            target.prepare()
        assert target._encoder._fast is None
        return
    target.prepare()
    if wrong == "later":
        with pytest.raises(UsageError, match="give different ids"):
            target.encode(text)
    else:
        backend = target.tokenizer.backend_tokenizer
        assert target.encode(text).ids == backend.encode(text, add_special_tokens=False).ids


def encoder(target):
    reference = target.tokenizer.backend_tokenizer
    return tokens.Encoder(lambda: reference, target.fast, target.added_tokens)


def test_faster_ids_are_used_once_there_is_enough_text(monkeypatch, saved, fast):
    encoded = fast()
    monkeypatch.setattr(tokens, "WORTH_LOADING", 10)
    encode = encoder(load(saved()))
    texts = ["a b", "c d", "e f g h", "i j"]
    assert [encode(text).tolist() for text in texts] == [
        encode._true_ids(text).tolist() for text in texts
    ]
    assert encoded == [tokens.PROBE, *texts[2:]]


@pytest.mark.parametrize("little", [1, 1 << 20])
def test_faster_ids_are_used_from_the_first_row_of_a_large_dataset(
    monkeypatch, saved, fast, little
):
    encoded = fast()
    monkeypatch.setattr(pool, "LITTLE_BYTES", little)
    row = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    builder.verify_dataset([row], tokenizer=saved())
    assert [text == tokens.PROBE for text in encoded] == ([True, False] if little == 1 else [])


def test_without_gigatoken_the_ids_are_those_of_tokenizers(monkeypatch):
    monkeypatch.setattr(tokens, "gigatoken", lambda: None)
    monkeypatch.setattr(tokens, "WORTH_LOADING", 0)
    encode = encoder(target_for("qwen3"))
    assert encode("a b").tolist() == encode._true_ids("a b").tolist()


@given(text=st.text(max_size=60), with_markup=st.booleans())
def test_values_derived_from_ids_agree_with_the_tokenizer(verifier, text, with_markup):
    """Offsets of control tokens, the decoded text, and borders inside tokens."""
    text = unicodedata.normalize("NFC", text.encode("utf-8", "ignore").decode())
    text = f"<|im_start|>{text}<think>\n{text}<|im_end|>\n" if with_markup else text
    target = verifier.target
    tokens = target.encode(text)
    encoding = target.tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
    assert tokens.ids == encoding.ids
    assert tokens.offsets == encoding.offsets
    assert tokens.decode() == target.decode(tokens.ids) == text
    added = set(target.tokenizer.added_tokens_decoder)
    pairs = zip(encoding.ids, encoding.offsets, strict=True)
    begins = [offset[0] for number, offset in pairs if number in added]
    assert [offset for offset, _ in tokens.control] == begins
    inside = {at for start, end in encoding.offsets for at in range(start + 1, end)}
    assert tokens.across(range(len(text) + 1)) == sorted(inside)


@pytest.mark.slow
def test_the_embedded_tokenizer_equals_its_files_and_the_result_of_auto_tokenizer():
    target = target_for("qwen3")
    ours, theirs = target.tokenizer, automatic().tokenizer
    assert target.template == ours.chat_template
    decoder = ours.added_tokens_decoder
    assert target.added_tokens == tuple(decoder[number].content for number in sorted(decoder))
    definition = json.loads((ASSETS / "tokenizer.json").read_text(encoding="utf-8"))
    assert json.loads(ours.backend_tokenizer.to_str()) == definition
    for name in (
        "added_tokens_decoder",
        "chat_template",
        "clean_up_tokenization_spaces",
        "model_max_length",
        "padding_side",
        "special_tokens_map",
        "truncation_side",
    ):
        assert getattr(ours, name) == getattr(theirs, name), name


@pytest.mark.slow
@given(text=st.text(max_size=60), with_thoughts=st.booleans())
def test_both_render_and_tokenise_alike(text, with_thoughts):
    target, other = target_for("qwen3"), automatic()
    tool = {"type": "function", "function": {"name": "f", "description": text, "parameters": {}}}
    call = {"type": "function", "function": {"name": "f", "arguments": {text: text}}}
    thought = {"reasoning_content": text} if with_thoughts else {}
    messages = [
        {"role": "system", "content": text},
        {"role": "user", "content": text},
        {"role": "assistant", "content": text, "tool_calls": [call], **thought},
        {"role": "tool", "content": text},
        {"role": "assistant", "content": text, **thought},
    ]
    for tools in (None, [tool]):
        rendering = target.render(messages, tools)
        assert rendering == other.render(messages, tools)
        assert rendering == target.render_again(messages, tools or [])
        if not any("\ud800" <= char <= "\udfff" for char in rendering):
            assert target.encode(rendering).ids == other.encode(rendering).ids
            assert target.offsets(rendering) == other.offsets(rendering)


def test_a_folder_without_tokenizer_json_is_refused(tmp_path, capsys):
    """transformers would create a tokenizer with an empty vocabulary."""
    (tmp_path / "tokenizer_config.json").write_bytes(
        (ASSETS / "tokenizer_config.json").read_bytes()
    )
    (tmp_path / "rows.jsonl").write_text("{}\n")
    command = ["verify", str(tmp_path / "rows.jsonl"), "--tokenizer", str(tmp_path)]
    assert cli.main(command) == 2
    assert "has no tokenizer.json" in capsys.readouterr().err
