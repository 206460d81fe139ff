"""Compares Langfuse's traces with the platform's own reading (`*.chatml.json` next to them).

For each generation that the platform could read, one of our conversations starts with exactly its
messages: roles, texts, calls and results. `tests/readers/langfuse/README.md` explains the
differences; adjustments to the platform's side are commented below.
"""

import json

import pytest

from builder.conversation import Data, Reasoning, Text, ToolCall, ToolResult
from builder.readers.traces import langfuse
from builder.sources.source import Source

ROLES = {"model": "assistant"}
SYSTEM_ELSEWHERE = {"csharp-agent-with-gemini-2026-03-09", "openai-agents-2025-09-30"}
"""Traces whose system text is in the metadata or the response, which the platform ignores."""


def value_of(text):
    """Returns a text as JSON value if it is one, as the two sides format objects differently."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


def parts_of(message):
    """Yields (role, value, calls) of one of our messages, or of each of its results."""
    if message.role == "tool":
        for result in message.parts:
            assert isinstance(result, ToolResult)
            values = [
                part.text if isinstance(part, Text) else part.value for part in result.content
            ]
            yield "tool", value_of(values[0]) if values else "", []
        return
    parts = [part for part in message.parts if not isinstance(part, Reasoning)]
    assert all(isinstance(part, Text | ToolCall | Data) for part in parts)
    calls = [part for part in parts if isinstance(part, ToolCall)]
    yield (
        message.role,
        value_of("".join(part.text for part in parts if isinstance(part, Text))),
        [(call.name, value_of(call.arguments), call.id or "") for call in calls],
    )


def ours(messages):
    """Returns our messages; those of one turn are merged, followed by their results."""
    found, turns = [], {}
    for message in messages:
        if message.turn in turns:
            turns[message.turn] += next(parts_of(message))[2]
            continue
        found += parts_of(message)
        if message.turn is not None:
            turns[message.turn] = found[-1][2]
    return found


def koog_calls(text):
    """Returns the calls of Koog, which the platform leaves as the text of a message."""
    value = value_of(text)
    if not isinstance(value, list) or not all("function" in item for item in value):
        return []
    functions = [(item["function"], item["id"]) for item in value]
    return [(one["name"], json.loads(one["arguments"]), name) for one, name in functions]


def theirs(messages):
    found, koog = [], None
    for message in messages:
        text = message.get("content") or ""
        made = [
            (call["name"], json.loads(call["arguments"] or "{}"), call["id"])
            for call in message.get("tool_calls") or []
        ]
        role = ROLES.get(message.get("role"), message.get("role"))
        if wording := koog_calls(text):
            if koog is not None:
                koog += wording
                continue
            role, text, made = "assistant", "", wording
            koog = made
        elif role == "user" and found and found[-1][2]:
            role = "tool"  # ADK: a function's response, which the platform attributes to the user
        found.append((role, value_of(text), made))
    return found


def read_by_platform(trace, view):
    """Yields (id, messages) of generations that the platform read; wrappers are skipped."""
    parents = {one["parentObservationId"] for one in trace if one["type"] == "GENERATION"}
    for one in trace:
        sides = view.get(one["id"], {})
        wording = sides.get("input", {})
        if one["type"] == "GENERATION" and one["id"] not in parents and wording.get("success"):
            output = sides.get("output", {})
            answers = output["data"] if output.get("success") else []
            # Without a role it is an event of the instrumentation and stays as it was.
            answers = [answer.get("json", {}).get("message", answer) for answer in answers]
            yield one["id"], [*wording["data"], *answers]


@pytest.mark.parametrize(
    "stem",
    [
        "crewai-2025-07-11", "csharp-agent-with-gemini-2026-03-09", "google-adk-2025-08-28",
        "google-gemini-2025-08-01", "koog-2025-08-26", "openai-agents-2025-09-30",
        "pydantic-ai-tools-2025-06-06", "pydantic-ai-tools-2025-12-04",
        "vercel-aisdk-2025-11-17", "vertex-ai-2025-08-01",
    ],
)  # fmt: skip
def test_conversations_agree_with_the_platform(shared, stem):
    folder = shared / "corpus" / "langfuse"
    source = Source("trace", folder / f"{stem}.trace.json")
    conversations = [event for event in langfuse.read(source) if hasattr(event, "messages")]
    trace = json.loads((folder / f"{stem}.trace.json").read_bytes())["observations"]
    view = json.loads((folder / f"{stem}.chatml.json").read_bytes())
    compared = 0
    for name, messages in read_by_platform(trace, view):
        expected = theirs(messages)
        begins = []
        for conversation in conversations:
            wording = ours(conversation.messages)
            if stem in SYSTEM_ELSEWHERE:
                assert wording.pop(0)[0] == "system"
            begins.append(wording[: len(expected)])
        assert expected in begins, name
        compared += 1
    generations = sum(1 for one in trace if one["type"] == "GENERATION")
    assert compared == generations - (stem == "vercel-aisdk-2025-11-17")  # its wrapper


def test_the_files_of_the_platform_are_recognised_and_counted(shared):
    paths = sorted((shared / "corpus" / "langfuse").glob("*.chatml.json"))
    assert paths
    for path in paths:
        source = Source(path.name, path)
        assert langfuse.READER.recognise(source)
        assert [event.code for event in langfuse.read(source)] == ["chatml_view"]
