"""Variants for trainers: written files are loaded again and give the proven bytes."""

import functools
import hashlib
import json
import re
from dataclasses import replace

import datasets
import pytest
import yaml
from support.places import DATA, ROOT
from support.runs.builds import build, lines

from builder import cli, export_dataset
from builder.export import atif, write
from builder.export.variants import IGNORED, VARIANTS, BorderFault, labels

RESERVED = {"images", "labels", "prompt", "completion", "system", "chat_template_kwargs"}


OF_SAMPLES = [name for name, item in VARIANTS.items() if not (item.of_pairs or item.distinct)]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("export") / "built"
    config = out.parent / "c.yaml"
    config.write_text(
        "normalize: {control_tokens: neutralise, reasoning: keep}\nsplit: {test: 0.3}"
    )
    assert build(out, "-c", config, inputs=[DATA]) == 0
    return out


def export(built, out, to):
    return cli.main(["export", str(built), "--to", to, "-o", str(out), "--quiet"])


@pytest.fixture(scope="module")
def exported(built, tmp_path_factory):
    """Exports to a variant and loads it, once for all tests; returns the folder and its splits."""

    @functools.cache
    def once(name):
        folder = tmp_path_factory.mktemp(name)
        assert export(built, folder / "out", name) == 0
        splits = datasets.load_dataset(str(folder / "out"), cache_dir=str(folder / "cache"))
        return folder / "out", splits

    return once


def meta(built):
    return [row for path in sorted((built / "meta").iterdir()) for row in lines(path)]


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", OF_SAMPLES)
def test_rows_load_with_no_further_configuration_and_give_the_proven_text(built, exported, name):
    out, splits = exported(name)
    assert set(splits) == {"train", "test"}
    about = meta(built)
    wanted = len(about)
    if name.startswith("prompt-completion"):
        wanted = sum(row["assistant_turns"] for row in about)
    assert sum(map(len, splits.values())) == wanted
    assert (out / "configs").is_dir()
    for path in out.rglob("*.yaml"):
        yaml.safe_load(path.read_text())
    for path in out.rglob("*.json"):
        json.loads(path.read_text())


TRAINERS = {
    "trl": ("trl.yaml", r'dataset_name: "(\S+)"'),
    "axolotl": ("axolotl.yaml", r'path: "(\S+)"'),
    "llama-factory": ("llama_factory.yaml", r"dataset_dir: (\S+)"),
    "ms-swift": ("ms_swift.sh", r"--(?:val_)?dataset (\S+)"),
    "unsloth": ("unsloth.py", r'load_dataset\("([^"]+)"'),
    "openrlhf": ("openrlhf.sh", r"--data\.dataset (\S+)"),
    "verl": ("verl.sh", r"_files=(\S+)"),
    "nemo": ("nemo_automodel.yaml", r"path_or_dataset_id: (\S+)"),
}
"""{trainer: (its file in configs/, the text in it that names the data)}."""


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", OF_SAMPLES)
def test_each_trainer_of_a_variant_has_a_configuration_of_this_dataset(
    built, exported, tmp_path, monkeypatch, name
):
    out, _ = exported(name)
    longest = max(row["tokens"] for row in meta(built))
    wanted = {TRAINERS[item.name][0] for item in VARIANTS[name].trainers}
    wanted |= {"nemo_rl.yaml"} & {path.name for path in (out / "configs").iterdir()}
    assert {path.name for path in (out / "configs").iterdir()} == wanted
    monkeypatch.chdir(out)
    for trainer in (item.name for item in VARIANTS[name].trainers):
        path, pattern = TRAINERS[trainer]
        text = (out / "configs" / path).read_text()
        named = re.findall(pattern, text)
        assert named, trainer
        for place in named:
            if place == "../out":
                loaded = datasets.load_dataset(place, cache_dir=str(tmp_path / "cache"))
                assert set(loaded) == {"train", "test"}
            elif trainer == "llama-factory":
                reported = json.loads((out / place / "dataset_info.json").read_text())
                for entry in re.findall(r"dataset: (\S+)", text):
                    assert (out / reported[entry]["file_name"]).is_file()
            else:
                assert (out / place).is_file(), trainer
        if path.endswith(".py"):
            compile(text, path, "exec")
        lengths = re.findall(r"(?:len\w*|cutoff_len)\W{1,3}(\d+)", text)
        assert lengths
        assert all(longest <= int(length) < longest + 512 for length in lengths), trainer


@pytest.mark.parametrize("name", ["messages", "messages-str", "tools-in-system", "openai"])
def test_the_template_renders_the_loaded_row_to_the_recorded_sha256(
    built, exported, name, verifier
):
    _, splits = exported(name)
    found = set()
    for split in splits.values():
        for row in split:
            tools = row.get("tools")
            tools = json.loads(tools) if isinstance(tools, str) else tools
            text = verifier.target.tokenizer.apply_chat_template(
                row["messages"], tools=tools or None, tokenize=False
            )
            found.add(hashlib.sha256(text.encode()).hexdigest())
    assert found == {row["render_sha256"] for row in meta(built)}


def test_labels_are_the_spans(built, exported, verifier):
    splits = exported("tokenized")[1]
    rows = [row for split in splits.values() for row in split]
    about = {row["render_sha256"]: row for row in meta(built)}
    assert len(rows) == len(about)
    for row in rows:
        text = verifier.target.decode(row["input_ids"])
        spans = about.pop(hashlib.sha256(text.encode()).hexdigest())["spans"]
        pieces, last = [], IGNORED
        for number, label in zip(row["input_ids"], row["labels"], strict=True):
            if label != IGNORED:
                assert label == number
                if last == IGNORED:
                    pieces.append([])
                pieces[-1].append(number)
            last = label
        trained = [verifier.target.decode(piece) for piece in pieces]
        assert trained == [text[start:end] for start, end in spans]
        assert row["length"] == len(row["attention_mask"]) == len(row["input_ids"])


def test_a_border_inside_a_token_is_a_fault():
    offsets = [(0, 2), (2, 5), (5, 7)]
    assert labels([7, 8, 9], offsets, [(2, 5)]) == [IGNORED, 8, IGNORED]
    for span in ((3, 5), (2, 4), (0, 1)):
        with pytest.raises(BorderFault):
            labels([7, 8, 9], offsets, [span])


def test_metadata_uses_no_column_name_that_trainers_interpret(exported):
    out, _ = exported("messages")
    (row, *_) = lines(out / "data" / "train-00000-of-00001.jsonl")
    assert set(row) == {"messages", "tools"}
    assert not RESERVED & set(row)


def test_trajectories_read_again_give_the_messages(built, tmp_path):
    out = tmp_path / "out"
    assert export(built, out, "atif") == 0
    assert len(list(out.iterdir())) == len(meta(built))
    assert build(tmp_path / "again", inputs=[out]) in (0, 1)


def lossy(variant, monkeypatch, is_bad):
    """Makes the variant's writer lose a byte of the samples for which `is_bad` holds."""
    real = VARIANTS[variant]

    def rows(item, target):
        for row, text in real.rows(item, target):
            if is_bad(item.sample):
                row["messages"][-1]["content"] += " "
            yield row, text

    monkeypatch.setitem(VARIANTS, variant, replace(real, rows=rows))


def test_a_variant_that_loses_bytes_is_detected(built, tmp_path, monkeypatch, capsys):
    """A writer that loses a byte is detected by loading its output."""
    lossy("messages", monkeypatch, lambda sample: True)
    assert export(built, tmp_path / "out", "messages") == 1
    assert "gives different text" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["messages", "verl"])
def test_a_row_that_loads_differently_costs_only_its_sample(built, tmp_path, monkeypatch, name):
    bad = meta(built)[1]["id"]
    lossy(name, monkeypatch, lambda sample: sample.id == bad)
    found = export_dataset(built, name, tmp_path / "out")
    count = len(meta(built))
    assert (found.samples, found.rows, found.equal) == (count, count - 1, count - 1)
    assert found.left_out == {"loader": 1}
    assert not found.problems
    assert "gives different text" in found.changed[1]
    splits = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert sum(map(len, splits.values())) == count - 1


def rows_of(*contents):
    """Returns the rows of a dataset with these questions and answers."""
    return [
        {"messages": [{"role": "user", "content": one}, {"role": "assistant", "content": one}]}
        for one in contents
    ]


def test_a_split_that_loads_as_timestamps_costs_only_itself(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for split, rows in {"train": rows_of("a", "b"), "test": rows_of("2024-05-01")}.items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(text)
    found = export_dataset(folder, "messages", tmp_path / "out")
    assert (found.samples, found.rows, found.left_out) == (3, 2, {"loader": 1})


def test_a_loader_that_fails_with_every_row_puts_nothing_in_place(tmp_path, monkeypatch):
    failure = write.Loaded(failure="it cannot be loaded: planted")
    monkeypatch.setattr(write, "load", lambda *_: failure)
    found = export_dataset(rows_of("a", "b", "c"), "messages", tmp_path / "out")
    assert found.problems == [failure.failure]
    assert not found.left_out
    assert not (tmp_path / "out").exists()


def test_a_file_that_reads_back_differently_costs_only_its_sample(tmp_path, monkeypatch):
    real = atif.trajectory

    def loses(row, sample, dialogue, report):
        found = real(row, sample, dialogue, report)
        return found.replace(b"bad", b"worse")

    monkeypatch.setattr(atif, "trajectory", loses)
    found = export_dataset(rows_of("a", "bad", "c"), "atif", tmp_path / "out")
    assert (found.samples, found.rows, found.left_out) == (3, 2, {"read-back": 1})
    assert len([*(tmp_path / "out").iterdir()]) == 2


def test_an_unknown_variant_and_a_used_folder_are_usage_errors(built, tmp_path, capsys):
    assert export(built, tmp_path / "out", "mesages") == 2
    assert "did you mean 'messages'?" in capsys.readouterr().err
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    assert export(built, tmp_path / "out", "messages") == 2


def test_the_documentation_lists_every_variant():
    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    for name in (*VARIANTS, "atif"):
        assert f"| `{name}` |" in page
