"""The summary of a build that could make no sample."""

import json

from commands import run


def test_it_names_the_option_that_keeps_what_was_rejected(tmp_path):
    answer = {"role": "assistant", "content": "The `</think>` tag ends it."}
    row = {"messages": [{"role": "user", "content": "q"}, answer]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    done = run("build", tmp_path / "rows.jsonl", "-o", tmp_path / "out")
    assert "kept by normalize.control_tokens: neutralise" in done.stdout
