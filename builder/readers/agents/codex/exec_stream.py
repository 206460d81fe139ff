"""Reads what `codex exec --json` prints: the events of a run, for programs that watch it.

Source: docs/formats/codex-exec.md. The stream lacks the request, and it has commands and
changes of files as the program carried them out, not the calls as the model made them. So each
thread is a conversation that is rejected (`no_request`) and names the rollout that has both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from builder.conversation import (
    Context,
    Conversation,
    Event,
    Json,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unparsed,
    unknown_part,
)
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.toolkit import as_dict, as_str, name_or_none, unknown_code
from builder.readers.toolkit.chat_messages import content, qualified, text_or_data
from builder.readers.toolkit.narrow import first_of, name_of
from builder.readers.toolkit.places import ignored, span, unique_name
from builder.readers.toolkit.rows import objects
from builder.readers.toolkit.unknown_keys import noted
from builder.readers.toolkit.unknown_records import carries_content, unknown_message
from builder.sources.source import Source

NAME = "codex-exec"

_STARTS = {"thread.started": "thread_id", "session.created": "session_id"}
"""The first event of a stream, and its key with the id of the thread; the second one is older."""
_ITEMS = frozenset({"item.started", "item.updated", "item.completed"})
_STATE = frozenset({"turn.started", "turn.completed", "turn.failed", "error"})

_TEXTS = {"agent_message": Text, "assistant_message": Text, "plan": Text, "reasoning": Reasoning}
"""Items with the text of an answer; that of `reasoning` is the summary of a thought."""
_CALLS = {
    "command_execution": ("command",),
    "file_change": ("changes",),
    "todo_list": ("items",),
    "collab_tool_call": ("tool", "prompt", "receiver_thread_ids"),
    "mcp_tool_call": ("arguments",),
}
"""Items of what the program carried out, and their keys in place of the arguments."""
_KEYS = frozenset({
    "id", "type", "item_type", "text", "command", "aggregated_output", "exit_code", "status",
    "changes", "items", "tool", "prompt", "sender_thread_id", "receiver_thread_ids",
    "agents_states", "server", "arguments", "result", "error", "query", "action", "message",
})  # fmt: skip

_EVENTS = {
    "exec_command": "command_execution", "mcp_tool_call": "mcp_tool_call",
    "patch_apply": "file_change", "web_search": "web_search", "plan_update": "todo_list",
    "agent_message": "agent_message", "agent_reasoning": "reasoning",
}  # fmt: skip
"""Events of the protocol, which was printed before 0.44, without _begin or _end: their items."""
_BOOKKEEPING = frozenset({
    "task_started", "task_complete", "token_count", "turn_diff", "agent_message_delta",
    "agent_reasoning_delta", "agent_reasoning_section_break", "exec_command_output_delta",
    "mcp_list_tools_response", "background_event", "session_configured",
})  # fmt: skip
"""Events of the protocol that repeat others, or that are about the run."""


def recognise(source: Source) -> str | None:
    """Claims the first event of a stream, events of items, or those of the older protocol."""
    for value in source.peek.objects:
        kind = as_str(value.get("type"))
        item = as_dict(value.get("item"))
        if isinstance(value.get(_STARTS.get(kind, "")), str):
            return f"the event {kind}"
        if kind in _ITEMS and name_of(item, "type", "item_type"):
            return f"events {kind}"
        event = as_str(value, "msg", "type")
        if "id" in value and (_stem(event) in _EVENTS or event in _BOOKKEEPING):
            return "events of the protocol (id, msg)"
    return None


def read(source: Source) -> Iterator[Event]:
    """Yields a conversation for each thread that has an item, each rejected."""
    names: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    thread = _Thread(source.name.rpartition("/")[2].partition(".")[0] or "thread")
    for record in objects(source.records(), "an event that is "):
        if isinstance(record, Problem):
            yield record
            continue
        where, value = record
        kind = as_str(value.get("type"))
        event, item = kind.removeprefix("item."), as_dict(value.get("item"))
        if "msg" in value:
            event, item = _of_protocol(as_dict(value["msg"]))
        if kind in _STARTS or item.get("session_id"):
            yield from thread.events(names)
            session = value.get(_STARTS.get(kind, "")) or item.get("session_id")
            thread = _Thread(name_or_none(session) or thread.name)
            counts["state"] += 1
        elif kind in _STATE:
            thread.items.clear()  # ids of items begin again
            counts["error_message" if kind in ("turn.failed", "error") else "state"] += 1
        elif event in ("started", "updated", "completed") and item:
            counts[thread.take(where, event, item)] += 1
        elif not kind and isinstance(value.get("prompt"), str):  # of the older protocol
            thread.prompt(where, as_str(value["prompt"]))
        elif as_str(item.get("type")) in _BOOKKEEPING or value.keys() >= {"workdir", "sandbox"}:
            counts["state"] += 1
        else:
            shown = kind or item.get("type")
            counts[unknown_code(shown)] += 1
            if carries_content(item or value):
                thread.messages.append(unknown_message(shown))
    counts.pop("", None)
    yield from thread.events(names)
    yield from ignored(counts)


@dataclass(slots=True)
class _Thread:
    """The items of a thread so far; `items` has the ids of those that began."""

    name: str
    first: str = ""
    last: str = ""
    records: int = 0
    messages: list[Message] = field(default_factory=list)
    items: set[str] = field(default_factory=set)

    def prompt(self, where: str, text: str) -> None:
        """Takes the prompt, which is not the whole request."""
        self._add(where, [Message("user", (Text(text),))])

    def _add(self, where: str, messages: list[Message]) -> None:
        self.messages += messages
        self.first, self.last = self.first or where, where
        self.records += 1

    def take(self, where: str, event: str, item: dict[str, Json]) -> str:
        """Takes an event of an item; returns the code if nothing of it is used, else ""."""
        kind = name_of(item, "type", "item_type") or ""
        name = as_str(item.get("id"))
        begun = bool(name) and name in self.items
        if kind == "error":
            return "error_message"
        if event == "updated" and kind != "todo_list":
            return "repeated_event"
        if kind in _CALLS:
            added = [*self._call(kind, item, begun, event)]
        elif event != "completed":
            return "repeated_event"
        elif kind in _TEXTS:
            text = as_str(item.get("text"))
            added = [Message("assistant", (_TEXTS[kind](text),))] if text else []
        elif kind == "web_search":
            added = [Message("assistant", (Unparsed(kind, "server_tool"),))]
        else:
            if not carries_content(item):
                return unknown_code(kind)
            added = [Message("assistant", (unknown_part(kind),))]
        if not added:
            return "repeated_event"
        self.items.add(name)
        self._add(where, noted(added, item, _KEYS))
        return ""

    def _call(self, kind: str, item: dict[str, Json], begun: bool, event: str) -> Iterator[Message]:
        """Yields what was carried out when it begins, and its result when it is completed."""
        call_id = name_or_none(item.get("id"))
        if not begun or event == "updated":
            arguments: Json = {key: item[key] for key in _CALLS[kind] if key in item}
            called = kind
            if kind == "mcp_tool_call":
                called = qualified(f"mcp__{as_str(item.get('server'))}", as_str(item.get("tool")))
                arguments = item.get("arguments")
            yield Message("assistant", (ToolCall(called, arguments, call_id),))
        output = first_of(item, "aggregated_output", "result", "agents_states")
        error = item.get("error")
        if event == "completed" and (output is not None or error):
            inside = as_dict(output).get("content")
            shown = (
                content(inside) if isinstance(inside, list) else text_or_data(output, compact=True)
            )
            denied = item.get("status") == "declined"
            failed = bool(error) or denied or item.get("status") == "failed"
            parts = (*shown, *text_or_data(error))
            yield Message("tool", (ToolResult(parts, call_id, None, failed, denied),))

    def events(self, names: Counter[str]) -> Iterator[Event]:
        """Yields the conversation, if there is one."""
        if not self.records:
            return
        place = span(self.first, self.last)
        detail = (
            "the events have neither the request nor the calls as the model made them; "
            f"the rollout of the thread {self.name[:80]} has both"
        )
        yield Conversation(
            id=unique_name(self.name, names),
            record=place,
            messages=tuple(self.messages),
            records=self.records,
            problems=(Problem("no_request", place, detail, records=0),),
            context=Context.lacking({"system", "tools", "history"}),
        )


def _stem(event: str) -> str:
    return event.removesuffix("_begin").removesuffix("_end")


def _of_protocol(message: dict[str, Json]) -> tuple[str, dict[str, Json]]:
    """Returns an event of the older protocol as (event, item)."""
    kind = as_str(message.get("type"))
    if _stem(kind) not in _EVENTS:
        return "", message
    invocation = as_dict(message.get("invocation"))
    output = first_of(message, "aggregated_output", "formatted_output", "stdout")
    errors = as_str(message.get("stderr"))
    item = {
        "type": _EVENTS[_stem(kind)],
        "id": message.get("call_id"),
        "text": first_of(message, "message", "text"),
        "command": message.get("command"),
        "changes": message.get("changes"),
        "items": message.get("plan"),
        **{key: invocation.get(key) for key in ("server", "tool", "arguments")},
        "aggregated_output": output if output or not errors else errors,
        "result": as_dict(message.get("result")).get("Ok"),
        "error": as_dict(message.get("result")).get("Err"),
    }
    event = "started" if kind.endswith("_begin") or kind == "plan_update" else "completed"
    return event, {key: value for key, value in item.items() if value is not None}


READER = Reader(
    name=NAME,
    summary="what `codex exec --json` prints (thread.started, item.completed): for the accounting",
    evidence=("source", "files"),
    recognise=recognise,
    read=read,
)
