"""Reads thoughts: those in the text of an answer, and those under a key of a message.

Servers without a reasoning parser leave the thought, or only its closing tag, in the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from builder.conversation import Json, Part, Reasoning, Text
from builder.readers.toolkit.narrow import as_dicts, as_str

_OPEN, _CLOSE = "<think>", "</think>"
_QUOTES = ("`", '"', "'", "\u201c", "\u2018")
_SENTENCE_ENDS = (".", "!", "?", "\u2026", "\u3002", "\uff01", "\uff1f", ":", ")")

THOUGHT_TEXTS = (
    "reasoning_content", "reasoning", "thinking", "thought", "thoughts", "reasoning_text",
    "thinking_content", "thought_content", "reasoning_trace", "chain_of_thought", "cot",
    "tool_plan", "reasoningContent", "thinkingContent", "reasoningText",
)  # fmt: skip
"""Keys of a message that hold its thought, by precedence: several hold the same one."""

_BLOCKS = ("thinking_blocks", "reasoning_details")
"""Keys of a message that hold its thought in typed blocks (LiteLLM, OpenRouter)."""

_HIDDEN = ("encrypted", "redacted", "summary")
_TEXTS = ("thinking", "text", "content", "reasoning", "thought", "reasoning_text")
"""Keys that hold the text of a block."""

THOUGHT_KEYS = frozenset((*THOUGHT_TEXTS, *_BLOCKS))
"""All keys of a message that `thoughts_of_keys` reads."""


def thought_in_text(text: str) -> tuple[str, str] | None:
    """Splits an answer that begins with a thought into (thought, answer); else returns None.

    The thought is in `<think>` tags, or ends with the only `</think>` of the text. A tag that the
    text merely mentions (in quotes, or in the middle of a sentence) ends no thought.
    """
    head, end, rest = text.partition(_CLOSE)
    if not end:
        return None
    before, start, thought = head.partition(_OPEN)
    if start:
        inside = None if before.strip() else thought
    else:
        inside = head if _CLOSE not in rest and _OPEN not in rest and _ends(head, rest) else None
    return None if inside is None else (inside.strip("\n"), rest.lstrip("\n"))


def _ends(head: str, rest: str) -> bool:
    line = head.rpartition("\n")[2].strip()
    if head.count("```") % 2 or head.endswith(_QUOTES):
        return False
    return not line or not rest.partition("\n")[0].strip() or line.endswith(_SENTENCE_ENDS)


def read_thoughts(parts: Iterable[Part], changes: Counter[str]) -> Iterator[Part]:
    """Yields the parts of an answer with the thoughts in its texts as `Reasoning`.

    `changes` counts `think_tags`. A thought that the answer also contains separately is left out.
    """
    parts = tuple(parts)
    for part in parts:
        split = None
        if isinstance(part, Text) and not part.harness and _CLOSE in part.text:
            split = thought_in_text(part.text)
        if split is None:
            yield part
            continue
        changes["think_tags"] += 1
        thought, rest = split
        known = {_words(one.text) for one in parts if isinstance(one, Reasoning)}
        if thought.strip() and _words(thought) not in known:
            yield Reasoning(thought)
        if rest.strip():
            yield Text(rest)


def _words(text: str) -> str:
    return " ".join(text.split())


def thoughts_of_keys(message: dict[str, Json]) -> list[Part]:
    """Returns the clear-text thoughts under the keys of an assistant message, without duplicates.

    Programs log the same thought under several keys, so the first key with a text counts; a text
    that repeats the content is no thought. Encrypted and summarised blocks are left out.
    """
    content = as_str(message.get("content")).strip()
    for key in THOUGHT_TEXTS:
        if (text := _text(message.get(key))).strip() and text.strip() != content:
            return [Reasoning(text)]
    for key in _BLOCKS:
        thoughts = [
            _text(block)
            for block in as_dicts(message.get(key))
            if not any(mark in as_str(block.get("type")) for mark in _HIDDEN)
        ]
        if any(thoughts):
            joined = key == "reasoning_details"  # pieces of one thought
            return [
                Reasoning(text) for text in (["".join(thoughts)] if joined else thoughts) if text
            ]
    return []


def with_thoughts(parts: Iterable[Part], *messages: dict[str, Json]) -> list[Part]:
    """Returns the parts of an answer after the thoughts under the keys of the first message.

    Parts that contain a thought are returned as they are. A further message counts if the ones
    before it have no thought under their keys.
    """
    answer = [*parts]
    if any(isinstance(part, Reasoning) for part in answer):
        return answer
    thoughts = filter(None, map(thoughts_of_keys, messages))
    return [*next(thoughts, ()), *answer]


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        texts = all(isinstance(item, str) for item in value)
        return ("\n\n" if texts else "").join(map(_text, value))
    if not isinstance(value, dict):
        return ""
    return next((text for key in _TEXTS if (text := _text(value.get(key)))), "")
