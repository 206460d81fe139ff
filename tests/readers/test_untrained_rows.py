"""Rows whose answers are not to be trained: marked by their author, or with a tool's output."""

import json

import pytest

from builder.conversation import Unparsed
from builder.readers import read_events, readers, recognise
from builder.sources.source import Source

ASKED = {"role": "user", "content": "q"}
MARKS = [
    {"weight": 0},
    {"loss_weight": 0.0},
    {"loss": False},
    {"train": False},
    {"training": False},
    {"masked": True},
    {"mask": True},
    {"trainable": False},
    {"step_loss_mask": 0},
    {"exclude_from_loss": 1},
    {"from_history": True},
    {"train_detail": [{"begin_offset": 0, "end_offset": 3, "train": False}]},
]
TRAINED = [
    {}, {"weight": 1}, {"loss": True}, {"train": True}, {"masked": False}, {"loss": None},
    {"loss": 0.0}, {"loss_mask": [0, 1]}, {"interrupted": False}, {"complete": True},
]  # fmt: skip


def only(row):
    """Returns the one conversation of a file of this row, by the reader that recognises it."""
    source = Source("rows.jsonl", data=json.dumps(row).encode() + b"\n")
    (name,) = recognise(source)
    (found,) = read_events(readers()[name], source)
    return found


def rows_with(mark):
    """Yields a row of each form, whose only answer has the mark."""
    answer = {"role": "assistant", "content": "a", **mark}
    blocks = {"role": "assistant", "content": [{"text": "a"}], **mark}
    yield {"messages": [ASKED, answer]}
    yield {"system": "s", "messages": [ASKED, answer]}
    yield {
        "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a", **mark}]
    }
    yield {"conversation": [ASKED, answer]}
    yield {"schemaVersion": "v", "messages": [{"role": "user", "content": [{"text": "q"}]}, blocks]}
    model = {"role": "model", "parts": [{"text": "a"}], **mark}
    yield {"contents": [{"role": "user", "parts": [{"text": "q"}]}, model]}
    yield {"uuid": "u", "subset_name": "x", "messages": json.dumps([ASKED, answer])}


@pytest.mark.parametrize("mark", MARKS, ids=str)
def test_an_answer_that_its_author_excludes_is_not_trained_in_any_form(mark):
    for row in rows_with(mark):
        found = only(row)
        assert [m.untrained for m in found.messages if m.role == "assistant"] == ["zero_weight"]
        assert (found.messages[-1].unknown, dict(found.changes)) == ((), {})


@pytest.mark.parametrize(
    ("mark", "code"),
    [
        ({"interrupted": True}, "aborted"), ({"isAborted": True}, "aborted"),
        ({"status": "cancelled"}, "aborted"), ({"partial": True}, "truncated"),
        ({"complete": False}, "truncated"), ({"finish_reason": "length"}, "truncated"),
        ({"stopReason": "end_turn"}, None), ({"complete": None, "status": "completed"}, None),
    ],
)  # fmt: skip
def test_an_answer_that_was_cut_is_not_trained_in_any_form(mark, code):
    for row in rows_with(mark):
        assert only(row).messages[-1].untrained == code


@pytest.mark.parametrize("flag", [True, False, 0, 1])
def test_a_flag_that_no_rule_reads_is_counted_in_every_form(flag):
    for row in rows_with({"approved": flag}):
        found = only(row)
        assert found.messages[-1].unknown == ("approved",)
        assert found.messages[-1].untrained is None


def test_a_mark_of_a_whole_row_is_counted():
    answers = [ASKED, {"role": "assistant", "content": "a"}]
    assert dict(only({"messages": answers, "loss_mask": [0, 1]}).changes) == {
        "unknown_column:loss_mask": 1
    }
    assert not only({"messages": answers, "train_on_input": False}).changes


@pytest.mark.parametrize("mark", TRAINED, ids=str)
def test_other_values_of_these_keys_exclude_nothing(mark):
    for row in rows_with(mark):
        assert only(row).messages[-1].untrained is None


def test_a_part_of_the_content_that_is_not_trained_excludes_its_answer():
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "train": False}]
    found = only({"messages": [ASKED, {"role": "assistant", "content": parts}]})
    assert found.messages[-1].untrained == "zero_weight"


FLATTENED = [
    "First:\n\n```python\nprint(2)\n```\n```output\n2\n```\nSo 2.",
    "```tool_code\nf()\n```\n\n```tool_output\n2\n```",
    "<llm-code>\nprint(2)\n</llm-code>\n<llm-code-output>\n2\n</llm-code-output>\nSo 2.",
    "<search>who</search>\n\n<information>Doc 1</information>\n<answer>Ann</answer>",
    "<code>\nprint(2)\n</code>\n<interpreter>\n2\n</interpreter>",
    "<python>print(2)</python><result>2</result>",
    "<|begin_search_query|>x<|end_search_query|>\n<|begin_search_result|>y<|end_search_result|>",
    "<|text|>Let<|endofblock|><|code|>print(2)<|endofblock|><|execution|>2<|endofblock|>",
    "So<|startofthink|>{}<|endofthink|><|startofexec|>2<|endofexec|>",
    "Action: search\nAction Input: x\nObservation: y\nFinal Answer: y",
]
OWN = [
    "Run it:\n```python\nprint(2)\n```\nIt prints:\n```\n2\n```",
    "Use `<code>` and then `<result>` in the template.",
    "<code>x</code> and <code>y</code>",
    "The token <|endoftext|> ends it.",
]


@pytest.mark.parametrize("text", FLATTENED)
def test_a_tools_output_inside_an_answer_is_not_trained(text):
    for answer in ({"content": text}, {"content": "So.", "reasoning_content": text}):
        found = only({"messages": [ASKED, {"role": "assistant", **answer}]})
        assert Unparsed("", "flattened") in found.messages[-1].parts
    turns = [{"from": "human", "value": "q"}, {"from": "gpt", "value": text}]
    for row in ({"conversations": turns}, {"prompt": "q", "completion": text}):
        assert Unparsed("", "flattened") in only(row).messages[-1].parts


@pytest.mark.parametrize("text", OWN)
def test_words_about_output_are_an_answer(text):
    found = only({"messages": [ASKED, {"role": "assistant", "content": text}]})
    assert [type(part).__name__ for part in found.messages[-1].parts] == ["Text"]


def test_an_answer_after_the_result_of_no_call_is_not_trained():
    result = {"role": "tool", "content": "r"}
    last = {"role": "assistant", "content": "It is r."}
    found = only({"messages": [ASKED, {"role": "assistant", "content": "I look."}, result, last]})
    assert Unparsed("", "bad_call") in found.messages[1].parts
    found = only({"messages": [ASKED, result, last]})
    assert Unparsed("", "orphan_result") in found.messages[-1].parts
