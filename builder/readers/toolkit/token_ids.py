"""Reads the ids of tokens that a server or a trainer recorded with an answer."""

from __future__ import annotations

from array import array

from builder.conversation import Json, TokenIds
from builder.readers.toolkit.narrow import as_dict

_ANSWERS = ("token_ids", "output_ids", "completion_token_ids")
_PROMPTS = ("prompt_token_ids", "input_ids")
"""Keys of vLLM (`return_token_ids`), SGLang and Harbor: of a choice, a message or a response."""


def recorded_ids(answer: Json, prompt: Json = None) -> TokenIds | None:
    """Returns the ids of an answer and of its prompt; None without ids of the answer.

    A list that has another value than an id counts as not recorded.
    """
    ids = _ids(answer)
    return TokenIds(ids, _ids(prompt)) if ids is not None else None


def ids_beside(*places: Json) -> TokenIds | None:
    """Returns the ids under the keys of any server; the first place that has a key counts."""
    objects = [as_dict(place) for place in places]

    def first(names: tuple[str, ...]) -> Json:
        values = (place[name] for place in objects for name in names if place.get(name))
        return next(values, None)

    return recorded_ids(first(_ANSWERS), first(_PROMPTS))


def _ids(value: Json) -> array[int] | None:
    if not isinstance(value, list) or not value:
        return None
    numbers = [item for item in value if type(item) is int]
    if len(numbers) < len(value):
        return None
    try:
        return array("I", numbers)
    except OverflowError:
        return None
