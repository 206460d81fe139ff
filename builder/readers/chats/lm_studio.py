"""Reads conversations of LM Studio. Source: docs/formats/lm-studio.md.

A file is one conversation, a message one record. A message has versions: the user went on from the
selected one, the others are abandoned branches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import (
    Content,
    Context,
    Event,
    Ignored,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    Used,
    unknown_part,
)
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.chats.pieces import turns
from builder.readers.homes import Home
from builder.readers.toolkit.chat_messages import content
from builder.readers.toolkit.history import Chat, ChatNode, chat_conversations
from builder.readers.toolkit.marks import cut_code, finish_fault
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_list,
    as_str,
    first_of,
    name_of,
    name_or_none,
)
from builder.sources.source import Source

_NAME = "lm-studio"
_PROMPT = "llm.prediction.systemPrompt"
_SCREEN = frozenset({"toolStatus", "debugInfoBlock"})


def _recognise(source: Source) -> str | None:
    """Claims an object whose messages have versions, one of them selected."""
    for value in source.peek.objects:
        for message in as_dicts(value.get("messages"))[:1]:
            if "currentlySelected" in message and isinstance(message.get("versions"), list):
                return "messages with versions and currentlySelected"
    return None


def _read(source: Source) -> Iterator[Event]:
    """Yields the conversation of a file and its abandoned versions."""
    document = source.document()
    if not isinstance(document, dict):
        for item in source.records():
            problem = Problem("not_object", item.where, "no conversation")
            yield item if isinstance(item, Problem) else problem
        return
    system = _system(document)
    missing = ["tools"] if system else ["system", "tools"]
    nodes: dict[str, ChatNode] = {}
    parent: str | None = None
    records = 0
    changes: Counter[str] = Counter()
    for record in source.counted(as_list(document.get("messages")), "messages[{}]"):
        if not isinstance(record.value, dict):
            yield Problem("not_object", record.where, "a message that is no object")
            continue
        records += 1
        versions = as_dicts(record.value.get("versions"))
        chosen = record.value.get("currentlySelected")
        is_known = type(chosen) is int and 0 <= chosen < len(versions)
        selected = chosen if type(chosen) is int and is_known else 0
        for at, version in enumerate(versions):
            messages = tuple(_messages(version, Context.lacking(missing)))
            nodes[f"{record.where}.{at}"] = ChatNode(parent, messages)
        if len(versions) > 1 and not is_known:
            changes["unknown_selection"] += 1
            missing = sorted({*missing, "history"})  # which version the chat went on from
        parent = f"{record.where}.{selected}" if versions else parent
    name = source.name.rpartition("/")[2].partition(".")[0] or "conversation"
    chat = Chat(
        format_name=_NAME,
        scope=source.name,
        name=name,
        where="file",
        system=system,
        model=name_of(as_dict(document.get("lastUsedModel")), "identifier"),
        context=Context.lacking(missing),
        changes=changes,
    )
    first, *others = chat_conversations(chat, nodes, parent, Counter())
    if isinstance(first, Ignored):
        if records:
            yield Problem(first.code, "file", "the conversation has no text", records=records)
        return
    yield replace(first, records=0)
    yield Used(records)
    yield from others


def _system(document: dict[str, Json]) -> str:
    fields = as_dicts(document, "perChatPredictionConfig", "fields")
    prompts = (as_str(item.get("value")) for item in fields if item.get("key") == _PROMPT)
    return as_str(document.get("systemPrompt")) or next(prompts, "")


def _messages(version: dict[str, Json], context: Context) -> Iterator[Message]:
    """Yields the messages of a version: one, or the turns of an answer with several steps."""
    role = as_str(version.get("role"))
    if version.get("type") == "multiStep" or "steps" in version:
        sender = name_or_none(as_dict(version.get("senderInfo")).get("senderName"))
        pieces = _steps(as_dicts(version.get("steps")))
        yield from turns(pieces, context, cut_code(version), sender)
        return
    sent = as_dict(version.get("preprocessed")).get("content")  # with the text of files
    parts = tuple(_parts(version.get("content") if sent is None else sent))
    if parts and role == "assistant":
        yield Message(role, parts, untrained=cut_code(version), context=context)
    elif parts:
        yield Message(role[:40], parts)


def _parts(value: Json) -> Iterator[Content]:
    if isinstance(value, str):
        yield from content(value)
        return
    for part in as_dicts(value):
        if part.get("type") == "file":
            is_image = "image" in as_str(part.get("fileType"))
            yield Media("image" if is_image else "file")
        else:
            yield from content([part])


def _steps(steps: list[dict[str, Json]]) -> Iterator[Part]:
    """Yields the parts of an answer, results among them."""
    states = {
        step.get("callId"): as_str(as_dict(step, "statusState", "status").get("type"))
        for step in steps
        if step.get("type") == "toolStatus" and isinstance(step.get("callId"), int | str)
    }
    for step in steps:
        kind = as_str(step.get("type"))
        if kind in _SCREEN:
            continue
        if kind != "contentBlock":
            yield unknown_part(kind)
            continue
        is_thought = as_dict(step.get("style")).get("type") == "thinking"
        for part in as_dicts(step.get("content")):
            yield from _piece(part, states, is_thought=is_thought)
        reason = as_dict(step, "genInfo", "stats").get("stopReason")
        if reason in ("contextLengthReached", "maxPredictedTokensReached") or finish_fault(reason):
            yield Unparsed("", "truncated_answer")
        elif reason in ("userStopped", "failed", "modelUnloaded"):
            yield Unparsed("", "aborted")


def _piece(part: dict[str, Json], states: dict[Json, str], *, is_thought: bool) -> Iterator[Part]:
    number = part.get("callId")
    call_id = name_or_none(part.get("toolCallRequestId"))
    if call_id is None and isinstance(number, int | str):
        call_id = str(number)
    match part.get("type"):
        case "text":
            if text := as_str(part.get("text")):
                yield Reasoning(text) if is_thought else Text(text)
        case "toolCallRequest":
            name = name_or_none(part.get("name"))
            arguments = first_of(part, "parameters", "arguments")
            yield ToolCall(name, arguments, call_id) if name else Unparsed("", "bad_call")
        case "toolCallResult":
            state = states.get(number, "") if isinstance(number, int | str) else ""
            shown, failed, denied = content(part.get("content")), "Fail" in state, "Denied" in state
            yield ToolResult(shown, call_id, is_error=failed, is_denied=denied)
        case kind:
            yield unknown_part(as_str(kind))


READER = Reader(
    name=_NAME,
    summary="LM Studio conversations: messages with versions and currentlySelected",
    evidence=("parsers", "inferred"),
    unsettled=lambda _: "no conversation written by LM Studio was compared with requests",
    recognise=_recognise,
    homes=(
        Home("LM Studio", "~/.lmstudio/conversations"),
        Home("LM Studio", "~/.cache/lm-studio/conversations"),
    ),
    read=_read,
)
