"""An answer that follows a call whose result is lost is another answer, in every form."""

import json

import pytest

from builder.conversation import Conversation, Text, ToolCall
from builder.readers import read_events, readers
from builder.sources.source import Source

ARGUMENTS = json.dumps({"city": "Oslo"})
TOOL = {"name": "sky", "description": "d", "input_schema": {"type": "object", "properties": {}}}
ASKED = {"role": "user", "content": "How is the sky?"}
ITEMS = [
    {"role": "user", "content": "How is the sky?"},
    {"type": "function_call", "call_id": "c1", "name": "sky", "arguments": ARGUMENTS},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Grey."}]},
]
CALLED = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "c1", "name": "sky", "input": {"city": "Oslo"}}],
}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "sky", "arguments": ARGUMENTS}}
CASES = {
    "openai-responses": ITEMS,
    "anthropic-messages": {
        "request": {"model": "m", "max_tokens": 9, "tools": [TOOL], "messages": [ASKED, CALLED]},
        "response": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": "Grey."}], "stop_reason": "end_turn",
        },
    },
    "openai-chat": {
        "request": {
            "model": "m",
            "messages": [ASKED, {"role": "assistant", "content": "", "tool_calls": [CHAT_CALL]}],
        },
        "response": {
            "model": "m", "created_at": "2026-10-01T00:00:00Z", "done": True,
            "done_reason": "stop", "message": {"role": "assistant", "content": "Grey."},
        },
    },
    "toucan": {
        "uuid": "k", "subset_name": "single-turn-original", "target_tools": "sky", "question": "q",
        "messages": json.dumps([
            ASKED,
            {"role": "assistant", "content": "", "function_call": {"name": "sky",
             "arguments": ARGUMENTS}},
            {"role": "assistant", "content": "Grey."},
        ]),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_text_after_a_call_without_a_result_is_another_answer(name):
    source = Source("log.jsonl", data=json.dumps(CASES[name]).encode() + b"\n")
    (found,) = [e for e in read_events(readers()[name], source) if isinstance(e, Conversation)]
    turns = [message for message in found.messages if message.role == "assistant"]
    kinds = [[type(part) for part in message.parts] for message in turns]
    assert kinds == [[ToolCall], [Text]]
    assert [message.turn for message in turns] == [None, None]
