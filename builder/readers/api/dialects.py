"""Determines the API of a request or response from its path and body; it is named as its reader.

The path has precedence: requests to count tokens have the bodies of ordinary calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from builder.conversation import Json
from builder.readers.toolkit.comparison import looks_random
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str

_EVENTS = frozenset({
    "message-start", "message-end", "content-start", "content-delta", "content-end",
    "tool-plan-delta", "tool-call-start", "tool-call-delta", "tool-call-end", "citation-start",
    "citation-end",
})  # fmt: skip
_REASONS = frozenset({"COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TOOL_CALL", "ERROR", "TIMEOUT"})


def is_cohere(body: dict[str, Json]) -> bool:
    """Returns whether a response's body, or an event of a streamed one, is Cohere's."""
    if as_str(body.get("type")) in _EVENTS:
        return "delta" in body or "index" in body or "id" in body
    is_answer = (
        isinstance(body.get("message"), dict) and as_str(body.get("finish_reason")) in _REASONS
    )
    return is_answer and "choices" not in body


def choice_of(body: dict[str, Json]) -> dict[str, Json]:
    """Returns the choice of a response, or the piece of it that an event adds."""
    kind, delta = as_str(body.get("type")), as_dict(body.get("delta"))
    if kind not in _EVENTS:
        message, reason = as_dict(body.get("message")), as_str(body.get("finish_reason"))
        return {"index": 0, "message": message, "finish_reason": reason.lower()}
    message = as_dict(delta.get("message"))
    piece: dict[str, Json] = {}
    if kind in ("content-start", "content-delta"):
        content = as_dict(message.get("content"))
        piece["content"] = content.get("text")
        piece["reasoning_content"] = content.get("thinking")
    elif kind == "tool-plan-delta":
        piece["reasoning_content"] = message.get("tool_plan")
    elif kind in ("tool-call-start", "tool-call-delta"):
        call = as_dict(message.get("tool_calls"))
        piece["tool_calls"] = [{**call, "index": body.get("index")}]
    ended = as_str(delta.get("finish_reason")).lower()
    return {"index": 0, "delta": piece, "finish_reason": ended or None}


OPENAI_CHAT = "openai-chat"
OPENAI_RESPONSES = "openai-responses"
ANTHROPIC = "anthropic-messages"
GEMINI = "gemini-api"
BEDROCK = "bedrock-converse"

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})

_PATHS = (
    (re.compile(r"/chat/completions$"), OPENAI_CHAT),
    (re.compile(r"/responses$"), OPENAI_RESPONSES),
    (re.compile(r"(?:/v\d+|/anthropic)/messages$"), ANTHROPIC),
    (re.compile(r"/publishers/anthropic/models/[^/]+:(?:streamR|r)awPredict$"), ANTHROPIC),
    (re.compile(r":(?:streamG|g)enerateContent$|/interactions$"), GEMINI),
    (re.compile(r"/model/.+/converse(?:-stream)?$"), BEDROCK),
)
_OTHER_PATH = re.compile(
    r"/(?:embeddings|moderations|files|uploads|images|audio|batches|assistants|threads|videos"
    r"|vector_stores|fine_tuning|completions|rerank|tokenize|count_tokens|responses/(?!resp_[^/]+$).+"
    r"|chat/completions/.+|(?:v\d+|openai)/models(?:/[^:]*)?)(?:/|$)|:(?!invoke)[A-Za-z]+$"
)
_NAME = re.compile(r"[\w.:-]{0,24}")
_BEDROCK_KEYS = frozenset(
    {"inferenceConfig", "toolConfig", "modelId", "additionalModelRequestFields"}
)
_BEDROCK_EVENTS = frozenset({
    "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop",
    "metadata",
})  # fmt: skip
_ANTHROPIC_BLOCKS = frozenset({
    "tool_use", "tool_result", "redacted_thinking", "server_tool_use", "document", "image",
    "mcp_tool_use", "mcp_tool_result", "search_result", "container_upload",
})  # fmt: skip
_ANTHROPIC_EVENTS = frozenset({
    "message_start", "content_block_start", "content_block_delta", "content_block_stop",
    "message_delta", "message_stop",
})  # fmt: skip
_INTERACTION_KEYS = frozenset(
    {"system_instruction", "previous_interaction_id", "generation_config", "agent_config"}
)
_STEPS = frozenset({"user_input", "model_output", "thought", "function_result"})
_INTERACTION_EVENT = re.compile(r"interaction\.\w+|(?:step|content)\.(?:start|delta|stop)")
_RESPONSES_KEYS = frozenset({
    "instructions", "previous_response_id", "conversation", "store", "reasoning", "include",
    "max_output_tokens", "truncation", "text", "tools", "tool_choice", "background", "stream",
})  # fmt: skip


def dialect(body: Json, url: str) -> str | None:
    """Returns the API of the body of a request to `url` ("" if not recorded), or of its response.

    None if the path is that of another endpoint (embeddings, token counts), or the API is unknown.
    """
    if path := path_of(url) if url else "":
        for pattern, name in _PATHS:
            if pattern.search(path):
                return name
        if _OTHER_PATH.search(path):
            return None
    if not isinstance(body, dict):
        return None
    return response_dialect(body) or request_dialect(body)


def path_of(url: str) -> str:
    """Returns the path of a URL without a trailing slash; "" if it has none."""
    try:
        return urlsplit(url).path.rstrip("/")
    except ValueError:
        return ""


def path_for_counting(url: str) -> str:
    """Returns a URL's path for counting: ids become `*`, only the last 60 characters are kept."""
    segments = path_of(url).split("/")
    plain = ["*" if looks_random(part) or not _NAME.fullmatch(part) else part for part in segments]
    return "/".join(plain)[-60:] or "/"


def request_dialect(body: dict[str, Json]) -> str | None:
    """Returns the API of a request's body, or None."""
    messages = body.get("messages")
    if messages is None:
        contents = body.get("contents")
        if isinstance(contents, str) or any("parts" in as_dict(item) for item in as_list(contents)):
            return GEMINI
        if "input" in body and _is_interaction(body):
            return GEMINI
        given = body.get("input")
        is_list = any("role" in item or "type" in item for item in as_dicts(given))
        has_own = isinstance(given, str | list) and not _RESPONSES_KEYS.isdisjoint(body)
        is_named = isinstance(body.get("model"), str)
        return OPENAI_RESPONSES if is_named and (is_list or has_own) else None
    blocks: list[dict[str, Json]] = []
    for message in as_list(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return None
        if isinstance(content := message.get("content"), list):
            blocks += map(as_dict, content)
    if not as_list(messages):
        return None
    untyped = bool(blocks) and all("type" not in block for block in blocks)
    of_functions = has_function_roles(as_dicts(messages))
    if not _BEDROCK_KEYS.isdisjoint(body) or (untyped and not of_functions):
        return BEDROCK
    return ANTHROPIC if _is_anthropic(body, blocks) else OPENAI_CHAT


def has_function_roles(messages: Iterable[dict[str, Json]]) -> bool:
    """Returns whether messages have calls or results in OpenAI's older form (Qwen-Agent)."""
    return any("function_call" in one or one.get("role") == "function" for one in messages)


def _is_interaction(body: dict[str, Json]) -> bool:
    if not any(isinstance(body.get(key), str) for key in ("model", "agent")):
        return False
    if "output" in body or "outputs" in body:  # a trace's record
        return False
    types = {as_str(item.get("type")) for item in as_dicts(body["input"])}
    return not _INTERACTION_KEYS.isdisjoint(body) or not _STEPS.isdisjoint(types)


def is_interaction(body: dict[str, Json]) -> bool:
    """Returns whether a response's body is an interaction, or an event of a streamed one."""
    return is_interaction_event(body) or body.get("object") == "interaction"


def is_interaction_event(body: dict[str, Json]) -> bool:
    """Returns whether a body is an event of a streamed interaction."""
    kind = body.get("event_type")
    return isinstance(kind, str) and _INTERACTION_EVENT.fullmatch(kind) is not None


def _is_anthropic(body: dict[str, Json], blocks: list[dict[str, Json]]) -> bool:
    if "system" in body or "anthropic_version" in body or "stop_sequences" in body:
        return True
    own = (block for block in blocks if "document" not in block)  # Cohere's has that key
    if any(as_str(block.get("type")) in _ANTHROPIC_BLOCKS for block in own):
        return True
    if any(isinstance(block.get("thinking"), str) for block in blocks):
        return not any("tool_plan" in as_dict(one) for one in as_list(body.get("messages")))
    if any("input_schema" in as_dict(tool) for tool in as_list(body.get("tools"))):
        return True
    # Only plain texts are left: the model's name and a limit that only this API requires decide.
    return as_str(body.get("model")).startswith("claude-") and "max_tokens" in body


def is_plain(body: dict[str, Json] | None) -> bool:
    """Returns whether a request has only messages of text, which several APIs have in common."""
    if body is None or "functions" in body or body.get("tools"):
        return False
    return all(
        as_str(message.get("role")) in ("user", "assistant")
        and isinstance(message.get("content"), str | list)
        and "tool_calls" not in message
        for message in as_dicts(body.get("messages"))
    )


def response_dialect(body: dict[str, Json]) -> str | None:
    """Returns the API of a response's body, or of one event of a streamed response, or None."""
    kind = as_str(body.get("type"))
    shape = as_str(body.get("object"))
    choices = body.get("choices")
    if isinstance(choices, list):
        known = any(isinstance(as_dict(c).get(k), dict) for c in choices for k in _CHOICE_KEYS)
        return OPENAI_CHAT if known or shape.startswith("chat.completion") else None
    if isinstance(body.get("done"), bool) and isinstance(body.get("message"), dict):
        return OPENAI_CHAT  # Ollama
    if (
        body.get("done") is True
        and {"model", "done_reason"} <= body.keys()
        and "response" not in body
    ):
        return OPENAI_CHAT  # the last chunk of Ollama's
    if is_cohere(body):
        return OPENAI_CHAT
    if isinstance(body.get("candidates"), list) or is_interaction(body):
        return GEMINI
    if shape == "response" and "output" in body:
        return OPENAI_RESPONSES
    if kind.startswith("response.") and not _RESPONSES_EVENT.isdisjoint(body):
        return OPENAI_RESPONSES
    if kind == "message" and isinstance(body.get("content"), list) and "stop_reason" in body:
        return ANTHROPIC
    if kind in _ANTHROPIC_EVENTS and {"message", "index", "delta", "type"} >= set(body) - _EXTRA:
        return ANTHROPIC
    if isinstance(as_dict(body.get("output")).get("message"), dict) and "stopReason" in body:
        return BEDROCK
    if is_bedrock_event(body):
        return BEDROCK
    if body.keys() <= _ERROR and as_dict(body.get("error")).keys() >= _ERROR_FIELDS:
        return OPENAI_CHAT
    return None


_RESPONSES_EVENT = frozenset({"response", "sequence_number", "output_index", "item_id"})
_CHOICE_KEYS = ("message", "delta")
_ERROR = frozenset({"error", "user_id"})
_ERROR_FIELDS = frozenset({"message", "type", "code", "param"})
_EXTRA = frozenset({"content_block", "usage", "context_management"})


def is_event(body: dict[str, Json]) -> bool:
    """Returns whether a body is one event of a stream, not a whole response."""
    choices = as_dicts(body.get("choices"))
    if any("message" in choice for choice in choices):
        return False
    if as_str(body.get("object")).endswith(".chunk") or any("delta" in c for c in choices):
        return True
    kind = as_str(body.get("type"))
    if kind in _ANTHROPIC_EVENTS or kind.startswith("response.") or kind in _EVENTS:
        return True
    return is_bedrock_event(body) or is_interaction_event(body)


def is_bedrock_event(body: dict[str, Json]) -> bool:
    """Returns whether the only key is that of an event; `metadata` must also contain `usage`."""
    if len(body) != 1 or _BEDROCK_EVENTS.isdisjoint(body):
        return False
    return "metadata" not in body or "usage" in as_dict(body["metadata"])
