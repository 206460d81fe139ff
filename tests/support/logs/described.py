"""Describes events as JSON for golden files."""

from array import array
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import cast

from builder.conversation import Conversation, Event, Json


def describe(event: Event) -> dict[str, Json]:
    """Returns an event as JSON for golden files: its type and non-default fields.

    A result that did not fail is described like one whose log does not say so.
    """
    if isinstance(event, Conversation):  # a message names its model only if it is another one
        messages = (
            replace(
                message,
                model=None if message.model == event.model else message.model,
                response=None,  # random, and no part of what a reader makes of a log
            )
            for message in event.messages
        )
        event = replace(event, messages=tuple(messages), doubles=False, folder=None)
    return cast("dict[str, Json]", _describe(event))


def _describe(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        changed = {
            item.name: _describe(getattr(value, item.name))
            for item in fields(value)
            if getattr(value, item.name) != _default(item)
            and not (item.name == "is_error" and getattr(value, item.name) is False)
        }
        return {"is": type(value).__name__, **changed}
    if isinstance(value, tuple):
        return [_describe(item) for item in value]
    return value.tolist() if isinstance(value, array) else value


def _default(item: Field[object]) -> object:
    if item.default_factory is not MISSING:
        return item.default_factory()
    return item.default
