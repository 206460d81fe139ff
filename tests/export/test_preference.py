"""Preference pairs: two continuations from the same log, both proven, nothing invented."""

import json
from collections import Counter

import datasets
import pytest
from support.logs.preference import (
    DENIED,
    EDIT,
    EDIT_AGAIN,
    call,
    captured,
    corrected,
    rewound,
    text,
)
from support.runs.builds import build, files, lines
from support.sensitive.rule_examples import expand
from support.templates.published import text_of
from support.templates.targets import small_tokenizer_folder

from builder import cli

WITH_THOUGHT = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, *text("Fourth answer.")]
PREFERRED = {
    "input": {"messages": [{"role": "user", "content": "One or two?"}]},
    "preferred_output": [{"role": "assistant", "content": "Two."}],
    "non_preferred_output": [{"role": "assistant", "content": "One."}],
}
ABSOLUTE = call("Bash", "t1", command="cat b", description="Show b")


def built(tmp_path, *logs, config=None):
    """Builds logs, one session each; returns the folder and the manifest's facts about pairs."""
    (tmp_path / "in").mkdir(parents=True)
    for number, log in enumerate(logs):
        (tmp_path / "in" / f"{number}.jsonl").write_text(log.replace('"s1"', f'"s{number}"'))
    out = tmp_path / "out"
    job = tmp_path / "c.yaml"
    job.write_text(json.dumps({"inputs": [{"path": "in"}], **(config or {})}))
    assert build(out, "-c", job, "--workers", "1", inputs=()) == 0
    return out, json.loads((out / "manifest.json").read_bytes())["preferences"]


def exported(out, to):
    code = cli.main(["export", str(out), "--to", "preference", "-o", str(to), "--quiet"])
    rows = lines(to / "data" / "train-00000-of-00001.jsonl") if code == 0 else []
    return code, rows


PAIRS = {
    "rewound": (rewound(), "rewound", "First answer.", "Second answer."),
    "retry": (
        captured(["It is noon.", "It is late."]),
        "retry",
        "It is late.",
        "It is noon.",
    ),
    "dispreferred": (json.dumps(PREFERRED), "dispreferred", "One.", "Two."),
    "corrected": (corrected(EDIT, EDIT_AGAIN), "corrected", '"x"', '"x = 1"'),
    "denied": (
        corrected(
            call("Bash", "t1", command="npm install vite", description="Install vite"),
            call("Bash", "t2", command="pnpm add vite", description="Install vite"),
            DENIED,
        ),
        "denied",
        "npm install",
        "pnpm add",
    ),
    "thought of one side only": (
        rewound(text("Third answer."), WITH_THOUGHT),
        "rewound",
        "Third answer.",
        "Fourth answer.",
    ),
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Builds all logs of `PAIRS` together: (folder, exported folder, rows)."""
    folder = tmp_path_factory.mktemp("pairs")
    out, counts = built(folder, *(log for log, *_ in PAIRS.values()))
    assert counts == {"pairs": len(PAIRS), "left_out": {}}
    code, rows = exported(out, folder / "pairs")
    assert code == 0
    return out, folder / "pairs", rows


@pytest.mark.parametrize("number", range(len(PAIRS)), ids=list(PAIRS))
def test_a_pair_is_the_abandoned_and_the_new_continuation(pairs, number, verifier):
    out, _, rows = pairs
    _, reason, rejected, chosen = list(PAIRS.values())[number]
    row = rows[number]
    assert row["reason"] == reason
    assert rejected in row["rejected"][0]["content"]
    assert chosen in row["chosen"][0]["content"]
    assert rejected not in row["chosen"][0]["content"]
    assert [side[0]["role"] for side in (row["chosen"], row["rejected"])] == ["assistant"] * 2
    assert row["prompt"][-1]["role"] == "user"
    held = [item for path in sorted(out.glob("data/*")) for item in lines(path)]
    assert any(item["messages"][: len(row["prompt"])] == row["prompt"] for item in held)
    assert_trl_sees_one_prompt(row, verifier.target)


def assert_trl_sees_one_prompt(row, target):
    """Asserts that both sides start with the prompt and generation prompt, as in TRL's DPO code."""
    prompt = target.render(row["prompt"], row["tools"] or None, add_generation_prompt=True)
    for side in ("chosen", "rejected"):
        whole = target.render([*row["prompt"], *row[side]], row["tools"] or None)
        assert whole.startswith(prompt)
        assert whole.endswith("<|im_end|>\n")


SAID = [*text("I change it."), *EDIT]
XML_PAIRS = {
    "rewound": rewound(SAID, [*text("I run it."), *call("Edit", "t2", replace_all=True)]),
    "corrected": corrected(EDIT, EDIT_AGAIN),
}


@pytest.mark.parametrize("name", ["Qwen3.5", "Qwen3.8", "Qwen3-Coder"])
def test_pairs_of_a_target_with_xml_calls_are_proven(name, tmp_path, capsys):
    tokenizer = small_tokenizer_folder(tmp_path / "tokenizer", chat_template=text_of(name))
    config = {"verify": {"tokenizer": tokenizer}, "normalize": {"missing_tools": "infer"}}
    out, counts = built(tmp_path, *XML_PAIRS.values(), config=config)
    assert counts == {"pairs": 2, "left_out": {}}
    to = tmp_path / "pairs"
    command = ["export", str(out), "--to", "preference", "-o", str(to), "--tokenizer", tokenizer]
    assert cli.main(command) == 0
    assert "left out" not in capsys.readouterr().out
    rows = lines(to / "data" / "train-00000-of-00001.jsonl")
    assert len(rows) == 2
    for row in rows:
        for side in (row["chosen"], row["rejected"]):
            assert "<tool_call>\n<function=Edit>\n" in side[0]["content"]
    assert rows[0]["rejected"][0]["content"].startswith("I change it.\n")


LEFT_OUT = {
    "the user asked something else": (rewound(again="Do that"), {"other_query": 1}),
    "the same answer": (rewound(kept=text("First answer.")), {"same_answer": 1}),
    "the same call": (
        rewound(
            [*text("Now."), *call("Bash", "t1", command="ls")],
            call("Bash", "t2", command="ls"),
        ),
        {"same_calls": 1},
    ),
    "none was continued": (
        captured(["It is noon.", "It is late."], False),
        {"not_continued": 1},
    ),
    "it failed as well": (
        corrected(EDIT, EDIT_AGAIN, outcome="failed"),
        {"not_succeeded": 1, "no_call": 1},  # and then the model gave up
    ),
    "another tool": (corrected(EDIT, call("Read", "t2", file_path="/a")), {"other_tool": 1}),
    "another task": (
        corrected(ABSOLUTE, call("Bash", "t2", command="ls", description="List files")),
        {"other_task": 1},
    ),
    "equal in the working directory alone": (
        corrected(
            call("run", "t1", command="cat b", cwd="/r"), call("run", "t2", command="ls", cwd="/r")
        ),
        {"other_task": 1},
    ),
    "words that refer to the refusal": (
        corrected(EDIT, EDIT_AGAIN, words="You are right."),
        {"refers_back": 1},
    ),
    "words on the rejected side": (
        corrected([*text("Now the edit."), *EDIT], EDIT_AGAIN),
        {"other_form": 1},
    ),
    "the user spoke in between": (
        corrected(EDIT, EDIT_AGAIN, DENIED, between="Leave it. Change b."),
        {"new_query": 1},
    ),
    "several calls": (
        corrected(EDIT, [*EDIT_AGAIN, *call("Bash", "t9", command="ls")]),
        {"several_calls": 1},
    ),
}


def test_uncertain_pairs_are_left_out_and_counted(tmp_path, capsys):
    out, counts = built(tmp_path, *(log for log, _ in LEFT_OUT.values()))
    wanted = sum((Counter(codes) for _, codes in LEFT_OUT.values()), Counter())
    assert counts == {"pairs": 0, "left_out": wanted}
    assert exported(out, tmp_path / "pairs") == (1, [])
    assert "same_answer 1" in capsys.readouterr().err
    assert not (tmp_path / "pairs").exists()


def test_an_abandoned_answer_with_a_secret_is_in_no_pair_under_reject(tmp_path):
    log, (secret,) = expand("Use «ghp_{A36}».")
    config = {"audit": {"secrets": "reject"}}
    out, counts = built(tmp_path, rewound(text(log)), config=config)
    assert counts == {"pairs": 0, "left_out": {"secret": 1}}
    assert not [name for name, data in files(out).items() if secret.encode() in data]


def test_datasets_loads_the_rows(pairs, tmp_path):
    _, folder, rows = pairs
    loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert list(loaded["train"]) == rows


def test_a_pair_that_is_too_long_is_left_out_and_never_cut(pairs, tmp_path, capsys):
    dataset, _, rows = pairs
    command = ["export", str(dataset), "--to", "preference", "-o", str(tmp_path / "out"), "--json"]
    assert cli.main([*command, "--max-tokens", "1"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert (result["rows"], result["windowed"]) == (0, 0)
    assert result["pairs_left_out"]["longer"] >= len(rows)


HOSTILE = [
    None,
    [],
    "x",
    {"reason": "rewound"},
    {"reason": "rewound", "turn": 9, "chosen": None, "rejected": "x"},
    {"reason": "rewound", "turn": True, "chosen": None, "rejected": "x"},
    {"reason": "rewound", "turn": 0, "chosen": None, "rejected": 3},
    {"reason": "rewound", "turn": 0, "chosen": None, "rejected": None},
    {"reason": "rewound", "turn": 0, "chosen": None, "rejected": "<|im_end|>\n<|im_start|>user"},
    {"reason": "rewound", "turn": 0, "chosen": None, "rejected": "<tool_call>\n{\n</tool_call>"},
]


def test_entries_that_are_not_pairs_are_left_out(tmp_path, capsys):
    out, _ = built(tmp_path, rewound())
    (path,) = out.glob("meta/*")
    path.write_text(json.dumps({**lines(path)[0], "preferences": HOSTILE}) + "\n")
    command = ["export", str(out), "--to", "preference", "-o", str(tmp_path / "p"), "--json"]
    assert cli.main(command) == 1
    left_out = json.loads(capsys.readouterr().out)["pairs_left_out"]
    assert sum(left_out.values()) == len(HOSTILE)


HOSTILE_TEXTS = [
    "</think>",
    "\u00e9\U0001f600",
    " leading",
    "trailing \n",
    "<b>&amp;",
    "a\n\n\nb",
    "{}",
]


def test_both_answers_are_exported_as_they_were_logged(tmp_path):
    logs = [rewound(text(f"x{one}x"), text(f"y{one}y")) for one in HOSTILE_TEXTS]
    out, _ = built(tmp_path, *logs)
    _, rows = exported(out, tmp_path / "pairs")
    found = {(row["rejected"][0]["content"], row["chosen"][0]["content"]) for row in rows}
    assert found >= {(f"x{one}x", f"y{one}y") for one in HOSTILE_TEXTS[1:]}


@pytest.mark.slow
def test_calls_that_a_real_tool_refused_are_paired_with_their_correction(shared, tmp_path):
    """From the Gemini captures: a tool without parameters that is first called with one."""
    out = tmp_path / "out"
    assert build(out, "--workers", "1", inputs=[shared / "corpus" / "gemini"]) == 0
    code, rows = exported(out, tmp_path / "pairs")
    assert code == 0
    assert rows
    for row in rows:
        assert row["reason"] == "corrected"
        (tool,) = (item["function"] for item in row["tools"])
        calls = [json.loads(row[side][0]["content"].split("\n")[1]) for side in SIDES]
        assert [item["name"] for item in calls] == [tool["name"]] * 2
        assert [bool(item["arguments"]) for item in calls] == [False, True]


SIDES = ("chosen", "rejected")
