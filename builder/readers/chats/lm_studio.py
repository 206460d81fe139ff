"""Reads LM Studio's log stream: rendered prompts, answers. Source: docs/formats/lm-studio.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from builder.conversation import (
    Event,
    Ignored,
    Json,
    Reasoning,
    ToolCall,
    Unparsed,
    Used,
)
from builder.jsonio import dumps
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.api.captures import Logs
from builder.readers.api.dialects import OPENAI_CHAT
from builder.readers.api.exchanges import Exchange
from builder.readers.homes import Home
from builder.readers.toolkit import tags
from builder.readers.toolkit.narrow import (
    as_dict,
    as_dicts,
    as_str,
)
from builder.readers.toolkit.rows import objects, refused
from builder.sources.source import Source

_NAME = "lm-studio"


def _recognise(source: Source) -> str | None:
    """Claims messages with versions, one of them selected, and predictions of the log stream."""
    for value in source.peek.objects:
        if _is_log(value):
            return "predictions of lms log stream (llm.prediction.input and output)"
        for message in as_dicts(value.get("messages"))[:1]:
            if "currentlySelected" in message and isinstance(message.get("versions"), list):
                return "messages with versions and currentlySelected"
    return None


_END = "<|im_end|>"
_TURN = re.compile(r"\s*<\|im_start\|>(\w+)\n(.*?)(?:<\|im_end\|>|\Z)", re.DOTALL)
_REASONS = {
    "maxPredictedTokensReached": "length", "contextLengthReached": "length",
    "userStopped": "error", "modelUnloaded": "error", "failed": "error",
}  # fmt: skip
_PREDICTIONS = ("llm.prediction.input", "llm.prediction.output")


def _is_log(item: dict[str, Json]) -> bool:
    return as_dict(item.get("data")).get("type") in _PREDICTIONS


def _read(source: Source) -> Iterator[Event]:
    """Yields the conversations of rendered prompts and their answers.

    An answer belongs to the prompt of its model that waits; of two that wait, to neither.
    """
    if not any(map(_is_log, source.peek.objects)):
        detail = "no conversation written by LM Studio was compared with requests"
        yield from refused(source, detail)
        return
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


READER = Reader(
    name=_NAME,
    summary=(
        "LM Studio: `lms log stream --json` (llm.prediction.input and output: rendered prompts); "
        "conversations (messages with versions and currentlySelected) are refused"
    ),
    evidence=("source", "parsers"),
    recognise=_recognise,
    homes=(
        Home("LM Studio", "~/.lmstudio/conversations"),
        Home("LM Studio", "~/.cache/lm-studio/conversations"),
    ),
    read=_read,
)
