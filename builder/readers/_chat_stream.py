"""Chunks of a streamed chat completion put together (openai-chat.md, "Stream assembly")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from builder.conversation import Json
from builder.readers._narrow import as_dict, as_list, as_str

_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")


def assemble(chunks: Iterable[dict[str, Json]]) -> dict[str, Json]:
    """The response that the chunks make: `choices` with whole messages, `model`.

    A choice whose finish_reason never came has None there: it is truncated.
    """
    choices: dict[int, _Choice] = {}
    response: dict[str, Json] = {"object": "chat.completion"}
    for chunk in chunks:
        if chunk.get("error"):
            response["error"] = chunk["error"]
        if isinstance(chunk.get("model"), str):
            response.setdefault("model", chunk["model"])
        for item in as_list(chunk.get("choices")):
            piece = as_dict(item)
            index = piece.get("index")
            at = index if isinstance(index, int) else 0
            choices.setdefault(at, _Choice()).add(piece)
    response["choices"] = [choices[at].whole(at) for at in sorted(choices)]
    return response


class _Choice:
    """One choice on its way."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.parts: list[Json] = []
        self.calls: list[dict[str, Any]] = []
        self.at: dict[int, int] = {}
        self.finish: Json = None

    def add(self, piece: dict[str, Json]) -> None:
        delta = as_dict(piece.get("delta")) or as_dict(piece.get("message"))
        for name in _TEXTS:
            if isinstance(delta.get(name), str):
                self.texts.setdefault(name, []).append(as_str(delta.get(name)))
        if isinstance(delta.get("content"), list):
            self.parts += as_list(delta.get("content"))
        for number, call in enumerate(as_list(delta.get("tool_calls"))):
            self.call(as_dict(call), number)
        self.finish = piece.get("finish_reason") or self.finish

    def call(self, piece: dict[str, Json], number: int) -> None:
        """A piece of a call. Some servers send a wrong index: a new id is a new call."""
        index = piece.get("index")
        key = index if isinstance(index, int) else number
        call_id = as_str(piece.get("id"))
        function = as_dict(piece.get("function"))
        known = self.calls[self.at[key]] if key in self.at else None
        if known is None or (call_id and known["id"] and call_id != known["id"]):
            self.at[key] = len(self.calls)
            known = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            self.calls.append(known)
        known["id"] = known["id"] or call_id
        inner = known["function"]
        inner["name"] = inner["name"] or as_str(function.get("name"))
        arguments = function.get("arguments")
        if isinstance(arguments, str) and isinstance(inner["arguments"], str):
            inner["arguments"] += arguments
        elif arguments is not None:
            inner["arguments"] = arguments

    def whole(self, index: int) -> Json:
        message: dict[str, Json] = {"role": "assistant", "content": None}
        for name, pieces in self.texts.items():
            if any(pieces):
                message[name] = "".join(pieces)
        if self.parts:
            text = as_str(message.get("content"))
            words: list[Json] = [{"type": "text", "text": text}] if text else []
            message["content"] = [*self.parts, *words]
        if self.calls:
            message["tool_calls"] = list(self.calls)
        return {"index": index, "message": message, "finish_reason": self.finish}
