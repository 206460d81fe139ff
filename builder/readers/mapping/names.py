"""Lists the names that logs use for the parts of a conversation, the likeliest first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from unicodedata import combining, normalize

from builder.readers.mapping.words import KEY_WORDS, ROLE_WORDS

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SUFFIXES = {
    "id": re.compile(r"_(?:id|uid|uuid|key|no|number)$"),
    "order": re.compile(
        r"_(?:id|idx|index|no|num|number|order|ms|ns|us|utc|unix)$|^(?:message|msg|event)_"
    ),
}
"""Endings and beginnings of names that say nothing of what they name."""


@lru_cache(4096)
def snake(name: str) -> str:
    """Returns a name in snake case, without accents: `toolCallId` as `tool_call_id`."""
    if not name.isascii():
        name = "".join(one for one in normalize("NFKD", name) if not combining(one))
    return re.sub(r"[\W_]+", "_", _HUMP.sub("_", name.strip()).lower()).strip("_")


_ROLES = {
    "user": ("user", "human", "customer", "client", "person", "prompt", "question", "input",
             "request", "caller", "me", "query", "task", "ask", "asked", "visitor", "patient_user",
             "utterance", "usr"),
    "assistant": ("assistant", "ai", "bot", "agent", "model", "gpt", "llm", "completion", "answer",
                  "response", "reply", "output", "generation", "chatbot", "say", "says", "final",
                  "final_answer", "answered", "replied", "asst"),
    "system": ("system", "sys", "instructions", "instruction", "system_prompt", "developer",
               "sys_prompt", "preamble"),
    "tool": ("tool", "function", "observation", "result", "environment", "env", "returned",
             "return", "returns", "ret", "observed", "api", "tool_response", "function_response"),
    "call": ("action", "call", "invoke", "invoked", "invocation", "act"),
    "thought": ("thought", "thoughts", "thinking", "reasoning", "think", "reflection", "rationale",
                "scratchpad"),
    "fragment": ("delta", "chunk", "partial", "text_delta", "content_delta", "message_delta",
                 "answer_delta", "text_chunk", "token_delta"),
    "skip": ("event", "status", "debug", "info", "metric", "heartbeat", "log", "usage", "ui",
             "session_start", "session_end", "score", "reward", "rating", "eval", "evaluation",
             "grade", "feedback"),
}  # fmt: skip
_MEANING = {snake(name): role for role, names in ROLE_WORDS.items() for name in names.split()} | {
    name: role for role, names in _ROLES.items() for name in names
}

_TOOLS = frozenset({
    "tool", "tools", "function", "func", "fn", "plugin", "mcp", "command", "cmd", "shell",
    "exec", "skill", "api", "action",
})  # fmt: skip
_STARTS = frozenset({
    "call", "calls", "called", "use", "used", "start", "started", "begin", "begun", "invoke",
    "invoked", "invocation", "request", "requested", "input", "args", "arguments", "execute",
})  # fmt: skip
_ENDS = frozenset({
    "out", "outcome", "stdout",
    "result", "results", "output", "outputs", "response", "responses", "end", "ended", "finish",
    "finished", "done", "complete", "completed", "return", "returned", "returns", "observation",
    "error", "failed", "failure", "fail", "exception", "ok", "success", "succeeded", "ack", "ret",
    "reply", "answer",
})  # fmt: skip
_SPOKEN = frozenset({
    "said", "says", "asked", "wrote", "sent",
    "message", "msg", "text", "turn", "input", "utterance", "prompt", "query", "question",
    "request", "reply", "answer", "response",
})  # fmt: skip
_ANSWERED = frozenset({
    "said", "says", "wrote", "sent", "replied", "answered",
    "message", "msg", "text", "turn", "output", "utterance", "response", "reply", "answer",
    "completion", "generation", "final",
})  # fmt: skip

NAMES: Mapping[str, Sequence[str]] = {
    "role": ("role", "from", "sender", "author", "speaker", "type", "kind", "who", "event",
             "event_type", "event_name", "event_kind", "source", "actor", "by", "direction",
             "participant", "what", "r"),
    "is_user": ("is_user", "is_human", "from_user", "isUser", "isHuman", "fromUser"),
    "is_assistant": ("is_bot", "is_ai", "is_assistant", "isBot", "isAi", "isAssistant"),
    "text": ("content", "text", "message", "value", "body", "utterance", "answer", "reply",
             "response", "final_answer", "question", "query", "output", "data", "parts",
             "msg", "payload", "result", "says", "said", "words", "txt", "line", "c"),
    "calls": ("tool_calls", "calls", "function_calls", "actions", "tool_uses", "toolCalls",
              "function_call", "tool_call", "toolCall", "invocations", "tools_called", "action",
              "call", "invoke", "tool", "function", "command", "step", "use"),
    "call_name": ("name", "tool", "tool_name", "function", "action", "fn", "toolName",
                  "function_name", "func", "method", "api"),
    "arguments": ("arguments", "args", "input", "parameters", "params", "kwargs", "tool_input",
                  "tool_args", "inputs", "action_input", "actionInput", "toolInput",
                  "tool_arguments", "tool_params", "function_args", "fn_args", "call_args",
                  "with", "payload"),
    "call_id": ("id", "call_id", "tool_call_id", "tool_use_id", "ref", "call"),
    "result_id": ("tool_call_id", "call_id", "callId", "toolCallId", "tool_use_id", "in_reply_to",
                  "ref", "call", "id"),
    "results": ("tool_results", "results", "observations", "tool_outputs", "toolResults",
                "function_results", "observation", "result", "output", "outputs", "tool_output",
                "tool_result", "tool_response", "function_response", "function_result",
                "function_output", "api_response", "execution_result", "call_result", "response",
                "returned", "return"),
    "result_text": ("output", "result", "content", "text", "observation", "value", "response",
                    "body", "data", "stdout", "out", "returned", "return", "message"),
    "result_name": ("name", "tool", "tool_name", "function", "toolName", "function_name"),
    "error": ("is_error", "error", "isError", "failed", "exception"),
    "id": ("conversation_id", "session_id", "thread_id", "chat_id", "trace_id", "run_id",
           "dialog_id", "dialogue_id", "session", "conversation", "thread", "chat", "trace", "run",
           "dialog", "dialogue", "conv", "convo", "sess", "sid", "episode", "rollout", "trajectory",
           "ticket", "case", "group", "correlation", "request", "interaction", "id", "uuid"),
    "order": ("seq", "sequence", "index", "idx", "step", "position", "pos", "order", "turn", "n",
              "i", "no", "num", "number", "line", "offset", "timestamp", "ts", "created_at",
              "time", "date", "at", "t", "created", "when"),
    "system": ("system", "system_prompt", "instructions", "system_message", "sys", "sys_prompt"),
    "prompt": ("prompt", "question", "query", "instruction", "task", "input", "goal",
               "problem", "user_prompt", "user", "request"),
    "answer": ("completion", "answer", "reply", "final_answer", "response", "assistant", "ai",
               "final", "assistant_response", "model_output", "generation", "output", "target",
               "bot", "gpt", "llm_output", "bot_reply", "gen"),
    "model": ("model", "model_name", "model_id", "modelName", "engine", "llm"),
    "stop": ("finish_reason", "stop_reason", "stopReason", "finishReason"),
    "license": ("license", "licence"),
}  # fmt: skip

_RANKS: Mapping[str, Mapping[str, int]] = {
    key: {snake(name): at for at, name in reversed([*enumerate(names)])}
    for key, own in NAMES.items()
    for names in [[*own, *KEY_WORDS.get(key, "").split()]]
}

_UNKNOWN = 999

OUTCOMES = {
    name: name
    for name in ("reward", "score", "success", "resolved", "rating", "feedback", "passed", "label")
} | {"grade": "reward"}
"""Names of outcomes, and the keys of `conversation.outcome` that they mean."""


def meaning(value: str) -> str:
    """Returns the role that a value usually means, or "" if it is unknown.

    Of a name of several words, those of tools decide before those of a person or a model:
    `tool_end` and `system_result` are results, `tool_start` is a call.
    """
    name = snake(value)
    if name in _MEANING:
        return _MEANING[name]
    words = name.split("_")
    rest = {*words}
    if rest & _TOOLS:
        if rest & _ENDS:
            return "tool"
        if rest & _STARTS:
            return "call"
        if rest <= _TOOLS | {"message", "msg"}:
            return "tool"
    is_of_system = not rest.isdisjoint(_ROLES["system"])
    if is_of_system and rest & {"result", "results", "output", "observation", "return"}:
        return "tool"
    if is_of_system:
        return "system" if rest <= {*_ROLES["system"], *_SPOKEN} else ""
    if rest & {"called", "calls"}:
        return "call"
    for role, spoken in (("user", _SPOKEN), ("assistant", _ANSWERED)):
        own = {word for word in words if _MEANING.get(word) == role}
        if own and rest <= own | spoken:
            return role
    if "observation" in rest or "result" in words[-1:]:
        return "tool"
    return "thought" if rest & {*_ROLES["thought"]} else ""


def rank(key: str, path: str) -> int:
    """Returns the position of a path's last name among the usual names; 999 if it is none."""
    names = _RANKS[key]
    name = snake(path.rpartition(".")[2].strip('"[])'))
    if key in _SUFFIXES and name not in names:
        name = _SUFFIXES[key].sub("", name) or name
    return names.get(name, _UNKNOWN)


def is_usual(key: str, path: str) -> bool:
    """Returns whether a path's last name is a usual name for the key."""
    return rank(key, path) < _UNKNOWN
