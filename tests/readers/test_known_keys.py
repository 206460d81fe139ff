"""Unknown keys are named in the conversation that was made of their record, and in no other."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.conversation import Conversation, Ignored, Message, Text
from builder.readers import Reader, read_events, readers
from builder.readers.toolkit.unknown_keys import MAX_NAMES, KnownKeys, shipped_keys
from builder.sources.source import Source

WORDS = "some words of a conversation"

KEYS = KnownKeys.parse(
    """
    known = "type data items llm.*"
    free = "arguments"
    maps = "by_id"
    json = "column"
    inside = "messages"

    [left_out]
    "data.type" = ["ui_*"]
    """
)


@pytest.mark.parametrize(
    ("record", "names"),
    [
        ({"type": "a", "data": {"items": [[{"new": WORDS}]]}}, ["new"]),
        ({"new": WORDS, "items": [{"new": WORDS}]}, ["new", "new"]),
        ({"new": {"deep": [WORDS]}}, ["new"]),
        ({"new": "an-id", "other": 7, "third": None, "path": "/a/b.py"}, []),
        ({"arguments": {"new": WORDS}}, []),
        ({"arguments": {"messages": [], "new": WORDS}}, ["new"]),
        ({"by_id": {"0a1b": {"new": WORDS}, "text": WORDS}}, ["new"]),
        ({"column": json.dumps({"new": WORDS})}, ["new"]),
        ({"column": "{ not JSON"}, []),
        ({"llm.prompt": WORDS, "llm.other": {"new": WORDS}}, ["new"]),
        ({"data": {"type": "ui_note"}, "new": WORDS}, []),
        ([{"new": WORDS}], ["new"]),
        (WORDS, []),
    ],
)
def test_unknown_keys_of_a_record(record, names):
    assert KEYS.unknown_in(record) == names


@given(st.recursive(st.none() | st.text(), lambda inner: st.lists(inner)
                    | st.dictionaries(st.text(max_size=4), inner)))  # fmt: skip
def test_any_value_can_be_looked_at(value):
    assert all(isinstance(name, str) for name in KEYS.unknown_in(value))


def conversation(name, record, unknown=()):
    message = Message("user", (Text("Hello."),), unknown=unknown)
    return Conversation(id=name, record=record, messages=(message,), records=1)


def read(reader_of, log, **hooks):
    reader = Reader(
        name="toy", summary="", recognise=lambda source: "toy", read=reader_of, keys=KEYS, **hooks
    )
    return list(read_events(reader, Source("log.jsonl", data=log), named=True))


def lines(*records):
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


def counts(events):
    return [dict(event.changes) for event in events if isinstance(event, Conversation)]


def test_a_key_is_counted_where_its_line_is():
    def after_all(source):
        assert len(list(source.records())) == 4
        yield conversation("a", "lines 1-2")
        yield conversation("b", "line 3")

    log = lines({"type": "a"}, {"one": WORDS}, {"two": WORDS}, {"three": WORDS})
    found = counts(read(after_all, log))
    assert found == [{"unknown_key:one": 1}, {"unknown_key:two": 1, "unknown_key:three": 1}]


def test_keys_are_counted_in_their_conversation_whatever_the_order():
    """Captures yield conversations that end first; those of a document share its keys."""

    def reversed_order(source):
        list(source.records())
        yield conversation("late", "line 3 to line 4")
        yield conversation("early", "lines 1-2")

    log = lines({"new": WORDS}, {"type": "a"}, {"other": WORDS}, {"type": "a"}, {"apart": WORDS})
    late, early = counts(read(reversed_order, log))
    assert late == {"unknown_key:other": 1}
    assert early == {"unknown_key:new": 1, "unknown_key:apart": 1}

    def of_document(source):
        source.document()
        yield conversation("one", "messages[0]-messages[2]")
        yield conversation("two", "messages[3]")

    document = json.dumps({"new": WORDS}).encode()
    assert counts(read(of_document, document)) == [{"unknown_key:new": 1}] * 2


def test_lines_that_are_split_do_not_depend_on_each_other():
    def each(source):
        for record in source.records():
            yield Ignored("x") if "type" in record.value else conversation("a", record.where)

    log = lines({"type": "ignored", "one": WORDS}, {"two": WORDS}, {"type": "b", "three": WORDS})
    events = read(each, log, splits=lambda source: True)
    assert counts(events) == [{"unknown_key:two": 1}]
    assert [type(event).__name__ for event in events] == ["Ignored", "Conversation", "Ignored"]


def test_items_do_not_depend_on_each_other():
    def each(source):
        for item in source.items_of_chunk(["a", "b", "c"]):
            source.seen(item, {f"new_{item}": WORDS})
            if item != "b":
                yield conversation(item, f"session {item}")

    assert counts(read(each, b"{}\n")) == [{"unknown_key:new_a": 1}, {"unknown_key:new_c": 1}]


def test_a_key_that_a_message_names_is_counted_once():
    def one(source):
        list(source.records())
        yield conversation("a", "line 1", unknown=("content.mood",))

    log = lines({"items": [{"mood": WORDS}], "aside": WORDS})
    assert counts(read(one, log)) == [{"unknown_key:aside": 1}]


def test_ids_and_many_names_are_not_shown():
    def one(source):
        list(source.records())
        yield conversation("a", "line 1")

    many = {f"key_{chr(97 + at)}": WORDS for at in range(MAX_NAMES + 3)}
    private = {"/home/ann/notes.md": WORDS, "call_19283746": WORDS}
    [found] = counts(read(one, lines(many | private)))
    assert len(found) == MAX_NAMES + 1
    assert found["unknown_key:*"] == 3 + 2
    assert not any("ann" in code or "1928" in code for code in found)


def test_the_list_of_a_document_is_seen_once():
    def listed(source):
        for record in source.records():
            yield conversation(record.where, record.where)

    log = json.dumps([{"one": WORDS}, {"two": WORDS}], indent=1).encode()
    assert counts(read(listed, log)) == [{"unknown_key:one": 1}, {"unknown_key:two": 1}]


def test_every_reader_of_json_declares_its_keys():
    without = {name for name in readers() if shipped_keys(name) is None}
    assert without <= {"unverified"}
