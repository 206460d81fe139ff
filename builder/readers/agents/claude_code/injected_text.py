"""Separates text that the program put into a user message from the user's own text.

Source: docs/formats/claude-code.md, "Injected text".
"""

from __future__ import annotations

import re
from collections.abc import Collection

from builder.conversation import Text

INTERRUPTED = "[Request interrupted by user"
"""The beginning of the note that the user stopped the model; the rest differs by version."""

CUT_OFF = ("Your response above was cut off mid-stream", "Output token limit hit.")
INCOMPLETE = "The response above may be incomplete."
OVER_LIMIT = re.compile(r"response exceeded the \d+ output token maximum")
"""The program's notes to the model and the user that an answer was cut off."""

_TAGS = (
    "command-name", "command-message", "command-args", "command-contents", "local-command-stdout",
    "local-command-stderr", "local-command-caveat", "bash-input", "bash-stdout", "bash-stderr",
    "task-notification", "system-reminder", "ide_opened_file", "ide_selection", "ide_diagnostics",
    "teammate-message", "user-memory-input", "user-prompt-submit-hook", "session-start-hook",
)  # fmt: skip
_LEADING = re.compile(rf"\s*<({'|'.join(_TAGS)})\b[^>]*>[\s\S]*?(?:</\1>\s*|\Z)")
_REMINDER = re.compile(r"\s*<system-reminder>[\s\S]*?</system-reminder>\s*")
_OPEN, _CLOSE = "<system-reminder>", "</system-reminder>"
_WHOLE = (
    "Caveat: The messages below were generated", INTERRUPTED, "[Image: source:",
    "<task-notification>",
)  # fmt: skip
"""Prefixes of messages that the program wrote entirely."""


def split_user_text(text: str, by_program: Collection[str] = ()) -> list[Text]:
    """Splits the text of a user message into text of the user and text of the program.

    Joining the parts with blank lines, as the normaliser does, restores the text. If that is
    impossible, the text is one part. `by_program` contains stripped texts that are known to be the
    program's.
    """
    if text.strip() in by_program:
        return [Text(text, harness=True)]
    return _separable(_parts(text), "\n\n")


def split_result_text(text: str) -> list[Text]:
    """Splits the text of a tool result into the tool's text and reminders around it.

    Joining the parts with newlines restores the text. If that is impossible, the text is one part.
    """
    return _separable(_without_reminders(text), "\n")


def is_by_program(text: str) -> bool:
    """Returns whether the program wrote all of the text."""
    return all(part.harness for part in _parts(text))


def _parts(text: str) -> list[Text]:
    """Splits the text into parts whose concatenation is the text."""
    if text.startswith(_WHOLE):
        return [Text(text, harness=True)]
    parts: list[Text] = []
    at = 0
    while match := _LEADING.match(text, at):
        parts.append(Text(match[0], harness=True))
        at = match.end()
    rest = text[at:]
    return parts + _without_reminders(rest) if rest.strip() or not parts else parts


def _without_reminders(text: str) -> list[Text]:
    """Splits off the `<system-reminder>` blocks at the beginning and end of a text.

    The program adds them there; a block in the middle belongs to a text about reminders. A block
    includes the white space around it.
    """
    before: list[Text] = []
    after: list[Text] = []
    start, end = 0, len(text)
    while match := _REMINDER.match(text, start):
        before.append(Text(match[0], harness=True))
        start = match.end()
    while True:
        body = text[start:end].rstrip()
        if not body.endswith(_CLOSE) or (at := body.rfind(_OPEN)) < 0:
            break
        at = start + len(body[:at].rstrip())
        after.append(Text(text[at:end], harness=True))
        end = at
    middle = [Text(text[start:end])] if start < end or not (before or after) else []
    return [*before, *middle, *reversed(after)]


def _separable(parts: list[Text], separator: str) -> list[Text]:
    """Removes the separator between neighbouring parts; joins neighbours that lack it."""
    if all(part.harness for part in parts):
        return [Text("".join(part.text for part in parts), harness=bool(parts))]
    separable = parts[:1]
    for part in parts[1:]:
        last = separable[-1]
        if part.text.startswith(separator):
            separable.append(Text(part.text.removeprefix(separator), part.harness))
        elif last.text.endswith(separator):
            separable[-1] = Text(last.text.removesuffix(separator), last.harness)
            separable.append(part)
        else:
            separable[-1] = Text(last.text + part.text, last.harness and part.harness)
    return separable
