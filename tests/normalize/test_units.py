"""Training units and parity with inference; the oracle is the template itself."""

import json
import re

import pytest
from hypothesis import given
from support.conversations.foreign import foreign, wrapped
from support.conversations.strategies import MANY, texts
from support.places import ROOT

from builder import cli
from builder.normalize.units import UNITS, examples
from builder.qwen3.render import in_parity, render, spans
from builder.sample import Call, Dialogue, Turn

CALL = Call.of("f", {"a": 1})


def user(text="q"):
    return Turn("user", text)


def answer(text="a", thought=""):
    return Turn("assistant", text, thought)


def calling(thought=""):
    return Turn("assistant", "", thought, (CALL,))


RESULT = Turn("tool", responses=("1",))

# (turns, {unit: [(turns in the example, targets)]})
CASES = {
    "two queries": (
        (user(), calling(), RESULT, answer(), user(), answer()),
        {
            "conversation": [(6, 3)],
            "query": [(4, 2), (6, 1)],
            "turn": [(2, 1), (4, 1), (6, 1)],
        },
    ),
    "a query that comes before the answer": (
        (user(), calling(), RESULT, user("stop"), answer()),
        {
            "conversation": [(5, 2)],
            "query": [(5, 2)],
            "turn": [(2, 1), (5, 1)],
        },
    ),
    "a query before the answer would hide a thought": (
        (user(), calling("t"), RESULT, user("stop"), answer()),
        {
            "conversation": [(5, 2)],
            "query": [(2, 1), (5, 1)],
            "turn": [(2, 1), (5, 1)],
        },
    ),
    "the last turn calls": (
        (Turn("system", "s"), user(), answer(), user(), calling()),
        {
            "conversation": [(5, 2)],
            "query": [(3, 1), (5, 1)],
            "turn": [(3, 1), (5, 1)],
        },
    ),
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("case", CASES)
def test_where_examples_end_and_what_they_train(case, unit):
    turns, wanted = CASES[case]
    found = list(examples(Dialogue(turns), unit))
    visible = [(len(e.dialogue.turns), len(e.targets)) for e in found]
    assert visible == wanted[unit]


def test_an_example_keeps_the_thoughts_after_its_last_query():
    turns = (user(), calling("t1"), RESULT, answer("a", "t2"), user(), answer("b", "t3"))
    kept = {
        unit: [
            (
                [turn.reasoning for turn in e.dialogue.turns if turn.reasoning],
                e.changes.get("reasoning_dropped", 0),
            )
            for e in examples(Dialogue(turns), unit)
        ]
        for unit in UNITS
    }
    assert kept == {
        "conversation": [(["t3"], 2)],
        "query": [(["t1", "t2"], 0), (["t3"], 2)],
        "turn": [(["t1"], 0), (["t1", "t2"], 0), (["t3"], 2)],
    }


@MANY
@given(foreign, wrapped)
def test_parity_agrees_with_the_template(verifier, messages, tools):
    """For any messages, every assistant turn and mode, against the template's own context."""
    target = verifier.target
    rows = [{"role": role, "content": content} for role, content in messages]
    rendering = render(messages, tools)
    modes = in_parity(messages, rendering, target.generation_prompts, target.style)
    turns = [at for at, (role, _) in enumerate(messages) if role == "assistant"]
    for at, found in zip(turns, modes, strict=True):
        if not at:
            continue  # nothing precedes it: the template takes no empty list
        for thinking, mode in ((True, "thinking"), (False, "non-thinking")):
            visible = target.render(
                rows[:at], tools, add_generation_prompt=True, enable_thinking=thinking
            )
            assert (mode in found) == rendering.text.startswith(visible)


@MANY
@given(texts, texts.filter(lambda text: "</think>" not in text))
def test_a_span_begins_where_the_generation_prompt_ends(verifier, question, text):
    prompts = verifier.target.generation_prompts
    messages = [("user", "q" + question), ("assistant", "a" + text)]
    rendering = render(messages)
    for mode, trained in (
        ("non-thinking", f"a{text}<|im_end|>"),
        ("thinking", f"<think>\n\n</think>\n\na{text}<|im_end|>"),
    ):
        ((start, end),) = spans(rendering, prompts[mode])
        assert rendering.text[start:end] == trained
        assert rendering.text[:start].endswith(prompts[mode])


LOG = [
    {"role": "user", "content": "how many?"},
    {"role": "assistant", "content": "", "reasoning_content": "count", "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "1", "content": "2"},
    {"role": "assistant", "content": "two", "reasoning_content": "so two"},
    {"role": "user", "content": "sure?"},
    {"role": "assistant", "content": "yes", "reasoning_content": "I am"},
]  # fmt: skip


def build(tmp_path, verify, **normalize):
    (tmp_path / "in.jsonl").write_text(json.dumps({"messages": LOG, "tools": []}) + "\n")
    config = {"inputs": [{"path": "in.jsonl"}], "normalize": normalize, "verify": verify}
    (tmp_path / "c.yaml").write_text(json.dumps(config))
    out = tmp_path / "out"
    code = cli.main(["build", "-c", str(tmp_path / "c.yaml"), "-o", str(out), "--quiet"])
    meta = out / "meta" / "train-00000-of-00001.jsonl"
    rows = [json.loads(line) for line in meta.read_bytes().splitlines()] if meta.exists() else []
    ledger = json.loads((out / "manifest.json").read_bytes())["ledger"]
    assert not rows or cli.main(["verify", str(out), "--quiet"]) == 0
    return code, rows, ledger


def test_a_whole_conversation_is_in_parity_at_its_last_turn_only(tmp_path):
    _, rows, _ = build(tmp_path, {})
    assert [row["parity"] for row in rows] == [{"thinking": 3, "non-thinking": 1}]


def test_required_parity_rejects_samples_without_it(tmp_path):
    code, rows, ledger = build(tmp_path, {"require": ["match"]})
    assert (code, rows) == (1, [])
    assert ledger["conversations"]["rejected"] == {"parity": 1}
    assert ledger["calls"]["dropped"] == {"parity": 1}


def test_thoughts_of_each_query_are_trained_in_its_own_sample(tmp_path):
    _, rows, _ = build(
        tmp_path, {"require": ["match"], "mode": "thinking"}, unit="query", reasoning="keep"
    )
    visible = [(row["unit"], row["reasoning"], row["assistant_turns"]) for row in rows]
    assert visible == [("query", "kept", 2), ("query", "kept", 1)]
    assert [row["parity"]["thinking"] for row in rows] == [2, 1]
    assert rows[1]["changes"]["reasoning_dropped"] == 2


def build_turns(tmp_path, logs, more=""):
    """Builds a sample for each turn of the logs {name: messages}; returns the output folder."""
    (tmp_path / "in").mkdir()
    for name, messages in logs.items():
        line = json.dumps({"messages": messages, "tools": []}) + "\n"
        (tmp_path / "in" / f"{name}.jsonl").write_text(line)
    (tmp_path / "c.yaml").write_text(f"normalize: {{unit: turn}}\n{more}")
    out = tmp_path / "out"
    command = ["build", str(tmp_path / "in"), "-c", str(tmp_path / "c.yaml"), "-o", str(out)]
    assert cli.main([*command, "--quiet"]) == 0
    return out


def test_the_common_beginning_of_two_conversations_is_trained_once(tmp_path):
    fork = [*LOG[:4], {"role": "user", "content": "why?"}, {"role": "assistant", "content": "so"}]
    out = build_turns(tmp_path, {"a": LOG, "b": fork})
    ledger = json.loads((out / "manifest.json").read_bytes())["ledger"]
    assert ledger["samples"] == 4
    assert ledger["conversations"]["built"] == 2


@pytest.mark.slow
def test_all_samples_of_conversations_that_begin_alike_are_in_one_split(tmp_path):
    logs = {}
    for number in range(30):
        turns = [("user", f"q{number}"), ("assistant", "a")]
        for name, more in (("a", 2), ("b", 1)):
            later = [("user", f"{name} {at}") for at in range(more)]
            message = turns + [turn for user in later for turn in (user, ("assistant", "so"))]
            logs[f"{number}.{name}"] = [{"role": role, "content": text} for role, text in message]
    out = build_turns(tmp_path, logs, "split: {test: 0.4}")
    found = {}
    for path in out.glob("meta/*.jsonl"):
        for line in path.read_bytes().splitlines():
            number = json.loads(line)["source"].partition(".")[0]
            found.setdefault(number, []).append(path.name.partition("-")[0])
    assert [len(splits) for splits in found.values()] == [4] * 30, "the first turn is trained once"
    assert {len(set(splits)) for splits in found.values()} == {1}
    assert {splits[0] for splits in found.values()} == {"train", "test"}


def test_the_examples_in_the_documentation_are_renderings(verifier):
    page = (ROOT / "docs" / "parity.md").read_text(encoding="utf-8")
    kinds = "(?:rendering|prompt): [a-z-]+"
    visible = dict(re.findall(rf"<!-- ({kinds}) -->\n```text\n(.*?)```\n", page, re.DOTALL))
    call = '<tool_call>\n{"name": "wc", "arguments": {"path": "notes.txt"}}\n</tool_call>'
    messages = [
        {"role": "user", "content": "How long is notes.txt?"},
        {"role": "assistant", "content": call},
        {"role": "user", "content": "<tool_response>\n12\n</tool_response>"},
        {"role": "assistant", "content": "Twelve lines."},
    ]
    render = verifier.target.render
    assert visible == {
        "rendering: conversation": render(messages, []),
        "rendering: turn": render(messages[:2], []),
        "prompt: non-thinking": render(
            messages[:1], [], add_generation_prompt=True, enable_thinking=False
        ),
    }
