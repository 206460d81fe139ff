"""Prompts for reinforcement learning, windows of long samples, and the report in ATIF files."""

import json
from pathlib import Path

import datasets
import pytest
from support.places import DATA
from support.runs.builds import build, lines

from builder import cli, export_dataset
from builder.export.variants import reward_of

TOOL = {"type": "function", "function": {"name": "wc", "parameters": {"type": "object"}}}
CALL = '<tool_call>\n{"name": "wc", "arguments": {}}\n</tool_call>'
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "How long?"},
    {"role": "assistant", "content": CALL},
    {"role": "user", "content": "<tool_response>\n12\n</tool_response>"},
    {"role": "assistant", "content": "Twelve."},
]


def chat(*pairs, **outcome):
    messages = [
        {"role": role, "content": text}
        for pair in pairs
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]
    return {"messages": messages, **outcome}


@pytest.fixture
def built(tmp_path):
    rows = [
        {"messages": MESSAGES, "tools": [TOOL]},
        {"messages": MESSAGES, "tools": [TOOL]},
        chat(("a", "b"), ("c", "d"), reward=0.5),
    ]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert build(tmp_path / "built", inputs=[path]) == 0
    return tmp_path / "built"


def test_a_prompt_has_the_logged_answer_or_the_reward_of_its_run(built, tmp_path, verifier):
    exported = export_dataset(built, "trl-grpo", tmp_path / "out")
    assert (exported.rows, exported.equal, exported.samples) == (3, 3, 2)
    rows = lines(tmp_path / "out" / "data" / "train-00000-of-00001.jsonl")
    assert [(row["answer"], row["logged_reward"]) for row in rows] == [
        (CALL, None), ("Twelve.", None), (None, 0.5),
    ]  # fmt: skip
    assert [[message["role"] for message in row["prompt"]] for row in rows] == [
        ["system", "user"], ["system", "user", "assistant", "user"], ["user"],
    ]  # fmt: skip
    prompt = verifier.target.render(rows[1]["prompt"], None)
    assert prompt == verifier.target.render(MESSAGES[:4], [TOOL]), "as the model is asked"
    assert json.loads(rows[0]["tools"]) == [TOOL]
    script = (tmp_path / "out" / "configs" / "trl_grpo.py").read_text()
    compile(script, "trl_grpo.py", "exec")
    assert "Exact" not in script


def test_verl_reads_the_columns_of_its_own_dataset(built, tmp_path):
    """`RLHFDataset` loads the file with `datasets`, and reads these columns."""
    export_dataset(built, "verl-rl", tmp_path / "out")
    path = str(tmp_path / "out" / "data" / "train-00000-of-00001.parquet")
    cache = str(tmp_path / "cache")
    rows = list(datasets.load_dataset("parquet", data_files=path, cache_dir=cache)["train"])
    assert {*rows[0]} == {"data_source", "prompt", "ability", "reward_model", "extra_info"}
    assert [row["reward_model"]["ground_truth"] for row in rows] == [CALL, "Twelve.", ""]
    assert [row["extra_info"]["logged_reward"] for row in rows] == [None, None, 0.5]
    compile((tmp_path / "out" / "configs" / "verl_reward.py").read_text(), "reward", "exec")


@pytest.mark.parametrize(
    ("max_tokens", "prompt", "response"),
    [(None, 3072, 3008), (4096, 2048, 2048), (8192, 3013, 5179)],
)
def test_the_lengths_are_those_of_the_rows(max_tokens, prompt, response, tmp_path):
    """A prompt and an answer of 3,000 words, one after the other; a limit is that of their sum."""
    path = tmp_path / "rows.jsonl"
    path.write_text(
        json.dumps(chat(("a", "x " * 3000))) + "\n" + json.dumps(chat(("x " * 3000, "b")))
    )
    export_dataset(path, "verl-rl", tmp_path / "out", max_tokens=max_tokens)
    script = (tmp_path / "out" / "configs" / "verl_grpo.sh").read_text()
    assert f"data.max_prompt_length={prompt} " in script
    assert f"data.max_response_length={response} " in script
    told = "Of 2 rows, 1 with a longer prompt are filtered and 1 have a logged answer longer"
    assert (told in script) == (max_tokens == 4096)


def test_a_prompt_is_exported_once(tmp_path):
    rows = [chat(("a", "b"), reward=1), chat(("a", "b"), ("c", "d"), reward=1)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = tmp_path / "c.yaml"
    config.write_text("normalize: {unit: turn}")
    assert build(tmp_path / "built", "-c", config, inputs=[path]) == 0
    exported = export_dataset(tmp_path / "built", "trl-grpo", tmp_path / "out")
    assert (exported.rows, exported.left_out) == (1, {"duplicate": exported.samples - 1})


@pytest.mark.parametrize(
    ("outcome", "reward"),
    [
        (None, None),
        ({"error": "x"}, None),
        ({"reward": 0}, 0.0),
        ({"reward": "0.5"}, 0.5),
        ({"score": {"accuracy": 1}}, 1.0),
        ({"score": {"accuracy": "C"}}, 1.0),
        ({"score": {"accuracy": "x"}}, None),
        ({"reward": "C"}, None),
        ({"score": {"a": 1, "b": 0}}, None),
        ({"resolved": True}, 1.0),
        ({"reward": "nan"}, None),
    ],
)
def test_a_reward_is_a_number_or_success(outcome, reward):
    assert reward_of(outcome) == reward


LONG = chat(*((f"question {number} " + "x " * 60, f"answer {number}") for number in range(6)))


@pytest.mark.parametrize(("to", "rows"), [("tokenized", 6), ("llama-factory", 2)])
def test_longer_samples_become_windows_or_are_cut(to, rows, tmp_path, capsys):
    path = tmp_path / "in.jsonl"
    huge = chat(("x " * 500, "b"))
    path.write_text("".join(json.dumps(row) + "\n" for row in (LONG, chat(("a", "b")), huge)))
    out = tmp_path / "out"
    command = ["export", str(path), "--to", to, "-o", str(out), "--max-tokens", "200"]
    assert cli.main(command) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "at 200 tokens a row: 1 sample divided or cut" in printed
    assert "1 sample left out (longer)" in printed
    exported = export_dataset(path, to, tmp_path / "again", max_tokens=200)
    assert (exported.rows, exported.windowed) == (rows, 1)
    assert exported.longest <= 200
    trained = 6 if to == "tokenized" else 2
    assert exported.turns_too_long == 1 + 6 - trained


def test_an_atif_file_says_what_it_lacks(tmp_path):
    assert build(tmp_path / "built", inputs=[DATA / "codex"]) == 0
    export_dataset(tmp_path / "built", "atif", tmp_path / "out")
    trajectory = json.loads((tmp_path / "out" / "000000.json").read_text())
    report = trajectory["extra"]["completeness"]
    assert report["agent_version"] == trajectory["agent"]["version"] == "0.128.0"
    assert report["dataset_records"]["ignored"] == {"ui_event": 3}
    assert report["model_saw_but_log_lacks"]["tools"] == "the tool definitions are not in the log"
    assert report["source"]["left_out"] == {}


def test_harbor_accepts_every_file(tmp_path):
    validator = pytest.importorskip(
        "harbor.utils.trajectory_validator", reason="harbor needs Python 3.12"
    )
    for folder in sorted(path for path in Path(DATA).iterdir() if path.is_dir()):
        assert build(tmp_path / folder.name, inputs=[folder]) == 0
        export_dataset(tmp_path / folder.name, "atif", tmp_path / f"{folder.name}-atif")
        for path in (tmp_path / f"{folder.name}-atif").iterdir():
            checked = validator.TrajectoryValidator()
            assert checked.validate(path), checked.errors
