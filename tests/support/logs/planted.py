"""Plants a sentence under a new key of a log, and looks for it in what a reader yields."""

from collections.abc import Iterator

from builder.conversation import Conversation, Event, Ignored
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers.toolkit.narrow import UNKNOWN_TYPE
from support.logs.described import describe

KEY = "zz_planted"
SENTENCE = "a sentence planted here to be found again"

LEAST = 5
"""Shorter texts are names and states, which conversations contain by chance."""


def texts(value: object) -> set[str]:
    """Returns all strings in a value."""
    if isinstance(value, str):
        return {value}
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {text for one in inner for text in texts(one)}


def holders(
    value: object, used: set[str], path: str = ""
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yields (kind, object) of the objects that directly hold a used text."""
    if isinstance(value, list):
        for item in value:
            yield from holders(item, used, path)
    elif isinstance(value, dict):
        if any(isinstance(one, str) and len(one) > LEAST and one in used for one in value.values()):
            yield path, value
        for key, item in value.items():
            yield from holders(item, used, f"{path}.{key}")


def spoken(events: list[Event]) -> set[str]:
    """Returns the strings in the messages of the conversations."""
    return {
        text
        for event in events
        if isinstance(event, Conversation)
        for text in texts(describe(event)["messages"])
    }


def is_found(events: list[Event], before: list[Event]) -> bool:
    """Returns whether the events contain the sentence, name its key, or reject its record."""
    shown = dumps([describe(event) for event in events])
    if SENTENCE in shown or KEY in shown:
        return True
    return any(
        isinstance(event, Problem)
        or (isinstance(event, Ignored) and event.code.startswith(UNKNOWN_TYPE))
        for event in events
        if event not in before
    )
