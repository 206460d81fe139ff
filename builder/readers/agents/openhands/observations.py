"""Converts observations of OpenHands' SDK to the content that the model sees.

Source: `to_llm_content` of each observation, `Message._maybe_truncate_tool_text` and
`maybe_truncate` of openhands-sdk and openhands-tools 1.58.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from builder.conversation import Content, Json, Media, Text
from builder.readers.agents.openhands.views import with_affixes
from builder.readers.toolkit.chat_messages import content
from builder.readers.toolkit.narrow import as_str

_ERROR_HEADER = "[An error occurred during execution.]\n"
"""The header before the output of a failed tool (`Observation.ERROR_MESSAGE_HEADER`)."""
_TERMINAL_LIMIT, _LIMIT = 30_000, 50_000
"""Maximum number of characters that are sent of a terminal output, and of each text of a result."""
_CLIPPED = (
    "<response clipped><NOTE>Due to the max output limit, only part of the full response has been"
    " shown to you.{}</NOTE>"
)
_KEPT = (
    " The complete output has been saved to {} - you can use other tools to view the full content"
    " (truncated part starts around line {})."
)
_IMAGE_TYPES = {"/9j/": "jpg", "R0lGODlh": "gif", "UklGR": "webp"}
"""File name extensions of screenshots that are not PNG, by the beginning of their base64."""


def as_sent(observation: dict[str, Json]) -> tuple[Content, ...]:
    """Returns the content of a tool result, without the text that the agent appends to it."""
    output = with_affixes(content(observation.get("content")), observation.get("metadata"))
    header = (Text(_ERROR_HEADER),) if observation.get("is_error") is True else ()
    folder = as_str(observation.get("full_output_save_dir"))
    match observation.get("kind"):
        case "BrowserObservation":
            return (*header, *_of_browser(output, observation, folder))
        case "TaskObservation":
            names = {"Task ID": "task_id", "Subagent": "subagent", "Status": "status"}
            about = "\n".join(f"{name}: {as_str(observation.get(names[name]))}" for name in names)
            return (Text(about), *header, *output)
    first = output[0] if output else None
    if "metadata" in observation and len(output) == 1 and isinstance(first, Text):
        text = _clipped(first.text, _TERMINAL_LIMIT, folder and f"{folder}/terminal")
        output = (replace(first, text=text),)
    return (*header, *output)


def clipped(output: Iterable[Content]) -> tuple[Content, ...]:
    """Returns the content of a tool message, with the middle of each long text removed."""
    return tuple(
        replace(part, text=_clipped(part.text, _LIMIT)) if isinstance(part, Text) else part
        for part in output
    )


def _of_browser(
    output: tuple[Content, ...], observation: dict[str, Json], folder: str
) -> tuple[Content, ...]:
    """Returns the page's text as one part, then the screenshot after the name of its file.

    The log does not say whether the model takes images.
    """
    text = "".join(part.text for part in output if isinstance(part, Text))
    content: list[Content] = []
    if text:
        content.append(Text(_clipped(text, _LIMIT, folder and f"{folder}/browser")))
    if data := as_str(observation.get("screenshot_data")):
        if folder:
            kinds = (kind for start, kind in _IMAGE_TYPES.items() if data.startswith(start))
            file = f"browser_screenshot_{_digest(data)}.{next(kinds, 'png')}"
            content.append(Text(f"Screenshot saved to: {folder}/{file}"))
        content.append(Media("image"))
    return tuple(content)


def _clipped(text: str, limit: int, kept_as: str = "") -> str:
    """Returns a text of at most `limit` characters; in a longer one, a notice replaces the middle.

    `kept_as`: the beginning of the path to which the SDK saves the whole text, or "".
    """
    if len(text) <= limit:
        return text
    head = (limit - len(_CLIPPED.format("")) + 1) // 2
    kept = ""
    if kept_as:
        line = len(text[:head].splitlines()) + 1
        kept = _KEPT.format(f"{kept_as}_output_{_digest(text)}.txt", line)
    notice = _CLIPPED.format(kept)
    room = limit - len(notice)
    if room <= 0:
        return notice[:limit]
    head = min(head, room)
    return text[:head] + notice + text[len(text) - (room - head) :]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
