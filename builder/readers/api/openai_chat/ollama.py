"""Reads answers of Ollama's own API (`/api/chat`) as choices of a chat completion.

Its requests have the fields of chat completions, with arguments as objects, `images` in messages
and `tool_name` in results. An answer is `message` beside `done`; a stream is JSON lines of that
shape, whose last one has `done: true` and perhaps a `done_reason`.
Source: ollama/ollama docs/api.md, "Generate a chat completion".
"""

from __future__ import annotations

from builder.conversation import Json
from builder.readers.api.capture.cohere import choice_of, is_cohere
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str


def is_ollama(body: dict[str, Json]) -> bool:
    """Returns whether a response's body, or a line of a streamed one, is Ollama's."""
    return isinstance(body.get("done"), bool) and "choices" not in body


def choices_of(body: dict[str, Json]) -> list[dict[str, Json]]:
    """Returns the choices of a response or chunk; the one answer of Ollama or Cohere as a choice.

    Without `done: true` its end is missing. Older servers send no reason, the newest none that
    stands for calls.
    """
    if is_cohere(body):
        return [choice_of(body)]
    if not is_ollama(body):
        return as_dicts(body.get("choices"))
    finish = (as_str(body.get("done_reason")) or "stop") if body["done"] else None
    return [{"index": 0, "message": as_dict(body.get("message")), "finish_reason": finish}]
