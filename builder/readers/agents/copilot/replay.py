"""Reads exports of VS Code's chat debug view (`.chatreplay.json`): the requests as they were sent.

A request's response is logged as text alone. Its calls are in the next request, whose messages
repeat it, and in the log's own entries for calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from builder.conversation import Context, Event, Ignored, Json, Used
from builder.problem import Problem
from builder.readers.api.capture.captures import Logs
from builder.readers.api.capture.dialect import OPENAI_CHAT
from builder.readers.api.capture.envelope import Exchange
from builder.readers.toolkit.narrow import as_dict, as_dicts, as_list, as_str
from builder.readers.toolkit.rows import objects
from builder.sources.source import Source

_ROLES: dict[Json, str] = {0: "system", 1: "user", 2: "assistant", 3: "tool"}
_MARKS = frozenset({"stateful_marker", "context_management"})
"""Types of opaque parts that hold no content."""
_FAILED = 500


def is_replay(value: dict[str, Json]) -> bool:
    """Returns whether a record is an export of all prompts, or of one."""
    prompts = as_dicts(value.get("prompts")) or [value]
    return any(
        "prompt" in prompt and isinstance(prompt.get("logs"), list) and _kinds(prompt)
        for prompt in prompts
    )


def _kinds(prompt: dict[str, Json]) -> bool:
    logs = as_dicts(prompt.get("logs"))
    return not logs or any(log.get("kind") in ("request", "toolCall", "element") for log in logs)


def read_replay(
    source: Source, document: dict[str, Json], helpers: tuple[str, ...]
) -> Iterator[Event]:
    """Yields the conversations of an export; requests with a name in `helpers` are left out."""
    prompts = as_dicts(document.get("prompts")) or [document]
    logged = [log for prompt in prompts for log in as_dicts(prompt.get("logs"))]
    defined = any("tools" in as_dict(log.get("metadata")) for log in logged)
    logs = Logs(OPENAI_CHAT, context=Context.lacking(() if defined else {"tools"}, "rendered"))
    for number, prompt in enumerate(prompts):
        entries = as_list(prompt.get("logs"))
        if not entries:
            source.count_records()
            yield Ignored("no_request")
        for at, record in enumerate(source.counted(entries, f"prompts[{number}].logs[{{}}]")):
            entry = next(iter(objects([record], "an entry that is ")))
            if isinstance(entry, Problem):
                yield entry
                continue
            where, log = entry
            if log.get("kind") == "toolCall":
                yield Used()
            elif "requestMessages" not in log and "messages" not in log:
                yield Ignored("no_request")
            elif as_str(log.get("name")).startswith(helpers):
                yield Ignored("helper_request")
            else:
                rest = as_dicts(entries[at + 1 :])
                yield from logs.take(_exchange(where, log, rest))
    yield from logs.rest()


def _exchange(where: str, log: dict[str, Json], rest: Sequence[dict[str, Json]]) -> Exchange:
    """Returns a request and its response; `rest` are the entries after it."""
    metadata, sent = as_dict(log.get("metadata")), _messages(log)
    request: dict[str, Json] = {"model": metadata.get("model"), "messages": [*map(_message, sent)]}
    if "tools" in metadata:
        request["tools"] = metadata.get("tools")
    response = as_dict(log.get("response"))
    kind = as_str(response.get("type"))
    if kind not in ("success", "truncated", ""):
        return Exchange(where, status=_FAILED, request=request, text=kind, api=OPENAI_CHAT)
    content = response.get("message")
    message = _message(
        {"role": 2, "content": content if isinstance(content, list) else [content or ""]}
    )
    if made := _calls(len(sent), rest):
        message["tool_calls"] = made
    choice: Json = {
        "index": 0,
        "message": message,
        "finish_reason": "length" if kind == "truncated" else "tool_calls" if made else "stop",
    }
    body: dict[str, Json] = {"model": metadata.get("model"), "choices": [choice]}
    return Exchange(where, request=request, response=body, api=OPENAI_CHAT)


def _messages(log: dict[str, Json]) -> list[dict[str, Json]]:
    sent = log.get("requestMessages", log.get("messages"))
    return as_dicts(as_dict(sent).get("messages") if isinstance(sent, dict) else sent)


def _calls(length: int, rest: Sequence[dict[str, Json]]) -> list[Json]:
    """Returns the calls of a response to a request of `length` messages.

    They are taken from the next request, which has them in order, else from the entries up to it.
    """
    calls: list[Json] = []
    for log in rest:
        if log.get("kind") == "toolCall":
            calls.append({
                "id": _call_id(log.get("id")),
                "type": "function",
                "function": {"name": log.get("tool"), "arguments": log.get("args")},
            })  # fmt: skip
        elif messages := _messages(log):
            after = messages[length] if length < len(messages) else {}
            repeated = _message(after).get("tool_calls")
            is_answer = calls and _role(after) == "assistant"
            return as_list(repeated) if is_answer and repeated else calls
    return calls


def _role(message: dict[str, Json]) -> str:
    role = message.get("role")
    return _ROLES.get(role, "") if isinstance(role, int) else as_str(role)


def _message(message: dict[str, Json]) -> dict[str, Json]:
    """Returns a message in OpenAI's form, from that of VS Code's prompt renderer."""
    content: list[Json] = []
    found: dict[str, Json] = {"role": _role(message), "content": content}
    parts = message.get("content")
    for part in [parts] if isinstance(parts, str) else as_list(parts):
        block = as_dict(part)
        kind, value = block.get("type"), as_dict(block.get("value"))
        text = part if isinstance(part, str) else block.get("text")
        if isinstance(text, str):
            content += [{"type": "text", "text": text}] if text else []
        elif kind in (0, "image_url"):
            content.append({"type": "image_url", "image_url": block.get("imageUrl")})
        elif value.get("type") == "thinking":
            thought = as_dict(value.get("thinking")).get("text")
            found["reasoning_content"] = "".join(map(as_str, as_list(thought))) or as_str(thought)
        elif kind in (3, "cache_control") or value.get("type") in _MARKS:
            pass
        else:
            content.append({"type": as_str(value.get("type")) or f"part {kind}"})
    if all(as_dict(part).get("type") == "text" for part in content):
        found["content"] = "".join(as_str(part, "text") for part in content)
    if calls := as_dicts(message.get("toolCalls")) or as_dicts(message.get("tool_calls")):
        found["tool_calls"] = [{**call, "id": _call_id(call.get("id"))} for call in calls]
    if call_id := message.get("toolCallId", message.get("tool_call_id")):
        found["tool_call_id"] = _call_id(call_id)
    return found


def _call_id(value: Json) -> str:
    """Returns the id of a call without the client's suffix."""
    return as_str(value).partition("__vscode-")[0]
