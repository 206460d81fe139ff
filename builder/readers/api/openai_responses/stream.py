"""Assembles the events of a streamed response (docs/formats/openai-responses.md "Stream")."""

from __future__ import annotations

from collections.abc import Iterable

from builder.conversation import Json
from builder.readers.toolkit.narrow import as_dict, as_list, as_str

_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


def whole_response(events: Iterable[Json]) -> dict[str, Json]:
    """Returns the response of the events, in the form of a response that is not streamed.

    Its status is "incomplete" if the end is missing. Some servers leave `output` of the last event
    empty; it is then filled with the completed items and the text of incomplete ones, but no
    incomplete calls.
    """
    response: dict[str, Json] = {}
    ended = broken = False
    done: dict[int, Json] = {}
    words: dict[int, list[str]] = {}
    for value in events:
        event = as_dict(value)
        kind = as_str(event.get("type"))
        at = index if isinstance(index := event.get("output_index"), int) else len(done)
        if isinstance(event.get("response"), dict):
            response = as_dict(event["response"])
            ended = kind in _ENDS
        elif kind == "response.output_item.done":
            done[at] = event.get("item")
        elif kind in ("response.output_text.delta", "response.refusal.delta"):
            words.setdefault(at, []).append(as_str(event.get("delta")))
        elif kind == "error":
            broken = True
    if broken or not ended:
        response = {**response, "status": "incomplete"}
    if not as_list(response.get("output")):
        for at in words.keys() - done.keys():
            done[at] = {"type": "message", "role": "assistant", "content": "".join(words[at])}
        response = {**response, "output": [done[at] for at in sorted(done)]}
    return response
