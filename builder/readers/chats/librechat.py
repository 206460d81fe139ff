"""Exports of LibreChat's conversations. Source: docs/formats/librechat.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from builder.conversation import (
    Context,
    Event,
    Json,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    unknown_part,
)
from builder.readers import declared
from builder.readers.chats.pieces import newest_leaf, turns
from builder.readers.toolkit.chat_messages import content, media_of
from builder.readers.toolkit.history import Chat, ChatNode, chat_conversations
from builder.readers.toolkit.marks import cut_code
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_str,
    json_in_text,
    model_of,
    name_of,
    name_or_none,
)
from builder.readers.toolkit.rows import read_objects
from builder.sources.source import Source

_NAME = "librechat"


def _recognise(source: Source) -> str | None:
    for value in source.peek.objects:
        found = next(iter(_messages_of(value).values()), {})
        if "conversationId" in value and {"messageId", "isCreatedByUser"} <= found.keys():
            return "a conversation with messages (messageId, isCreatedByUser)"
    return None


def _messages_of(value: dict[str, Json]) -> dict[str, dict[str, Json]]:
    """Returns the messages by id, of a tree with `children` or of a list, in order."""
    found: dict[str, dict[str, Json]] = {}
    waiting = as_dicts(value.get("messagesTree")) or as_dicts(value.get("messages"))
    while waiting:
        message = waiting.pop(0)
        found[as_str(message.get("messageId")) or f"#{len(found)}"] = message
        waiting = [*as_dicts(message.get("children")), *waiting]
    return found


def _conversation(where: str, value: dict[str, Json], names: Counter[str]) -> Iterator[Event]:
    messages, options = _messages_of(value), as_dict(value.get("options"))
    system = name_of(options, "promptPrefix", "system", "instructions") or ""
    missing = ["tools"] if system else ["system", "tools"]
    nodes = {
        name: ChatNode(
            name_or_none(item.get("parentMessageId")), tuple(_read(item, Context.lacking(missing)))
        )
        for name, item in messages.items()
    }
    name = as_str(value.get("conversationId")) or where
    chat = Chat(
        format_name=_NAME,
        scope=name,
        name=name,
        where=where,
        system=system,
        model=model_of(options, "model"),
        context=Context.lacking(missing),
    )
    times = {name: as_str(item.get("createdAt")) for name, item in messages.items()}
    yield from chat_conversations(chat, nodes, newest_leaf(nodes, times), names)


def _read(item: dict[str, Json], context: Context) -> Iterator[Message]:
    """Yields the messages of a logged message; an error that the screen shows is none."""
    pieces = [part for one in as_dicts(item.get("content")) for part in _pieces(one)]
    if not pieces and item.get("error") is not True:
        pieces = list(content(item.get("text")))
    files: list[Part] = [media_of(as_str(file.get("type"))) for file in as_dicts(item.get("files"))]
    if item.get("isCreatedByUser") is True:
        yield from [Message("user", (*files, *pieces))] if files or pieces else []
        return
    code = "aborted" if item.get("error") is True else cut_code(item)
    code = "truncated" if item.get("unfinished") is True else code
    code = "edited" if item.get("isEdited") is True else code
    yield from turns(pieces, context, code, name_of(item, "model"))


def _pieces(part: dict[str, Json]) -> Iterator[Part]:
    kind = as_str(part.get("type"))
    text = as_str(part.get(kind)) or as_str(part, kind, "value")
    call = as_dict(part.get("tool_call"))
    if kind == "text":
        yield from content(text)
    elif kind == "think":
        yield from [Reasoning(text)] if text else []
    elif kind == "tool_call":
        function = as_dict(call.get("function")) or call
        call_id, name = name_or_none(call.get("id")), as_str(function.get("name"))
        arguments = function.get("args", function.get("arguments"))
        yield ToolCall(name, arguments, call_id)
        output = function.get("output")
        if isinstance(output, str) and (output or call.get("progress") == 1):
            yield ToolResult((Text(output),), call_id, name, is_error=_failed(output))
    elif kind.startswith("image"):
        yield media_of("image/")
    elif kind not in ("error", "agent_update"):
        yield unknown_part(kind)


def _failed(output: str) -> bool | None:
    value = json_in_text(output)
    return True if isinstance(value, dict) and value.get("error") else None


READER = declared(
    _NAME,
    recognise=_recognise,
    read=lambda source: read_objects(source, _conversation, "a conversation that is "),
)
