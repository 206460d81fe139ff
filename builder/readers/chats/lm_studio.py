"""Reads conversations of LM Studio. Source: docs/formats/lm-studio.md.

A file is one conversation, a message one record. A message has versions: the user went on from the
selected one, the others are abandoned branches.
"""

from __future__ import annotations

import re
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
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers import declared
from builder.readers.api.captures import Logs
from builder.readers.api.dialects import OPENAI_CHAT
from builder.readers.api.exchanges import Exchange
from builder.readers.chats.exports import turns
from builder.readers.toolkit import tags
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
from builder.readers.toolkit.rows import objects
from builder.sources.source import Source

_NAME = "lm-studio"
_PROMPT = "llm.prediction.systemPrompt"
_SCREEN = frozenset({"toolStatus", "debugInfoBlock"})


def _recognise(source: Source) -> str | None:
    """Claims messages with versions, one of them selected, and predictions of the log stream."""
    for value in source.peek.objects:
        if _is_log(value):
            return "predictions of lms log stream (llm.prediction.input and output)"
        for message in as_dicts(value.get("messages"))[:1]:
            if "currentlySelected" in message and isinstance(message.get("versions"), list):
                return "messages with versions and currentlySelected"
    return None


def _doubt(source: Source) -> str | None:
    is_log = any(map(_is_log, source.peek.objects))
    return None if is_log else "no conversation written by LM Studio was compared with requests"


def _read(source: Source) -> Iterator[Event]:
    """Yields the conversation of a file and its abandoned versions."""
    if any(map(_is_log, source.peek.objects)):
        yield from _read_log(source)
        return
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


# -- lms log stream --json -------------------------------------------------------------------------

_END = "<|im_end|>"
_TURN = re.compile(r"\s*<\|im_start\|>(\w+)\n(.*?)(?:<\|im_end\|>|\Z)", re.DOTALL)
_REASONS = {
    "maxPredictedTokensReached": "length", "contextLengthReached": "length",
    "userStopped": "error", "modelUnloaded": "error", "failed": "error",
}  # fmt: skip
_PREDICTIONS = ("llm.prediction.input", "llm.prediction.output")


def _is_log(item: dict[str, Json]) -> bool:
    return as_dict(item.get("data")).get("type") in _PREDICTIONS


def _read_log(source: Source) -> Iterator[Event]:
    """Yields the conversations of rendered prompts and their answers.

    An answer belongs to the prompt of its model that waits; of two that wait, to neither.
    """
    logs = Logs(OPENAI_CHAT)
    waiting: dict[str, list[tuple[str, str]]] = {}
    for record in objects(source.records(), "a line that is "):
        if isinstance(record, Problem):
            waiting.clear()
            yield record
            continue
        where, data = record[0], as_dict(record[1].get("data"))
        model, prompts = as_str(data.get("modelIdentifier")), waiting
        if data.get("type") == _PREDICTIONS[0]:
            prompts.setdefault(model, []).append((where, as_str(data.get("input"))))
            yield Used()
        elif data.get("type") != _PREDICTIONS[1]:
            yield Ignored("metadata")
        elif len(own := prompts.pop(model, [])) != 1:
            detail = f"an answer of {model[:40]!r}, for which {len(own)} prompts wait"
            yield Problem("no_request", where, detail)
        elif not _TURN.match(own[0][1]):
            detail = f"a prompt of another template than ChatML: {own[0][1][:40]!r}"
            yield Problem("unknown_shape", where, detail)
        else:
            yield from logs.take(_exchange(where, model, own[0][1], data))
    yield from logs.rest()


def _exchange(where: str, model: str, prompt: str, data: dict[str, Json]) -> Exchange:
    """Returns a request and its answer in the form of chat completions."""
    changes: Counter[str] = Counter()
    *turns, (_, begun) = _TURN.findall(prompt)
    messages: list[Json] = []
    tools: list[Json] = []
    for role, text in turns:
        if role == "system" and not messages:
            own, found = tags.take_tools(text, changes)
            tools += found or ()
            messages += [{"role": role, "content": own}] if own else []
        elif role == "user" and (blocks := tags.responses(text)) is not None:
            messages += [{"role": "tool", "content": block} for block in blocks]
        else:
            messages.append(_chat(role, text))
    reason = as_dict(data.get("stats")).get("stopReason")
    choice: Json = {
        "message": _chat("assistant", begun + as_str(data.get("output"))),
        "finish_reason": _REASONS.get(as_str(reason), "stop"),
    }
    request: dict[str, Json] = {"model": model, "messages": messages, "tools": tools}
    response: dict[str, Json] = {"model": model, "choices": [choice]}
    return Exchange(where, request=request, response=response, api=OPENAI_CHAT)


def _chat(role: str, text: str) -> Json:
    """Returns a turn as a message; calls in the text of an answer become its calls."""
    if role != "assistant":
        return {"role": role, "content": text}
    words, thoughts, calls = "", "", list[Json]()
    for part in tags.assistant_parts(text.removesuffix(_END), Counter()):
        if isinstance(part, ToolCall):
            made = part.arguments
            text_made = made if isinstance(made, str) else dumps(made)
            function: Json = {"name": part.name, "arguments": text_made}
            calls.append({"type": "function", "function": function})
        elif isinstance(part, Unparsed):
            calls.append({"function": {"arguments": part.text}})
        elif isinstance(part, Reasoning):
            thoughts += part.text
        else:
            words += as_str(getattr(part, "text", ""))
    message: dict[str, Json] = {"role": role, "content": words, "reasoning_content": thoughts}
    return {**message, "tool_calls": calls} if calls else message


READER = declared(_NAME, unsettled=_doubt, recognise=_recognise, read=_read)
