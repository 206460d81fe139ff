"""Proposals link results to their calls, however the log numbers the calls."""

import itertools
import json

import pytest
import yaml
from support.logs.mapped import contents, written

from builder import Conversation, UsageError, suggest_mapping
from builder.config.load import parse_mapping
from builder.conversation import ToolCall, ToolResult
from builder.readers.mapping.read import mapped_reader
from builder.readers.mapping.suggest import suggest
from builder.testing import read_counted


def rows_of(key, *, is_nested, per_turn):
    """Returns event lines whose results come in the other order; each names its call's city."""

    def event(kind, chat, **values):
        inner = {"data": values} if is_nested and kind in ("call", "result") else values
        return {"chat": chat, "type": kind, **inner}

    rows = []
    for chat in ("a", "b", "c"):
        for turn in range(2):
            first = 0 if per_turn else 2 * turn
            ids = [first, first + 1] if key == "nr" else [f"call_{first}", f"call_{first + 1}"]
            places = [f"{chat}{turn}{number}" for number in ids]
            rows.append(event("user", chat, text=f"What is the weather of {places}?"))
            for one, place in zip(ids, places, strict=True):
                rows.append(event("call", chat, tool="weather", args={"q": place}, **{key: one}))
            for one, place in [*zip(ids, places, strict=True)][::-1]:
                rows.append(event("result", chat, output=f"sun in {place} now", **{key: one}))
            rows.append(event("assistant", chat, text="The sun shines in both."))
    return rows


@pytest.mark.parametrize("per_turn", [False, True])
@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("key", ["call_id", "id", "key", "nr"])
def test_ids_that_start_again_link_results(tmp_path, key, is_nested, per_turn):
    source = written(tmp_path, rows_of(key, is_nested=is_nested, per_turn=per_turn))
    spec = parse_mapping(suggest(source), "proposal")
    events = list(read_counted(mapped_reader(spec), source))
    assert len(events) == 3
    for event in events:
        assert isinstance(event, Conversation)
        asked, answered = {}, 0
        for part in (part for message in event.messages for part in message.parts):
            if isinstance(part, ToolCall):
                asked[part.id] = part.arguments["q"]
            elif isinstance(part, ToolResult):
                assert asked[part.call_id] in part.content[0].text
                answered += 1
        assert answered == 4


CALL_PLACES = ("message", "meta", "call", "call.meta")
RESULT_PLACES = ("message", "meta", "result", "beside result")
NAMES = [("id", "parent_call"), ("uid", "ref"), ("nr", "for"), ("call_id", "call_id")]


def log_with_ids(kind, call_place, result_place, names, *, numbers, everywhere):
    """Returns conversations whose results come in another order than their calls.

    `kind`: how a call stands in its message. The places are those of the call's id; `everywhere`:
    other messages have an id under the same key.
    """
    own, theirs = names
    numbered = itertools.count(1)
    lists = []

    def new_id():
        return next(numbered) * 7 if numbers else f"x{next(numbered)}z"

    def message(who, **values):
        if everywhere and call_place in ("message", "meta"):
            inner = values if call_place == "message" else values.setdefault("meta", {})
            inner.setdefault(own, new_id())
        lists[-1].append({"who": who, **values})

    for chat, turn in itertools.product("abc", range(2)):
        if turn == 0:
            lists.append([])
        made = {f"{chat}{turn}{letter}": new_id() for letter in "AB"}
        message("user", words=f"Please do thing {turn} of {chat}")
        for city, one in made.items():
            call = {"name": "search", "args": {"q": city}}
            call |= {"call": {own: one}, "call.meta": {"meta": {own: one}}}.get(call_place, {})
            beside = {"message": {own: one}, "meta": {"meta": {own: one}}}.get(call_place, {})
            held = {"object": call, "list": [call], "text": json.dumps(call)}[kind]
            message("assistant", words="I do it", call=held, **beside)
        for city, one in reversed(made.items()):
            text, link = f"found what {city} is", {theirs: one}
            message("tool", **{
                "message": {"words": text} | link,
                "meta": {"words": text, "meta": link},
                "result": {"result": {"output": text} | link},
                "beside result": {"result": {"output": text}} | link,
            }[result_place])  # fmt: skip
        message("assistant", words=f"That is thing {turn}.")
    return lists


@pytest.mark.parametrize("result_place", RESULT_PLACES)
@pytest.mark.parametrize("call_place", CALL_PLACES)
@pytest.mark.parametrize(
    "kind", ["object", *(pytest.param(one, marks=pytest.mark.slow) for one in ("list", "text"))]
)
def test_results_follow_their_calls_wherever_the_ids_stand(
    tmp_path, kind, call_place, result_place
):
    at = ("object", "list", "text").index(kind) + 4 * CALL_PLACES.index(call_place)
    at += RESULT_PLACES.index(result_place)
    names = NAMES[at % 4]
    is_one_place = names == NAMES[3] and call_place == result_place
    lists = log_with_ids(
        kind, call_place, result_place, names,
        numbers=at // 2 % 2 and names != NAMES[2], everywhere=at % 3 and not is_one_place,
    )  # fmt: skip
    rows = [{"chat": chat, "log": log} for chat, log in zip("abc", lists, strict=True)]
    if at % 5 in (1, 2):
        rows = [{"chat": row["chat"], **one} for row in rows for one in row["log"]]
    source = written(tmp_path, rows)
    events = list(read_counted(mapped_reader(parse_mapping(suggest(source), "found")), source))
    assert len(events) == 3
    for event in events:
        parts = [part for message in event.messages for part in message.parts]
        asked = {one.id: one.arguments["q"] for one in parts if isinstance(one, ToolCall)}
        results = [part for part in parts if isinstance(part, ToolResult)]
        assert len(asked) == len(results) == 4
        assert all(f"what {asked[one.call_id]} is" in one.content[0].text for one in results)


@pytest.mark.parametrize("place", ["message", "call"])
def test_numbers_that_perhaps_link_are_asked_about(tmp_path, place):
    lists = log_with_ids("object", place, "message", NAMES[2], numbers=True, everywhere=False)
    text = suggest(written(tmp_path, [{"log": log} for log in lists]))
    assert "# Decide: message.result.id: is it 'for', and 'nr' the id of its call?" in text


def test_what_a_conversation_has_once_is_no_id(tmp_path):
    rows = [{"chat": chat, **row} for chat in ("a", "b") for row in (
        {"type": "user", "text": "What is the weather?"},
        {"type": "call", "tool": "weather", "args": {"q": "here"}, "zone": "z"},
        {"type": "result", "output": "sun in the place", "zone": "z"},
        {"type": "assistant", "text": "The sun shines."})]  # fmt: skip
    proposed = yaml.safe_load(suggest(written(tmp_path, rows)))
    assert "id" not in proposed["message"]["result"]


@pytest.mark.parametrize("name", ["state", "status"])
def test_what_follows_a_call_is_not_skipped_in_silence(tmp_path, name):
    rows = [{"chat": chat, **row} for chat, text in (("a", "ok"), ("b", "lost")) for row in (
        {"type": "user", "text": "Send the parcel to Bob"},
        {"type": "call", "tool": "send", "args": {"q": "Bob"}},
        {"type": name, "note": text},
        {"type": "assistant", "text": "I have sent the parcel."})]  # fmt: skip
    source = written(tmp_path, rows)
    text = suggest(source)
    assert f"# Decide: message.roles: {name!r} follows calls" in text
    read = contents(read_counted(mapped_reader(parse_mapping(text, "proposal")), source))
    assert [conversation[2] for conversation in read] == [("tool", "ok"), ("tool", "lost")]


def test_roles_of_unknown_names_are_told_from_structure(tmp_path):
    log = [{"szerep": "ember", "szoveg": "Send the parcel to Bob"},
           {"szerep": "gep", "tool_calls": [{"name": "send", "arguments": {"q": "Bob"}}]},
           {"szerep": "eszkoz", "szoveg": "The parcel is sent"},
           {"szerep": "gep", "szoveg": "I have sent the parcel."}]  # fmt: skip
    text = suggest(written(tmp_path, [{"id": 1, "log": log}, {"id": 2, "log": log}]))
    roles = yaml.safe_load(text)["message"]["roles"]
    assert roles == {"ember": "user", "gep": "assistant", "eszkoz": "tool"}
    assert (
        "# Decide: message.roles: is 'ember' user and 'gep' assistant? Only the structure" in text
    )


def test_a_log_that_a_reader_reads_needs_no_mapping(tmp_path):
    messages = [{"role": "user", "content": "Hello there"}, {"role": "assistant", "content": "Hi"}]
    source = written(tmp_path, [{"messages": messages}])
    with pytest.raises(UsageError, match="the reader 'openai-chat' reads it, so it needs no"):
        suggest_mapping(tmp_path / source.name)
