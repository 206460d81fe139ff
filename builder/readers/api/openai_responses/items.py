"""Parses items of OpenAI's Responses API into messages (docs/formats/openai-responses.md "Items").

The items of one answer (thoughts, text, calls) are one assistant message, which ends at the next
user item or tool output. In a request, text or thoughts after a call begin another message, because
the call's output may be lost; both are one answer if all outputs follow. A turn in which the
provider ran tools cannot be a target: no client answers these calls, and the log lacks part of what
the model saw of them (`server_tool`). Calls by a program that the model wrote are not the model's
own (`programmatic_call`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from builder.conversation import (
    Data,
    Json,
    Media,
    Message,
    Part,
    Reasoning,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.jsonio import dumps
from builder.readers.agents.codex import items as codex_items
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str, name_or_none
from builder.readers.toolkit.thoughts import thoughts_of_keys
from builder.readers.toolkit.unknown_keys import MESSAGE_KEYS, noted, unknown_names

Item = dict[str, Json]

_CALLS = {
    "local_shell_call": ("local_shell", "action"),
    "shell_call": ("shell", "action"),
    "apply_patch_call": ("apply_patch", "operation"),
    "computer_call": ("computer", "action"),
}
"""Calls of built-in tools that the client runs: the tool's name, and the field of arguments."""

_NAMED_CALLS = frozenset({"function_call", "custom_tool_call", "tool_search_call"})
_OUTPUTS = frozenset({
    "function_call_output", "custom_tool_call_output", "tool_search_output",
    "local_shell_call_output", "shell_call_output", "apply_patch_call_output",
    "computer_call_output",
})  # fmt: skip
_SERVER = frozenset({
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
    "mcp_call", "mcp_approval_request", "program", "program_output",
})  # fmt: skip
_COMPACTIONS = frozenset({"compaction", "compaction_summary", "context_compaction"})
_SILENT = frozenset({"mcp_list_tools", "mcp_approval_response", "compaction_trigger"})
"""Items without content: lists of a server's tools, and approvals by the user."""

ITEMS = (
    frozenset(_CALLS)
    | _NAMED_CALLS
    | _OUTPUTS
    | _SERVER
    | _COMPACTIONS
    | _SILENT
    | {"message", "reasoning", "additional_tools", "item_reference"}
)
"""All known types."""

_KEYS = MESSAGE_KEYS | {
    "arguments", "call_id", "output", "summary", "input", "action", "actions", "operation",
    "namespace", "caller", "environment", "execution", "tools", "queries", "results", "code",
    "outputs", "container_id", "server_label", "error", "pending_safety_checks", "result",
    "acknowledged_safety_checks", "revised_prompt", "approval_request_id", "reason", "approve",
    "created_by", "max_output_length",
}  # fmt: skip
"""Keys of items that are known."""


def item_type(item: Item) -> str:
    """Returns the item's type, which messages and references to items may lack."""
    if isinstance(item.get("type"), str):
        return as_str(item.get("type"))
    if "role" in item:
        return "message"
    return "item_reference" if set(item) - {"type"} == {"id"} else "nothing"


def is_said_by_others(item: Item) -> bool:
    """Returns whether an item of a response is a message that the model did not write."""
    return item_type(item) == "message" and item.get("role", "assistant") != "assistant"


class ItemReading:
    """Collects items into messages.

    messages  the messages so far
    tools     definitions given to the model during the conversation
    missing   references to items that are not in the log
    changes   {code: count} of omissions
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.tools: list[Json] = []
        self.missing: list[str] = []
        self.changes: Counter[str] = Counter()
        self._answer: list[Part] = []  # parts of the current assistant message
        self._unknown: list[str] = []  # its unknown keys
        self._server_calls: set[str] = set()  # ids of calls that no client answers

    def read(self, items: Iterable[Json]) -> ItemReading:
        """Takes the items of a request."""
        for value in items:
            self._take(as_dict(value), answer=False)
        self._end()
        return self

    def read_answer(self, items: Iterable[Json]) -> Message:
        """Returns the items of a response as one message."""
        for value in items:
            self._take(as_dict(value), answer=True)
        return Message("assistant", tuple(self._answer), unknown=tuple(self._unknown))

    def _take(self, item: Item, *, answer: bool) -> None:
        kind = item_type(item)
        if not answer and kind in ("message", "reasoning") and self._has_call():
            self._end()
        if answer and is_said_by_others(item):
            self._answer.append(unknown_part(f"message of {as_str(item.get('role'))}"))
        elif kind == "message" and (answer or item.get("role") == "assistant"):
            self._answer += thoughts_of_keys(item)
            self._answer += codex_items.content_parts(item.get("content"))
        elif kind == "message":
            self._end()
            parts = codex_items.content_parts(item.get("content"))
            message = Message(as_str(item.get("role"))[:40], tuple(parts))
            self.messages += noted([message], item, _KEYS)
            return
        elif kind == "reasoning":
            self._answer += self._thoughts(item)
        elif kind in _NAMED_CALLS or kind in _CALLS:
            self._answer += thoughts_of_keys(item)
            self._answer.append(self._call(kind, item))
        elif kind in _OUTPUTS:
            self._output(kind, item, answer=answer)
        elif kind in _SERVER:
            self._answer.append(_server(kind))
        elif kind in _COMPACTIONS:
            self._answer.append(Unparsed(kind, "encrypted_context"))
        elif kind == "additional_tools":
            self._offer(item)
        elif kind == "item_reference":
            self.missing.append(as_str(item.get("id")))
        elif kind not in _SILENT:
            self._answer.append(unknown_part(kind))
            return
        if kind not in _OUTPUTS:
            self._unknown += unknown_names(item, _KEYS)

    def _thoughts(self, item: Item) -> list[Part]:
        """Returns thoughts in clear text, without summaries by another model."""
        texts = [as_str(part.get("text")) for part in as_dicts(item.get("content"))]
        if any(texts):
            return [Reasoning(text) for text in texts if text]
        if thoughts := thoughts_of_keys(item):
            return thoughts
        if as_list(item.get("summary")):
            self.changes["reasoning_summary_dropped"] += 1
        return []

    def _call(self, kind: str, item: Item) -> ToolCall | Unparsed:
        call_id = codex_items.call_id(item)
        caller = as_str(item, "caller", "type")
        container = as_str(item, "environment", "type").startswith("container")
        if caller not in ("", "direct") or container or item.get("execution") == "server":
            self._server_calls.add(call_id or "")
            return _server(kind) if container or not caller else _programmatic(item)
        if kind in _CALLS:
            name, field = _CALLS[kind]
            arguments = item.get(field)
            if kind == "computer_call" and "actions" in item:
                arguments = {"actions": item["actions"]}
            return ToolCall(name, arguments, call_id)
        if kind != "tool_search_call" and name_or_none(item.get("name")) is None:
            return Unparsed(dumps(item), "bad_call")
        if item.get("namespace") == item.get("name"):  # a deferred tool outside of any namespace
            item = {**item, "namespace": None}
        return codex_items.call(item)

    def _output(self, kind: str, item: Item, *, answer: bool) -> None:
        call_id = codex_items.call_id(item)
        server = (
            answer or item.get("execution") == "server" or (call_id or "") in self._server_calls
        )
        if server:
            self._answer.append(_server(kind))
        else:
            self._end()
            result = _result(kind, item, call_id)
            self.messages += noted([Message("tool", (result,))], item, _KEYS)
        if kind == "tool_search_output":
            self._offer(item)

    def _offer(self, item: Item) -> None:
        for tool in codex_items.definitions(item.get("tools")):
            if tool not in self.tools:
                self.tools.append(tool)

    def _has_call(self) -> bool:
        return any(isinstance(part, ToolCall) for part in self._answer)

    def _end(self) -> None:
        if self._answer:
            unknown = tuple(self._unknown)
            self.messages.append(Message("assistant", tuple(self._answer), unknown=unknown))
            self._answer = []
            self._unknown = []


def _result(kind: str, item: Item, call_id: str | None) -> ToolResult:
    if kind == "computer_call_output":
        return ToolResult((Media("image"),), call_id)
    result = codex_items.result({**item, "call_id": call_id})
    if kind == "apply_patch_call_output" and not result.content:
        result = replace(result, content=(Data({"status": item.get("status")}),))
    return replace(result, is_error=item.get("status") == "failed" or None)


def _server(kind: str) -> Unparsed:
    # Only the type, since clients do not send the whole item back.
    return Unparsed(kind, "server_tool")


def _programmatic(item: Item) -> Unparsed:
    return Unparsed(as_str(item.get("name")), "programmatic_call")
