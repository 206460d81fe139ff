"""A part of an unknown type removes the turns that depend on it, wherever it occurs."""

import pytest

from builder.conversation import (
    Conversation,
    Media,
    Message,
    Text,
    ToolCall,
    ToolResult,
    unknown_part,
)
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions

STRANGE = unknown_part("hologram")
ASK, ANSWER = Message("user", (Text("a"),)), Message("assistant", (Text("b"),), turn="1")
AGAIN, LAST = Message("user", (Text("c"),)), Message("assistant", (Text("d"),), turn="9")
CALL = Message("assistant", (ToolCall("f", {}, "1"),), turn="2")
RESULT = Message("tool", (ToolResult((Text("r"),), "1"),))


def built(*messages):
    conversation = Conversation(id="x", record="x", messages=messages, tools=())
    return normalise(conversation, NormalizeOptions())


@pytest.mark.parametrize(
    ("messages", "roles", "missing"),
    [
        # left out of a message that has other parts
        (
            (ASK, ANSWER, Message("user", (Text("c"), STRANGE)), LAST),
            "uaua",
            [[], ["unknown_part"]],
        ),
        ((Message("user", (STRANGE, Text("a"))), ANSWER), "ua", [["unknown_part"]]),
        # in a result, or next to one: the roles continue
        (
            (ASK, CALL, Message("tool", (ToolResult((STRANGE, Text("r")), "1"),)), LAST),
            "uata",
            [[], ["unknown_part"]],
        ),
        ((ASK, CALL, RESULT, Message("user", (STRANGE,)), LAST), "uata", [[], ["unknown_part"]]),
        # the sample ends before a message without known parts, and before such an answer
        ((ASK, ANSWER, Message("user", (STRANGE,)), LAST), "ua", [[]]),
        ((ASK, ANSWER, Message("user", (STRANGE,)), AGAIN, LAST), "ua", [[]]),
        ((ASK, ANSWER, AGAIN, Message("assistant", (STRANGE, Text("d")), turn="9")), "ua", [[]]),
    ],
)
def test_turns_lost_to_an_unknown_part(messages, roles, missing):
    found = built(*messages)
    assert "".join(turn.role[0] for turn in found.dialogue.turns) == roles
    lacking = [sorted({*context.missing} & {"unknown_part"}) for context in found.contexts]
    assert lacking == missing
    text = "".join(turn.content for turn in found.dialogue.turns)
    assert "hologram" not in text


def test_nothing_known_is_rejected_with_the_name_of_the_type():
    found = built(Message("user", (STRANGE,)), ANSWER)
    assert (found.problem.code, found.problem.detail) == (
        "unknown_part",
        "a part of type 'hologram'",
    )


@pytest.mark.parametrize("weight", [False, True])
def test_answer_with_media_is_context(weight):
    """The placeholder of an image is no word of the model's."""
    shown = Message("assistant", (Text("Here."), Media("image")), turn="5")
    conversation = Conversation(id="x", record="x", messages=(ASK, ANSWER, AGAIN, shown), tools=())
    kept = "weight" if weight else "split"
    found = normalise(conversation, NormalizeOptions(untrained_turns=kept))
    turns = [turn for turn in found.dialogue.turns if turn.role == "assistant"]
    assert [turn.content for turn in turns if turn.trained] == ["b"]
    assert found.changes.get("turns_cut", 0) == (0 if weight else 1)
