"""Histories that repeat one another: caching parts of them changes nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.conversations.strategies import MANY

from builder.conversation import Data, Media, Message, Reasoning, Text, ToolCall, ToolResult
from builder.readers.toolkit import comparison
from builder.readers.toolkit.comparison import Marks, digests

words = st.sampled_from(["", "a", "b", " a", "\ud83d"])
values = st.sampled_from(
    [0, 0.0, -0.0, False, 1, 1.0, True, None, "1", '{"a": 1}', '{"a":1}', "{", [1], [1.0]]
)
objects = st.one_of(
    values,
    st.permutations(["a", "b"]).flatmap(
        lambda keys: st.tuples(values, values).map(lambda pair: dict(zip(keys, pair, strict=True)))
    ),
)
contents = st.one_of(
    st.builds(Text, words, st.booleans()), st.builds(Data, objects), st.builds(Media, words)
)
parts = st.one_of(
    contents,
    st.builds(Reasoning, words),
    st.builds(ToolCall, words, objects, st.sampled_from([None, "1", "2"])),
    st.builds(ToolResult, st.lists(contents, max_size=2).map(tuple), st.sampled_from([None, "1"])),
)
messages = st.builds(
    Message, st.sampled_from(["user", "tool"]), st.lists(parts, max_size=2).map(tuple)
)
steps = st.tuples(
    st.integers(0, 4), st.lists(messages, max_size=3), st.sampled_from(["", "s"]), st.booleans()
)


@MANY
@given(st.lists(steps, min_size=1, max_size=8))
def test_marks_are_equal_exactly_if_the_digests_are(histories):
    """For any common prefix of two histories, also where they only look equal."""
    marks, last = Marks(), []
    for kept, new, session, again in histories:
        last = [*last[:kept], *new] if again else new
        assert marks.of(last, session) == digests(last, session)


def in_call(value):
    return ToolCall("f", value)


def in_result(value):
    return ToolResult((Data(value),))


@pytest.mark.parametrize("part", [in_call, in_result, Data])
@pytest.mark.parametrize(
    ("one", "other"), [(1, 1.0), (1, True), (0.0, -0.0), ([{"a": 1}], [{"a": 1.0}]), ("1", 1)]
)
def test_equal_values_in_another_spelling_are_other_messages(part, one, other):
    marks = Marks()
    same = part is in_call and one == "1"  # arguments may be JSON text
    first = marks.of([Message("user", (part(one),))])
    assert (marks.of([Message("user", (part(other),))]) == first) == same


def test_a_continued_history_is_digested_from_the_known_prefix(monkeypatch):
    reported = []
    plain = comparison._comparable
    monkeypatch.setattr(
        comparison, "_comparable", lambda message: reported.append(1) or plain(message)
    )
    history = [Message("user", (Text(str(number)),)) for number in range(20)]
    marks = Marks()
    for end in range(1, 21):
        marks.of(history[:end])
    assert len(reported) == 20
