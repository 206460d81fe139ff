"""Words results as Cline's SDK sends them: its log has more than its requests.

Source: docs/formats/cline.md, "What the model saw"; MessageBuilder of @cline/core, seen in 3.0.65.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from builder.conversation import Json, Media, Text, ToolCall, ToolResult
from builder.jsonio import packed
from builder.readers.toolkit.narrow import as_dicts, as_str

_LIMIT = 8_000
FILE_LIMIT = 50_000
"""The longest text in a result, and in a file that the user added, in UTF-16 units."""
_OUTDATED = 65_536
"""The bytes of outdated reads of files from which on the program replaces them in its requests."""
_RANGE = re.compile(r"(.*):(\d+)-(EOF|\d+)", re.DOTALL)
_IMAGE = frozenset({"type", "data", "mediaType"})


def shortened(text: str, limit: int = _LIMIT) -> str:
    """Returns a text of a result as it is sent: a long one loses its middle."""
    units = text.encode("utf-16-le", "surrogatepass")
    length = len(units) // 2
    if length <= limit:
        return text
    kept = (limit - len(_mark(length - limit))) // 2
    mark = _mark(length - 2 * kept)
    kept = (limit - len(mark)) // 2
    head, tail = units[: 2 * kept], units[-2 * kept :]
    return _text(head) + mark + _text(tail)


def sent_value(value: Json, media: list[Media]) -> Json:
    """Returns a value in a result as it is sent, with the images in it moved to `media`."""
    if isinstance(value, str):
        return shortened(value)
    if isinstance(value, list):
        whole = [one for one in value if not _is_image(one, media)]
        has_image = len(whole) < len(value)
        return [_plain(one, media) if has_image else sent_value(one, media) for one in whole]
    if isinstance(value, dict):
        return {key: sent_value(one, media) for key, one in value.items()}
    return value


def no_result(call: ToolCall) -> ToolResult:
    """Returns the result that is sent for a call without one."""
    text = f"Tool execution was interrupted before a result was produced. Tool: {call.name}."
    return ToolResult((Text(text),), call.id, call.name, is_error=True, is_interrupted=True)


def _is_image(value: Json, media: list[Media]) -> bool:
    is_image = isinstance(value, dict) and value.keys() == _IMAGE and value["type"] == "image"
    if is_image and isinstance(value, dict):
        media.append(Media("image", as_str(value["mediaType"])))
    return is_image


def _plain(value: Json, media: list[Media]) -> Json:
    """Returns a text beside an image, which is sent without its block."""
    if isinstance(value, dict) and value.keys() == {"type", "text"}:
        return shortened(as_str(value["text"]))
    return sent_value(value, media)


def _mark(count: int) -> str:
    return f"\n\n...[truncated {count} chars]...\n\n"


def _text(units: bytes) -> str:
    return units.decode("utf-16-le", "surrogatepass")


@dataclass(slots=True)
class FileReads:
    """The files that were read: the program may take out what a later result has again.

    reads   (id of the call, path, path with its lines, bytes) of each file in a result
    latest  {path with its lines: id of the last call that read it}
    whole   {path: id of the last call that read all of it}
    """

    reads: list[tuple[str, str, str, int]] = field(default_factory=list)
    latest: dict[str, str] = field(default_factory=dict)
    whole: dict[str, str] = field(default_factory=dict)

    def take(self, call_id: str, name: str, content: Json) -> None:
        """Adds the files in a result."""
        if name not in ("read", "read_files"):
            return
        for entry in as_dicts(content):
            query = as_str(entry.get("query"))
            part = _RANGE.fullmatch(query)
            path = part[1] if part else query
            self.reads.append((call_id, path, query, len(packed(sent_value(entry, [])))))
            self.latest[query] = call_id
            if part is None:
                self.whole[path] = call_id

    def are_replaced(self) -> bool:
        """Returns whether the next request has a mark in place of outdated content."""
        outdated = (
            size
            for call_id, path, query, size in self.reads
            if self.whole.get(path, call_id) != call_id or self.latest[query] != call_id
        )
        return sum(outdated) >= _OUTDATED
