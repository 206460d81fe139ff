"""Calls in the folders of API captures, counted over the raw JSON without our readers.

Each function gives names of calls: what later requests repeat of a call stands once in a set.
"""

import json

from corpus_counts import objects

LONG = 19
"""A longer id is drawn at random. Shorter ones are counted, anew in each conversation."""

RESPONSES_CALLS = {
    "function_call", "custom_tool_call", "tool_search_call", "shell_call", "local_shell_call",
    "apply_patch_call", "computer_call",
}  # fmt: skip


def exchanges(folder):
    """(file, request or {}, objects of the response) of pair lines, bare responses and events."""
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
            # What an item begins with is not yet the item.
            whole = [one for one in answer if one.get("type") != "response.output_item.added"]
            yield path.name, value.get("request") or {}, list(objects(whole))


def calls(folder, is_call, key):
    """Calls by their ids, or by what the request says before them where the id is a number."""

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
            if (name, what) not in sent:  # else it was sent back, perhaps under the client's own id
                found.add(place)
    return found


def is_direct(item):
    """Whether the model made the call itself, not a program that it wrote."""
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
