"""Lists the names that logs use for the parts of a conversation, the likeliest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_ROLES = {
    "user": ("user", "human", "customer", "client", "person", "prompt", "question", "input",
             "request", "caller", "me", "user_message", "human_message", "query", "task"),
    "assistant": ("assistant", "ai", "bot", "agent", "model", "gpt", "llm", "completion", "answer",
                  "response", "reply", "output", "assistant_message", "ai_message", "generation",
                  "chatbot", "aimessage"),
    "system": ("system", "instructions", "instruction", "system_prompt", "developer"),
    "tool": ("tool", "function", "observation", "tool_result", "tool_output", "result",
             "function_result", "tool_response", "function_call_output", "function_response",
             "tool_message", "environment", "env", "toolmessage"),
    "call": ("tool_call", "function_call", "tool_use", "action", "call", "tool_request"),
    "skip": ("event", "status", "debug", "info", "metric", "heartbeat", "log", "usage", "ui"),
}  # fmt: skip
_MEANING = {name: role for role, names in _ROLES.items() for name in names}

NAMES: Mapping[str, Sequence[str]] = {
    "role": ("role", "from", "sender", "author", "speaker", "type", "kind", "who", "event",
             "source", "actor", "by", "direction", "participant"),
    "is_user": ("is_user", "is_human", "from_user", "isUser", "isHuman", "fromUser"),
    "is_assistant": ("is_bot", "is_ai", "is_assistant", "isBot", "isAi", "isAssistant"),
    "text": ("content", "text", "message", "value", "body", "utterance", "answer", "reply",
             "response", "final_answer", "question", "query", "output", "data", "parts",
             "msg", "payload", "result"),
    "calls": ("tool_calls", "calls", "function_calls", "actions", "tool_uses", "toolCalls",
              "function_call", "tool_call", "toolCall", "invocations", "tools_called", "action",
              "call", "invoke", "tool", "function", "command", "step", "use"),
    "call_name": ("name", "tool", "tool_name", "function", "action", "fn", "toolName",
                  "function_name", "func", "method", "api"),
    "arguments": ("arguments", "args", "input", "parameters", "params", "kwargs", "tool_input",
                  "tool_args", "inputs", "action_input", "actionInput", "toolInput",
                  "tool_arguments", "payload"),
    "call_id": ("id", "call_id", "tool_call_id", "callId", "toolCallId", "tool_use_id", "ref"),
    "result_id": ("tool_call_id", "call_id", "callId", "toolCallId", "tool_use_id", "in_reply_to",
                  "ref", "id"),
    "results": ("tool_results", "results", "observations", "tool_outputs", "toolResults",
                "function_results", "observation", "result", "output", "outputs", "tool_output",
                "tool_result", "tool_response", "response", "returned", "return"),
    "result_text": ("output", "result", "content", "text", "observation", "value", "response",
                    "body", "data", "stdout", "returned", "return", "message"),
    "result_name": ("name", "tool", "tool_name", "function", "toolName", "function_name"),
    "error": ("is_error", "error", "isError", "failed"),
    "id": ("conversation_id", "session_id", "thread_id", "chat_id", "trace_id", "run_id",
           "dialog_id", "dialogue_id", "conversationId", "sessionId", "threadId", "session",
           "conversation", "thread", "run", "chat", "episode", "id", "uuid"),
    "order": ("seq", "index", "step", "position", "turn", "turn_index", "n", "timestamp", "ts",
              "created_at", "createdAt", "time", "date"),
    "system": ("system", "system_prompt", "systemPrompt", "instructions", "system_message"),
    "prompt": ("prompt", "question", "query", "instruction", "task", "input", "goal", "problem",
               "user_prompt", "user", "request"),
    "model": ("model", "model_name", "model_id", "modelName", "engine", "llm"),
    "stop": ("finish_reason", "stop_reason", "stopReason", "finishReason"),
    "license": ("license", "licence"),
}  # fmt: skip

OUTCOMES = {
    name: name
    for name in ("reward", "score", "success", "resolved", "rating", "feedback", "passed", "label")
} | {"grade": "reward"}
"""Names of outcomes, and the keys of `conversation.outcome` that they mean."""

PAIRS = (("prompt", "completion"), ("prompt", "response"), ("question", "answer"),
         ("instruction", "output"), ("input", "output"), ("query", "response"),
         ("user", "assistant"), ("request", "reply"), ("human", "ai"))  # fmt: skip
"""Columns of a question and its answer."""


def meaning(value: str) -> str:
    """Returns the role that a value usually means, or "" if it is unknown."""
    name = value.strip().lower().replace("-", "_").replace(" ", "_").replace(".", "_")
    return _MEANING.get(name) or _MEANING.get(name.partition("_")[0], "")


def rank(key: str, path: str) -> int:
    """Returns the position of a path's last name among the usual names; their number if none."""
    names = NAMES[key]
    last = path.rpartition(".")[2].strip('"[])')
    return names.index(last) if last in names else len(names)


def is_usual(key: str, path: str) -> bool:
    """Returns whether a path's last name is a usual name for the key."""
    return rank(key, path) < len(NAMES[key])
