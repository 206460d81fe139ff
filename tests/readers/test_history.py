"""The history of a session: what its conversations contain, whatever happened to it."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.conversation import REPEAT, Conversation, Ignored, Message, Text, ToolCall
from builder.readers.toolkit.history import RequestHead, SessionHistory, continues

TOOLS = tuple({"name": name, "parameters": {}} for name in ("read", "write"))
HEADS = (
    RequestHead("p", TOOLS[:1]),
    RequestHead("p", TOOLS),
    RequestHead("p on 2026-11-27", TOOLS),
    RequestHead("p on 2026-11-28", TOOLS),
    RequestHead("another", ()),
    RequestHead(),
)


def texts(conversation):
    return [part.text for message in conversation.messages for part in message.parts
            if isinstance(part, Text)]  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from("uaaarc"), st.integers(0, 5)), max_size=30))
def test_each_answer_is_a_target_once(steps):
    """A step appends a message of the user or an answer, rewinds or compacts."""
    history = SessionHistory("f", "s", "scope")
    written = []
    for number, (step, choice) in enumerate(steps):
        if step == "u":
            history.append(Message("user", (Text(f"u{number}"),)), f"line {number}")
        elif step == "a":
            head = HEADS[choice]
            parts = (Text(f"a{number}"), ToolCall("read", {}, "call_0"))
            history.append(Message("assistant", parts), f"line {number}", head)
            written.append(f"a{number}")
        elif step == "r":
            length = min(choice, len(history.entries))
            history.rewind(length)
        else:
            history.replace(history.entries[-choice:] if choice else [])
    events = list(history.conversations(len(steps)))
    conversations = [event for event in events if isinstance(event, Conversation)]
    assert sum(event.records for event in events) == len(steps)
    assert len({one.id for one in conversations}) == len(conversations)
    targets = Counter()
    keys = {}
    for one in conversations:
        order = [int(text[1:]) for text in texts(one) if text[1:].isdigit()]
        assert order == sorted(order), "messages keep their order"
        for message in one.messages:
            if message.role != "assistant":
                continue
            name, call = message.parts
            assert keys.setdefault(name.text, call.key) == call.key, "a call keeps its key"
            assert message.context is not None
            if message.untrained is None:
                targets[name.text] += 1
    assert targets == Counter(written)
    assert len(set(keys.values())) == len(keys), "calls with one id have keys of their own"


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        (HEADS[0], HEADS[1], True),
        (HEADS[1], HEADS[0], False),
        (HEADS[2], HEADS[3], True),
        (HEADS[1], HEADS[4], False),
        (HEADS[1], HEADS[5], False),
        (HEADS[1], RequestHead("p", (TOOLS[0], {**TOOLS[1], "parameters": 1})), False),
    ],
)  # fmt: skip
def test_what_begins_a_conversation_of_its_own(old, new, same):
    history = SessionHistory("f", "s", "scope")
    for number, head in enumerate((old, new)):
        history.append(Message("user", (Text("?"),)), f"line {number}")
        history.append(Message("assistant", (Text(str(number)),)), f"line {number}", head)
    found = list(history.conversations(4))
    assert continues(old, new) is same
    prompts = [new.system] if same else [old.system, new.system]
    lengths = [4] if same else [2, 4]
    assert [len(one.messages) for one in found] == [
        length + bool(prompt) for length, prompt in zip(lengths, prompts, strict=True)
    ]
    if not same:
        answers = [m for m in found[1].messages if m.role == "assistant"]
        assert [m.untrained for m in answers] == [REPEAT, None]
        assert found[1].tools == new.tools
    else:
        assert sum(found[0].changes.values()) == 1


def test_a_branch_that_was_taken_back():
    history = SessionHistory("f", "s", "scope")
    for number, text in enumerate("abcd"):
        role = "assistant" if number % 2 else "user"
        history.append(Message(role, (Text(text),)), f"line {number}", HEADS[0])
    history.rewind(3)
    history.append(Message("assistant", (Text("e"),)), "line 4", HEADS[0])
    branch, whole = history.conversations(5)
    assert texts(branch) == ["p", *"abcd"]
    assert [problem.code for problem in branch.problems] == ["rewound"]
    assert texts(whole) == ["p", *"abce"]
    assert not whole.problems


def test_a_tool_that_was_removed_keeps_its_definition_for_earlier_calls():
    history = SessionHistory("f", "s", "scope")
    asked = Message("user", (Text("?"),))
    called = Message("assistant", (ToolCall("read", {}, "1"),))
    written = RequestHead("p", TOOLS[1:])
    for message, head in ((asked, None), (called, HEADS[1]), (asked, None), (called, written)):
        history.append(message, "line 1", head)
    before, after = history.conversations(4)
    assert before.tools == TOOLS
    assert before.context.missing == ()
    assert after.tools == (TOOLS[1], TOOLS[0])
    assert after.context.missing == ("tools",)
    assert after.changes == {"tool_shared": 1}


def test_a_session_without_messages():
    assert list(SessionHistory("f", "s", "scope").conversations(3)) == [Ignored("no_messages", 3)]
    assert list(SessionHistory("f", "s", "scope").conversations(0)) == []


@pytest.mark.parametrize("names", [("a", "b"), ("a", "b", "b"), ("b", "a", "b"), ("a", None, "b")])
def test_each_answer_has_the_model_of_its_request(names):
    history = SessionHistory("f", "s", "scope")
    for number, name in enumerate(names):
        history.append(Message("user", (Text("u"),)), f"line {number}")
        head = RequestHead(model=name)
        history.append(Message("assistant", (Text("a"),)), f"line {number}", head)
    (found,) = history.conversations(len(names))
    answers = [one for one in found.messages if one.role == "assistant"]
    assert {one.model or found.model for one in answers} == {"a", "b"}
    assert found.model == names[-1]
