"""Mappings read logs of any size, and values that no log should have."""

import pytest
from support.logs.mapped import written

from builder.conversation import Conversation
from builder.readers.mapping.read import mapped_reader, places_of
from builder.readers.mapping.spec import ConversationPaths, MappingSpec, MessagePaths, value_at
from builder.readers.mapping.suggest import suggest
from builder.testing import read_counted

MANY = "9" * 5_000
"""More digits than `int` takes."""


@pytest.mark.parametrize(
    "values",
    [
        ["x2", "x10", f"x1{MANY}", f"x2{MANY}"],
        ["1.2.2020", "1.2.2020 3:00", f"1.2.2020 {MANY}"],
        ["1/13/2020 12:05 am", "1/13/2020 9:05 am", "1/13/2020 1:05 pm"],
        ["step-007", "step-8", "step-0010"],
    ],
)
def test_texts_with_numbers_of_any_length_are_ordered(values):
    places = places_of(values[::-1])
    assert [values[::-1][at] for at in sorted(range(len(values)), key=places.__getitem__)] == values


def test_records_with_long_numbers_are_read_and_proposed(tmp_path):
    rows = [{"id": one, "role": role, "text": f"hello {role}", "o": order} for one in "ab"
            for role, order in (("assistant", f"x{MANY}"), ("user", "x2"))]  # fmt: skip
    source = written(tmp_path, rows)
    paths = ConversationPaths(id="id", order="o")
    spec = MappingSpec(MessagePaths(role="role", text="text"), paths)
    events = list(read_counted(mapped_reader(spec), source))
    assert all(isinstance(event, Conversation) for event in events)
    assert [[one.role for one in event.messages] for event in events] == 2 * [["user", "assistant"]]
    assert "message:" in suggest(source)


@pytest.mark.parametrize("path", ["avg(a)", "sum(a)", "ceil(a)", "floor(a)"])
@pytest.mark.parametrize("value", [[], [10**400, 1.5], float("inf"), MANY])
def test_a_function_of_a_number_that_it_cannot_take_finds_nothing(path, value):
    found = value_at(path, {"a": value})
    assert found == (0 if (path, value) == ("sum(a)", []) else None)


def test_fragments_are_joined_up_to_a_result_in_one_of_them(tmp_path):
    rows = [{"id": "a", "role": role, **values} for role, values in (
        ("user", {"text": "Hello there"}), ("delta", {"text": "I "}), ("ping", {"text": "well"}),
        ("delta", {"text": "look"}), ("delta", {"text": ".", "calls": [{"name": "f"}],
         "results": [{"text": "found it"}]}), ("delta", {"text": "It is "}),
        ("delta", {"text": "there."}))]  # fmt: skip
    spec = MappingSpec(
        MessagePaths(role="role", text="text", calls="calls", results="results",
                     roles={"delta": "fragment", "ping": "skip"}),
        ConversationPaths(id="id"),
    )  # fmt: skip
    (conversation,) = list(read_counted(mapped_reader(spec), written(tmp_path, rows)))
    roles = [one.role for one in conversation.messages]
    assert roles == ["user", "assistant", "tool", "assistant"]
    texts = [part.text for one in conversation.messages for part in one.parts
             if hasattr(part, "text")]  # fmt: skip
    assert texts == ["Hello there", "I look.", "It is there."]


def test_a_proposal_examines_the_first_keys_and_messages(tmp_path):
    rows = [{"who": "bot" if at % 2 else "user", "content": "Hello there"}
            | {f"k{at}_{one}": "words" for one in range(80)} for at in range(60)]  # fmt: skip
    assert "role: who" in suggest(written(tmp_path, [{"log": rows * 3}]))
