"""Messages of a conversation, in few words, and what normalisation makes of them."""

from builder.conversation import Conversation, Message, Text, ToolCall, ToolResult
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions


def system(text="s"):
    return Message("system", (Text(text),))


def user(*parts):
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def reply(text, **fields):
    return Message("assistant", (Text(text),), **fields)


def calls(*names, text="", **fields):
    """Returns a message that calls each of these tools; the name is also the call's id."""
    parts = [ToolCall(name, {"of": name}, name) for name in names]
    return Message("assistant", (*([Text(text)] if text else []), *parts), **fields)


def results(*names, **flags):
    """Returns a message with a result for the call of each of these tools."""
    parts = tuple(ToolResult((Text(f"{name}!"),), name, **flags) for name in names)
    return Message("tool", parts)


def normalised(*messages, tools=(), problems=(), context=None, recorded=False, **options):
    """Returns the result of normalising a conversation of these messages with these options."""
    conversation = Conversation(
        id="c",
        record="r",
        messages=messages,
        tools=tools,
        problems=problems,
        context=context,
        recorded=recorded,
    )
    return normalise(conversation, NormalizeOptions(**options))


def visible(result):
    """Returns a line per turn: its role's letter, text and calls; - marks untrained turns."""
    assert result.problem is None, result.problem
    return [
        f"{turn.role[0]}{'' if turn.trained else '-'} "
        + " ".join(
            filter(
                None, (turn.content, *(f"{call.name}()" for call in turn.calls), *turn.responses)
            )
        )
        for turn in result.dialogue.turns
    ]


def dropped(result):
    """Returns the codes of the turns that were left out."""
    return list(result.dropped.values())
