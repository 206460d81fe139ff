"""Rows with columns and keys of any kind: what is read, what is an outcome, what is counted."""

import json

import pytest

from builder.dataset.forms import reader_for
from builder.readers import read_events, readers, recognise
from builder.sources.source import Source

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "r"},
    {"role": "assistant", "content": "a"},
]
TURNS = [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]
RESPONSE = {
    "id": "r",
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": CHAT[-1]}],
}
PAIR = {"request": {"model": "m", "messages": CHAT[:1]}, "response": RESPONSE}
COMPLETION = {"prompt": CHAT[:3], "completion": CHAT[3:], "tools": [TOOL]}


def only(row):
    """Returns the one conversation of a file of this row, by the reader that recognises it."""
    source = Source("rows.jsonl", data=json.dumps(row).encode() + b"\n")
    (name,) = recognise(source)
    (found,) = read_events(readers()[name], source)
    return found


@pytest.mark.parametrize("row", [{"messages": CHAT}, {"conversations": TURNS}, PAIR, COMPLETION])
@pytest.mark.parametrize(
    ("beside", "outcome"),
    [
        ({"reward": 0.0}, {"reward": 0.0}),
        ({"score": 1, "success": False}, {"score": 1, "success": False}),
        ({"rewards": {"format": 1.0}}, {"rewards": {"format": 1.0}}),
        ({"info": {"resolved": True}}, {"resolved": True}),
        ({"metrics": {"reward": 0.5}, "reward": None}, {"reward": 0.5}),
        ({"reward_model": {"style": "rule", "ground_truth": "4"}}, None),
    ],
)
def test_scores_beside_a_conversation_are_its_outcome(row, beside, outcome):
    assert only({**row, **beside}).outcome == outcome


@pytest.mark.parametrize("row", [{"messages": CHAT}, {"conversations": TURNS}, COMPLETION])
def test_columns_do_not_hinder_and_unknown_ones_are_named(row):
    known = {"extra_info": {"index": 0}, "reward_model": {"style": "rule"}, "images": [], "id": "x"}
    assert not any("column" in code for code in only({**row, **known}).changes)
    found = only({**row, "rubric": [{"text": "Be kind."}], "hint": "Look at it.", "split": "train"})
    columns = {code: n for code, n in found.changes.items() if "column" in code}
    assert columns == {"unknown_column:rubric": 1, "unknown_column:hint": 1}


def test_unknown_keys_of_messages_with_text_are_named():
    messages = [CHAT[0], {**CHAT[-1], "scratchpad": "I add them.", "agent": "planner", "x": None}]
    assert only({"messages": messages}).changes == {"unknown_key:scratchpad": 1}
    turns = [TURNS[0], {**TURNS[1], "scratchpad": "I add them."}]
    assert only({"conversations": turns}).changes == {"unknown_key:scratchpad": 1}


def test_definitions_and_media_are_read_from_their_columns():
    assert only({"messages": CHAT, "tools": None, "tool_defs": [TOOL]}).tools == (TOOL,)
    asked = {"role": "user", "content": "What is <image>?"}
    found = only({"messages": [asked, CHAT[-1]], "images": ["a.png"]})
    assert [type(part).__name__ for part in found.messages[0].parts] == ["Text", "Media", "Text"]


def test_the_roles_of_ms_swift_are_calls_and_results():
    call = {"role": "tool_call", "content": '{"name": "f", "arguments": {"x": 1}}'}
    found = only({"messages": [CHAT[0], call, {"role": "tool_response", "content": "r"}, CHAT[3]]})
    assert [message.role for message in found.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert found.messages[1].parts[0].arguments == {"x": 1}


def test_a_row_with_columns_is_verified_as_what_it_is():
    row = {"messages": CHAT, "tools": [TOOL], "images": [], "extra_info": {"index": 0}}
    source = Source("rows.jsonl", data=2 * (json.dumps(row).encode() + b"\n"))
    assert reader_for(source, "rows.jsonl", "rows.jsonl") == "openai-chat"


def test_only_the_completion_of_a_prompt_is_trained():
    found = only(COMPLETION)
    turns = [one for one in found.messages if one.role == "assistant"]
    assert [turn.untrained for turn in turns] == ["zero_weight", None]
    assert found.recorded
