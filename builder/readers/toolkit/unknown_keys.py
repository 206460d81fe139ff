"""Finds what a reader does not know: keys of messages and columns of rows.

They are read past, and named in `meta.changes`, so that nothing with text is lost silently.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from builder.conversation import (
    REPEAT,
    Conversation,
    Event,
    Json,
    Message,
    Reasoning,
    Text,
    ToolCall,
    unknown_part,
)
from builder.readers.toolkit.marks import CUT_KEYS, cut_code, is_history, is_trained, trains
from builder.readers.toolkit.narrow import as_dict, as_str, name_of, unknown_code
from builder.readers.toolkit.thoughts import THOUGHT_KEYS, THOUGHT_TEXTS

UNKNOWN_KEY = "unknown_key:"
"""The beginning of the code of a key; the rest is its name."""
UNKNOWN_COLUMN = "unknown_column:"
"""The beginning of the code of a column; the rest is its name."""

LONG = 20
"""A text without a space that is no longer is an id, a name or a state."""
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]{4}")
"""Words of scripts that put no spaces between words."""
MAX_DEPTH = 8
"""Maximum depth at which text is looked for in the value of an unknown key."""
_NAME = re.compile(r"[\w.:/+=%~@-]*|\d{4}-\d\d-\d\d \d\d:\d\d[\d:.+ A-Z]*", re.ASCII)
"""An id, a path, an address, encoded bytes or a time, which are no words."""

MESSAGE_KEYS = THOUGHT_KEYS | CUT_KEYS | {
    "role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio",
    "annotations", "prefix", "id", "timestamp", "created_at", "model", "type",
    "images", "videos", "audios", "cache_control", "parsed", "executed_tools", "from", "value",
    "provider_specific_fields", "encrypted_content", "thought_signature", "usage",
    "phase", "status", "citations", "reasoning_signature", "token_ids", "logprobs", "uuid",
    "metadata", "usage_metadata", "provider_state", "is_error", "stop_reason", "finish_reason",
    "createdAt", "tool_name", "train_detail", "training_detail", "channel", "recipient",
    "from_history", "injected",
}  # fmt: skip
"""Keys of messages that readers know, or that hold no words of the conversation."""

_MODEL = ("model", "_model", "model_name", "model_id", "modelId", "model_slug")
"""Keys of an answer that name the model that gave it."""
_SPEAKER = ("name", "speaker", "agent_name")
"""Keys of an answer that name the participant who gave it, where several agents talk."""

_KIND_KEYS = ("text_type", "message_type", "kind", "content_kind")
"""Keys of an answer that may say what its text is, beside `channel`."""
_THOUGHT_KINDS = frozenset({"analysis", "thought", "thoughts", "thinking", "reasoning", "cot"})
_ANSWER_KINDS = frozenset({
    "final", "final_answer", "answer", "response", "reply", "text", "message", "assistant", "chat",
})  # fmt: skip
_OTHER_KINDS = frozenset({
    "commentary", "draft", "plan", "planning", "critique", "reflection", "scratchpad", "internal",
    "private", "note", "notes", "summary", "debug", "log", "status", "monologue", "self_talk",
    "intent", "classification", "metadata",
})  # fmt: skip

_LISTS = ("content", "parts", "blocks", "tool_calls", "toolCalls")
"""Keys of a message that hold its parts and calls."""

PART_KEYS = MESSAGE_KEYS | {
    "text", "thinking", "reasoning", "signature", "data", "input", "arguments", "args", "function",
    "custom", "source", "title", "context", "image_url", "audio_url", "video_url", "input_audio",
    "file", "file_id", "file_data", "file_url", "filename", "url", "detail", "image", "video",
    "document", "format", "media_type", "mime_type", "mimeType", "path", "index", "tool",
    "tool_use_id", "toolUseId", "toolUse", "toolResult", "toolUseID", "call_id", "caller",
    "server_name", "output", "result", "results", "response", "error", "errorText", "json",
    "object", "cachePoint", "reasoningContent", "guardContent", "citationsContent", "searchResult",
    "thought", "thoughtSignature", "inlineData", "fileData", "functionCall", "functionResponse",
    "executableCode", "codeExecutionResult", "inline_data", "function_response", "executable_code",
    "toolCallId", "toolName", "toolCall", "toolInvocation", "toolInvocations", "state",
    "providerMetadata", "providerOptions", "providerExecuted", "parsed_arguments", "extra_content",
    "partialJson", "run", "progress", "complete", "mediaType", "summary", "content_type", "extras",
    "response_metadata", "parameters", "description", "namespace", "start_index", "end_index",
    "toolResponse", "parse_error", "document_url", "toolAddition", "toolRemoval", "approval",
    "think", "experimental_content",
}  # fmt: skip
"""Keys of a part of a message, of a call, and of the call's function, in any API."""

ROW_COLUMNS = frozenset({
    "messages", "conversations", "input", "preferred_output", "non_preferred_output", "prompt",
    "completion", "chosen", "rejected", "kto_tag", "label", "system", "tools", "tool_defs",
    "functions", "function_call", "tool_choice", "parallel_tool_calls", "response_format",
    "logit_bias", "stop", "stream_options", "reasoning", "provider", "extra_body", "modalities",
    "audio", "prediction", "web_search_options", "thinking", "chat_template_kwargs", "usage",
    "plugins", "models", "transforms", "metadata", "extra_info", "reward_model", "info", "metrics",
    "ground_truth", "data_source", "ability", "answer", "task", "id", "uuid", "model", "license",
    "source", "dataset", "category", "images", "image", "videos", "video", "audios", "reward",
    "rewards", "score", "success", "resolved", "passed", "correct", "error", "labels",
    "exit_status", "feedback", "benchmark", "completed", "partial", "timestamp", "created",
    "is_correct", "split", "index", "agent_name", "trajectory", "url", "user", "cache_control",
    "conversation", "patch", "stop_condition", "openai_moderation", "language", "finish_reason",
    "is_truncated",
})  # fmt: skip
"""Columns that readers know, or that describe the row: verl's and TRL's, and a request's fields."""


_CALL_NAMES = ("name", "tool", "tool_name", "toolName", "function_name", "function")
_CALL_ARGUMENTS = (
    "arguments", "args", "input", "parameters", "params", "kwargs", "tool_input", "toolInput",
)  # fmt: skip
_CALL_DEPTH = 3
_CALL_KEY = re.compile(
    r"(?:tool|function|called)_?(?:calls?|uses?|invocations?|actions?)|calls?|actions?|commands?",
    re.IGNORECASE,
)
"""Names of keys whose value is what an answer did, in whatever form."""

_SYSTEM_COLUMNS = ("system", "system_prompt", "system_message")


def system_text(row: Mapping[str, Json], changes: Counter[str], *, has_own: bool) -> str:
    """Returns the system prompt in a column of a row, or "".

    Of a row whose messages have one, the column is counted as not read, unless it is `system`.
    """
    for name in _SYSTEM_COLUMNS:
        text = row.get(name)
        if isinstance(text, str) and text:
            if not has_own:
                return text
            if name != "system":
                changes[UNKNOWN_COLUMN + name] += 1
    return ""


def noted(
    messages: Iterable[Message], item: Json, known: Collection[str] = MESSAGE_KEYS
) -> list[Message]:
    """Returns the messages read from one logged message, the first with its unknown keys.

    An answer has the model and the participant that its keys name. It is untrained if its marks
    (`toolkit.marks`) say that it was cut or repeated from an earlier run, or that the author of a
    dataset excludes it. Its text is a thought, or ends the turn as an unknown part, if a key says
    so (`channel`). If the messages have no content at all, that of the unknown key becomes an
    unknown part; so do calls of an answer under an unknown key: without them, it would not be the
    whole answer.
    """
    message = as_dict(item)
    messages = [
        _answer(one, message, known) if one.role == "assistant" else one for one in messages
    ]
    is_answer = bool(messages) and messages[0].role == "assistant"
    names = (*unknown_names(message, known), *_unread_thoughts(message, messages))
    if is_answer:
        names += tuple(key for key in message if key not in known and _is_flag(key, message[key]))
    inside = _unknown_inside(message)
    if inside and messages:
        messages[0] = replace(messages[0], unknown=(*messages[0].unknown, *inside))
    unread = next((key for key in message if key not in known and _acts(key, message[key])), "")
    if unread and is_answer:
        first = messages[0]
        messages[0] = replace(first, parts=(*first.parts, unknown_part(unread)))
    if not names:
        return messages
    if not any(message.parts for message in messages):
        role = messages[0].role if messages else str(as_dict(item).get("role") or "user")[:40]
        return [Message(role, (unknown_part(names[0]),), unknown=names)]
    return [replace(messages[0], unknown=(*messages[0].unknown, *names)), *messages[1:]]


def _answer(answer: Message, logged: dict[str, Json], known: Collection[str]) -> Message:
    """Returns an answer with what the keys of its record say about it."""
    untrained, speaker = answer.untrained, name_of(logged, *_SPEAKER)
    if untrained is None and not is_trained(logged):
        untrained = "zero_weight"
    elif untrained is None:
        untrained = cut_code(logged) or (REPEAT if is_history(logged) else None)
    keys = (key for key in _KIND_KEYS if key not in known and key in logged)
    key = "channel" if "channel" in logged else next(keys, "")
    parts, kind = answer.parts, as_str(logged, key).lower()
    words = [part for part in parts if isinstance(part, Text)]
    if kind in _THOUGHT_KINDS:
        parts = tuple(Reasoning(part.text) if isinstance(part, Text) else part for part in parts)
    elif name := as_str(logged, "recipient").removeprefix("functions.") if len(words) == 1 else "":
        parts = tuple(ToolCall(name, one.text) if one is words[0] else one for one in parts)
    elif kind in _OTHER_KINDS and words and len(words) == len(parts):
        parts = (*parts, unknown_part(f"{key} {kind}"))
    elif key == "channel" and kind not in _ANSWER_KINDS:
        speaker = speaker or kind
    return replace(
        answer,
        parts=parts,
        untrained=untrained,
        model=answer.model or name_of(logged, *_MODEL),
        speaker=speaker or answer.speaker,
    )


def _is_flag(key: str, value: Json) -> bool:
    """Returns whether a key may say something about the training of an answer that is not read."""
    is_flag = isinstance(value, bool) or (type(value) is int and value in (0, 1))
    return is_flag and trains(key, value) is None


def _unread_thoughts(message: Mapping[str, Json], messages: Sequence[Message]) -> tuple[str, ...]:
    """Returns the keys of thoughts with a text that no part of the messages contains."""
    keys = tuple(key for key in message if key in THOUGHT_TEXTS and has_words(message[key]))
    if not keys:
        return ()
    parts = (part for one in messages for part in one.parts)
    known = " ".join(
        " ".join(part.text.split()) for part in parts if isinstance(part, Text | Reasoning)
    )
    return tuple(
        key
        for key in keys
        if isinstance(text := message[key], str) and " ".join(text.split()) not in known
    )


def _acts(key: str, value: Json) -> bool:
    """Returns whether a key of an answer holds what the model did.

    Its name shows it, if its value has any text, or its value looks like calls.
    """
    return (_CALL_KEY.fullmatch(key) is not None and _has_text(value)) or _has_calls(value)


def _has_text(value: Json, depth: int = 0) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    if not isinstance(value, list | dict) or depth > _CALL_DEPTH:
        return False
    inner: Iterable[Json] = value if isinstance(value, list) else value.values()
    return any(_has_text(one, depth + 1) for one in inner)


def _has_calls(value: Json, depth: int = 0) -> bool:
    """Returns whether a value looks like calls of tools: names beside arguments, at any level.

    A name with parameters and a description is the definition of a tool.
    """
    if isinstance(value, dict):
        is_named = any(isinstance(value.get(key), str) for key in _CALL_NAMES)
        if is_named and any(key in value for key in _CALL_ARGUMENTS):
            return "description" not in value
    elif not isinstance(value, list):
        return False
    inner: Iterable[Json] = value if isinstance(value, list) else value.values()
    return depth < _CALL_DEPTH and any(_has_calls(one, depth + 1) for one in inner)


def unknown_in(item: Json, known: Collection[str] = MESSAGE_KEYS) -> tuple[str, ...]:
    """Returns the unknown keys of a logged message, then those of its parts and calls."""
    message = as_dict(item)
    return (*unknown_names(message, known), *_unknown_inside(message))


def _unknown_inside(message: Mapping[str, Json]) -> tuple[str, ...]:
    """Returns the unknown keys of the parts and calls of a message, as `content.NAME`."""
    names: dict[str, None] = {}
    for name in _LISTS:
        items = message.get(name)
        for part in items if isinstance(items, list) else ():
            function = part.get("function") if isinstance(part, dict) else None
            for value in (part, function):
                if isinstance(value, dict) and not value.keys() <= PART_KEYS:
                    keys = unknown_names(value, PART_KEYS)
                    names.update((f"{name}.{key}", None) for key in keys)
    return tuple(names)


def unknown_names(value: Mapping[str, Json], known: Collection[str]) -> tuple[str, ...]:
    """Returns the keys that are not known and whose values contain text."""
    return tuple(key for key, item in value.items() if key not in known and has_words(item))


def unknown_key(name: str) -> str:
    """Returns the code of an unknown key."""
    return unknown_code(name).replace("unknown:", UNKNOWN_KEY, 1)


def count_columns(
    events: Iterable[Event], row: Mapping[str, Json], known: Collection[str]
) -> Iterable[Event]:
    """Yields the events of a row; its conversations count its unknown columns."""
    names = unknown_names(row, known)
    for event in events:
        if names and isinstance(event, Conversation):
            codes = (unknown_code(name).replace("unknown:", UNKNOWN_COLUMN, 1) for name in names)
            event = replace(event, changes=Counter(event.changes) + Counter(codes))  # noqa: PLW2901 - completed
        yield event


def has_words(item: Json, depth: int = 0) -> bool:
    """Returns whether a value contains text in a language, not only ids, names and numbers."""
    if isinstance(item, str):
        text = item.strip()
        is_long = len(text) > LONG or " " in text or _UNSPACED.search(text) is not None
        return is_long and _NAME.fullmatch(text) is None
    if not isinstance(item, list | dict) or depth > MAX_DEPTH:
        return False
    inner: Sequence[Json] = item if isinstance(item, list) else [*item.values()]
    return any(has_words(one, depth + 1) for one in inner)
