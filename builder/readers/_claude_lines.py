"""One line of a Claude Code session: what it is, and whose words it holds.

Source of every rule: the reference claude-code.md ("Line envelope", "Injected user text",
"Errors / synthetic", "Reasoning").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from builder.conversation import Data, Json, Media, Part, Reasoning, Text, ToolCall, ToolResult
from builder.readers._narrow import as_dict, as_list, as_str, name_or_none

IGNORED_TYPES = frozenset(
    {
        "system", "progress", "attachment", "summary", "file-history-snapshot", "queue-operation",
        "last-prompt", "permission-mode", "ai-title", "custom-title", "agent-name", "pr-link",
        "continued-in", "agent-setting", "started", "result",
    }
)  # fmt: skip
"""Types that by design hold no turn; some of them are links of the tree."""

_TAGS = (
    "command-name", "command-message", "command-args", "command-contents", "local-command-stdout",
    "local-command-stderr", "local-command-caveat", "bash-input", "bash-stdout", "bash-stderr",
    "task-notification", "system-reminder", "ide_opened_file", "ide_selection", "ide_diagnostics",
    "teammate-message", "user-memory-input", "user-prompt-submit-hook", "session-start-hook",
)  # fmt: skip
_LEADING = re.compile(rf"\s*<({'|'.join(_TAGS)})\b[^>]*>[\s\S]*?(?:</\1>\s*|\Z)")
_REMINDER = re.compile(r"\n*<system-reminder>[\s\S]*?(?:</system-reminder>\n*|\Z)")
_WHOLE = (
    "Caveat: The messages below were generated",
    "[Request interrupted by user",
    "[Image: source:",
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is a node of the session's tree.

    at       position in the file; the order of nodes
    where    for people: "line 12"
    kind     user, assistant, boundary (of a compaction) or link (no turn, but part of the tree)
    message  assistant: the id of the response that the line is a block of
    """

    at: int
    where: str
    kind: str
    uuid: str
    parent: str | None
    session: str
    agent: str
    message: str | None
    value: dict[str, Json]

    @property
    def group(self) -> tuple[str, str]:
        """Lines of one group can follow one another: a session's, or one sub-agent's of it."""
        return self.session, self.agent

    @property
    def blocks(self) -> list[Json]:
        """The content blocks; a string is one text block."""
        content = as_dict(self.value.get("message")).get("content")
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        return as_list(content)

    @property
    def model(self) -> str | None:
        """The model of an assistant line."""
        return name_or_none(as_dict(self.value.get("message")).get("model"))


def read_line(at: int, where: str, value: dict[str, Json]) -> Line | None:
    """The line as a node, or None if it is not part of the tree."""
    kind = as_str(value.get("type"))
    uuid = as_str(value.get("uuid"))
    message = as_dict(value.get("message"))
    attachment = as_dict(value.get("attachment"))
    if kind == "attachment" and attachment.get("type") == "queued_command":
        kind = "user"  # typed while the model worked: it did enter the context
        prompt = attachment.get("prompt")
        value = {**value, "message": {"role": "user", "content": prompt}}
    elif kind == "attachment" and attachment.get("type") == "hook_additional_context":
        kind = "user"
        text = attachment.get("content")
        if isinstance(text, list):
            text = "\n".join(item for item in text if isinstance(item, str))
        value = {**value, "isMeta": True, "message": {"role": "user", "content": text}}
    elif kind == "system" and value.get("subtype") == "compact_boundary":
        kind = "boundary"
    elif kind in ("user", "assistant") and isinstance(message.get("content"), str | list):
        pass
    elif uuid:
        kind = "link"
    else:
        return None
    agent = as_str(value.get("agentId"))
    if value.get("isSidechain") is True and not agent:
        agent = "sidechain"
    return Line(
        at,
        where,
        kind,
        uuid or f"#{at}",
        name_or_none(value.get("parentUuid")),
        as_str(value.get("sessionId")),
        agent if value.get("isSidechain") is True else "",
        name_or_none(message.get("id")) if kind == "assistant" else None,
        value,
    )


def is_synthetic(line: Line) -> bool:
    """Harness text in an assistant's place: an API error, "No response requested."."""
    return line.kind == "assistant" and (
        line.model == "<synthetic>" or line.value.get("isApiErrorMessage") is True
    )


def words(text: str) -> list[Text]:
    """A user's text taken apart into the user's words and what the harness put around them."""
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
    """Text with its `<system-reminder>` blocks, and the newlines around them, set apart."""
    parts: list[Text] = []
    at = 0
    for match in _REMINDER.finditer(text):
        if match.start() > at:
            parts.append(Text(text[at : match.start()]))
        parts.append(Text(match[0], harness=True))
        at = match.end()
    if at < len(text) or not parts:
        parts.append(Text(text[at:]))
    return parts


def answer_parts(line: Line, unknown: list[str]) -> list[Part]:
    """The blocks of an assistant line; names of block types that are not known go to `unknown`.

    Signatures and redacted thoughts are opaque and never kept; empty thoughts are none.
    """
    parts: list[Part] = []
    for block in line.blocks:
        item = as_dict(block)
        match item.get("type"):
            case "text":
                parts.append(Text(as_str(item.get("text"))))
            case "thinking":
                if as_str(item.get("thinking")).strip():
                    parts.append(Reasoning(as_str(item.get("thinking"))))
            case "redacted_thinking":
                pass
            case "tool_use":
                call_id = name_or_none(item.get("id"))
                key = None if line.uuid.startswith("#") else f"{line.uuid}/{call_id}"
                name = as_str(item.get("name"))
                parts.append(ToolCall(name, item.get("input"), call_id, key))
            case "image" | "document":
                parts.append(Media(as_str(item.get("type"))))
            case other:
                unknown.append(str(other)[:40])
    return parts


def user_parts(line: Line) -> list[Text | Media]:
    """The texts and media of a user line, its tool results apart."""
    if line.value.get("isCompactSummary") is True:
        texts = (as_str(as_dict(block).get("text")) for block in line.blocks)
        return [Text(text) for text in texts if text]
    parts: list[Text | Media] = []
    for block in line.blocks:
        item = as_dict(block)
        if item.get("type") == "text":
            parts += words(as_str(item.get("text")))
        elif item.get("type") in ("image", "document"):
            parts.append(Media(as_str(item.get("type"))))
    return parts


def results(line: Line) -> list[ToolResult]:
    """The tool results in a user line: what the model saw, never `toolUseResult`."""
    found = []
    for block in line.blocks:
        item = as_dict(block)
        if item.get("type") != "tool_result":
            continue
        found.append(
            ToolResult(
                tuple(_result_content(item.get("content"))),
                name_or_none(item.get("tool_use_id")),
                is_error=item.get("is_error") is True,
            )
        )
    return found


def unknown_blocks(line: Line) -> list[str]:
    """Types of blocks in a user line that are not known."""
    known = {"text", "image", "document", "tool_result"}
    kinds = [as_dict(block).get("type") for block in line.blocks]
    return [str(kind)[:40] for kind in kinds if kind not in known]


def _result_content(content: Json) -> list[Text | Data | Media]:
    if isinstance(content, str):
        return list(without_reminders(content))
    parts: list[Text | Data | Media] = []
    for block in as_list(content):
        item = as_dict(block)
        match item.get("type"):
            case "text":
                parts += without_reminders(as_str(item.get("text")))
            case "image" | "document":
                parts.append(Media(as_str(item.get("type"))))
            case _:
                parts.append(Data(block))  # tool_reference and what may come
    if content is not None and not isinstance(content, list):
        parts.append(Data(content))
    return parts
