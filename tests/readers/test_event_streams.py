"""Properties of streamed Gemini and Converse answers and of frames: whole, or not a target."""

import base64
import json
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.conversations.strategies import pieces

from builder.readers.api import bedrock, bodies, gemini
from builder.readers.api.exchanges import Exchange

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
SCALARS = st.booleans() | st.none() | st.integers(-9, 9) | TEXT
KEYS = st.text("abc", min_size=1, max_size=2)
ARGUMENTS = st.dictionaries(
    KEYS,
    SCALARS | st.lists(SCALARS, min_size=1, max_size=3) | st.dictionaries(KEYS, SCALARS),
    max_size=3,
)


# -- frames --------------------------------------------------------------------------------------


def frame(payload, names):
    head = b"".join(
        bytes([len(name)])
        + name.encode()
        + b"\x07"
        + struct.pack(">H", len(value))
        + value.encode()
        for name, value in names.items()
    )
    body = json.dumps(payload).encode()
    start = struct.pack(">II", 16 + len(head) + len(body), len(head))
    start += struct.pack(">I", zlib.crc32(start))
    whole = start + head + body
    return whole + struct.pack(">I", zlib.crc32(whole))


def event(kind, payload):
    return frame(payload, {":event-type": kind, ":message-type": "event"})


EVENTS = st.lists(st.tuples(KEYS, st.dictionaries(KEYS, SCALARS)), min_size=1, max_size=4)


@given(EVENTS)
def test_frames_come_back_from_every_form(events):
    data = b"".join(event(kind, payload) for kind, payload in events)
    expected = tuple({kind: payload} for kind, payload in events)
    text = base64.b64encode(data).decode()
    assert bodies.frame_events(data) == expected
    assert bodies.read_body(data.hex()).events == expected
    assert bodies.read_body(text).events == expected
    assert bodies.read_body({"base64_string": text}).events == expected
    assert bodies.read_body({"text": text, "encoding": "base64"}).events == expected


@given(EVENTS, st.data())
def test_a_corrupt_stream_gives_a_prefix_of_its_events(events, data):
    frames = b"".join(event(kind, payload) for kind, payload in events)
    whole = bodies.frame_events(frames)
    at = data.draw(st.integers(0, len(frames) - 1))
    cut = bodies.frame_events(frames[:at]) or ()
    assert cut == whole[: len(cut)]
    broken = frames[:at] + bytes([frames[at] ^ data.draw(st.integers(1, 255))]) + frames[at + 1 :]
    found = bodies.frame_events(broken) or ()
    assert found == whole[: len(found)]
    assert len(found) < len(whole)


def test_frames_of_other_kinds():
    inner = base64.b64encode(b'{"type": "message_stop"}').decode()
    data = event("chunk", {"bytes": inner, "p": "abc"})
    data += frame({"message": "m"}, {":message-type": "exception", ":exception-type": "e"})
    assert bodies.frame_events(data) == (
        {"type": "message_stop"},
        {"error": {"type": "e", "message": "m"}},
    )


@pytest.mark.parametrize("text", ["", "0000", "AAAA", "000000", "AAA\x00", "0000001g", "AAA="])
def test_other_texts_are_not_frames(text):
    assert bodies.frames_in_text(text) is None


# -- Gemini --------------------------------------------------------------------------------------


def chunk(*parts, finish=None):
    candidate = {"content": {"role": "model", "parts": list(parts)}}
    return {"candidates": [{**candidate, "finishReason": finish} if finish else candidate]}


def partial(draw, value, path):
    """Returns the `partialArgs` of a value at a path, with its texts in pieces."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from partial(draw, item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from partial(draw, item, f"{path}[{index}]")
    elif isinstance(value, str):
        for piece in pieces(draw, value):
            yield {"jsonPath": path, "stringValue": piece, "willContinue": True}
        yield {"jsonPath": path, "stringValue": ""}
    elif isinstance(value, bool):
        yield {"jsonPath": path, "boolValue": value}
    elif value is None:
        yield {"jsonPath": path, "nullValue": "NULL_VALUE"}
    else:
        yield {"jsonPath": path, "numberValue": value}


def filled(value):
    """Returns the value without empty objects, which no partial argument describes."""
    if isinstance(value, dict):
        kept = {key: filled(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item != {}}
    return value


@given(st.data(), TEXT, TEXT, st.lists(ARGUMENTS.map(filled), max_size=3), st.booleans())
def test_a_gemini_answer_comes_back_whole(data, thought, words, calls, last_is_empty):
    chunks = [chunk({"text": piece, "thought": True}) for piece in pieces(data.draw, thought)]
    chunks += [chunk({"text": piece}) for piece in pieces(data.draw, words)]
    for arguments in calls:
        chunks.append(chunk({"functionCall": {"name": "f", "willContinue": True}}))
        for item in partial(data.draw, arguments, "$"):
            chunks.append(chunk({"functionCall": {"partialArgs": [item], "willContinue": True}}))
        chunks.append(chunk({"functionCall": {}}))
    chunks.append(chunk(*([{"text": ""}] if last_is_empty else []), finish="STOP"))
    whole = [{"text": thought, "thought": True}, {"text": words}]
    whole += [{"functionCall": {"name": "f", **({"args": a} if a else {})}} for a in calls]
    streamed = gemini.answers(Exchange("line 1", events=tuple(chunks)))
    answered = gemini.answers(Exchange("line 1", response=chunk(*whole, finish="STOP")))
    assert streamed == answered
    assert [answer.fault for answer in streamed] == [None]
    broken_off = gemini.answers(Exchange("line 1", events=tuple(chunks[:-1])))
    assert {answer.fault for answer in broken_off} == {"truncated"}


# -- Bedrock Converse ----------------------------------------------------------------------------


@given(st.data(), TEXT, TEXT, st.lists(ARGUMENTS, max_size=3), st.booleans())
def test_a_converse_answer_comes_back_whole(data, thought, words, calls, metadata_first):
    events = [{"messageStart": {"role": "assistant"}}]
    blocks = [("reasoningContent", thought), ("text", words)]
    for index, (kind, text) in enumerate(blocks):
        for piece in pieces(data.draw, text):
            delta = {"text": piece} if kind == "text" else {kind: {"text": piece}}
            events.append({"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}})
        events.append({"contentBlockStop": {"contentBlockIndex": index}})
    whole = [{"reasoningContent": {"reasoningText": {"text": thought}}}, {"text": words}]
    for number, arguments in enumerate(calls):
        index = len(blocks) + number
        use = {"toolUseId": f"t{number}", "name": "f"}
        text = json.dumps(arguments) if arguments else ""
        whole.append({"toolUse": {**use, "input": arguments or ""}})
        start = {"contentBlockIndex": index, "start": {"toolUse": use}}
        events.append({"contentBlockStart": start})
        for piece in pieces(data.draw, text):
            delta = {"toolUse": {"input": piece}}
            events.append({"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}})
        events.append({"contentBlockStop": {"contentBlockIndex": index}})
    end = [{"messageStop": {"stopReason": "end_turn"}}, {"metadata": {"usage": {}}}]
    answered = {"output": {"message": {"content": whole}}, "stopReason": "end_turn"}
    events += reversed(end) if metadata_first else end
    streamed = bedrock.answers(Exchange("line 1", events=tuple(events)))
    assert streamed == bedrock.answers(Exchange("line 1", response=answered))
    assert [answer.fault for answer in streamed] == [None]
    broken_off = tuple(event for event in events if "messageStop" not in event)
    assert [answer.fault for answer in bedrock.answers(Exchange("", events=broken_off))] == [
        "truncated"
    ]
