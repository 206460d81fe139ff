"""The sample in a decoded row, and which of its turns are trained."""

from __future__ import annotations

from builder.conversation import Json
from builder.finding import Finding
from builder.jsonio import JsonFault, loads
from builder.sample import Sample


def read_sample(value: Json) -> Sample | list[Finding]:
    """Read the sample in a decoded line, or find every reason why it is none.

    `tools` may be missing, null, or a list as JSON text, and so may each of its elements be (that
    is how Arrow files keep JSON). An assistant message may have a `weight` of 0 or 1; null, which
    Arrow writes for a message without one, is none. Other columns are not looked at.
    """
    if not isinstance(value, dict):
        return [Finding("format", "the line is no JSON object")]
    findings: list[Finding] = []
    raw = value.get("messages")
    messages: list[tuple[str, str]] = []
    weights: list[int | None] = []
    if not isinstance(raw, list):
        findings.append(Finding("format", "messages: is no list"))
        raw = []
    for index, item in enumerate(raw):
        role = item.get("role") if isinstance(item, dict) else None
        content = item.get("content") if isinstance(item, dict) else None
        if not isinstance(role, str):
            findings.append(Finding("format", f"messages[{index}].role: is no string", index))
        elif not isinstance(content, str):
            message = (
                f"messages[{index}].content: is no string (the template renders lists as nothing)"
            )
            findings.append(Finding("format", message, index))
        elif isinstance(item, dict) and set(item) - {"role", "content", "weight"}:
            extra = ", ".join(sorted(set(item) - {"role", "content", "weight"}))
            message = f"messages[{index}]: unknown keys {extra}: not the flat form"
            findings.append(Finding("format", message, index))
        elif isinstance(item, dict) and not _is_weight(item.get("weight"), role):
            message = f"messages[{index}].weight: is not 0 or 1 of an assistant message"
            findings.append(Finding("format", message, index))
        elif isinstance(item, dict):
            weight = item.get("weight")
            messages.append((role, content))
            weights.append(weight if isinstance(weight, int) else None)
    tools = value.get("tools")
    if isinstance(tools, str):
        try:
            tools = loads(tools)
        except JsonFault as fault:
            findings.append(Finding("format", f"tools: text that is no JSON: {fault.detail}"))
            tools = None
    if tools is not None and not isinstance(tools, list):
        findings.append(Finding("format", "tools: is no list"))
    if findings:
        return findings
    listed = tools if isinstance(tools, list) else []
    given = tuple(weights) if any(weight is not None for weight in weights) else ()
    return Sample(tuple(messages), tuple(map(_definition, listed)), given)


def _is_weight(value: Json, role: str) -> bool:
    return value is None or (role == "assistant" and type(value) is int and value in (0, 1))


def targets(sample: Sample, unit: str, trained: int | None = None) -> tuple[int, ...]:
    """Find the ordinals of the assistant turns that a row trains.

    Weights decide where there are any. Else the last `trained` turns are meant; None: the last one
    for the unit "turn", otherwise all.
    """
    if sample.weights:
        return sample.targets
    if trained is None and unit == "turn":
        trained = 1
    turns = sum(role == "assistant" for role, _ in sample.messages)
    first = 0 if trained is None else max(turns - trained, 0)
    return tuple(range(first, turns))


def _definition(tool: Json) -> Json:
    """A definition out of its JSON text; anything else as it is, for the verifier to judge."""
    if not isinstance(tool, str):
        return tool
    try:
        return loads(tool)
    except JsonFault:
        return tool
