"""Numbers that a program in JavaScript may have rounded."""

import pytest

from builder.conversation import Context, Conversation, Message, Text, ToolCall
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions


@pytest.mark.parametrize(
    ("arguments", "is_rounded"),
    [
        ({"id": 9007199254740992}, True), ({"at": [{"x": 0.1234567890123456}]}, True),
        ({"id": 9007199254740991, "on": True, "x": 1234.5, "y": 1e-9}, False),
        ('{"id": 9007199254740993}', False),  # the model's own text
    ],
)  # fmt: skip
def test_a_turn_with_a_number_that_a_double_may_not_hold_lacks_its_arguments(arguments, is_rounded):
    messages = (
        Message("user", (Text("Look it up."),)),
        Message("assistant", (ToolCall("look", arguments, "c1"),)),
    )
    for doubles in (True, False):
        conversation = Conversation(
            id="s", record="file", messages=messages, context=Context("proven"), doubles=doubles
        )
        (context,) = normalise(conversation, NormalizeOptions()).contexts
        assert ("arguments" in context.missing) == (is_rounded and doubles)
