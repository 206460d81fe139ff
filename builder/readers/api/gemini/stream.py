"""Assembles the chunks of a streamGenerateContent answer (docs/formats/gemini-api.md "Streaming").

A response that is not streamed is treated as one chunk. Parts arrive in order. Calls arrive whole
or, in newer versions, as `partialArgs`, each with a path in the arguments and the value to add.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from builder.conversation import Json
from builder.readers.api.gemini.contents import wire_part
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_int, as_list, as_str

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,9})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_GROUNDING = (
    "groundingChunks", "groundingSupports", "webSearchQueries", "retrievalQueries",
    "searchEntryPoint", "grounding_chunks", "grounding_supports", "web_search_queries",
    "retrieval_queries", "search_entry_point",
)  # fmt: skip
"""Fields of `groundingMetadata` that show a search (google-genai types)."""
_VALUES = (
    ("numberValue", "number_value"),
    ("boolValue", "bool_value"),
    ("nullValue", "null_value"),
)


def whole_response(chunks: Iterable[Json]) -> dict[str, Json]:
    """Returns `candidates` (`parts`, `finishReason`, `grounded`) by index, and `modelVersion`.

    `grounded`: the service searched the web, files or pages for the answer. A candidate has no
    finishReason if the stream has an error, or if one of its calls is incomplete or inconsistent.
    """
    found: dict[int, _Candidate] = {}
    model = ""
    broken = False
    for item in chunks:
        chunk = as_dict(item)
        broken = broken or bool(chunk.get("error"))
        model = model or as_str(chunk.get("modelVersion") or chunk.get("model_version"))
        for candidate in as_dicts(chunk.get("candidates")):
            found.setdefault(as_int(candidate.get("index")), _Candidate()).add(candidate)
    candidates: list[Json] = [
        {
            "parts": found[index].parts(),  # first, since it ends the last call
            "finishReason": None if broken or found[index].broken else found[index].finish,
            "grounded": found[index].grounded,
        }
        for index in sorted(found)
    ]
    return {"candidates": candidates, "modelVersion": model}


def _is_grounded(candidate: dict[str, Json]) -> bool:
    """Returns whether the service searched for an answer, not only sent metadata."""
    metadata = as_dict(candidate.get("groundingMetadata") or candidate.get("grounding_metadata"))
    pages = as_dict(candidate.get("urlContextMetadata") or candidate.get("url_context_metadata"))
    return any(metadata.get(key) for key in _GROUNDING) or any(pages.values())


class _Candidate:
    """A candidate that is assembled from its pieces."""

    def __init__(self) -> None:
        self.finish: Json = None
        self.whole: list[Json] = []
        self.call: _Call | None = None  # the last call, if it may continue
        self.broken = False  # an incomplete call
        self.grounded = False

    def add(self, candidate: dict[str, Json]) -> None:
        for item in as_list(candidate, "content", "parts"):
            part = wire_part(item)
            if "functionCall" in part:
                self._call(as_dict(part["functionCall"]))
            else:
                self.whole.append(part)
        self.grounded = self.grounded or _is_grounded(candidate)
        self.finish = candidate.get("finishReason") or candidate.get("finish_reason") or self.finish

    def _call(self, piece: dict[str, Json]) -> None:
        """Adds a piece of a call. A name begins a call; a piece without `willContinue` ends it."""
        if self.call is None or piece.get("name"):
            self._end()
            self.call = _Call()
        self.call.add(piece)
        if not (piece.get("willContinue") or piece.get("will_continue")):
            self._close(self.call)

    def _close(self, call: _Call) -> None:
        self.broken = self.broken or call.broken
        self.whole.append(call.part())
        self.call = None

    def _end(self) -> None:
        """Closes the last call if it is incomplete."""
        if self.call is not None:
            self.broken = True
            self._close(self.call)

    def parts(self) -> list[Json]:
        self._end()
        return self.whole


class _Call:
    """A call that is assembled from pieces of its arguments."""

    def __init__(self) -> None:
        self.call: dict[str, Json] = {}
        self.arguments: Json = None
        self.broken = False  # a path that does not fit the arguments
        self.open: str | None = None  # the path of a text that may continue

    def add(self, piece: dict[str, Json]) -> None:
        for key in ("id", "name"):
            if piece.get(key):
                self.call[key] = piece[key]
        if piece.get("args") or self.arguments is None:  # {} ends arguments in pieces
            self.arguments = piece.get("args")
        for item in as_dicts(piece.get("partialArgs") or piece.get("partial_args")):
            self._argument(item)

    def _argument(self, item: dict[str, Json]) -> None:
        place = as_str(item.get("jsonPath") or item.get("json_path"))
        steps = _steps(place)
        value: Json = item.get("stringValue", item.get("string_value"))
        if not isinstance(value, str):
            value = next((item[k] for pair in _VALUES for k in pair if k in item), None)
            value = None if value == "NULL_VALUE" else value
        if steps is None:
            self.broken = True
            return
        before = _at(self.arguments, steps) if self.open == place else None
        if isinstance(before, str) and isinstance(value, str):
            value = before + value
        self.arguments = self._put(self.arguments, steps, value)
        continues = item.get("willContinue") or item.get("will_continue")
        self.open = place if continues else None

    def _put(self, into: Json, steps: list[str | int], value: Json) -> Json:
        """Returns a copy of `into` with the value at the path; a list may grow by one item."""
        if not steps:
            return value
        step, rest = steps[0], steps[1:]
        if isinstance(step, str) and isinstance(into, dict | None):
            fields = as_dict(into)
            return {**fields, step: self._put(fields.get(step), rest, value)}
        if isinstance(step, int) and isinstance(into, list | None) and step <= len(as_list(into)):
            items = list(as_list(into))
            before = items[step] if step < len(items) else None
            items[step : step + 1] = [self._put(before, rest, value)]
            return items
        self.broken = True
        return into

    def part(self) -> Json:
        if self.arguments is not None:
            self.call["args"] = self.arguments
        return {"functionCall": self.call}


def _steps(place: str) -> list[str | int] | None:
    """Returns the steps of a path such as `$.items[0].name`; None for an unknown form."""
    steps: list[str | int] = []
    at = 1
    while at < len(place) and len(steps) <= 100:
        step = _STEP.match(place, at)
        if step is None:
            return None
        number = step[2]
        steps.append(int(number) if number else step[1] or step[3] or step[4] or "")
        at = step.end()
    return steps if place.startswith("$") and steps and at >= len(place) else None


def _at(value: Json, steps: list[str | int]) -> Json:
    for step in steps:
        if isinstance(step, str):
            value = as_dict(value).get(step)
        else:
            items = as_list(value)
            value = items[step] if step < len(items) else None
    return value
