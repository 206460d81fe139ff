"""The comparison of samples with requests finds differences in any place."""

import copy
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from wire.compare import Exchange, answer_item, compare, request_items
from wire.shapes import read_answer, read_request

TOOL = {"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}}
REQUEST = {
    "system": [{"type": "text", "text": "You help."}],
    "tools": [TOOL],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Hello."}]},
        {"role": "system", "content": "Be brief."},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "one"},
                {"type": "text", "text": "Mind the style."},
            ],
        },
    ],
}
CALL = '<tool_call>\n{"name": "Read", "arguments": {"path": "a"}}\n</tool_call>'
SAMPLE = {
    "messages": [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Hello.\n\nBe brief."},
        {"role": "assistant", "content": CALL, "weight": 0},
        {"role": "user", "content": "<tool_response>\none\n</tool_response>"},
        {"role": "user", "content": "Mind the style."},
        {"role": "assistant", "content": "Done."},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "Read",
                "description": "Reads.",
                "parameters": {"type": "object"},
            },
        }
    ],
}


def row(sample, **changes):
    request = read_request("/v1/messages", REQUEST)
    response = {"content": [{"type": "text", "text": "Done."}]}
    answer = answer_item(read_answer("anthropic", response))
    exchange = Exchange(1, request, request_items(request.turns), answer)
    meta = {"context": {"level": "proven"}, "changes": changes}
    return compare([(sample, meta)], [exchange])


def test_an_equal_sample_is_equal():
    found = row(SAMPLE)
    assert found.is_equal()
    assert (found.turns, found.false) == (1, 0)


@pytest.mark.parametrize(
    ("at", "content"),
    [
        (0, "You help a lot."),
        (1, "Be brief.\n\nHello."),
        (1, "Hello."),
        (1, "Hello.\n\nBe brief.\n\nBe kind."),
        (3, "<tool_response>\ntwo\n</tool_response>"),
        (4, "Mind it."),
        (2, CALL.replace('"a"', '"b"')),
    ],
)
def test_a_changed_message_is_found(at, content):
    sample = copy.deepcopy(SAMPLE)
    sample["messages"][at]["content"] = content
    found = row(sample)
    assert not found.is_equal()
    assert found.false == 1


def test_a_missing_message_is_found():
    sample = copy.deepcopy(SAMPLE)
    del sample["messages"][4]
    assert "missing" in row(sample).notes[0]


def test_a_shortened_description_is_found():
    sample = copy.deepcopy(SAMPLE)
    sample["tools"][0]["function"]["description"] = "R"
    assert not row(sample).is_equal()


def test_an_answer_that_was_never_given_is_found():
    sample = copy.deepcopy(SAMPLE)
    sample["messages"][5]["content"] = "All done."
    assert row(sample).unknown == 1


def test_a_tool_that_was_not_sent_is_found_unless_added_later():
    sample = copy.deepcopy(SAMPLE)
    sample["tools"].append({"type": "function", "function": {"name": "Write"}})
    found = row(sample)
    assert (found.tools, found.false) == (0, 1)
    assert row(sample, tools_added_later=1).is_equal()
