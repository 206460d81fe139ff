"""The summary of a build that could make no sample."""

import json

from support.runs.commands import run


def test_it_names_the_option_that_keeps_what_was_rejected(tmp_path):
    answer = {"role": "assistant", "content": "The `</think>` tag ends it."}
    row = {"messages": [{"role": "user", "content": "q"}, answer]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    done = run("build", tmp_path / "rows.jsonl", "-o", tmp_path / "out")
    assert "kept by --set normalize.control_tokens=neutralise" in done.stdout


def test_conditions_that_nothing_meets_are_named_with_their_counts(tmp_path):
    turns = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    rows = "".join(json.dumps({"messages": turns, "n": at}) + "\n" for at in range(3))
    rows = rows.replace('"q"', '"r"', 1) + json.dumps({"messages": turns[1:]}) + "\n"
    (tmp_path / "rows.jsonl").write_text(rows, encoding="utf-8")
    where = "{tokens: {min: 9}, model: {in: [gpt-9]}}"
    (tmp_path / "c.yaml").write_text(f"select: {{where: {where}}}", encoding="utf-8")
    done = run("build", tmp_path / "rows.jsonl", "-c", tmp_path / "c.yaml", "-o", tmp_path / "out")
    assert done.returncode == 1
    assert "select.where.tokens: met by 3 of 3 samples" in done.stderr
    assert "select.where.model: met by 0 of 3 samples" in done.stderr
    assert "no_user:" not in done.stderr  # a row that was rejected is not why
    assert not (tmp_path / "out" / "README.md").exists()


def test_it_says_where_the_reasons_are(tmp_path):
    answer = {"role": "assistant", "content": "Noon."}
    log = {"response": {"object": "chat.completion", "choices": [{"message": answer}]}}
    (tmp_path / "log.jsonl").write_text(json.dumps(log) + "\n", encoding="utf-8")
    done = run("build", tmp_path / "log.jsonl", "-o", tmp_path / "out")
    assert "no_request         1  the log contains the answer but not its request" in done.stdout
    assert f"no sample could be built: {tmp_path}/out/rejects.jsonl says why" in done.stderr


def test_what_is_rejected_for_one_reason_is_one_line_for_each_file(tmp_path):
    rows = "".join(json.dumps({"messages": [{"role": "assistant", "content": "a"}], "n": at}) + "\n"
                   for at in range(30))  # fmt: skip
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(rows, encoding="utf-8")
    done = run("build", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "-o", tmp_path / "out")
    lines = [line for line in done.stderr.splitlines() if "no_user" in line]
    assert [line.rpartition(", ")[2] for line in lines] == ["and 29 more"] * 2


def test_an_agent_that_is_not_installed_is_no_dead_end():
    done = run("build", "~/.no-such-agent", "-o", "out")
    assert done.returncode == 2
    assert "`builder build` alone lists the logs of agents on this machine" in done.stderr
