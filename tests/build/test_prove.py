"""A prepared dialogue tells whether its texts, as they are written, were searched for secrets."""

import pytest
from support.conversations.messages import calls, reply, user
from support.sensitive.planted import GITHUB, KEY, PASSWORD

from builder.build.prove import prepare
from builder.conversation import Conversation, Message, Text, ToolCall, ToolResult
from builder.normalize.options import LengthOptions, NormalizeOptions
from builder.qwen3.calls import ADDED_TOKENS
from builder.scrub.options import ScrubOptions
from builder.scrub.redact import Scrubber

MAIL = "ada@mail.acme.io"


def made_up(name):
    """Returns the messages of a session in which a tool with this name returns a password."""
    result = ToolResult((Text(f"password: {PASSWORD}"),), name)
    call = Message("assistant", (ToolCall(name, {}, name),))
    return user("A password!"), call, Message("tool", (result,)), reply(f"It is {PASSWORD}.")


@pytest.mark.parametrize(
    ("messages", "scrub", "tokens", "is_searched"),
    [
        ((user("Hi"), reply("Ho")), ScrubOptions("redact"), None, True),
        ((user("Hi"), reply("Ho")), ScrubOptions("reject"), None, True),
        ((user("Hi"), reply("Ho")), ScrubOptions("report"), None, False),
        ((user("Hi"), reply("Ho")), ScrubOptions("off"), None, False),
        ((user(f"It is {GITHUB}"), reply("Ho")), ScrubOptions("redact"), None, False),
        (made_up("read"), ScrubOptions("redact"), None, False),
        (made_up("generate_password"), ScrubOptions("redact"), None, False),
        ((user(f"To {MAIL}"), reply("Ho")), ScrubOptions("redact", "report"), None, True),
        ((user(f"To {MAIL}"), reply("Ho")), ScrubOptions("redact", "pseudonymise"), None, False),
        ((user("Hi"), reply("Ho")), ScrubOptions("redact", "pseudonymise"), 20, True),
        (
            (
                user("Go"),
                calls("look"),
                Message("tool", (ToolResult((Text("word " * 500),), "look"),)),
                reply("Done."),
            ),
            ScrubOptions("redact"),
            20,
            False,
        ),
    ],
)
def test_only_texts_that_stay_as_they_were_searched_count(
    verifier, messages, scrub, tokens, is_searched
):
    conversation = Conversation(id="c", record="r", messages=messages, tools=())
    limits = LengthOptions(tool_response_tokens=tokens)
    scrubber = Scrubber(scrub, KEY, ADDED_TOKENS)
    options = NormalizeOptions(control_tokens="neutralise")
    normalised, found = prepare(conversation, options, limits, verifier.target, scrubber)
    assert normalised.dialogue is not None
    assert found is is_searched
