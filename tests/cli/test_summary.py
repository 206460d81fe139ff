"""What a build prints: what to do before training, with a remedy that works, and its price."""

import json
import re

import pytest
from support.logs.preference import DENIED, call, corrected
from support.places import DATA, ROOT
from support.runs.builds import lines

from builder import cli
from builder.cli import terminal
from builder.cli.build import LINES
from builder.cli.terminal import print_wrapped


@pytest.fixture
def refused(tmp_path):
    """A session in which the user refused the first of two calls."""
    first = call("Bash", "t1", command="npm install vite", description="Install vite")
    second = call("Bash", "t2", command="pnpm add vite", description="Install vite")
    log = tmp_path / "session.jsonl"
    log.write_text(corrected(first, second, DENIED))
    return log


def summary(log, out, capsys, *options):
    assert cli.main(["build", str(log), "-o", str(out), "--workers", "1", *options]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_calls_that_the_user_refused_are_named_with_what_leaves_them_out(refused, tmp_path, capsys):
    printed = summary(refused, tmp_path / "out", capsys)
    (meta,) = lines(tmp_path / "out" / "meta" / "train-00000-of-00001.jsonl")
    assert meta["failed_turns"] == {"denied": 1}
    assert "other remedies: report.html, or -v" in printed
    printed = summary(refused, tmp_path / "all", capsys, "-v")
    assert "1 trained turn with calls that were not wanted (1 refused by the user" in printed
    assert "--preset agentic" in printed
    assert "1 turn fewer to train on" in printed
    without = summary(refused, tmp_path / "agentic", capsys, "--preset", "agentic")
    (masked,) = lines(tmp_path / "agentic" / "meta" / "train-00000-of-00001.jsonl")
    assert meta["assistant_turns"] - masked["assistant_turns"] == 1
    assert "failed_turns" not in masked
    assert "not wanted" not in without
    assert "not wanted" in (tmp_path / "out" / "report.html").read_text()
    data = tmp_path / "agentic" / "data" / "train-00000-of-00001.jsonl"
    weights = [row.get("weight") for row in json.loads(data.read_text())["messages"]]
    assert weights.count(0) == 1
    assert masked["untrained_turns"] == {"denied": 1}
    assert '1 turn in data/ has "weight": 0, which must not be trained (denied 1)' in without
    assert "trains only the turns after" not in without
    by_query = summary(refused, tmp_path / "query", capsys, "-v", "--set", "normalize.unit=query")
    assert "normalize.unit: query trains only the turns after the last question" in by_query


THOUGHT = re.compile(r"<think>\s*\S.*?</think>", re.DOTALL)


def test_trained_turns_with_a_thought_are_counted(tmp_path, capsys):
    log = tmp_path / "rows.jsonl"
    rows = []
    for thought in ("", "I think", "so"):
        answer = f"<think>\n{thought}\n</think>\n\nYes." if thought else "Yes."
        turns = [{"role": "user", "content": f"{thought}?"}]
        rows.append({"messages": [*turns, {"role": "assistant", "content": answer}]})
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = summary(log, tmp_path / "out", capsys, "--set", "normalize.reasoning=keep")
    data = lines(tmp_path / "out" / "data" / "train-00000-of-00001.jsonl")
    texts = [turn["content"] for row in data for turn in row["messages"]]
    assert sum(bool(THOUGHT.search(text)) for text in texts) == 2
    assert "2 of 3 trained turns have a thought" in printed
    for page in ("report.html", "README.md"):
        text = (tmp_path / "out" / page).read_text()
        assert "trained turns with a thought | 2" in text or "2 of 3 trained turns have" in text
    assert "have a thought" not in summary(log, tmp_path / "sft", capsys, "--preset", "sft")


def test_a_command_is_never_wrapped_on_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setattr(terminal, "width", lambda: 60)
    print_wrapped(
        "  → ", "Do it (`--set 'limits={max_tokens: 9, too_long: split}'`), now " * 2, "    "
    )
    shown = capsys.readouterr().out
    assert shown.count("--set 'limits={max_tokens: 9, too_long: split}'") == 2
    assert all(len(line) <= 60 for line in shown.splitlines())


def test_what_the_user_supplied_is_not_asked_for_again(tmp_path, capsys):
    log = DATA / "claude-code" / "parallel.jsonl"
    tools, system = tmp_path / "tools.json", tmp_path / "system.txt"
    names = ("Read", "Glob", "Grep", "Bash")
    tools.write_text(json.dumps([{"name": name, "input_schema": {}} for name in names]))
    system.write_text("You are an agent.")
    asked = summary(log, tmp_path / "out", capsys)
    assert "context 0 of 4 complete; 4 lack the prompt and tools" in asked
    assert "Capture them, then build with --definitions definitions: builder capture" in asked
    given = summary(log, tmp_path / "given", capsys, "--tools", str(tools), "--system", str(system))
    assert "apture" not in given
    assert "4 lack what these logs do not hold (reminders of the agent program" in given
    tools.write_text(json.dumps([{"name": "Read", "description": "x", "input_schema": {}}]))
    partly = summary(log, tmp_path / "partly", capsys, "--tools", str(tools), "-v")
    assert "The definitions of 2 tools are inferred from the calls (samples: Bash 1, Gl" in partly
    assert "These logs are of claude-code 2.0.42." in partly
    command = "-o definitions --versions 1"
    assert command in partly
    sent = {"agent": "claude-code", "version": "2.1.0", "system": "Be brief.",
            "tools": [{"name": name, "input_schema": {}} for name in names]}  # fmt: skip
    for version, is_other in (("2.1.0", True), ("2.0.42", False)):
        tools.write_text(json.dumps({**sent, "version": version}))
        options = ("--tools", str(tools), "--system", str(tools), "-v")
        newer = summary(log, tmp_path / version, capsys, *options)
        assert ("1 sample has the prompt or tools of another version." in newer) is is_other
        assert (command in newer) is is_other
    half = summary(log, tmp_path / "half", capsys, "--system", str(system))
    assert "builder capture" in half


def test_a_summary_has_25_lines_at_most_and_each_finding_its_best_remedy(tmp_path, capsys):
    for options, findings in (((), 3), (("-v",), 5)):
        out = tmp_path / f"out{findings}"
        assert cli.main(["build", str(DATA), "-o", str(out), "--workers", "1", *options]) == 0
        printed = capsys.readouterr().out
        assert (len(printed.splitlines()) <= LINES) is not bool(options)
        assert not re.search(r"ready|poor|good|usable", printed)
        shown = " ".join(printed[printed.index("To improve it") :].partition("\n\n")[0].split())
        points = re.split(r" \d\. (?=[A-Z\d])", shown)[1:]
        remedies = [point.count("→") for point in points]
        assert len(points) == findings
        assert (remedies == [1, 1, 1]) is not bool(options)
        assert ("2 more points and other remedies: report.html, or -v" in shown) is not bool(
            options
        )
        assert ("(about " in shown) is bool(options)


def test_what_publish_replaced_and_what_it_could_not_draw_is_named(tmp_path, capsys):
    log = tmp_path / "rows.jsonl"
    turns = [
        {"role": "user", "content": "Read /home/alice/notes.txt"},
        {"role": "assistant", "content": "It is empty."},
    ]
    log.write_text(json.dumps({"messages": turns}) + "\n")
    printed = summary(log, tmp_path / "out", capsys, "--preset", "publish")
    assert (
        "no validation samples: none of 1 conversation was drawn (split.validation: 0.05" in printed
    )
    assert "names of users, replaced by stand-ins in 1 place" in printed
    assert (
        "With the defaults, they contain those of `--preset publish`."
        in (tmp_path / "out/README.md").read_text()
    )
    plainly = summary(log, tmp_path / "plain", capsys)
    assert "validation" not in plainly
    assert "--preset" not in (tmp_path / "plain/README.md").read_text()
    log.write_text("".join(json.dumps({"messages": [{**turns[0], "content": f"{at}"}, turns[1]]})
                           + "\n" for at in range(8)))  # fmt: skip
    drawn = summary(log, tmp_path / "drawn", capsys, "--set", "split.validation=0.5")
    sizes = [int(size) for size in re.findall(r"by split: train (\d+), validation (\d+)", drawn)[0]]
    assert sum(sizes) == 8
    assert f"train {sizes[0]}, validation {sizes[1]})" in (tmp_path / "drawn/README.md").read_text()
    assert "stand-ins" not in plainly


def test_windows_say_what_their_context_lacks(tmp_path, capsys):
    log = tmp_path / "rows.jsonl"
    turns = [
        {"role": role, "content": f"{at} " + "word " * 60}
        for at in range(8)
        for role in ("user", "assistant")
    ]
    log.write_text(json.dumps({"messages": turns}) + "\n")
    config = tmp_path / "config.yaml"
    config.write_text("limits: {max_tokens: 400, too_long: split}")
    printed = summary(log, tmp_path / "out", capsys, "-c", str(config))
    rows = lines(tmp_path / "out" / "meta" / "train-00000-of-00001.jsonl")
    windows = [row for row in rows if row["changes"].get("history_left_out")]
    turns = sum(row["assistant_turns"] for row in windows)
    assert f"{len(windows)} samples with {turns} trained turns lack earlier turns" in printed


def test_the_reason_for_which_the_end_of_a_conversation_is_left_out_is_counted(tmp_path, capsys):
    log = tmp_path / "rows.jsonl"
    turns = [
        {"role": "user", "content": "a?"},
        {"role": "assistant", "content": "A."},
        {"role": "user", "content": "b?"},
    ]
    lost = {"role": "assistant", "content": '<|python_tag|>{"name": "look", "parameters": {}}'}
    rows = ([*turns, lost], [turns[2], turns[1]])
    log.write_text("".join(f"{json.dumps({'messages': row})}\n" for row in rows))
    printed = summary(log, tmp_path / "out", capsys)
    assert "Left out: the end of 1 conversation (" in printed
    metas = lines(tmp_path / "out" / "meta" / "train-00000-of-00001.jsonl")
    assert sorted(meta.get("cut", "") for meta in metas) == ["", "bad_call"]
    ledger = json.loads((tmp_path / "out" / "manifest.json").read_text())["ledger"]
    assert ledger["conversations"]["cut"] == {"bad_call": 1}
    assert "1 conversation shortened" in (tmp_path / "out" / "report.html").read_text()
    assert "`bad_call` 1." in (tmp_path / "out" / "README.md").read_text()


def test_a_summary_names_duplicates_and_the_few_thoughts_that_are_left_out(tmp_path, capsys):
    answers = [{"role": "assistant", "content": f"Number {at}."} for at in range(12)]
    answers[0]["reasoning_content"] = "The first."
    turns = [turn for answer in answers for turn in ({"role": "user", "content": "?"}, answer)]
    log = tmp_path / "log.jsonl"
    log.write_text(2 * (json.dumps({"messages": turns}) + "\n"))
    assert "Left out: 1 duplicate, 1 thought" in summary(log, tmp_path / "out", capsys)
    masked = summary(DATA / "codex", tmp_path / "masked", capsys, "--preset", "sft-thinking")
    assert "1 of 3 calls; left out on request: without a thought 2 calls" in masked


def test_the_summary_in_the_docs_is_what_a_build_of_data_prints(tmp_path, capsys, monkeypatch):
    page = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"<!-- summary of data/ -->\n```\n(.*?)```\n", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["build", str(DATA), "-o", "out/first", "--workers", "1"]) == 0
    assert capsys.readouterr().out.replace(str(DATA), "data") == shown
