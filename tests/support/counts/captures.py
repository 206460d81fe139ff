"""Counts calls in the folders of API captures over the raw JSON, without our readers.

Each function returns identifiers of calls: a call that later requests repeat occurs once in the
set.
"""

import json
import re

from support.counts.calls import objects, rows

CALL = re.compile(r"<tool_call>\n(.*?)\n</tool_call>", re.DOTALL)

LONG = 19
"""Longer ids are random. Shorter ones are numbered from the start in each conversation."""

RESPONSES_CALLS = {
    "function_call", "custom_tool_call", "tool_search_call", "shell_call", "local_shell_call",
    "apply_patch_call", "computer_call",
}  # fmt: skip


def exchanges(folder):
    """Yields (file, request or {}, objects of the response) of pair lines, responses and events."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".json", ".jsonl", ".txt"):
            continue
        text = path.read_text(encoding="utf-8")
        try:
            values = [json.loads(text)]
        except ValueError:
            values = [json.loads(line) for line in text.splitlines()]
        for value in values:
            if "url" in value:
                stream = (value.get("response_stream") or "").splitlines()
                events = [json.loads(line[6:]) for line in stream if line.startswith("data: {")]
                answer = [value.get("response") or {}, *events]
            else:
                answer = [value]
            # The beginning of an item is not the item.
            whole = [one for one in answer if one.get("type") != "response.output_item.added"]
            yield path.name, value.get("request") or {}, list(objects(whole))


def calls(folder, is_call, key):
    """Returns calls by their ids, or by the preceding request if the id is a number."""

    def named(call, before):
        what = json.dumps(
            [call.get("name"), call["type"], call.get("arguments", call.get("input"))]
        )
        return what, call[key] if len(call[key]) > LONG else (before, call[key], what)

    found = set()
    sent = set()
    for name, request, _ in exchanges(folder):
        content = [request.get("system") or request.get("instructions")]
        history = request.get("messages") or request.get("input") or []
        for item in history if isinstance(history, list) else ():
            for call in filter(is_call, objects(item)):
                asked = content[0] or any(one.get("role") == "user" for one in content[1:])
                what, place = named(call, json.dumps(content) if asked else name)
                found.add(place)
                sent.add((name, what))
            content.append(item)
    for name, _, answer in exchanges(folder):
        for call in filter(is_call, answer):
            what, place = named(call, name)
            # Otherwise it was sent back, perhaps under the client's own id.
            if (name, what) not in sent:
                found.add(place)
    return found


def is_direct(item):
    """Returns whether the model made the call itself, not a program that it wrote."""
    return (item.get("caller") or {}).get("type", "direct") == "direct"


def responses_calls(folder):
    """Calls that the client answers."""

    def is_call(item):
        place = str((item.get("environment") or {}).get("type"))
        ours = item.get("execution") != "server" and not place.startswith("container")
        ended = item.get("status") != "in_progress"
        return item.get("type") in RESPONSES_CALLS and ours and ended and is_direct(item)

    return calls(folder, is_call, "call_id")


def anthropic_calls(folder):
    """Calls that the client answers."""
    return calls(
        folder,
        lambda block: block.get("type") == "tool_use" and "name" in block and is_direct(block),
        "id",
    )


def _same(arguments):
    """Returns arguments as one text, from JSON text or a value."""
    if isinstance(arguments, str):
        arguments = json.loads(arguments) if arguments.strip() else {}
    return json.dumps(arguments or {}, sort_keys=True)


def _made(item):
    """Returns (name, arguments) if an object is a call in the response of any API, else None."""
    if item.get("type") == "tool_use" and "name" in item:
        return item["name"], _same(item["input"])
    if item.get("type") == "function_call" and "call_id" in item:
        return item["name"], _same(item["arguments"])
    for key in ("functionCall", "toolUse", "function"):
        call = item.get(key)
        held = {"args", "input", "arguments"} & set(call) if isinstance(call, dict) else ()
        if held and isinstance(call.get("name"), str):
            return call["name"], _same(call[held.pop()])
    return None


def captured_calls(folder):
    """Returns calls in completely recorded responses with their requests, by name and arguments.

    The corpus has many conversations in several files, which become one sample.
    """
    return {
        call
        for path in folder.rglob("*.jsonl")
        for row in rows(path)
        if "url" in row and isinstance(row.get("response"), dict) and row.get("status") == 200
        for call in map(_made, objects(row["response"]))
        if call is not None
    }


def trained_calls(out):
    """Returns the calls in data/ that are trained, by name and arguments."""
    texts = [
        message["content"]
        for path in (out / "data").glob("*.jsonl")
        for row in rows(path)
        for message in row["messages"]
        if message["role"] == "assistant" and message.get("weight") != 0
    ]
    found = [json.loads(call) for text in texts for call in CALL.findall(text)]
    return {(call["name"], _same(call["arguments"])) for call in found}
