"""One line of a Claude Code session: what it is, and whose words it holds.

Source of every rule: the reference claude-code.md ("Line envelope", "Injected user text",
"Errors / synthetic", "Reasoning").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from builder.conversation import Data, Json, Media, Part, Reasoning, Text, ToolCall, ToolResult
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none

INTERRUPTED = "[Request interrupted by user"
"""How the program notes that the user stopped the model; what follows differs by version."""

_TAGS = (
    "command-name", "command-message", "command-args", "command-contents", "local-command-stdout",
    "local-command-stderr", "local-command-caveat", "bash-input", "bash-stdout", "bash-stderr",
    "task-notification", "system-reminder", "ide_opened_file", "ide_selection", "ide_diagnostics",
    "teammate-message", "user-memory-input", "user-prompt-submit-hook", "session-start-hook",
)  # fmt: skip
_LEADING = re.compile(rf"\s*<({'|'.join(_TAGS)})\b[^>]*>[\s\S]*?(?:</\1>\s*|\Z)")
_REMINDER = re.compile(r"\s*<system-reminder>[\s\S]*?</system-reminder>\s*")
_OPEN, _CLOSE = "<system-reminder>", "</system-reminder>"
_WHOLE = ("Caveat: The messages below were generated", INTERRUPTED, "[Image: source:")


@dataclass(frozen=True, slots=True)
class SessionLine:
    """A line that is a node of the session's tree.

    at        position in the file; the order of nodes
    where     for people: "line 12"
    kind      user, assistant, boundary (of a compaction) or link (no turn, but part of the tree)
    agent     the sub-agent whose line it is; "" for the session itself
    response  assistant: the id of the response that the line is a block of
    attached  user: words that stand in an attachment, not in a line of their own
    said      user: its texts and media, those of the program marked
    results   user: the tool results in it
    is_answer assistant: it is the model's; API errors and the like stand in its place too
    value     the line as logged; of an attachment, in the shape of a user line
    """

    at: int
    where: str
    kind: str
    uuid: str
    parent: str | None
    session: str
    agent: str
    response: str
    attached: bool
    said: tuple[Text | Media, ...]
    results: tuple[ToolResult, ...]
    is_answer: bool
    value: dict[str, Json]

    @property
    def group(self) -> tuple[str, str]:
        """Lines of one group can follow one another: a session's, or one sub-agent's of it."""
        return self.session, self.agent

    @property
    def blocks(self) -> list[dict[str, Json]]:
        """The content blocks; a string is one text block."""
        return _blocks(self.value)

    @property
    def model(self) -> str | None:
        """The model of an assistant line."""
        return name_or_none(as_dict(self.value.get("message")).get("model"))

    @property
    def is_meta(self) -> bool:
        """Was the text of the user line put there by the program?"""
        return self.value.get("isMeta") is True

    @property
    def is_summary(self) -> bool:
        """Is it the summary that a compaction put in the place of what was before?"""
        return self.kind == "user" and _is_summary(self.value)

    @property
    def is_typed(self) -> bool:
        """Does the user line hold words (or pictures) of the user?"""
        if self.is_meta:
            return False
        return any(not isinstance(part, Text) or not part.harness for part in self.said)


def read_line(at: int, where: str, value: dict[str, Json]) -> SessionLine | None:
    """The line as a node, or None if it is not part of the tree."""
    kind = as_str(value.get("type"))
    message = as_dict(value.get("message"))
    uuid = name_or_none(value.get("uuid"))
    attached = _attached(as_dict(value.get("attachment"))) if kind == "attachment" else None
    if attached is not None:
        kind = "user"
        value = {**value, **attached}
    elif kind == "system" and value.get("subtype") == "compact_boundary":
        kind = "boundary"
    elif kind not in ("user", "assistant") or not isinstance(message.get("content"), str | list):
        if uuid is None:
            return None
        kind = "link"
    sidechain = value.get("isSidechain") is True
    uuid = uuid or f"#{at}"
    blocks = _blocks(value) if kind == "user" else []
    synthetic = message.get("model") == "<synthetic>" or value.get("isApiErrorMessage") is True
    return SessionLine(
        at=at,
        where=where,
        kind=kind,
        uuid=uuid,
        parent=name_or_none(value.get("parentUuid")),
        session=as_str(value.get("sessionId")),
        agent=(as_str(value.get("agentId")) or "sidechain") if sidechain else "",
        response=as_str(message.get("id")) or uuid,
        attached=attached is not None,
        said=tuple(_said(blocks, _is_summary(value))),
        results=tuple(_results(blocks)),
        is_answer=kind == "assistant" and not synthetic,
        value=value,
    )


def _blocks(value: dict[str, Json]) -> list[dict[str, Json]]:
    content = as_dict(value.get("message")).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [as_dict(block) for block in as_list(content)]


def _is_summary(value: dict[str, Json]) -> bool:
    return value.get("isCompactSummary") is True


def _attached(attachment: dict[str, Json]) -> dict[str, Json] | None:
    """What makes a user line of an attachment that entered the context; None for any other."""
    match attachment.get("type"):
        case "queued_command":  # typed while the model worked
            return {"message": {"role": "user", "content": attachment.get("prompt")}}
        case "hook_additional_context":
            text = attachment.get("content")
            if isinstance(text, list):
                text = "\n".join(item for item in text if isinstance(item, str))
            return {"isMeta": True, "message": {"role": "user", "content": text}}
    return None


def words(text: str) -> list[Text]:
    """A user's text taken apart into the user's words and what the program put around them."""
    if text.startswith(_WHOLE):
        return [Text(text, harness=True)]
    parts: list[Text] = []
    at = 0
    while match := _LEADING.match(text, at):
        parts.append(Text(match[0], harness=True))
        at = match.end()
    rest = text[at:]
    return parts + without_reminders(rest) if rest.strip() or not parts else parts


def without_reminders(text: str) -> list[Text]:
    """Text with the `<system-reminder>` blocks at its beginning and end set apart.

    The program puts them there; one in the middle is part of the text that speaks of them. The
    space around a block goes with it.
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
        after.insert(0, Text(text[at:end], harness=True))
        end = at
    middle = [Text(text[start:end])] if start < end or not (before or after) else []
    return [*before, *middle, *after]


def answer_parts(line: SessionLine, unknown: list[str]) -> list[Part]:
    """The blocks of an assistant line; names of block types that are not known go to `unknown`.

    Signatures and redacted thoughts are opaque and never kept; empty thoughts are none.
    """
    parts: list[Part] = []
    for block in line.blocks:
        match block.get("type"):
            case "text":
                parts.append(Text(as_str(block.get("text"))))
            case "thinking":
                if as_str(block.get("thinking")).strip():
                    parts.append(Reasoning(as_str(block.get("thinking"))))
            case "redacted_thinking":
                pass
            case "tool_use":
                call_id = name_or_none(block.get("id"))
                known = call_id is not None and not line.uuid.startswith("#")
                key = f"{line.uuid}/{call_id}" if known else None
                parts.append(ToolCall(as_str(block.get("name")), block.get("input"), call_id, key))
            case "image" | "document":
                parts.append(_media(block))
            case other:
                unknown.append(_type_name(other))
    return parts


def _said(blocks: list[dict[str, Json]], is_summary: bool) -> Iterator[Text | Media]:
    for block in blocks:
        text = as_str(block.get("text"))
        if block.get("type") == "text" and is_summary:
            yield Text(text)  # it quotes what was said, whoever said it
        elif block.get("type") == "text":
            yield from words(text)
        elif block.get("type") in ("image", "document"):
            yield _media(block)


def _results(blocks: list[dict[str, Json]]) -> Iterator[ToolResult]:
    """What the model saw of each tool's answer, never `toolUseResult`."""
    for block in blocks:
        if block.get("type") == "tool_result":
            yield ToolResult(
                tuple(_result_content(block.get("content"))),
                name_or_none(block.get("tool_use_id")),
                is_error=block.get("is_error") is True,
            )


def as_harness(part: Text | Media) -> Text | Media:
    """The part, a text as the program's."""
    return replace(part, harness=True) if isinstance(part, Text) else part


def unknown_blocks(line: SessionLine) -> list[str]:
    """Types of blocks in a user line that are not known."""
    known = ("text", "image", "document", "tool_result")
    kinds = [block.get("type") for block in line.blocks]
    return [_type_name(kind) for kind in kinds if kind not in known]


def _type_name(value: Json) -> str:
    return value if isinstance(value, str) else type(value).__name__


def _media(block: dict[str, Json]) -> Media:
    source = as_dict(block.get("source"))
    kind = "image" if block.get("type") == "image" else "file"
    return Media(kind, as_str(source.get("media_type")))


def _result_content(content: Json) -> list[Text | Data | Media]:
    if content is None:
        return []
    if isinstance(content, str):
        return list(without_reminders(content))
    if not isinstance(content, list):
        return [Data(content)]
    parts: list[Text | Data | Media] = []
    for item in content:
        block = as_dict(item)
        match block.get("type"):
            case "text":
                parts += without_reminders(as_str(block.get("text")))
            case "image" | "document":
                parts.append(_media(block))
            case _:
                parts.append(Data(item))  # tool_reference and what may come
    return parts
