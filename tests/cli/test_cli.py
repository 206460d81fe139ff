"""The output of the commands, and modules that they do not import."""

import json
import subprocess
import sys

import pytest
from support.places import CASES, DATA

from builder import cli


def test_help_and_formats_import_nothing_heavy():
    for arguments in (["--help"], ["formats"]):
        code = (
            f"import sys; from builder import cli; cli.main({arguments!r});"
            "bad = {'transformers', 'datasets', 'jsonschema', 'torch', 'yaml',"
            " 'builder.normalize.normalise'} & set(sys.modules);"
            "sys.exit(str(bad) if bad else 0)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


BUILD = """
import sys
from builder.__main__ import main
try:
    main()
finally:
    print([name for name in ("ray", "s3fs", "botocore") if name in sys.modules])
"""


@pytest.mark.slow
def test_a_build_imports_no_extra_and_writes_nothing_of_other_libraries_to_stderr(tmp_path):
    arguments = ["build", str(DATA), "-o", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-c", BUILD, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout.endswith("\n[]\n")
    assert done.stderr == ""


def test_json_is_one_object_with_the_ledger(tmp_path, capsys):
    assert cli.main(["build", str(DATA), "-o", str(tmp_path / "out"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {"records", "conversations", "calls", "samples"} <= set(printed)
    assert (printed["tokens"], printed["trained_turns"]) == (2366, 20)
    lines = {line["name"]: (line["count"], line["whole"]) for line in printed["judgements"]}
    assert lines == {"text": (9, 9), "inference": (9, 20), "context": (6, 20), "used": (9, 11)}
    assert printed["advice"][0]["remedies"][0]["commands"][0].startswith("builder capture ")
    assert cli.main(["verify", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["proven"] == printed["samples"]


def test_build_names_the_option_that_would_keep_a_reject(tmp_path, capsys):
    assert cli.main(["build", str(DATA), "-o", str(tmp_path / "out"), "-v"]) == 0
    out = capsys.readouterr().out
    assert "kept by --set normalize.control_tokens=neutralise" in out
    assert "(--set normalize.unit=turn) (about " in " ".join(out.split())
    assert out.splitlines()[-2:] == [
        f"Next: builder view {tmp_path}/out",
        f"      builder export {tmp_path}/out --to trl -o {tmp_path}/out-trl",
    ]
    assert "secret" not in out  # there are none
    assert "9 of 20 trained turns match non-thinking inference" in out
    assert "times the tokens" in " ".join(out.split())  # the price of `unit: turn`


def test_the_data_of_benchmarks_is_refused_unless_allowed(tmp_path, capsys):
    entries = CASES / "bfcl/first-version/input/set.json"
    assert cli.main(["build", str(entries), "-o", str(tmp_path / "out"), "--json"]) == 1
    conversations = json.loads(capsys.readouterr().out)["conversations"]
    assert conversations["rejected"] == {"evaluation_data": 2}
    assert conversations["recoverable"] == {"evaluation_data": 1}
    assert cli.main(["inspect", str(entries)]) == 0
    # Only the other of the two has an answer, so the option would not keep this one.
    assert "to keep it" not in capsys.readouterr().out
    allowed = ["build", str(entries), "-o", str(tmp_path / "allowed"), "--json", "--allow-eval"]
    assert cli.main(allowed) == 0
    ledger = json.loads(capsys.readouterr().out)
    assert ledger["samples"] == 1
    assert ledger["conversations"]["rejected"] == {"no_response": 1}


def test_inspect_marks_the_trained_text(capsys):
    assert cli.main(["inspect", str(DATA / "claude-code" / "parallel.jsonl")]) == 0
    out = capsys.readouterr().out
    assert "claude-code" in out
    assert "⟦I'll look at both." in out
    assert cli.main(["inspect", str(DATA / "claude-code" / "control-token.jsonl")]) == 0
    assert "to keep it: --set normalize.control_tokens=neutralise" in capsys.readouterr().out


def test_inspect_shows_hostile_text_as_text(tmp_path, capsys):
    row = {
        "messages": [
            {"role": "user", "content": "\x1b[2J\u202egnp.exe"},
            {"role": "assistant", "content": "ok"},
        ],
        "tools": [],
    }
    (tmp_path / "log.jsonl").write_text(json.dumps(row) + "\n")
    assert cli.main(["inspect", str(tmp_path / "log.jsonl")]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "\\x1b[2J\\u202egnp.exe" in out


def test_build_without_input_lists_stores_and_reads_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cli.main(["build"]) == 0
    assert "no logs" in capsys.readouterr().out
    (tmp_path / ".claude" / "projects").mkdir(parents=True)
    assert cli.main(["build"]) == 0
    assert "builder build ~/.claude/projects -o " in capsys.readouterr().out


def test_a_build_with_other_settings_says_what_it_replaces(tmp_path, capsys):
    out = tmp_path / "out"
    for options, said in (
        (("--for", "Qwen3-4B-Instruct-2507"), False),
        (("--for", "Qwen3-4B-Instruct-2507"), False),
        (("--for", "Qwen3-8B"), True),
    ):
        assert cli.main(["build", str(DATA / "codex"), "-o", str(out), *options]) == 0
        error = capsys.readouterr().err
        assert ("Qwen3-4B-Instruct-2507, made with other settings: it is replaced" in error) is said


def test_an_export_says_for_which_model_a_plain_file_is(tmp_path, capsys):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        '{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}\n'
    )
    for name, options in (
        ("Qwen3-8B", ()),
        ("Qwen3-4B-Instruct-2507", ("--for", "Qwen3-4B-Instruct-2507")),
    ):
        out = tmp_path / name
        assert cli.main(["export", str(rows), "--to", "trl", "-o", str(out), *options]) == 0
        assert ("for Qwen3-8B (default; change it with --for)" in capsys.readouterr().out) is (
            not options
        )
        assert f"model_name_or_path: Qwen/{name}\n" in (out / "configs" / "trl.yaml").read_text()
