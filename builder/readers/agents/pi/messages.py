"""Converts entries of a Pi session to messages, as the program words them for the model.

Source: pi.md "Entries", "Messages", "Context rule"; for the wording of summaries and of the user's
commands: packages/coding-agent/src/core/messages.ts (MIT).
"""

from __future__ import annotations

from builder.conversation import (
    Data,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
)
from builder.readers.toolkit.chat_messages import as_harness
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none

Entry = dict[str, Json]

ROLES = frozenset({
    "user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage",
    "compactionSummary", "branchSummary",
})  # fmt: skip
"""The roles of messages that the program knows; it sends no others."""


def entry_message(entry: Entry, turn: str) -> Message | None:
    """Returns the message that an entry adds to the context, or None.

    `turn` is the id of the entry: each answer of the model is an entry of its own.
    """
    match entry.get("type"):
        case "message":
            return _message(as_dict(entry.get("message")), turn)
        case "compaction":
            return _compaction_summary(entry)
        case "branch_summary":
            return _branch_summary(entry)
        case "custom_message":
            return _from_extension(entry)
        case _:
            return None


def is_aborted(entry: Entry) -> bool:
    """Returns whether an entry is an aborted or failed answer, which is not sent again."""
    message = as_dict(entry.get("message"))
    return message.get("role") == "assistant" and message.get("stopReason") in ("error", "aborted")


def hides_reasoning(entry: Entry) -> bool:
    """Returns whether an answer contains encrypted thoughts."""
    blocks = map(as_dict, as_list(as_dict(entry.get("message")).get("content")))
    return any(
        block.get("type") == "thinking"
        and (bool(block.get("redacted")) or not as_str(block.get("thinking")).strip())
        for block in blocks
    )


def no_result(call: ToolCall) -> ToolResult:
    """Returns the result that the program sends for a call without one.

    Source: transform-messages of @mariozechner/pi-ai, seen in 0.31 to 0.74.
    """
    return ToolResult((Text("No result provided"),), call.id, call.name, is_error=True)


def _message(message: Entry, turn: str) -> Message | None:
    role = as_str(message.get("role"))
    match role:
        case "assistant":
            return _answer(message, turn)
        case "toolResult":
            return _result(message)
        case "bashExecution":
            if message.get("excludeFromContext"):
                return None
            return Message("user", (Text(_command_text(message), harness=True),))
        case "custom" | "hookMessage":
            return _from_extension(message)
        case "compactionSummary":
            return _compaction_summary(message)
        case "branchSummary":
            return _branch_summary(message)
        case "user":
            return Message(role, tuple(_contents(message.get("content"))))
        case _:
            return None


def _answer(message: Entry, turn: str) -> Message:
    parts: list[Part] = []
    for value in as_list(message.get("content")):
        block = as_dict(value)
        match block.get("type"):
            case "text":
                parts.append(Text(as_str(block.get("text"))))
            case "thinking":
                thought = as_str(block.get("thinking"))
                if thought and not block.get("redacted"):
                    parts.append(Reasoning(thought))
            case "toolCall":
                name, call_id = as_str(block.get("name")), name_or_none(block.get("id"))
                place = f"{turn}/{len(parts)}"
                parts.append(ToolCall(name, block.get("arguments"), call_id, place))
            case kind:
                parts.append(Unparsed(as_str(kind), "unknown_part"))
    if message.get("stopReason") == "length":
        parts.append(Unparsed("", "truncated_answer"))
    return Message("assistant", tuple(parts), turn, model=name_or_none(message.get("model")))


def _result(message: Entry) -> Message:
    result = ToolResult(
        content=tuple(_contents(message.get("content"))),
        call_id=name_or_none(message.get("toolCallId")),
        name=name_or_none(message.get("toolName")),
        is_error=message.get("isError") is True,
    )
    return Message("tool", (result,))


def _contents(content: Json) -> list[Text | Data | Media]:
    if isinstance(content, str):
        return [Text(content)]
    parts: list[Text | Data | Media] = []
    for value in as_list(content):
        block = as_dict(value)
        match block.get("type"):
            case "text":
                parts.append(Text(as_str(block.get("text"))))
            case "image":
                parts.append(Media("image", as_str(block.get("mimeType"))))
            case _:
                parts.append(Data(value))
    return parts


def _from_extension(message: Entry) -> Message:
    """Returns a message that an extension of the program added."""
    return Message("user", as_harness(_contents(message.get("content"))))


def _compaction_summary(holder: Entry) -> Message:
    heading = "The conversation history before this point was compacted into the following summary:"
    summary = as_str(holder.get("summary"))
    return Message("user", (Text(f"{heading}\n\n<summary>\n{summary}\n</summary>", harness=True),))


def _branch_summary(holder: Entry) -> Message | None:
    heading = "The following is a summary of a branch that this conversation came back from:"
    summary = as_str(holder.get("summary"))
    if not summary:
        return None
    return Message("user", (Text(f"{heading}\n\n<summary>\n{summary}</summary>", harness=True),))


def _command_text(message: Entry) -> str:
    """Returns the text of a command that the user ran (`!ls`) and its output."""
    output = as_str(message.get("output"))
    text = f"Ran `{as_str(message.get('command'))}`\n"
    text += f"```\n{output}\n```" if output else "(no output)"
    code = message.get("exitCode")
    if message.get("cancelled"):
        text += "\n\n(command cancelled)"
    elif isinstance(code, int) and code != 0:
        text += f"\n\nCommand exited with code {code}"
    file = message.get("fullOutputPath")
    if message.get("truncated") and isinstance(file, str) and file:
        text += f"\n\n[Output truncated. Full output: {file}]"
    return text
