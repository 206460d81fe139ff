"""Proposals link results to their calls, however the log numbers the calls."""

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
