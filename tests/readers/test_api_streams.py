"""Properties of streamed answers: however split into events, they are read whole or not at all.

Also: histories stored by a server are read like histories repeated in each request.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.conversations.strategies import pieces

from builder.conversation import Conversation, ToolCall
from builder.readers import readers
from builder.readers.api import codec, histories
from builder.readers.api.anthropic import MESSAGES, whole_message
from builder.readers.api.dialects import dialect
from builder.readers.api.exchanges import Exchange
from builder.readers.api.openai_responses import RESPONSES, whole_response
from builder.sources.source import Source

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
ARGUMENTS = st.dictionaries(TEXT, st.integers() | TEXT, max_size=3)


def check_cut_stream(draw, bodies, events, last, calls):
    """Checks that a stream that breaks off gives no target and no part of a call.

    `last`: the type of the event that completes a block; `calls`: the arguments of all calls.
    """
    cut = events[: draw(st.integers(1, len(events)))]
    answered = bodies.answers(Exchange("line 1", events=tuple(cut)))
    assert answered or not any(event["type"] == last for event in cut)
    assert all(answer.fault == "truncated" and not answer.usable for answer in answered)
    parts = [part for answer in answered for part in answer.message.parts]
    found = [part.arguments for part in parts if isinstance(part, ToolCall)]
    assert found == calls[: len(found)], "a part of a call"


def read(reader, *lines):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    return list(readers()[reader].read(Source("log.jsonl", data=text.encode())))


# -- Anthropic -----------------------------------------------------------------------------------

BLOCKS = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, TEXT),
        st.builds(lambda text: {"type": "thinking", "thinking": text}, TEXT),
        st.builds(
            lambda value: {"type": "tool_use", "id": "toolu_01", "name": "f", "input": value},
            ARGUMENTS,
        ),
    ),
    min_size=1,
    max_size=4,
)


def anthropic_events(draw, blocks):
    """Returns the events of a message with these blocks: (events of blocks, final events)."""
    events = [{"type": "message_start", "message": {"content": [], "stop_reason": None}}]
    for at, block in enumerate(blocks):
        kind = block["type"]
        if kind == "tool_use":
            start = {**block, "input": {}}
            written = json.dumps(block["input"]) if block["input"] else ""
            deltas = [
                {"type": "input_json_delta", "partial_json": p} for p in pieces(draw, written)
            ]
        else:
            start = {**block, kind: ""}
            deltas = [{"type": f"{kind}_delta", kind: p} for p in pieces(draw, block[kind])]
        events.append({"type": "content_block_start", "index": at, "content_block": start})
        events += [{"type": "content_block_delta", "index": at, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": at})
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    return events, [end, {"type": "message_stop"}]


@given(st.data(), BLOCKS)
def test_an_anthropic_stream_comes_back_whole(data, blocks):
    events, end = anthropic_events(data.draw, blocks)
    at = data.draw(st.integers(0, len(events)))
    message = whole_message([*events[:at], {"type": "ping"}, *events[at:], *end])
    assert message["content"] == blocks
    assert message["stop_reason"] == "end_turn"


@given(st.data(), BLOCKS)
def test_an_anthropic_stream_without_its_end_is_no_target(data, blocks):
    events, _ = anthropic_events(data.draw, blocks)
    calls = [block["input"] for block in blocks if block["type"] == "tool_use"]
    check_cut_stream(data.draw, MESSAGES, events, "content_block_stop", calls)


# -- Responses -----------------------------------------------------------------------------------


def item(kind, value, at):
    if kind == "function_call":
        names = {"id": f"fc_{at}", "call_id": f"call_{at}", "name": "f"}
        return {"type": kind, **names, "arguments": json.dumps(value)}
    parts = [{"type": "output_text", "text": value}]
    return {"type": kind, "id": f"msg_{at}", "role": "assistant", "content": parts}


ITEMS = st.lists(
    st.tuples(st.just("message"), TEXT) | st.tuples(st.just("function_call"), ARGUMENTS),
    min_size=1,
    max_size=4,
).map(lambda made: [item(kind, value, at) for at, (kind, value) in enumerate(made)])


def response(items, **keys):
    return {"id": "resp_1", "object": "response", "status": "completed", "output": items, **keys}


def responses_events(draw, items):
    """Returns the events of a response with these items, except the last event."""
    start = response([], status="in_progress")
    events = [{"type": "response.created", "response": start}]
    for at, made in enumerate(items):
        place = {"output_index": at, "item_id": made["id"]}
        begun = {**made, "arguments": ""} if "arguments" in made else {**made, "content": []}
        events.append({"type": "response.output_item.added", **place, "item": begun})
        if "arguments" in made:
            kind, text = "response.function_call_arguments.delta", made["arguments"]
        else:
            kind, text = "response.output_text.delta", made["content"][0]["text"]
        events += [{"type": kind, **place, "delta": piece} for piece in pieces(draw, text)]
        events.append({"type": "response.output_item.done", **place, "item": made})
    return events


@given(st.data(), ITEMS, st.booleans())
def test_a_responses_stream_comes_back_whole(data, items, full):
    """`full`: the last event repeats the output; some servers leave it empty."""
    last = {"type": "response.completed", "response": response(items if full else [])}
    assert whole_response([*responses_events(data.draw, items), last]) == response(items)


@given(st.data(), ITEMS)
def test_a_responses_stream_without_its_end_is_no_target(data, items):
    events = responses_events(data.draw, items)
    calls = [item["arguments"] for item in items if "arguments" in item]
    check_cut_stream(data.draw, RESPONSES, events, "response.output_item.done", calls)


@given(st.lists(st.tuples(TEXT, ITEMS), min_size=1, max_size=4), st.booleans())
def test_a_stored_history_reads_like_a_repeated_one(turns, by_reference):
    """`by_reference`: items are named by their ids, not by the response before them."""
    kept, repeated = [], []
    history = []
    for number, (question, answer) in enumerate(turns):
        answer = [{**made, "id": f"{made['id']}_{number}"} for made in answer]  # noqa: PLW2901
        asked = [{"role": "user", "content": f"{number} {question}"}]
        content = response(answer, id=f"resp_{number}")
        named = {"previous_response_id": f"resp_{number - 1}"} if number else {}
        if by_reference:
            references = [
                {"type": "item_reference", "id": one["id"]} if "id" in one else one
                for one in history
            ]
            named = {"input": [*references, *asked]}
        kept.append({"request": {"model": "toy-5", "input": asked, **named}, "response": content})
        sent = {"model": "toy-5", "input": [*history, *asked]}
        repeated.append({"request": sent, "response": content})
        history += [*asked, *answer]
    assert read("openai-responses", *kept) == read("openai-responses", *repeated)


def test_histories_beyond_the_memory_limit_are_missing(monkeypatch):
    monkeypatch.setattr(codec, "MAX_KEPT", 1)
    lines = []
    for number, named in ((1, {}), (2, {}), (3, {"previous_response_id": "resp_1"})):
        sent = {"model": "toy-5", "input": f"question {number}", "store": True, **named}
        content = response([item("message", "x", number)], id=f"resp_{number}")
        lines.append({"request": sent, "response": content})
    found = [event for event in read("openai-responses", *lines) if isinstance(event, Conversation)]
    codes = [[problem.code for problem in conversation.problems] for conversation in found]
    assert codes == [[], [], ["missing_history"]]


# -- which API -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "body", "name"),
    [
        ("/v1/responses/resp_1", response([]), "openai-responses"),
        ("/v1/responses/resp_1", {"id": "resp_1", "object": "response.deleted"}, None),
        ("/v1/responses/resp_1/input_items", {"object": "list", "data": []}, None),
        ("/v1/responses/compact", {"object": "response.compaction", "output": []}, None),
        ("/v1/publishers/anthropic/models/toy:streamRawPredict", {}, "anthropic-messages"),
        ("/v1/publishers/mistralai/models/toy:rawPredict", {}, None),
        ("", {"type": "response.custom_tool_call_input.delta", "item_id": "i"}, "openai-responses"),
        ("", {"type": "response.text", "text": "another program's event"}, None),
        ("", {"type": "ping"}, None),
    ],
)
def test_the_api_of_a_body(url, body, name):
    assert dialect(body, url) == name


@pytest.mark.parametrize("reader", ["openai-responses", "anthropic-messages"])
def test_conversations_beyond_the_limit_are_emitted(monkeypatch, reader):
    monkeypatch.setattr(histories, "MAX_OPEN", 2)
    lines = []
    for number in range(5):
        if reader == "openai-responses":
            sent = {"model": "toy-5", "input": f"{number}", "store": False}
            content = response([item("message", "x", number)])
        else:
            sent = {"model": "toy", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
            sent["system"] = str(number)
            content = {"type": "message", "content": [{"type": "text", "text": "x"}]}
            content["stop_reason"] = "end_turn"
        lines.append({"request": sent, "response": content})
    found = [event for event in read(reader, *lines) if isinstance(event, Conversation)]
    assert [conversation.id for conversation in found] == [f"line {n}" for n in range(1, 6)]
