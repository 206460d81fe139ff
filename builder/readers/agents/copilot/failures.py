"""Completes the results of failed calls, of which Copilot CLI logs less than it sends.

The log has a short message and the length of the text that was sent. The tools word their failures
by these patterns (1.0.102), so a text of the logged length is the one that was sent.
Source: docs/formats/copilot-cli.md; requests recorded with scripts/wire.
"""

from __future__ import annotations

from builder.conversation import ToolCall
from builder.jsonio import dumps_compact
from builder.readers.toolkit.narrow import as_dict, as_str

_WORDS = {
    "Path does not exist": "Path {path} does not exist. Please provide a valid path.",
    "Path already exists": (
        "Path {path} already exists as a file. Use `view` to check contents then edit it."
    ),
    "Parent directory does not exist": (
        "Parent directory {folder} does not exist. You need to create it before creating the file."
    ),
    "No match found": (
        "No match found: old_str not found in {path}; no changes made; "
        "you might want to try again with correct old_str"
    ),
}
_UNHANDLED = "Unhandled error: "


def sent_text(logged: str, call: ToolCall | None, length: object) -> str | None:
    """Returns the text of a failed result as it was sent; None if the log does not tell.

    `length` is that of the text that was sent, in UTF-16 units.
    """
    if length == _units(logged):
        return logged
    if call is None:
        return None
    arguments = as_dict(call.arguments)
    path = as_str(arguments.get("path"))
    texts = [_WORDS.get(logged, "").format(path=path, folder=path.rpartition("/")[0])]
    if logged.startswith(_UNHANDLED):
        error = logged.removeprefix(_UNHANDLED)
        given = {key: value for key, value in arguments.items() if value is not None}
        for shown in (arguments, given):  # a table adds keys that a call does not have
            called = dumps_compact({**shown, "command": call.name})
            texts.append(f"Failed to execute with arguments: {called} due to error: {error}")
    return next((text for text in texts if text and _units(text) == length), None)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
