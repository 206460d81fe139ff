"""Writes the scripted model's answers in the wire formats of four APIs, plain and streamed."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from typing import Any

from wire.shapes import Body, Tool


@dataclass(frozen=True, slots=True)
class Answer:
    """The model's next answer: a thought, a text, calls (tool, arguments), and its token count.

    `stop` is Anthropic's stop reason, if it is not the usual one.
    """

    text: str = ""
    calls: tuple[tuple[Tool, Any], ...] = ()
    thought: str = ""
    tokens: int = 100
    stop: str = ""


Event = tuple[str, Body | str]


def _id(prefix: str) -> str:
    return prefix + uuid.uuid4().hex[:24]


def write_answer(api: str, body: Body, answer: Answer) -> tuple[Body, str]:
    """Returns the response body, and the same response as a stream of server-sent events."""
    full, events = _WRITERS[api](body, answer)
    return full, "".join(
        (f"event: {name}\n" if name else "")
        + f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"
        for name, data in events
    )


def _anthropic(body: Body, answer: Answer) -> tuple[Body, list[Event]]:
    content: list[Body] = []
    if answer.thought:
        content.append({"type": "thinking", "thinking": answer.thought, "signature": "bW9jaw=="})
    if answer.text:
        content.append({"type": "text", "text": answer.text})
    content += [
        {"type": "tool_use", "id": _id("toolu_"), "name": tool.name, "input": arguments}
        for tool, arguments in answer.calls
    ]
    usage = {
        "input_tokens": answer.tokens,
        "output_tokens": 20,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }
    message = {
        "id": _id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": content,
        "stop_reason": answer.stop or ("tool_use" if answer.calls else "end_turn"),
        "stop_sequence": None,
        "usage": usage,
    }
    start = {**message, "content": [], "stop_reason": None}
    events: list[Body] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(content):
        empty, deltas = _anthropic_deltas(block)
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": stop, "usage": usage})
    events.append({"type": "message_stop"})
    return message, [(event["type"], event) for event in events]


def _anthropic_deltas(block: Body) -> tuple[Body, list[Body]]:
    if block["type"] == "text":
        return {"type": "text", "text": ""}, [
            {"type": "text_delta", "text": half} for half in _halves(block["text"])
        ]
    if block["type"] == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    return {**block, "input": {}}, [
        {"type": "input_json_delta", "partial_json": half}
        for half in _halves(json.dumps(block["input"]))
    ]


def _halves(text: str) -> tuple[str, str]:
    middle = len(text) // 2
    return text[:middle], text[middle:]


def _chat(body: Body, answer: Answer) -> tuple[Body, list[Event]]:
    calls = [
        {
            "id": _id("call_"),
            "type": "function",
            "function": {"name": tool.name, "arguments": json.dumps(arguments)},
        }
        for tool, arguments in answer.calls
    ]
    message: Body = {"role": "assistant", "content": answer.text or None}
    if answer.thought:
        message["reasoning_content"] = answer.thought
    if calls:
        message["tool_calls"] = calls
    base = {"id": _id("chatcmpl-"), "created": int(time.time()), "model": body.get("model")}
    tokens = answer.tokens
    usage = {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20}
    finish = answer.stop or ("tool_calls" if calls else "stop")
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    full = {**base, "object": "chat.completion", "choices": [choice], "usage": usage}

    def chunk(delta: Body, reason: str | None = None) -> Event:
        choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
        return "", {**base, "object": "chat.completion.chunk", "choices": choices}

    events = [chunk({"role": "assistant", "content": ""})]
    if answer.thought:
        events.append(chunk({"reasoning_content": answer.thought}))
    if answer.text:
        events.append(chunk({"content": answer.text}))
    for index, call in enumerate(calls):
        function: Body = call["function"]  # type: ignore[assignment]
        empty = {**function, "arguments": ""}
        events.append(chunk({"tool_calls": [{**call, "index": index, "function": empty}]}))
        arguments = {"arguments": function["arguments"]}
        events.append(chunk({"tool_calls": [{"index": index, "function": arguments}]}))
    events.append(chunk({}, finish))
    last: Body = {**base, "object": "chat.completion.chunk", "choices": [], "usage": usage}
    return full, [*events, ("", last), ("", "[DONE]")]


def _responses(body: Body, answer: Answer) -> tuple[Body, list[Event]]:
    items: list[Body] = []
    if answer.thought:
        summary = [{"type": "summary_text", "text": answer.thought}]
        opaque = {"encrypted_content": "bW9jaw=="}
        items.append({"type": "reasoning", "id": _id("rs_"), "summary": summary, **opaque})
    if answer.text:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        message = {"type": "message", "id": _id("msg_"), "role": "assistant", "content": content}
        items.append({**message, "status": "completed"})
    for tool, arguments in answer.calls:
        call = {"call_id": _id("call_"), "name": tool.name, "status": "completed"}
        if tool.kind == "custom":
            items.append(
                {"type": "custom_tool_call", "id": _id("ctc_"), **call, "input": arguments}
            )
        else:
            text = json.dumps(arguments)
            items.append({"type": "function_call", "id": _id("fc_"), **call, "arguments": text})
    tokens = answer.tokens
    is_cut = answer.stop in ("max_tokens", "length")
    if is_cut and items:
        items[-1]["status"] = "incomplete"
    response: Body = {
        "id": _id("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "model": body.get("model"),
        "status": "incomplete" if is_cut else "completed",
        "output": items,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "usage": {
            "input_tokens": tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens + 20,
        },
        "parallel_tool_calls": True,
        "tools": [],
        "tool_choice": "auto",
        "metadata": {},
    }
    created = {**response, "status": "in_progress", "output": [], "usage": None}
    events: list[Body] = [{"type": "response.created", "response": created}]
    for index, item in enumerate(items):
        events += _responses_events(index, item)
    events.append({"type": f"response.{response['status']}", "response": response})
    for number, event in enumerate(events):
        event["sequence_number"] = number
    return response, [(event["type"], event) for event in events]


def _responses_events(index: int, item: Body) -> list[Body]:
    place = {"output_index": index}
    start = item
    middle: list[Body] = []
    if item["type"] == "message":
        start = {**item, "content": [], "status": "in_progress"}
        block = {"item_id": item["id"], **place, "content_index": 0}
        text = item["content"][0]["text"]
        empty = {"type": "output_text", "text": "", "annotations": []}
        middle = [
            {"type": "response.content_part.added", **block, "part": empty},
            {"type": "response.output_text.delta", **block, "delta": text},
            {"type": "response.output_text.done", **block, "text": text},
            {"type": "response.content_part.done", **block, "part": item["content"][0]},
        ]
    elif item["type"] == "function_call":
        start = {**item, "arguments": "", "status": "in_progress"}
        block = {"item_id": item["id"], **place}
        text = item["arguments"]
        middle = [
            {"type": "response.function_call_arguments.delta", **block, "delta": text},
            {"type": "response.function_call_arguments.done", **block, "arguments": text},
        ]
    return [
        {"type": "response.output_item.added", **place, "item": start},
        *middle,
        {"type": "response.output_item.done", **place, "item": item},
    ]


def _gemini(_: Body, answer: Answer) -> tuple[Body, list[Event]]:
    parts: list[Body] = []
    if answer.thought:
        parts.append({"text": answer.thought, "thought": True})
    if answer.text:
        parts.append({"text": answer.text})
    for number, (tool, arguments) in enumerate(answer.calls):
        part: Body = {"functionCall": {"name": tool.name, "args": arguments, "id": _id("fc")}}
        if number == 0:
            part["thoughtSignature"] = "bW9jaw=="
        parts.append(part)
    content = {"role": "model", "parts": parts}
    full = {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": answer.tokens,
            "candidatesTokenCount": 20,
            "totalTokenCount": answer.tokens + 20,
        },
        "modelVersion": "mock",
        "responseId": _id("r"),
    }
    return full, [("", full)]


_WRITERS = {"anthropic": _anthropic, "chat": _chat, "responses": _responses, "gemini": _gemini}
