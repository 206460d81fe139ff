"""Thoughts in the text of answers and under keys of messages, in any format."""

import json
from collections import Counter

import pytest
from support.conversations.messages import normalised, reply, user, visible

from builder.conversation import Message, Reasoning, Text
from builder.readers import read_events, readers
from builder.readers.toolkit.chat_messages import chat_message
from builder.readers.toolkit.thoughts import read_thoughts, thought_in_text, thoughts_of_keys
from builder.readers.toolkit.unknown_keys import noted
from builder.sources.source import Source

SPLIT = ("Greet.", "Hello.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>\nGreet.\n</think>\n\nHello.", SPLIT),
        ("Greet.\n</think>\n\nHello.", SPLIT),
        ("Greet.</think>Hello.", SPLIT),
        ("Greet.\n</think>\n\n", ("Greet.", "")),
        ("</think>\n\nHello.", ("", "Hello.")),
        ("A <think> tag in\nmy text </think> here", None),
        ("The `</think>` tag ends it.", None),
        ("The tag </think> ends it.", None),
        ("One.\n</think>\n\nTwo.\n</think>\n\nThree.", None),
        ("```\n</think>\n```", None),
        ("Hello.", None),
    ],
)
def test_a_leading_thought_is_split_off_but_a_mention_is_not(text, expected):
    assert thought_in_text(text) == expected


def test_a_thought_that_is_also_logged_apart_is_left_out_and_another_is_kept():
    for logged, texts in (
        ("Greet.", ["Greet.", "Hello."]),
        ("Plan.", ["Plan.", "Greet.", "Hello."]),
    ):
        parts = (Reasoning(logged), Text("Greet.\n</think>\n\nHello."))
        assert [part.text for part in read_thoughts(parts, Counter())] == texts


def test_the_thoughts_in_a_text_are_read_whatever_the_format():
    got = normalised(user("hi"), reply("Greet.\n</think>\n\nHello."), reasoning="keep")
    assert visible(got) == ["u hi", "a Hello."]
    assert got.dialogue.turns[-1].reasoning == "Greet."
    assert got.changes["think_tags"] == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"thinking": "A b."},
        {"thought": "A b.", "reasoning_content": None},
        {"thoughts": ["A b."]},
        {"reasoning_text": "A b."},
        {"reasoning": {"content": "A b."}},
        {"reasoning_content": "A b.", "reasoning": "A b."},
        {"thinking_blocks": [{"type": "thinking", "thinking": "A b.", "signature": "s"}]},
        {
            "reasoning_details": [
                {"type": "reasoning.summary", "summary": "x"},
                {"type": "reasoning.text", "text": "A b"},
                {"type": "reasoning.text", "text": "."},
                {"type": "reasoning.encrypted", "data": "x"},
            ]
        },
    ],
)
def test_a_thought_is_read_from_the_keys_that_programs_use(fields):
    assert thoughts_of_keys({"content": "x", **fields}) == [Reasoning("A b.")]
    asked = {"role": "user", "content": "q"}
    chat = {"messages": [asked, {"role": "assistant", "content": "x", **fields}]}
    turns = {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "x"}]}
    turns["conversations"][1] |= fields
    rows = {"openai-chat": chat, "sharegpt": turns}
    for name, row in rows.items():
        source = Source("rows.jsonl", data=json.dumps(row).encode() + b"\n")
        (found,) = read_events(readers()[name], source)
        assert found.messages[1].parts == (Reasoning("A b."), Text("x"))


def test_a_key_that_repeats_the_content_is_no_thought():
    assert thoughts_of_keys({"content": "Look.\n", "thought": "Look."}) == []


def test_a_second_thought_under_another_key_is_named():
    item = {"role": "assistant", "content": "Yes.", "reasoning": "It rains there."}
    first = chat_message(item)
    (same,) = noted([first], {**item, "thinking": "It rains\n there."})
    assert same.unknown == ()
    (other,) = noted([first], {**item, "thinking": "Another thought."})
    assert other.unknown == ("thinking",)
    (unread,) = noted([Message("user", (Text("Why?"),))], {"role": "user", "thought": "So it is."})
    assert unread.unknown == ("thought",)
