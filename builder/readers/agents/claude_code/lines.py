"""Reads one line of a Claude Code session.

Source: docs/formats/claude-code.md, "The lines", "What is left out".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from builder.conversation import Content, Json, Text, ToolResult
from builder.readers.agents.claude_code.injected_text import is_by_program, split_result_text
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_str, name_or_none
from builder.readers.toolkit.unknown_records import carries_content

NOT_SENT = "isApiErrorMessage"
"""The flag of a line that reports an error instead of an answer; it is in no request."""

COLLAPSE = "marble-origami-commit"
"""The type of a line that names lines which later requests contained as a summary."""

KNOWN = frozenset(
    {
        "user", "assistant", "system", "progress", "attachment", "summary", "file-history-snapshot",
        "file-history-delta", "queue-operation", "last-prompt", "permission-mode", "ai-title",
        "custom-title", "agent-name", "pr-link", "continued-in", "agent-setting", "started",
        "result", "mode", "atis-latch", "tools-used", "relocated", "worktree-state", "cost-state",
        "content-replacement", "fork-context-ref",
    }
)  # fmt: skip
"""Types of lines that are known; except for user and assistant, none contains a turn."""

_DENIAL = re.compile(
    "The user doesn't want to (?:proceed with this tool use|take this action right now)"
    "|Permission (?:to use|for this (?:tool use|action)) |Claude requested permissions to"
    "|This command requires approval|This Bash command contains multiple operations"
    r"|[^\n]{1,999} was blocked\. For security, Claude Code may only"
)
"""What begins the result of a refused call; lines of newer versions name the kind of refusal."""

_INTERRUPTIONS = ("[Tool call interrupted", "[Request interrupted")


@dataclass(frozen=True)
class SessionLine:
    """A line that is a node of the session's tree.

    at        position in the file, which orders nodes
    where     position for people: "line 12"
    kind      user, assistant, attachment (usually text for the request), boundary (of a
              compaction), unknown (of another type, with a message) or link (part of the tree, but
              nothing that was sent)
    agent     the sub-agent that the line belongs to; "" for the session itself. In the stream of a
              headless run it is the id of the call that started the sub-agent
    response  assistant: the id of the response that the line is a block of
    is_answer assistant: it is the model's own, not an error or placeholder of the program
    value     the line as logged
    """

    at: int
    where: str
    kind: str
    uuid: str
    parent: str | None
    session: str
    agent: str
    response: str
    is_answer: bool
    value: dict[str, Json]

    @property
    def group(self) -> tuple[str, str]:
        """The sequence that the line belongs to: a session, or one of its sub-agents."""
        return self.session, self.agent

    @cached_property
    def blocks(self) -> list[dict[str, Json]]:
        """Returns the content blocks; a string becomes one text block."""
        content = as_dict(self.value.get("message")).get("content")
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        return as_dicts(content)

    @cached_property
    def results(self) -> list[dict[str, Json]]:
        """The tool results of a user line, as the model saw them (not `toolUseResult`)."""
        if self.kind != "user":
            return []
        return [block for block in self.blocks if block.get("type") == "tool_result"]

    @property
    def answered(self) -> list[str | None]:
        """The call ids of the results, in their order."""
        return [name_or_none(block.get("tool_use_id")) for block in self.results]

    @cached_property
    def is_typed(self) -> bool:
        """Returns whether it is a user line with text or images of the user."""
        if self.kind != "user" or self.is_meta:
            return False
        texts = (as_str(block.get("text")) for block in self.blocks if block.get("type") == "text")
        has_media = any(block.get("type") in ("image", "document") for block in self.blocks)
        return has_media or any(self.is_summary or not is_by_program(text) for text in texts)

    @property
    def attachment(self) -> dict[str, Json]:
        """The attached object; {} if the line is not an attachment."""
        return as_dict(self.value.get("attachment"))

    @property
    def model(self) -> str | None:
        """The model of an assistant line."""
        return name_or_none(as_dict(self.value.get("message")).get("model"))

    @property
    def version(self) -> tuple[int, ...]:
        """The version of the program that wrote the line; () if it has none."""
        parts = as_str(self.value.get("version")).split(".")
        return tuple(int(part) for part in parts[:3] if part.isdecimal() and len(part) < 9)

    @property
    def is_meta(self) -> bool:
        """Returns whether the program wrote the text of the user line."""
        return self.value.get("isMeta") is True

    @property
    def is_summary(self) -> bool:
        """Returns whether it is a summary that replaced the history in a compaction."""
        return self.kind == "user" and self.value.get("isCompactSummary") is True


def is_qwen(value: dict[str, Json]) -> bool:
    """Returns whether a line is one of Qwen Code's, which look similar."""
    return "systemPayload" in value or "parts" in as_dict(value.get("message"))


def read_line(at: int, where: str, value: dict[str, Json]) -> SessionLine | None:
    """Returns the line as a node, or None if it is not part of the tree."""
    kind = as_str(value.get("type"))
    if kind == "system" and value.get("subtype") == "local_command":
        # The separately logged output of a command of the user; requests contain it.
        sent: dict[str, Json] = {"role": "user", "content": as_str(value.get("content"))}
        kind, value = "user", {**value, "message": sent}
    message = as_dict(value.get("message"))
    uuid = name_or_none(value.get("uuid"))
    if kind == "system" and value.get("subtype") == "compact_boundary":
        kind = "boundary"
    elif kind == "attachment" and isinstance(value.get("attachment"), dict):
        pass
    elif kind not in ("user", "assistant") or not isinstance(message.get("content"), str | list):
        has_message = kind not in KNOWN and (kind == COLLAPSE or carries_content(value))
        if uuid is None and not has_message:
            return None
        kind = "unknown" if has_message else "link"
    uuid = uuid or f"#{at}"
    started_by = as_str(value.get("parent_tool_use_id"))
    agent = as_str(value.get("agentId")) or started_by or "sidechain"
    synthetic = message.get("model") == "<synthetic>" or value.get(NOT_SENT) is True
    return SessionLine(
        at=at,
        where=where,
        kind=kind,
        uuid=uuid,
        parent=name_or_none(value.get("parentUuid")),
        session=as_str(value.get("sessionId") or value.get("session_id")),
        agent=agent if started_by or value.get("isSidechain") is True else "",
        response=as_str(message.get("id")) or uuid,
        is_answer=kind == "assistant" and not synthetic,
        value=value,
    )


def mark_result(result: ToolResult, denial: str = "") -> ToolResult:
    """Returns the result with reminders split off, and marked if it was denied or interrupted.

    `denial` is the logged kind of refusal, or "".
    """
    content: list[Content] = []
    for part in result.content:
        content += split_result_text(part.text) if isinstance(part, Text) else [part]
    head = content[0] if content and result.is_error else None
    first = head.text if isinstance(head, Text) else ""
    is_interrupted = first.startswith(_INTERRUPTIONS) or "interrupt" in denial
    return ToolResult(
        tuple(content),
        result.call_id,
        result.name,
        is_error=bool(result.is_error),  # the program flags each failure
        is_denied=not is_interrupted and bool(denial or _DENIAL.match(first)),
        is_interrupted=is_interrupted,
    )
