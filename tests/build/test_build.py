"""The output folder: layout, ledger, determinism, and detection of changes."""

import json
import random
import shutil

import pytest
from support.places import DATA
from support.runs.builds import build, files, lines

from builder import cli
from builder.build import engine
from builder.qwen3.tokenizer import target_for


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("build") / "out"
    assert build(out, "--workers", "1") == 0
    return out


def test_every_example_reader_gives_a_sample(built):
    meta = lines(built / "meta" / "train-00000-of-00001.jsonl")
    wanted = {"claude-code", "codex", "openai-chat", "sharegpt", "egirl"}
    assert {row["format"] for row in meta} == wanted


def test_data_and_meta_agree_with_each_other_and_with_the_template(built):
    data = (built / "data" / "train-00000-of-00001.jsonl").read_bytes().splitlines()
    meta = lines(built / "meta" / "train-00000-of-00001.jsonl")
    assert len(data) == len(meta)
    import hashlib

    tokenizer = target_for("qwen3").tokenizer
    for line, about in zip(data, meta, strict=True):
        row = json.loads(line)
        assert list(row) == ["messages", "tools"]
        assert hashlib.sha256(line).hexdigest() == about["id"]
        text = tokenizer.apply_chat_template(
            row["messages"], tools=row["tools"] or None, tokenize=False
        )
        assert hashlib.sha256(text.encode()).hexdigest() == about["render_sha256"]
        assert len(text) == about["chars"]
        assert len(tokenizer(text)["input_ids"]) == about["tokens"]
        answers = [m["content"] for m in row["messages"] if m["role"] == "assistant"]
        assert [text[a:b] for a, b in about["spans"]] == [a + "<|im_end|>" for a in answers]


def test_the_ledger_adds_up_and_names_the_planted_faults(built):
    ledger = json.loads((built / "manifest.json").read_bytes())["ledger"]
    records, found, calls = ledger["records"], ledger["conversations"], ledger["calls"]
    assert records["read"] == records["used"] + sum(records["ignored"].values()) + sum(
        records["rejected"].values()
    )
    assert found["found"] == found["built"] + found["duplicates"] + sum(found["rejected"].values())
    assert calls["logged"] == calls["kept"] + sum(calls["dropped"].values())
    assert records["rejected"]["truncated"] == 1
    assert found["rejected"]["control_tokens"] == 1
    dropped = {"bad_arguments": 1, "control_tokens": 1, "lost_record": 1}
    assert calls["dropped"] == dropped


def test_parallel_calls_answered_out_of_order(built):
    rows = lines(built / "data" / "train-00000-of-00001.jsonl")
    row = next(row for row in rows if "Which Python files" in row["messages"][0]["content"])
    question, answer, responses = (message["content"] for message in row["messages"][:3])
    assert "\n\nWhich Python files are here, and what is in config.toml?\n\n" in question
    assert question.startswith("<command-name>/clear</command-name>")
    assert question.endswith("<system-reminder>\nThe task list is empty.\n</system-reminder>")
    assert (
        answer
        == """I'll look at both.
<tool_call>
{"name": "Glob", "arguments": {"pattern": "**/*.py"}}
</tool_call>
<tool_call>
{"name": "Read", "arguments": {"file_path": "/srv/shop/config.toml"}}
</tool_call>"""
    )
    first, second = responses.split("\n</tool_response>\n<tool_response>\n")
    assert first == "<tool_response>\n/srv/shop/app.py\n/srv/shop/tests/test_app.py"
    assert "Zoë" in second


def test_workers_and_order_do_not_change_the_bytes(built, tmp_path, pooled):
    again = tmp_path / "again"
    assert build(again, "--workers", "3") == 0
    assert pooled.count("_run_batch") > 5
    assert files(again) == files(built)
    assert build(again, "--workers", "2") == 0, "into the same folder"
    assert files(again) == files(built)


def test_the_same_bytes_with_small_batches(built, tmp_path, pooled_tasks, monkeypatch):
    monkeypatch.setattr(engine, "BATCH_TASKS", 3)
    assert build(tmp_path / "again", "--workers", "2") == 0
    parts = len(json.loads((built / "manifest.json").read_bytes())["inputs"])
    passes = 2  # sessions without tool definitions are scanned first
    assert 2 < pooled_tasks.count("_run_batch") <= passes * (parts // 3 + 1)
    assert files(tmp_path / "again") == files(built)


def test_the_listing_order_of_a_folder_does_not_matter(built, tmp_path):
    shuffled = tmp_path / "data"
    paths = [path for path in DATA.rglob("*") if path.is_file()]
    random.Random(1).shuffle(paths)
    for path in paths:
        copy = shuffled / path.relative_to(DATA)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    assert build(tmp_path / "out", "--workers", "1", inputs=[shuffled]) == 0
    mine, theirs = files(tmp_path / "out"), files(built)
    del mine["manifest.json"], theirs["manifest.json"]  # it contains the path of the input folder
    assert mine == theirs


def test_a_built_folder_verifies_and_any_changed_byte_is_detected(built, tmp_path, capsys):
    assert cli.main(["verify", str(built), "--quiet"]) == 0
    copy = tmp_path / "copy"
    name = "data/train-00000-of-00001.jsonl"
    original = (built / name).read_bytes()
    pick = random.Random(7)
    for _ in range(12):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(built, copy)
        at = pick.randrange(len(original))
        byte = pick.randrange(32, 127)
        if original[at] in (byte, 10):
            continue
        changed = original[:at] + bytes([byte]) + original[at + 1 :]
        (copy / name).write_bytes(changed)
        capsys.readouterr()
        assert cli.main(["verify", str(copy)]) == 1
        line = original[:at].count(b"\n") + 1
        assert f"{name}:{line} " in capsys.readouterr().out


def test_the_loader_of_datasets_gives_the_samples(built, tmp_path):
    import datasets

    rows = datasets.load_dataset(str(built), split="train", cache_dir=str(tmp_path))
    data = lines(built / "data" / "train-00000-of-00001.jsonl")
    assert [json.dumps(row) for row in rows] == [json.dumps(row) for row in data]


def test_a_prefix_of_a_conversation_is_a_duplicate(tmp_path):
    short = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    long = [*short, {"role": "user", "content": "more"}, {"role": "assistant", "content": "yes"}]
    folder = tmp_path / "in"
    folder.mkdir()
    for name, messages in (("a", short), ("b", long), ("c", long)):
        row = json.dumps({"messages": messages, "tools": []})
        (folder / f"{name}.jsonl").write_text(row + "\n")
    out = tmp_path / "out"
    assert build(out, inputs=[folder]) == 0
    assert [row["messages"] for row in lines(out / "data" / "train-00000-of-00001.jsonl")] == [long]
    ledger = json.loads((out / "manifest.json").read_bytes())["ledger"]
    assert ledger["conversations"]["duplicates"] == 2


def test_two_runs_into_one_folder_do_not_mix(tmp_path):
    from builder.output.folder import output_folder
    from builder.problem import UsageError

    with output_folder(tmp_path / "out"):
        second = output_folder(tmp_path / "out")
        with pytest.raises(UsageError, match="another run"):
            second.__enter__()


def test_strict_and_empty_runs_exit_with_1(tmp_path):
    assert build(tmp_path / "out", "--strict") == 1
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "notes.txt").write_text("no log")
    assert build(tmp_path / "none", inputs=[tmp_path / "in"]) == 1


def test_an_output_inside_an_input_is_refused(tmp_path, capsys):
    logs = tmp_path / "logs"
    shutil.copytree(DATA / "openai-chat", logs)
    assert cli.main(["build", str(logs), "-o", str(logs / "out")]) == 2
    assert "is inside the input" in capsys.readouterr().err
    assert not (logs / "out").exists()
