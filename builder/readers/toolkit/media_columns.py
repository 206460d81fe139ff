"""Puts the media of a row's columns into its messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from builder.conversation import Json, Media, Message, Part, Text, ToolResult, unknown_part

P = TypeVar("P", bound=Part)

_MEDIA = (("image", "images"), ("video", "videos"), ("audio", "audios"))
"""The columns of media, which texts refer to by `<image>`, `<video>`, `<audio>`."""
_FILE = re.compile(
    r"^data:|\.(?:png|jpe?g|gif|webp|bmp|tiff?|svg|mp4|avi|mov|mkv|webm|wav|mp3|flac|ogg|m4a)(?:\?|$)",
    re.IGNORECASE,
)
_LONGEST_NAME = 512
"""A longer text is encoded content."""


def with_media(messages: Sequence[Message], row: dict[str, Json]) -> list[Message]:
    """Returns the messages with the media of the row's columns in place of the tags.

    Texts refer to media by `<image>`, `<video>` and `<audio>`. Media without a tag have no known
    position: they become an unknown part of the first user message, unless the messages contain
    media parts themselves, which the columns then hold.
    """
    messages = list(messages)
    for kind, plural in _MEDIA:
        media = row.get(plural) or row.get(kind)
        if isinstance(media, str) and not _is_media(media, kind, messages):
            continue
        left = len(media) if isinstance(media, list) else int(bool(media))
        placed = (part for message in messages for part in message.parts)
        left -= sum(isinstance(part, Media) and part.kind == kind for part in placed)
        for index, message in enumerate(messages if left > 0 else ()):
            parts: list[Part] = []
            for part in message.parts if message.role in ("user", "tool") else ():
                if isinstance(part, ToolResult):
                    content, left = _with_tags(part.content, kind, left)
                    parts.append(replace(part, content=content))
                else:
                    placed_parts, left = _with_tags((part,), kind, left)
                    parts += placed_parts
            if parts:
                messages[index] = replace(message, parts=tuple(parts))
        asked = next((at for at, one in enumerate(messages) if one.role == "user"), None)
        if left > 0 and asked is not None:
            first = messages[asked]
            messages[asked] = replace(first, parts=(*first.parts, unknown_part(plural)))
    return messages


def _is_media(value: str, kind: str, messages: Sequence[Message]) -> bool:
    """Returns whether the text in a column is a file or its content.

    Runs of agents have the name of their container in `image`.
    """
    if _FILE.search(value) or len(value) > _LONGEST_NAME:
        return True
    parts = (part for message in messages for part in message.parts)
    return any(isinstance(part, Text) and f"<{kind}>" in part.text for part in parts)


def _with_tags(
    parts: Sequence[P], kind: str, left: int
) -> tuple[tuple[P | Text | Media, ...], int]:
    """Returns the parts with media in place of their tags, and how many media are left."""
    placed: list[P | Text | Media] = []
    for part in parts:
        texts = part.text.split(f"<{kind}>", left) if isinstance(part, Text) and left > 0 else []
        left -= max(0, len(texts) - 1)
        if len(texts) < 2:
            placed.append(part)
            continue
        for number, text in enumerate(texts):
            placed += [Media(kind)] if number else []
            placed += [Text(text)] if text.strip() else []
    return tuple(placed), left
