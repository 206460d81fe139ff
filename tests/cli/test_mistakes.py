"""Mistakes and faulty files: each is reported in one line, and none ends in a traceback."""

import json
import os

import pyarrow
import pyarrow.parquet
import pytest

from builder import cli
from builder.config import load_config
from builder.problem import UsageError
from builder.readers.discovery import find_sources
from builder.sources.store import is_hub_name

ROW = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
LINE = json.dumps(ROW) + "\n"


@pytest.fixture
def run(capsys):
    """Returns (exit code, stdout, stderr)."""

    def run(*arguments):
        code = cli.main([str(item) for item in arguments])
        return code, *capsys.readouterr()

    return run


def pipe(path):
    os.mkfifo(path)
    return path


# datasets


@pytest.mark.parametrize("command", ["verify", "audit", "report"])
def test_a_pipe_is_refused_as_a_dataset(run, tmp_path, command):
    code, out, err = run(command, pipe(tmp_path / "x.jsonl"))
    assert (code, out) == (2, "")
    assert err == f"builder: dataset '{tmp_path}/x.jsonl': neither a file nor a folder\n"


def test_a_pipe_in_a_folder_is_a_finding_and_does_not_block(run, tmp_path):
    (tmp_path / "a.jsonl").write_text(LINE)
    pipe(tmp_path / "b.jsonl")
    pipe(tmp_path / "c.parquet")
    code, out, _ = run("verify", tmp_path, "--json")
    reported = json.loads(out)
    assert (code, reported["samples"], reported["proven"]) == (1, 1, 1)
    assert [item["file"] for item in reported["bad"]] == ["b.jsonl", "c.parquet"]
    code, _, err = run("audit", tmp_path)
    assert code == 2
    assert "'b.jsonl' is neither a file nor a folder" in err


def no_text(name):
    sizes, data = pyarrow.py_buffer(bytes([0, 0, 0, 0, 2, 0, 0, 0])), pyarrow.py_buffer(b"\xff\xfe")
    return {name: pyarrow.Array.from_buffers(pyarrow.string(), 1, [None, sizes, data])}


def no_time(name):
    return {name: pyarrow.array([1 << 62], type=pyarrow.timestamp("us"))}


@pytest.mark.parametrize("column", [no_text, no_time])
def test_values_of_a_table_that_python_cannot_have(run, tmp_path, column):
    messages = pyarrow.array([ROW["messages"]])
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"messages": messages, **column("more")}), path)
    code, out, _ = run("verify", path, "--json")
    assert code == 1
    (bad,) = json.loads(out)["bad"]
    assert "no readable table: " in bad["findings"][0]["message"]
    code, _, err = run("audit", path)
    assert code == 2
    assert err.startswith("builder: dataset 'x.parquet': cannot be read: no readable table: ")
    code, out, _ = run("build", path, "-o", tmp_path / "out", "--json")
    assert (code, json.loads(out)["records"]["rejected"]) == (1, {"unreadable": 1})


@pytest.mark.parametrize(
    ("dataset", "may_be"),
    [
        ("team/d", True),
        ("team/d@refs/pr/1", True),
        ("hf://datasets/team/d", True),
        ("hf://squad", True),
        ("missing", False),
        ("a/b/c", False),
        ("/a/b", False),
        ("./a", False),
        ("/a", False),
    ],
)
def test_names_of_datasets_on_the_hub(dataset, may_be):
    assert is_hub_name(dataset) == may_be


@pytest.mark.parametrize("command", ["verify", "audit"])
def test_a_single_word_is_a_path_and_causes_no_request_to_the_hub(run, command, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets, "load_dataset", pytest.fail)
    code, _, err = run(command, "missing")
    assert (code, err) == (2, "builder: dataset 'missing': no such file or folder\n")


def test_a_quiet_verify_prints_errors_only(run, tmp_path):
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text(LINE)
    bad.write_text(LINE + "{}\n")
    assert run("verify", good, "--quiet", "--masks", "trl") == (0, "", "")
    code, out, err = run("verify", bad, "--quiet")
    assert (code, out) == (1, "")
    assert err.startswith("builder: 1 of 2 samples verified against qwen3")
    assert err.endswith("; findings: format 1\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["verify", "audit", "report", "build", "inspect", "push"])
def test_the_home_of_an_unknown_user_is_one_line(run, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    more = {"build": ["-o", "out"], "push": ["team/d"]}.get(command, [])
    code, out, err = run(command, "~nobody0/x.jsonl", *more)
    assert (code, out) == (2, "")
    assert "'~nobody0/x.jsonl': no such f" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["verify", "audit", "report", "inspect", "build"])
def test_an_empty_name_is_not_the_current_folder(run, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.jsonl").write_text(LINE)
    code, _, err = run(command, "", *(["-o", "out"] if command == "build" else []))
    assert code == 2
    assert err.endswith(" '': names nothing\n")
    code, _, err = run("build", "x.jsonl", "-o", "")
    assert (code, err) == (
        2,
        "builder: build: -o FOLDER is missing: where should the dataset go?\n",
    )


# manifests of other programs


@pytest.fixture
def made(run, tmp_path):
    (tmp_path / "x.jsonl").write_text(LINE)
    assert run("build", tmp_path / "x.jsonl", "-o", tmp_path / "out", "--quiet") == (0, "", "")
    return tmp_path / "out"


HOSTILE = ["data", ".", "../x.jsonl", ".state/lock", "a\0b", "\ud800", "circle", "/etc/passwd", 7]


def test_a_listed_name_that_is_no_file_of_the_folder_is_changed(run, made):
    (made / "circle").symlink_to("circle")
    listed = [{"path": path, "sha256": "0"} for path in HOSTILE[:-1]]
    (made / "manifest.json").write_text(json.dumps({"files": listed}))
    code, out, _ = run("verify", made, "--json")
    assert code == 1
    bad = {item["file"]: item["findings"][0]["message"] for item in json.loads(out)["bad"]}
    assert bad["circle"] == bad["a\0b"] == bad["data"] == "listed in the manifest but missing"


def test_what_an_earlier_manifest_lists_is_removed_below_the_folder_only(run, made):
    (made / "circle").symlink_to("circle")
    (made / "old.txt").write_text("of an earlier version")
    listed = [{"path": path} for path in [*HOSTILE, "old.txt"]]
    (made / "manifest.json").write_text(json.dumps({"files": listed}))
    logs = made.parent / "x.jsonl"
    assert run("build", logs, "-o", made, "--quiet") == (0, "", "")
    assert logs.read_text() == LINE
    assert (made / ".state" / "lock").exists()
    assert not (made / "old.txt").exists()
    (made / "circle").unlink()
    code, out, _ = run("verify", made, "--json")
    assert (code, json.loads(out)["findings"]) == (0, {})


# configurations


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ('inputs: [{path: x, tools: "a\\0b"}]', "inputs[0].tools: must be a path without"),
        ('inputs: [{path: "a\\0b"}]', "inputs[0].path: must be a path without NUL"),
        (
            f"limits: {{max_tokens: {10**20}}}",
            "limits.max_tokens: must be a whole number from 1",
        ),
        (
            "limits: {max_tokens: 0}",
            "limits.max_tokens: must be a whole number from 1 to 2147483647",
        ),
        ("limits: {too_long: split}", "limits.too_long: split needs limits.max_tokens"),
        (
            "limits: {too_long: split, max_tokens: 9}\nnormalize: {untrained_turns: reject}",
            "limits.too_long: split writes turns again in its windows",
        ),
        (
            "normalize: {mask: [no_thought], untrained_turns: weight}",
            "normalize.mask: no_thought needs normalize.reasoning: keep",
        ),
        (
            "normalize: {mask: [error], untrained_turns: split}",
            "normalize.mask: error needs normalize.untrained_turns: context",
        ),
        (
            "verify: {require: [macth]}",
            "verify.require[0]: must be one of schema, match, complete,",
        ),
        ("split: {seed: -1}", "split.seed: must be a whole number from 0 to 2147483647, found -1"),
        ("normalize: {allow_eval: 1}", "normalize.allow_eval: must be true or false, found 1"),
        ("normalize: {supplied_system: x}", "normalize.supplied_system: unknown key"),
        ("audit: {secret: off}", "audit.secret: unknown key, did you mean 'secrets'?"),
        ("audit: {scrub: off}", "audit.scrub: unknown key"),
        ("mix: {chian: 0.5}", "mix.chian: unknown key, did you mean 'chain'?"),
        ("mix: {chain: 2}", "mix.chain: must be a share from 0 to 1, found 2"),
        ("inputs: [{format: auto}]", "inputs[0].path: is missing"),
        ("output: {formats: [jsonl, jsonl]}", "output.formats: a name occurs twice: jsonl, js"),
    ],
)
def test_invalid_configurations_are_one_line(tmp_path, text, content):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as raised:
        load_config(path)
    assert str(raised.value).startswith(f"{path}: {content}")


# inputs and outputs


def test_a_broken_link_is_named(run, tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(UsageError, match=r"link': a broken link$"):
        list(find_sources(str(tmp_path / "link")))
    (tmp_path / "x.jsonl").write_text(LINE)
    code, _, err = run("build", tmp_path / "x.jsonl", "-o", tmp_path / "link")
    assert code == 2
    assert err == f"builder: output '{tmp_path}/link': is a broken link\n"


@pytest.mark.quick(1)
@pytest.mark.parametrize("named", ["*", "**/*.jsonl"])
def test_an_output_inside_the_input_is_not_read_again(run, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.jsonl").write_text(LINE)
    for _ in range(2):
        assert run("build", named, "-o", "out", "--quiet") == (0, "", "")
        (read,) = json.loads((tmp_path / "out/manifest.json").read_bytes())["inputs"]
        assert read["path"] == "x.jsonl"


def test_inputs_without_a_conversation_do_not_point_at_an_empty_list(run, tmp_path):
    (tmp_path / "in").mkdir()
    code, out, err = run("build", tmp_path / "in", "-o", tmp_path / "out")
    assert code == 1
    assert out == ""
    assert err.startswith("builder: no sample could be built: the inputs contain no file; ")
    assert not (tmp_path / "out").exists()
    (tmp_path / "in" / "x.jsonl").write_text("{broken\n")
    code, _, err = run("build", tmp_path / "in", "-o", tmp_path / "out")
    assert code == 1
    first, last = err.splitlines()
    assert first.startswith("builder: x.jsonl: ")
    assert last == "builder: no sample could be built: nothing in the inputs is a conversation"
    assert not (tmp_path / "out").exists()
    (tmp_path / "in" / "y.jsonl").write_text(LINE.replace('"b"', '"b<|im_end|>"'))
    code, _, err = run("build", tmp_path / "in", "-o", tmp_path / "out")
    assert code == 1
    assert err.endswith(f"no sample could be built: {tmp_path}/out/rejects.jsonl says why\n")
    assert (tmp_path / "out" / "rejects.jsonl").stat().st_size


def test_an_empty_build_keeps_the_earlier_dataset(run, made):
    before = (made / "manifest.json").read_bytes()
    (made.parent / "x.jsonl").write_text("{broken\n")
    code, _, err = run("build", made.parent / "x.jsonl", "-o", made)
    assert code == 1
    assert "nothing in the inputs is a conversation" in err
    assert (made / "manifest.json").read_bytes() == before


def test_other_inputs_do_not_replace_a_dataset_without_fresh(run, made, tmp_path):
    (tmp_path / "z.jsonl").write_text(LINE.replace('"a"', '"c"'))
    code, out, err = run("build", tmp_path / "z.jsonl", "-o", made)
    assert (code, out) == (2, "")
    assert err == (
        f"builder: output '{made}': was made from other inputs ({tmp_path}/x.jsonl):"
        " name another folder, or replace its content with --fresh\n"
    )
    more = [tmp_path / "x.jsonl", tmp_path / "z.jsonl"]
    # More of the same inputs are accepted.
    assert run("build", *more, "-o", made, "--quiet") == (0, "", "")
    assert run("build", tmp_path / "z.jsonl", "-o", made, "--quiet", "--fresh") == (0, "", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify",), ("audit",), ("report",), ("inspect",), ("build", "-o", "out"),
        ("export", "--to", "openai", "-o", "out"), ("push", "OWNER/NAME"),
    ],
)  # fmt: skip
def test_an_impossible_file_name_is_one_line(run, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    command, *more = arguments
    code, out, err = run(command, "x" * 300, *more)
    assert (code, out) == (2, "")
    assert err.startswith("builder: ")
    assert len(err.splitlines()) == 1
