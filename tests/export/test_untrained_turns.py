"""Exports of samples with context-only assistant turns: supported, left out, or refused."""

import hashlib
import json

import datasets
import pytest
import yaml
from support.places import DATA
from support.runs.builds import build, lines
from support.templates.published import text_of
from support.templates.targets import small_tokenizer_folder

from builder import cli
from builder.export.variants import IGNORED, VARIANTS
from builder.qwen3.tokenizer import target_for
from builder.trainers.table import TRAINERS

ROWS = [
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": "b"},
    {"role": "user", "content": "c"},
    {"role": "assistant", "content": "d"},
]


OF_SAMPLES = [name for name, item in VARIANTS.items() if not (item.of_pairs or item.distinct)]


@pytest.fixture(scope="module")
def turns(tmp_path_factory):
    """Returns a dataset with a sample for each assistant turn: all earlier turns are context."""
    out = tmp_path_factory.mktemp("turns") / "built"
    config = out.parent / "c.yaml"
    config.write_text("normalize: {control_tokens: neutralise, unit: turn}")
    assert build(out, "-c", config, inputs=[DATA]) == 0
    return out


@pytest.fixture
def export(turns, tmp_path, capsys):
    """Runs an export; returns its exit code, folder and standard error."""

    def run(to):
        code = cli.main(["export", str(turns), "--to", to, "-o", str(tmp_path / to), "--quiet"])
        return code, tmp_path / to, capsys.readouterr().err

    return run


def meta(turns):
    return {row["render_sha256"]: row for path in (turns / "meta").iterdir() for row in lines(path)}


ABLE = {
    "messages": {"axolotl", "unsloth", "nemo"},
    "messages-str": {"axolotl", "llama-factory", "ms-swift", "unsloth"},
    "tools-in-system": {"axolotl", "ms-swift", "unsloth", "openrlhf", "nemo"},
    "prompt-completion": {"trl"},
    "prompt-completion-text": {"trl"},
    "sharegpt": {"llama-factory"},
    "tokenized": {"trl", "axolotl", "unsloth"},
}
"""Trainers that can leave all turns but the last untrained; for other variants, none."""

FILES = {
    "trl": "trl.yaml",
    "axolotl": "axolotl.yaml",
    "llama-factory": "llama_factory.yaml",
    "ms-swift": "ms_swift.sh",
    "unsloth": "unsloth.py",
    "openrlhf": "openrlhf.sh",
    "nemo": "nemo_automodel.yaml",
}


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", OF_SAMPLES)
def test_every_variant_expresses_the_targets_or_refuses(export, name):
    code, out, err = export(name)
    if name not in ABLE:
        assert (code, len(err.splitlines())) == (2, 1)
        assert f"export --to {name}: " in err
        assert "context and not trained (normalize.unit)" in err
        assert "tokenized" in err
        assert not out.exists()
        return
    assert code == 0
    assert {path.name for path in (out / "configs").iterdir()} == {FILES[key] for key in ABLE[name]}
    able = {item.name for item in VARIANTS[name].trainers if item.can_train(name, "last")}
    assert able == ABLE[name]


MIXED = {
    "verl": (4, "every"),
    "openai": (4, "every"),
    "prompt-completion": (5, "some"),
    "messages-str": (5, "some"),
    "sharegpt": (4, "every"),
    "llama-factory": (4, "every"),
}
"""Of `mixed`: {export: (samples that it expresses, one of them shortened, their targets)}."""


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", MIXED)
def test_samples_that_no_trainer_of_a_variant_could_train_are_left_out(name, tmp_path, capsys):
    """Also where other samples train every turn: one sample does not refuse the others."""
    context = [{**ROWS[1], "weight": 0}, {**ROWS[3], "weight": 0}]
    samples = [
        ROWS,
        [*ROWS, *ROWS],
        [ROWS[0], ROWS[1], ROWS[0], ROWS[1]],
        [ROWS[0], context[0], *ROWS[2:]],
        [*ROWS[:3], context[1], *ROWS],
    ]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"messages": item}) + "\n" for item in samples))
    config = tmp_path / "c.yaml"
    config.write_text("normalize: {untrained_turns: weight}")
    assert build(tmp_path / "built", "-c", config, inputs=[path]) == 0
    capsys.readouterr()
    out = tmp_path / "out"
    command = ["export", str(tmp_path / "built"), "--to", name, "-o", str(out)]
    assert cli.main([*command, "--json"]) == 0
    found = capsys.readouterr()
    count, targets = MIXED[name]
    result = json.loads(found.out)
    assert result["left_out"] == ({"targets": 5 - count} if count < 5 else {})
    assert len(result["left_out"]) == len(found.err.splitlines())
    if count < 5:
        assert (result["shortened"], result["turns_left_out"]) == (1, 2)
        assert "1 sample left out; 1 sample ends before a turn of context, without " in found.err
        assert "(normalize.untrained_turns); " in found.err
        assert "--to trl or axolotl" in found.err
        assert "1 sample left out; 1 sample ends" in (out / "README.md").read_text()
    if name in TRAINERS:
        return
    able = {item.name for item in VARIANTS[name].trainers if item.can_train(name, targets)}
    assert len({path.stem for path in (out / "configs").iterdir()} - {"nemo_rl"}) == len(able)
    assert cli.main([*command, "--quiet", "--fresh"]) == 0


def test_the_larger_part_is_exported(tmp_path, capsys):
    """LLaMA-Factory trains every turn of all samples, or the last turn of all."""
    last = [ROWS[0], {**ROWS[1], "weight": 0}, *ROWS[2:]]
    samples = [ROWS, last, [*last[:3], {**ROWS[3], "content": "e"}], ROWS[:2]]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"messages": item}) + "\n" for item in samples))
    config = tmp_path / "c.yaml"
    config.write_text("normalize: {untrained_turns: weight}")
    assert build(tmp_path / "built", "-c", config, inputs=[path]) == 0
    out = tmp_path / "out"
    command = ["export", str(tmp_path / "built"), "--to", "sharegpt", "-o", str(out), "--json"]
    capsys.readouterr()
    assert cli.main(command) == 0
    assert json.loads(capsys.readouterr().out)["left_out"] == {"targets": 1}
    assert "mask_history: true" in (out / "configs" / "llama_factory.yaml").read_text()


def test_messages_carry_the_weights(export, turns, tmp_path, verifier):
    code, out, _ = export("messages-str")
    assert code == 0
    assert "message_field_training: weight" in (out / "configs" / "axolotl.yaml").read_text()
    assert "mask_history: true" in (out / "configs" / "llama_factory.yaml").read_text()
    rows = datasets.load_dataset(str(out), split="train", cache_dir=str(tmp_path / "cache"))
    seen = 0
    for row in rows:
        answers = [message for message in row["messages"] if message["role"] == "assistant"]
        if len(answers) > 1:
            seen += 1
            assert [message["weight"] for message in answers] == [0] * (len(answers) - 1) + [1]
            assert [message["loss"] for message in answers] == [False] * (len(answers) - 1) + [True]
        others = [message for message in row["messages"] if message["role"] != "assistant"]
        assert {message["weight"] for message in others} <= {None}
    assert seen > 3


def test_labels_and_completions_are_the_spans(export, turns, tmp_path, verifier):
    about = meta(turns)
    wanted = set()
    code, out, _ = export("tokenized")
    assert code == 0
    rows = datasets.load_dataset(str(out), split="train", cache_dir=str(tmp_path / "cache"))
    for row in rows:
        text = verifier.target.decode(row["input_ids"])
        (span,) = about[hashlib.sha256(text.encode()).hexdigest()]["spans"]
        trained = [number for number in row["labels"] if number != IGNORED]
        assert verifier.target.decode(trained) == text[slice(*span)]
        wanted.add((text[: span[0]], text[slice(*span)]))
    assert len(rows) == len(about)
    code, out, _ = export("prompt-completion-text")
    rows = lines(out / "data" / "train-00000-of-00001.jsonl")
    assert {(row["prompt"], row["completion"]) for row in rows} == wanted


def test_whole_conversations_need_no_weights(tmp_path, capsys):
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"messages": ROWS}) + "\n")
    for name in OF_SAMPLES:
        out = tmp_path / name
        assert cli.main(["export", str(path), "--to", name, "-o", str(out), "--quiet"]) == 0
        wanted = [path for item in VARIANTS[name].trainers for path in item.run(name)[1]]
        assert all((out / "configs" / path).is_file() for path in wanted)
        assert '"weight"' not in "".join(
            file.read_text() for file in (out / "data").glob("*.jsonl")
        )
        front = yaml.safe_load((out / "README.md").read_text().split("---\n")[1])
        assert "weight" not in str(front)


def test_every_configuration_says_whether_it_is_exact(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"messages": ROWS}) + "\n")
    exact = set()
    for name in OF_SAMPLES:
        assert cli.main(["export", str(path), "--to", name, "-o", str(tmp_path / name), "-q"]) == 0
        for config in (tmp_path / name / "configs").iterdir():
            first = config.read_text().partition("\n")[0]
            assert first.startswith(("# Exact: ", "# Not exact: ")), config
            if first.startswith("# Exact: "):
                exact.add((config.name, name))
    assert exact == {
        ("trl.yaml", "tokenized"),
        ("axolotl.yaml", "tokenized"),
        ("unsloth.py", "tokenized"),
        ("axolotl.yaml", "messages-str"),
        ("axolotl.yaml", "tools-in-system"),
    }


def test_each_trainer_is_recommended_what_it_reads():
    qwen3 = target_for("qwen3")
    for item in TRAINERS.values():
        assert item.variant_for("every", qwen3) == next(iter(item.variants))
        assert set(item.variants) <= set(VARIANTS)
    assert TRAINERS["trl"].variant_for("every", qwen3) == "tokenized"
    assert TRAINERS["verl"].variant_for("last", qwen3) is None
    assert TRAINERS["llama-factory"].variant_for("some", qwen3) is None
    assert TRAINERS["openrlhf"].variant_for("last", qwen3) == "tools-in-system"


@pytest.mark.slow
def test_a_trainer_without_a_template_for_the_target_is_named_with_this_reason(tmp_path, capsys):
    folder = small_tokenizer_folder(tmp_path / "coder", chat_template=text_of("Qwen3-Coder"))
    assert build(tmp_path / "built", "--tokenizer", folder, inputs=[DATA / "openai-chat"]) == 0
    capsys.readouterr()
    command = ["export", str(tmp_path / "built"), "--to", "openai", "-o", str(tmp_path / "out")]
    command += ["--tokenizer", str(folder)]
    assert cli.main(command) == 0
    visible = capsys.readouterr().out
    assert "no configuration for TRL: TRL has no training template for Qwen3-Coder" in visible
    assert "context and not trained" not in visible
