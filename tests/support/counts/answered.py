"""Counts answered calls of each folder of real logs over the raw JSON, without our readers."""

import json
import sqlite3

from support.counts.calls import everything, rows


def _answered(calls, results):
    """Returns the ids of calls that a result in the same folder names."""
    return set(calls) & set(results)


def claude_answered_calls(folder):
    """Returns the calls that a tool result of the same file names, by line id and call id."""
    found = set()
    for path in folder.rglob("*.jsonl"):
        called: dict[str, tuple[str, str]] = {}
        answered = set()
        for row in rows(path):
            content = (row.get("message") or {}).get("content")
            for block in content if isinstance(content, list) else []:
                if block["type"] == "tool_use":
                    called.setdefault(block["id"], (row["uuid"], block["id"]))
                elif block["type"] == "tool_result":
                    answered.add(block["tool_use_id"])
        found |= {name for call_id, name in called.items() if call_id in answered}
    return found


def codex_answered_calls(folder):
    items = [(row.get("payload") or {}) for path in folder.rglob("*.jsonl") for row in rows(path)]
    kinds = {"function_call", "custom_tool_call", "local_shell_call"}
    return _answered(
        (item["call_id"] for item in items if item.get("type") in kinds),
        (item["call_id"] for item in items if str(item.get("type")).endswith("_call_output")),
    )


def gemini_cli_answered_calls(folder):
    """Counts calls, which are recorded together with their results."""
    return {
        item["id"]
        for _, item in everything(folder)
        if {"id", "name", "args"} <= set(item) and item.get("result")
    }


def opencode_answered_calls(folder):
    """Returns completed parts of type tool, in files and databases."""
    found = set()
    for name, item in everything(folder):
        if item.get("type") == "tool" and "/part/" in name:
            found |= (
                {item["callID"]} if item["state"]["status"] in ("completed", "error") else set()
            )
    for path in folder.rglob("*.db"):
        store = sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)
        for (data,) in store.execute("SELECT data FROM part"):
            item = json.loads(data)
            if item["type"] == "tool" and item["state"]["status"] in ("completed", "error"):
                found.add(item["callID"])
        store.close()
    return found


def openhands_sdk_captured_calls(folder):
    """Returns the calls in responses of logged model calls."""
    return {
        (item["response"]["id"], call["id"])
        for _, item in everything(folder)
        if "latency_sec" in item
        for choice in item["response"]["choices"]
        for call in choice["message"].get("tool_calls") or []
    }


def pi_answered_calls(folder):
    items = [item for _, item in everything(folder)]
    return _answered(
        (item["id"] for item in items if item.get("type") == "toolCall"),
        (item["toolCallId"] for item in items if item.get("role") == "toolResult"),
    )


def qwen_code_answered_calls(folder):
    items = [item for _, item in everything(folder)]
    return _answered(
        (item["functionCall"]["id"] for item in items if "functionCall" in item),
        (item["functionResponse"]["id"] for item in items if "functionResponse" in item),
    )
