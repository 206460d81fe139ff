"""Weights in data/: written, proven with and without them, loaded from every kind of file."""

import hashlib
import json

import datasets
import pytest

from builder import cli
from builder.dataset.rows import read_sample
from builder.jsonio import loads
from builder.sample import Sample
from builder.verify.verifier import Verifier

SYSTEM = {"role": "system", "content": "Be brief."}
ROWS = [
    {
        "messages": [
            SYSTEM,
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "a"},
        ]
    },
    {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "good", "weight": 1},
            {"role": "user", "content": "no"},
            {"role": "assistant", "content": "bad", "weight": 0},
            {"role": "user", "content": "well"},
            {"role": "assistant", "content": "fine"},
        ]
    },
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (folder / "c.yaml").write_text(
        "normalize: {untrained_turns: weight}\noutput: {formats: [jsonl, parquet]}\n"
    )
    command = ["build", str(folder / "in.jsonl"), "-c", str(folder / "c.yaml")]
    assert cli.main([*command, "-o", str(folder / "out"), "--quiet"]) == 0
    return folder / "out"


def lines(path):
    return [loads(line) for line in path.read_bytes().splitlines()]


def test_every_assistant_message_of_a_sample_with_an_untrained_turn_has_a_weight(built):
    data = lines(built / "data" / "train-00000-of-00001.jsonl")
    weights = [[message.get("weight") for message in row["messages"]] for row in data]
    assert weights == [[None] * 3, [None, 1, None, 0, None, 1]]
    assert all("weight" not in message for message in data[0]["messages"])


def test_spans_contain_only_the_targets(built, verifier):
    data = lines(built / "data" / "train-00000-of-00001.jsonl")
    meta = lines(built / "meta" / "train-00000-of-00001.jsonl")
    texts = []
    for row, about in zip(data, meta, strict=True):
        plain = [{"role": m["role"], "content": m["content"]} for m in row["messages"]]
        text = verifier.target.render(plain, None)
        assert verifier.target.render(row["messages"], None) == text
        assert hashlib.sha256(text.encode()).hexdigest() == about["render_sha256"]
        texts.append([text[start:end] for start, end in about["spans"]])
        assert len(about["spans"]) == about["assistant_turns"]
    assert texts == [["a<|im_end|>"], ["good<|im_end|>", "fine<|im_end|>"]]


def test_a_loader_gives_the_weights_of_either_kind_of_file(built, tmp_path):
    wanted = [read_sample(row) for row in lines(built / "data" / "train-00000-of-00001.jsonl")]
    folder = datasets.load_dataset(str(built), cache_dir=str(tmp_path))["train"]
    parquet = datasets.load_dataset(
        "parquet",
        data_files=str(built / "data" / "train-00000-of-00001.parquet"),
        cache_dir=str(tmp_path),
    )["train"]
    for rows in (folder, parquet):
        assert [read_sample(row) for row in rows] == wanted
        assert rows[0]["messages"][2] == {"role": "assistant", "content": "a", "weight": None}


def test_a_template_that_uses_the_weight_is_detected(verifier):
    class Telling:
        """A target with a template that marks messages with a weight."""

        def __getattr__(self, name):
            return getattr(verifier.target, name)

        def render(self, messages, tools, **options):
            text = verifier.target.render(messages, tools, **options)
            return text + ("!" if any("weight" in message for message in messages) else "")

    sample = Sample((("user", "a"), ("assistant", "b")), (), (None, 1))
    assert verifier.check(sample).findings == ()
    assert {item.code for item in Verifier(Telling()).check(sample).findings} == {"weight"}


def test_a_sample_without_a_trained_turn_is_refused(verifier):
    sample = Sample((("user", "a"), ("assistant", "b")), (), (None, 0))
    assert {item.code for item in verifier.check(sample).findings} == {"weight"}
