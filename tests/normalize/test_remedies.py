"""An option is offered for a rejected conversation only if it keeps it."""

import pytest
from support.conversations.messages import calls, reply, results, user

from builder.codes import code_texts
from builder.conversation import Conversation
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions
from builder.normalize.remedies import remedy


def cut_off(text, code="truncated"):
    return reply(text, untrained=code)


STRICT = NormalizeOptions(late_system="reject", end="answer")
"""Options whose defaults are remedies, with other values."""

CASES = {
    "nothing else to train": ((user("q"), cut_off("a")), {}, "truncated", None),
    "a warm-up alone": ((user("Warmup"), cut_off("a", "warmup")), {}, "warmup", None),
    "a server's tool and an answer": (
        (user("q"), cut_off("a", "server_tool"), user("r"), reply("b")), {},
        "server_tool", "normalize.untrained_turns: weight"),
    "set already": (
        (user("q"), cut_off("a")), {"untrained_turns": "weight"}, "no_target", None),
    "a final call": (
        (user("q"), calls("f"), results("f")), {"end": "answer"},
        "no_final_answer", "normalize.end: call"),
    "no option": ((reply("a"),), {}, "no_user", None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_option_is_offered_only_if_it_keeps_the_conversation(name):
    messages, options, code, expected = CASES[name]
    conversation = Conversation(id="c", record="1", messages=messages)
    chosen = NormalizeOptions(**options)
    assert normalise(conversation, chosen).problem.code == code
    assert remedy(conversation, code, chosen) == expected


@pytest.mark.parametrize("code", sorted(code_texts()))
def test_the_option_of_every_code_can_be_tried(code):
    talk = Conversation(id="c", record="1", messages=(user("q"), reply("a")))
    option = code_texts()[code].option
    assert remedy(talk, code, STRICT) == (option or None)
