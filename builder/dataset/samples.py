"""Extracts the sample from a decoded row, and the turns that it trains."""

from __future__ import annotations

from collections.abc import Iterator

from builder.conversation import Json
from builder.finding import CheckFinding
from builder.jsonio import JsonFault, loads, loads_text
from builder.readers.toolkit import as_dict
from builder.sample import Sample

TEMPLATE_ROLES = ("system", "user", "assistant")
"""Roles of the flat form, in which results are text of a user message."""


def read_sample(value: Json, *, encoded_tools: bool = True) -> Sample | list[CheckFinding]:
    """Returns the sample in a decoded row, or every reason why there is none.

    `tools` may be missing, null, or a list. With `encoded_tools` the list, or any of its elements,
    may also be JSON text, as Arrow files store JSON; in a JSONL file, `apply_chat_template` would
    refuse the loader's result. An assistant message may have a `weight` of 0 or 1; null, which
    Arrow writes for a message without one, counts as missing, as for `reasoning_content`, the
    thought beside the text. Other columns are ignored.
    """
    if not isinstance(value, dict):
        return [CheckFinding("format", "the line is not a JSON object")]
    findings: list[CheckFinding] = []
    raw = value.get("messages")
    messages: list[tuple[str, str]] = []
    weights: list[int | None] = []
    thoughts: list[str] = []
    if not isinstance(raw, list):
        findings.append(CheckFinding("format", "messages: is not a list"))
        raw = []
    for index, item in enumerate(map(as_dict, raw)):
        role, content, weight = item.get("role"), item.get("content"), item.get("weight")
        if not isinstance(role, str):
            findings.append(
                CheckFinding("format", f"messages[{index}].role: is not a string", index)
            )
        elif not isinstance(content, str):
            what = "is not a string (the template renders lists as nothing)"
            message = f"messages[{index}].content: {what}"
            findings.append(CheckFinding("format", message, index))
        elif extra := item.keys() - {"role", "content", "weight", "reasoning_content"}:
            keys = ", ".join(sorted(extra))
            message = f"messages[{index}]: unknown keys {keys}: not the flat form"
            findings.append(CheckFinding("format", message, index))
        elif not _is_thought(item.get("reasoning_content"), role):
            message = f"messages[{index}].reasoning_content: is not text of an assistant message"
            findings.append(CheckFinding("format", message, index))
        elif not _is_weight(weight, role):
            message = f"messages[{index}].weight: is not 0 or 1 of an assistant message"
            findings.append(CheckFinding("format", message, index))
        else:
            messages.append((role, content))
            weights.append(weight if isinstance(weight, int) else None)
            thoughts.append(str(item.get("reasoning_content") or ""))
    tools = value.get("tools")
    if not encoded_tools and is_encoded(tools):
        message = (
            "tools: JSON text, which the loader leaves as text and the chat template refuses:"
            " decode it, or declare the feature as JSON"
        )
        findings.append(CheckFinding("format", message))
    if isinstance(tools, str):
        try:
            tools = loads(tools)
        except JsonFault as fault:
            findings.append(CheckFinding("format", f"tools: text that is not JSON: {fault.detail}"))
            tools = None
    if tools is not None and not isinstance(tools, list):
        findings.append(CheckFinding("format", "tools: is not a list"))
    if findings:
        return findings
    listed = tools if isinstance(tools, list) else []
    given = tuple(weights) if any(weight is not None for weight in weights) else ()
    beside = tuple(thoughts) if any(thoughts) else ()
    return Sample(tuple(messages), tuple(map(loads_text, listed)), given, beside)


def unrenderable(sample: Sample) -> Iterator[CheckFinding]:
    """Yields the faults for which the chat template cannot render a sample, or skips a part."""
    if not sample.messages:
        yield CheckFinding("order", "no messages")
    for index, (role, content) in enumerate(sample.messages):
        if role not in TEMPLATE_ROLES:
            yield CheckFinding("order", f"unknown role {role[:40]!r}: the template skips it", index)
        if not (is_encodable(content) and is_encodable(role)):
            yield CheckFinding("format", "a lone surrogate cannot be written as UTF-8", index)
    if not all(map(is_encodable, sample.thoughts)):
        yield CheckFinding("format", "a lone surrogate cannot be written as UTF-8")
    for index, tool in enumerate(sample.tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        named = isinstance(name, str) and name
        if not isinstance(tool, dict) or tool.get("type") != "function" or not named:
            message = f'tools[{index}] is not {{"type": "function", "function": {{"name": …}}}}'
            yield CheckFinding("tools", message)
        elif not is_encodable(sample.definitions[index]):
            yield CheckFinding(
                "format", f"tools[{index}]: a lone surrogate cannot be written as UTF-8"
            )


def is_encodable(text: str) -> bool:
    """Returns whether a text can be written as UTF-8: it has no lone surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_encoded(tools: Json) -> bool:
    """Returns whether the definitions, or some of them, are JSON text."""
    return isinstance(tools, str) or (
        isinstance(tools, list) and any(isinstance(tool, str) for tool in tools)
    )


def _is_thought(value: Json, role: str) -> bool:
    return value is None or (role == "assistant" and isinstance(value, str))


def _is_weight(value: Json, role: str) -> bool:
    return value is None or (role == "assistant" and type(value) is int and value in (0, 1))


def targets(sample: Sample, unit: str, trained: int | None = None) -> tuple[int, ...]:
    """Returns the ordinals of the assistant turns that a row trains.

    Weights decide if there are any. Otherwise the last `trained` turns count; None: the last one
    for the unit "turn", else all.
    """
    if sample.weights:
        return sample.targets
    if trained is None and unit == "turn":
        trained = 1
    turns = sum(role == "assistant" for role, _ in sample.messages)
    first = 0 if trained is None else max(turns - trained, 0)
    return tuple(range(first, turns))
