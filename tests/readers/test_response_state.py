"""The state of each response is looked at, wherever in a chain of requests it stands."""

import json

import pytest

from builder.conversation import Conversation, Ignored, Unparsed
from builder.problem import Problem
from builder.readers import read_events, readers
from builder.sources.source import Source

CALL = {"id": "c1", "type": "function", "function": {"name": "w", "arguments": '{"a": 1}'}}
ASKED = {"role": "user", "content": "Oslo?"}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
FIRST = [ASKED]
SECOND = [ASKED, CALLED, {"role": "tool", "tool_call_id": "c1", "content": "4C"}]
THIRD = [*SECOND, {"role": "user", "content": "Bergen?"}]


def answer(message, finish="stop"):
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [
        {"index": 0, "message": message, "finish_reason": finish}]}  # fmt: skip


def said(text, finish="stop"):
    return answer({"role": "assistant", "content": text}, finish)


GOOD = answer(CALLED, "tool_calls")
DELTA = 'data: {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": %s}]}\n\n'
FAULTS = {
    "cut JSON": (200, json.dumps(said("It is 4C."))[:-9]),
    "empty text": (200, ""),
    "empty object": (200, {}),
    "null": (200, None),
    "null without a status": (None, None),
    "no choices": (200, {"choices": []}),
    "HTML": (200, "<html>gateway timeout</html>"),
    "bad Base64": (200, {"base64_string": "x"}),
    "HTTP 500": (500, {"error": {"type": "server_error", "message": "m"}}),
    "HTTP 500 with an answer": (500, said("It is 4C.")),
    "HTTP 429 in text": (429, "slow down"),
    "error body": (200, {"error": {"message": "m", "type": "t", "code": None, "param": None}}),
    "empty stream": (200, "data: [DONE]\n\n"),
    "stream cut at once": (200, DELTA % '{"role": "assistant"}'),
    "stream with an error": (200, 'data: {"error": {"type": "overloaded"}}\n\n'),
}
CUT = {
    "stream": (200, DELTA % '{"role": "assistant", "content": "It is"}'),
    "length": (200, said("It is", "length")),
}


def pairs(exchanges):
    for messages, (status, body) in exchanges:
        yield {"request": {"model": "m", "messages": messages}, "status": status, "response": body}


def as_lines(exchanges):
    return "".join(json.dumps(line) + "\n" for line in pairs(exchanges))


def as_har(exchanges):
    entries = []
    for messages, (status, body) in exchanges:
        text = body if isinstance(body, str) else json.dumps(body)
        content = {"text": text, "mimeType": "application/json", "size": len(text)}
        if isinstance(body, dict) and "base64_string" in body:
            content = {"text": body["base64_string"], "encoding": "base64"}
        sent = json.dumps({"model": "m", "messages": messages})
        url = "https://llm.example/v1/chat/completions"
        entries.append({
            "request": {"method": "POST", "url": url, "postData": {"text": sent}},
            "response": {"status": status, "content": content},
        })  # fmt: skip
    return json.dumps({"log": {"entries": entries}})


def as_cassette(exchanges):
    import yaml

    interactions = []
    for messages, (status, body) in exchanges:
        logged = body if isinstance(body, str) else json.dumps(body)
        is_binary = isinstance(body, dict) and "base64_string" in body
        logged = body if is_binary else {"string": logged}
        interactions.append({
            "request": {
                "body": json.dumps({"model": "m", "messages": messages}),
                "uri": "https://llm.example/v1/chat/completions",
            },
            "response": {"body": logged, "status": {"code": status}},
        })  # fmt: skip
    return yaml.safe_dump({"interactions": interactions}, allow_unicode=True)


FORMS = {"lines": as_lines, "har": as_har, "cassette": as_cassette}


def events(form, *exchanges):
    source = Source("log", data=FORMS[form](exchanges).encode())
    found = list(read_events(readers()["openai-chat"], source))
    conversations = [event for event in found if isinstance(event, Conversation)]
    problems = [event for event in found if isinstance(event, Problem)]
    counted = sum(event.records for event in found)
    assert counted == source.records_read == len(exchanges), "every record is counted once"
    return conversations, problems, [event for event in found if isinstance(event, Ignored)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_response_is_a_reject_at_each_place_of_a_chain(form, fault):
    bad, good, last = FAULTS[fault], (200, GOOD), (200, said("It is 4C."))
    # at the end
    conversations, problems, ignored = events(form, (FIRST, good), (SECOND, bad))
    assert [one.code for one in problems] == ["no_response"]
    assert len(conversations) == 1
    assert not ignored
    # at the beginning, and repeated
    conversations, problems, _ = events(form, (FIRST, bad), (FIRST, bad), (FIRST, good))
    assert [one.code for one in problems] == ["no_response"] * 2
    assert [one.records for one in conversations] == [1]
    # in the middle, answered by a retry
    conversations, problems, _ = events(form, (FIRST, good), (SECOND, bad), (SECOND, last))
    assert [one.code for one in problems] == ["no_response"]
    assert len(conversations) == 1
    # in the middle, and the conversation goes on without an answer
    conversations, problems, _ = events(form, (FIRST, good), (SECOND, bad), (THIRD, last))
    assert [one.code for one in problems] == ["no_response"]
    assert len(conversations) == 1
    # after the answer to the same messages
    conversations, problems, _ = events(form, (FIRST, good), (FIRST, bad))
    assert [one.code for one in problems] == ["no_response"]
    # alone: a stream that was cut is a conversation whose last turn cannot be read
    conversations, problems, _ = events(form, (FIRST, bad))
    if fault == "stream cut at once":
        (conversation,) = conversations
        assert [type(part) for part in conversation.messages[-1].parts] == [Unparsed]
    else:
        assert [one.code for one in problems] == ["no_response"]
        assert not conversations


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cut", CUT)
def test_a_cut_answer_is_in_a_rejected_conversation_or_not_trained(form, cut):
    bad, good, last = CUT[cut], (200, GOOD), (200, said("It is 4C."))
    conversations, _, _ = events(form, (FIRST, good), (SECOND, bad), (SECOND, last))
    (rejected,) = [one for one in conversations if one.problems]
    assert rejected.problems[0].code == "truncated"
    continued = [
        *SECOND,
        {"role": "assistant", "content": "It is"},
        {"role": "user", "content": "?"},
    ]
    conversations, _, _ = events(form, (FIRST, good), (SECOND, bad), (continued, last))
    (found,) = conversations
    assert [one.untrained for one in found.messages if one.role == "assistant"] == [
        None, "truncated", None,
    ]  # fmt: skip


def test_a_request_without_a_recorded_response_is_a_prefix():
    lines = list(pairs([(FIRST, (None, None)), (SECOND, (200, said("It is 4C.")))]))
    del lines[0]["response"]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    found = list(read_events(readers()["openai-chat"], Source("log", data=text.encode())))
    assert [event.code for event in found if isinstance(event, Ignored)] == ["prefix"]
    assert not [event for event in found if isinstance(event, Problem)]


def test_an_error_beside_the_request_is_a_failed_response():
    lines = list(pairs([(FIRST, (None, None)), (FIRST, (200, GOOD))]))
    lines[0]["error"] = "connection reset"
    text = "".join(json.dumps(line) + "\n" for line in lines)
    found = list(read_events(readers()["openai-chat"], Source("log", data=text.encode())))
    assert [event.code for event in found if isinstance(event, Problem)] == ["no_response"]


def langfuse_events(output):
    rows = [
        {"id": "g1", "startTime": "1", "input": {"messages": FIRST}, "output": CALLED},
        {"id": "g2", "startTime": "2", "input": {"messages": SECOND}, "output": output},
    ]
    same = {"traceId": "t", "type": "GENERATION", "level": "DEFAULT", "model": "m"}
    text = json.dumps([{**same, **row} for row in rows])
    return list(read_events(readers()["langfuse"], Source("log.json", data=text.encode())))


@pytest.mark.parametrize("output", ["", {}, [], "{}", '""'], ids=repr)
def test_an_empty_output_of_a_trace_is_a_reject(output):
    found = langfuse_events(output)
    assert [event.code for event in found if isinstance(event, Problem)] == ["no_response"]


def test_an_output_that_was_not_logged_is_a_prefix():
    found = langfuse_events(None)
    assert [event.code for event in found if isinstance(event, Ignored)] == ["prefix"]
    assert not [event for event in found if isinstance(event, Problem)]


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("body", [{"role": "assistant", "content": "It is 4C."}, said("It is 4C.")])
def test_a_message_in_json_that_was_cut_off_is_no_answer_in_words(body, levels):
    output = body
    for _ in range(levels):
        output = json.dumps(output)
    (cut,) = [one for one in langfuse_events(output[:-9]) if isinstance(one, Conversation)]
    assert [part.code for part in cut.messages[-1].parts if isinstance(part, Unparsed)] == [
        "truncated"
    ]


def test_words_with_braces_are_an_answer():
    (found,) = [e for e in langfuse_events('{"city": the role of') if isinstance(e, Conversation)]
    assert not found.problems


def test_a_null_in_place_of_litellms_response_is_a_reject():
    same = {"call_type": "acompletion", "model_group": "m", "model": "m", "status": "success"}
    rows = [{**same, "messages": FIRST, "response": GOOD},
            {**same, "messages": SECOND, "response": None}]  # fmt: skip
    text = "".join(json.dumps(row) + "\n" for row in rows)
    found = list(read_events(readers()["litellm"], Source("log.jsonl", data=text.encode())))
    assert [event.code for event in found if isinstance(event, Problem)] == ["no_response"]
