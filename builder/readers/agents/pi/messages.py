"""Converts entries of a Pi session to messages, as the program words them for the model.

Source: docs/formats/pi.md, "Entries"; for the wording of summaries and of the user's commands:
packages/coding-agent/src/core/messages.ts (MIT).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

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
from builder.readers.agents.pi.stretches import Entry, update_text
from builder.readers.toolkit.chat_messages import as_harness
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted

ROLES = frozenset({
    "system", "user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage",
    "compactionSummary", "branchSummary",
})  # fmt: skip
"""The roles of messages that the program knows; it sends no others."""

_KEYS = MESSAGE_KEYS | {
    "toolCallId", "toolName", "isError", "stopReason", "details", "errorMessage", "responseId",
    "api", "provider", "command", "output", "exitCode", "cancelled", "truncated", "fullOutputPath",
    "excludeFromContext", "customType", "display", "summary", "fromId", "tokensBefore",
}  # fmt: skip
"""Keys of messages that are known, or that the program does not send."""


def entry_message(entry: Entry, turn: str) -> Message | None:
    """Returns the message that an entry adds to the context, or None.

    `turn` is the id of the entry: each answer of the model is an entry of its own.
    """
    match entry.get("type"):
        case "message":
            message = as_dict(entry.get("message"))
            read = _message(message, turn)
            return read and noted([read], message, _KEYS)[0]
        case "compaction":
            return _compaction_summary(entry)
        case "branch_summary":
            return _branch_summary(entry)
        case "custom_message":
            return _from_extension(entry)
        case _:
            return None


def hides_reasoning(entry: Entry) -> bool:
    """Returns whether an answer contains encrypted thoughts."""
    blocks = as_dicts(entry, "message", "content")
    return any(
        block.get("type") == "thinking"
        and (bool(block.get("redacted")) or not as_str(block.get("thinking")).strip())
        for block in blocks
    )


def patch_message(entry: Entry) -> Message | None:
    """Returns the message that a later system message is at its place; None: it has no text."""
    text = update_text(as_dict(entry.get("message")))
    return Message("system", (Text(text, harness=True),)) if text else None


def image_messages(messages: Iterable[Message], api: str) -> list[Message]:
    """Returns the messages with images of results where the API has them.

    Results of Chat Completions are text: the images of all results of a turn follow in a user
    message. A result without text has a placeholder.
    Source: convertMessages of @earendil-works/pi-ai, 0.49 to 1.5.
    """
    if api != "openai-completions":
        return [*messages]
    found: list[Message] = []
    images: list[Part] = []
    for message in messages:
        if message.role != "tool":
            found, images = [*found, *_attached(images)], []
            found.append(message)
            continue
        parts: list[Part] = []
        for part in message.parts:
            if not isinstance(part, ToolResult):
                continue
            media = [one for one in part.content if isinstance(one, Media)]
            images += media
            parts.append(_text_result(part) if media else part)
        found.append(replace(message, parts=tuple(parts)))
    return [*found, *_attached(images)]


def _attached(images: list[Part]) -> list[Message]:
    if not images:
        return []
    heading = Text("Attached image(s) from tool result:", harness=True)
    return [Message("user", (heading, *images))]


def _text_result(result: ToolResult) -> ToolResult:
    texts = tuple(part for part in result.content if not isinstance(part, Media))
    if not any(isinstance(part, Text) and part.text.strip() for part in texts):
        texts = (Text("(see attached image)"),)
    return replace(result, content=texts)


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
    model, response = (name_or_none(message.get(key)) for key in ("model", "responseId"))
    return Message("assistant", tuple(parts), turn, model=model, response=response)


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
                parts.append(Data(value, compact=True))
    return parts


def _from_extension(message: Entry) -> Message:
    """Returns a message that an extension of the program added."""
    return Message("user", as_harness(_contents(message.get("content"))))


def _compaction_summary(holder: Entry) -> Message:
    if sent := _contents(as_dict(holder.get("message")).get("content")):
        return Message("user", as_harness(sent))  # of Letta Code's store
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
