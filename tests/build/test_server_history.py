"""`normalize.history`: earlier turns as a server renders them once they are sent back."""

import json

import pytest
from support.runs.builds import build, lines

TOOL = {"type": "function", "function": {"name": "wc", "parameters": {"type": "object"}}}
CALL = {"id": "c", "type": "function", "function": {"name": "wc", "arguments": '{"path": "a"}'}}
MESSAGES = [
    {"role": "user", "content": "How long?"},
    {"role": "assistant", "content": "I count.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "12"},
    {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": "d"}]},
    {"role": "tool", "tool_call_id": "d", "content": "12"},
    {"role": "assistant", "content": "Twelve."},
]


def samples(folder, options):
    """Builds the conversation; returns the assistant texts of each sample, and their changes."""
    (folder / "in.jsonl").write_text(json.dumps({"messages": MESSAGES, "tools": [TOOL]}) + "\n")
    config = folder / "c.yaml"
    config.write_text(json.dumps({"inputs": [{"path": "in.jsonl"}], "normalize": options}))
    assert build(folder / "out", "-c", config, inputs=()) == 0
    (data,) = (folder / "out" / "data").iterdir()
    (meta,) = (folder / "out" / "meta").iterdir()
    texts = [
        [item["content"] for item in row["messages"] if item["role"] == "assistant"]
        for row in lines(data)
    ]
    return texts, [row["changes"].get("history_sent_back", 0) for row in lines(meta)]


def test_earlier_turns_are_as_vllm_sends_them_back_and_trained_ones_as_the_model_writes(tmp_path):
    texts, counts = samples(tmp_path, {"unit": "turn", "history": "vllm"})
    assert [len(item) for item in texts] == [1, 2, 3]
    assert texts[0][0].startswith("I count.\n<tool_call>")
    assert all(item[0].startswith("I count.\n\n<tool_call>") for item in texts[1:])
    assert texts[1][1].startswith("<tool_call>")
    assert counts == [0, 1, 1]


@pytest.mark.parametrize("history", ["logged", "sglang"])
def test_a_server_that_changes_nothing(tmp_path, history):
    texts, counts = samples(tmp_path, {"unit": "turn", "history": history})
    assert all(item[0].startswith("I count.\n<tool_call>") for item in texts)
    assert counts == [0, 0, 0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"history": "vllm"}, "it needs normalize.unit: query or turn"),
        ({"history": "llama.cpp", "unit": "turn"}, "must be one of logged, vllm, sglang"),
    ],
)
def test_what_cannot_be_written_is_refused_in_a_line(tmp_path, options, message, capsys):
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps({"inputs": [{"path": "in.jsonl"}], "normalize": options}))
    assert build(tmp_path / "out", "-c", config, inputs=()) == 2
    assert message in capsys.readouterr().err
