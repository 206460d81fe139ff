"""`--for MODEL`: which tokenizer, template, mode and length follow from the name of a model."""

import json

import pytest
from support.places import DATA
from support.templates.targets import one_vocabulary  # noqa: F401 - a fixture

import builder
from builder import cli
from builder.config import load_config
from builder.qwen3.models import known_models, model_named, target_of
from builder.qwen3.templates import TEMPLATES
from builder.qwen3.tokenizer import load

OFFLINE = [name for name, (_, item) in known_models().items() if item.vocabulary == "qwen3"]


@pytest.mark.usefixtures("one_vocabulary")
@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("Qwen3-8B", "Qwen3"),
        ("qwen/qwen3-30b-a3b", "Qwen3"),
        ("Qwen3-4B-Instruct-2507", "Qwen3 Instruct-2507"),
        ("Qwen/Qwen3-Next-80B-A3B-Thinking", "Qwen3 Thinking-2507"),
        ("Qwen3-VL-8B-Instruct", "Qwen3-VL Instruct"),
        ("Qwen3-Coder-30B-A3B-Instruct", "Qwen3-Coder"),
        ("Qwen3-Coder-Next", "Qwen3-Coder-Next"),
    ],
)
def test_a_model_with_qwen3s_vocabulary_needs_no_hub(name, template):
    target = load(target_of(model_named(name)))
    assert (target.template_name, target.missing) == (template, "")
    assert target.model.lower().endswith(name.lower())


def test_every_known_template_has_a_model():
    assert {sha256 for sha256, _ in known_models().values()} >= {
        sha256
        for sha256, item in TEMPLATES.items()
        if item.name != "Qwen3-Coder (llama.cpp)"
        and not item.name.startswith(("QwQ-32B (", "Qwen3 original"))
    }
    assert len(OFFLINE) > 100


def test_mode_and_length_follow_and_are_overridden(tmp_path):
    chosen = load_config(keys={"verify.model": "Qwen3-4B-Thinking-2507"})
    assert chosen.verify.options.mode == "thinking"
    assert (chosen.limits.max_tokens, chosen.limits.too_long) == (262_144, "split")
    chosen = load_config(keys={"verify.model": "Qwen3-4B"}, settings=["limits.max_tokens=100"])
    assert chosen.limits.max_tokens == 100
    assert chosen.verify.options.mode == "non-thinking"
    assert load_config(keys={"verify.model": "Qwen3-4B"}, preset="sft").limits.max_tokens != 40_960


def test_an_unknown_model_is_one_line_with_the_nearest(capsys, tmp_path):
    assert cli.main(["build", str(DATA), "--for", "Qwen3-4B-Instrukt-2507", "-o", "out"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "'Qwen3-4B-Instruct-2507'" in error


def test_the_model_of_a_dataset_is_that_of_its_exports(tmp_path):
    built = builder.build_dataset(DATA / "openai-chat", tmp_path / "out", model="Qwen3-14B")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert manifest["tokenizer"]["model"] == "Qwen/Qwen3-14B"
    assert builder.verify_dataset(built).proven == built.ledger.samples
    builder.export_dataset(built, "trl", tmp_path / "rows")
    text = (tmp_path / "rows" / "configs" / "trl.yaml").read_text()
    assert "model_name_or_path: Qwen/Qwen3-14B" in text


def test_a_folder_is_a_fine_tune(tmp_path):
    assert target_of(model_named(str(tmp_path))) == str(tmp_path)


def test_a_text_that_only_the_hub_has_is_one_line_with_the_command(capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert cli.main(["build", str(DATA), "--for", "Qwen3.8-27B", "-o", "out"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "hf download Qwen/Qwen3.8-27B tokenizer.json" in error
