"""Assembles the chunks of a streamed chat completion.

Source: docs/formats/openai-chat.md "Stream assembly".
"""

from __future__ import annotations

from collections.abc import Iterable

from builder.conversation import Json
from builder.readers.api.openai_chat.ollama import choices_of
from builder.readers.toolkit.json_text import is_json
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_int, as_list, as_str
from builder.readers.toolkit.thoughts import THOUGHT_TEXTS

_TEXTS = ("content", "refusal", *THOUGHT_TEXTS)
_IDS = ("token_ids", "output_ids")
_LISTS = ("reasoning_details", "annotations", "executed_tools")
SEARCHES = ("citations", "search_results")
"""Fields of a response that list the pages behind its answers (Perplexity, xAI)."""


def whole_response(chunks: Iterable[Json]) -> dict[str, Json]:
    """Returns the assembled response: `choices` with complete messages, `model`.

    Choices without a finish_reason, and all choices of a stream with an error, get "length", since
    their end is missing.
    """
    choices: dict[int, _Choice] = {}
    model = ""
    searches: dict[str, Json] = {}
    prompt: Json = None
    broken = False
    for item in chunks:
        chunk = as_dict(item)
        broken = broken or bool(chunk.get("error"))
        model = model or as_str(chunk.get("model"))
        prompt = prompt or chunk.get("prompt_token_ids")
        searches |= {key: chunk[key] for key in SEARCHES if chunk.get(key)}
        for piece in choices_of(chunk):
            choices.setdefault(as_int(piece.get("index")), _Choice()).add(piece)
    return {
        **searches,
        **({"prompt_token_ids": prompt} if prompt else {}),
        "model": model,
        "choices": [
            {
                "index": at,
                **choices[at].ids,
                "message": choices[at].message(),
                "finish_reason": "length" if broken else choices[at].finish or "length",
            }
            for at in sorted(choices)
        ],
    }


class _Call:
    """A call that is assembled from its pieces."""

    def __init__(self, kind: str) -> None:
        self.kind = kind  # function or custom
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.value: Json = None  # arguments that came as a value instead of text

    @property
    def text(self) -> str:
        """Returns the arguments assembled so far."""
        return "".join(self.pieces)

    def add(self, call_id: str, body: dict[str, Json]) -> None:
        self.id = self.id or call_id
        self.name = self.name or as_str(body.get("name"))
        piece = body.get("input" if self.kind == "custom" else "arguments")
        if isinstance(piece, str):
            self.pieces.append(piece)
        elif piece is not None:
            self.value = piece

    def logged(self) -> Json:
        text = self.text
        arguments = self.value if self.value is not None and not text else text
        field = "input" if self.kind == "custom" else "arguments"
        body: dict[str, Json] = {"name": self.name, field: arguments}
        return {"id": self.id, "type": self.kind, self.kind: body}


class _Choice:
    """A choice that is assembled from its pieces."""

    def __init__(self) -> None:
        self.pieces: dict[str, list[str]] = {name: [] for name in _TEXTS}
        self.lists: dict[str, list[Json]] = {name: [] for name in _LISTS}
        self.calls: list[_Call] = []
        self.at: dict[int, _Call] = {}  # the current call of an index
        self.ids: dict[str, Json] = {}
        self.legacy = _Call("function")
        self.finish = ""

    def add(self, piece: dict[str, Json]) -> None:
        delta = as_dict(piece.get("delta")) or as_dict(piece.get("message"))
        for name in _TEXTS:
            if text := as_str(delta.get(name)):
                self.pieces[name].append(text)
        for part in as_dicts(delta.get("content")):
            self._part(part)
        for name in _LISTS:
            self.lists[name] += as_list(delta.get(name))
        for call in as_dicts(delta.get("tool_calls")):
            self._call(call)
        self.legacy.add("", as_dict(delta.get("function_call")))
        for name in _IDS:
            if ids := as_list(piece.get(name)):
                self.ids[name] = [*as_list(self.ids.get(name)), *ids]
        self.finish = as_str(piece.get("finish_reason")) or self.finish

    def _part(self, part: dict[str, Json]) -> None:
        """Adds a content part (Mistral), a piece of a thought or of the text."""
        self.pieces["content"].append(as_str(part.get("text")))
        thinking = part.get("thinking")
        thought = self.pieces["reasoning_content"]
        thought.append(as_str(thinking))
        thought += [as_str(item.get("text")) for item in as_dicts(thinking)]

    def _call(self, piece: dict[str, Json]) -> None:
        """Adds a piece of a call. Servers omit the index, use one for all, or send id "" later.

        A new id begins a call; without ids, so does a name after complete arguments.
        """
        kind = "custom" if as_str(piece, "custom", "name") else "function"
        call_id, body = as_str(piece.get("id")), as_dict(piece.get(kind))
        index = piece.get("index")
        at = index if isinstance(index, int) else -1
        call = self.at.get(at)
        if call is None or self._begins(call, call_id, body):
            call = _Call(kind)
            self.calls.append(call)
            self.at[at] = call
        call.add(call_id, as_dict(piece.get(call.kind)))

    @staticmethod
    def _begins(call: _Call, call_id: str, body: dict[str, Json]) -> bool:
        if call_id and call.id:
            return call_id != call.id
        is_whole = call.value is not None or is_json(call.text)
        return bool(as_str(body.get("name"))) and is_whole

    def message(self) -> dict[str, Json]:
        texts = {name: "".join(pieces) for name, pieces in self.pieces.items()}
        message: dict[str, Json] = {name: text for name, text in texts.items() if text}
        message |= {name: [*items] for name, items in self.lists.items() if items}
        if self.calls:
            message["tool_calls"] = [call.logged() for call in self.calls]
        if self.legacy.name:
            message["function_call"] = {"name": self.legacy.name, "arguments": self.legacy.text}
        return {"role": "assistant", **message}
