"""Counts calls of each folder of real logs over raw JSON or rows, without our readers.

Each function returns the log's own names of its calls: a repeated call occurs once in the set.
"""

import json
import re
import sqlite3
import sys

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

FUNCTION = re.compile(r"^<function=", re.MULTILINE)


def rows(path):
    """Yields the JSON objects among a file's lines."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


def documents(folder):
    """Yields (name, JSON value) of each file; for JSON Lines, the list of values."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".jsonl":
            yield name, list(rows(path))
        elif path.suffix in (".json", ".traj"):
            yield name, json.loads(path.read_bytes())


def objects(value):
    """Yields all objects in a JSON value, in order."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            yield from objects(item)


def everything(folder):
    """Yields (file name, object) for every object in the folder."""
    for name, value in documents(folder):
        for item in objects(value):
            yield name, item


def numbered(name, calls):
    """Returns names for calls that differ only in their position."""
    return {(name, number) for number, _ in enumerate(calls)}


def atif_calls(folder):
    """Returns calls of steps, of OpenHands events, and in the text of exported episodes.

    Episodes repeat the turns of the previous one.
    """
    found = openhands_calls(folder)
    for name, item in everything(folder):
        found |= {
            (name, call["tool_call_id"])
            for call in item.get("tool_calls") or []
            if "step_id" in item
        }
        for number, turn in enumerate(item.get("conversations", [])):
            if turn["role"] == "assistant":
                found |= numbered((name, number), FUNCTION.findall(turn["content"]))
    return found


def claude_calls(folder):
    """Returns calls by line id, call id and arguments: a copy may be redacted."""
    return {
        (row["uuid"], block["id"], json.dumps(block["input"], sort_keys=True))
        for path in folder.rglob("*.jsonl")
        for row in rows(path)
        if row.get("type") == "assistant"
        for block in row["message"]["content"]
        if block["type"] == "tool_use"
    }


def entire_calls(folder):
    """Returns calls of Claude Code and of the gemini-cli sessions (one JSON value) among them."""
    found = claude_calls(folder)
    for path in folder.glob("*.jsonl"):
        try:
            session = json.loads(path.read_bytes())
        except ValueError:
            continue
        found |= {item["id"] for item in objects(session) if {"id", "name", "args"} <= set(item)}
    return found


def claude_warm_ups(folder):
    """Returns the files whose user messages are only "Warmup"."""
    return sum(
        [row["message"]["content"] for row in rows(path) if row.get("type") == "user"] == ["Warmup"]
        for path in folder.rglob("*.jsonl")
    )


def cline_calls(folder):
    return {item["id"] for _, item in everything(folder) if item.get("type") == "tool_use"}


def codex_calls(folder):
    kinds = {"function_call", "custom_tool_call", "local_shell_call"}
    return {
        (path.name, (row.get("payload") or {})["call_id"])
        for path in folder.rglob("*.jsonl")
        for row in rows(path)
        if (row.get("payload") or {}).get("type") in kinds
    }


def gemini_cli_calls(folder):
    return {item["id"] for _, item in everything(folder) if {"id", "name", "args"} <= set(item)}


def inspect_calls(folder):
    """Returns calls in messages of samples; a sample is a member of an archive or of a list."""
    samples = []
    for path in folder.rglob("*.eval"):
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.startswith("samples/")]
            samples += [(path.name, json.loads(archive.read(name))) for name in names]
    for name, value in documents(folder):
        samples += [(name, sample) for sample in value.get("samples") or []]
    return {
        (name, sample["id"], sample["epoch"], call["id"])
        for name, sample in samples
        for message in sample["messages"]
        for call in message.get("tool_calls") or []
    }


def kimi_calls(folder):
    return {
        call["id"]
        for path in folder.rglob("context*.jsonl")
        for row in rows(path)
        for call in row.get("tool_calls") or []
    }


def mini_swe_calls(folder):
    """Returns calls; messages contain the response that they came from, with the same calls."""
    return {
        (name, call["id"])
        for name, item in everything(folder)
        for call in item.get("tool_calls") or []
    }


def opencode_calls(folder):
    """Returns parts of type tool, in files and databases."""
    found = {
        (item["sessionID"], item["callID"])
        for name, item in everything(folder)
        if item.get("type") == "tool" and "/part/" in name
    }
    for path in folder.rglob("*.db"):
        store = sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)
        for session, data in store.execute("SELECT session_id, data FROM part"):
            if json.loads(data)["type"] == "tool":
                found.add((session, json.loads(data)["callID"]))
        store.close()
    return found


def openhands_calls(folder):
    """Returns calls by their response; in early versions an action was a call."""
    found = set()
    legacy = {"run", "run_ipython", "finish"}
    for name, item in everything(folder):
        metadata = item.get("tool_call_metadata")
        if metadata:
            found.add((metadata["model_response"]["id"], metadata["tool_call_id"]))
        elif name.endswith("mock_output__output.jsonl"):
            actions = [event for event in item.get("history", []) if event.get("action") in legacy]
            found |= (
                numbered((name, item.get("base_commit"), item["issue"]["number"]), actions)
                if actions
                else set()
            )
    return found


def openhands_sdk_calls(folder):
    """Returns calls: requests repeat earlier calls; events of actions have one call each.

    A model without native calls wrote them into its text, and got an id for each.
    """
    found = set()
    for _, item in everything(folder):
        found |= {call["id"] for call in item.get("tool_calls") or [] if call.get("id")}
        if item.get("kind") == "ActionEvent":
            found.add(item["tool_call_id"])
    return found


def pi_calls(folder):
    return {item["id"] for _, item in everything(folder) if item.get("type") == "toolCall"}


def qwen_code_calls(folder):
    return {item["functionCall"]["id"] for _, item in everything(folder) if "functionCall" in item}


def sharegpt_calls(folder):
    """Returns one per function_call turn or item of its list, and per part of type tool_call."""
    found = []
    for _, value in documents(folder):
        for row in value if isinstance(value, list) else []:
            for turn in row.get("conversations", []):
                if turn["from"] == "function_call":
                    calls = json.loads(turn["value"])
                    found += calls if isinstance(calls, list) else [calls]
            for message in row.get("messages", []):
                found += [p for p in message["content"] if p["type"] == "tool_call"]
    return found


def smolagents_calls(folder):
    return {
        (name, call["id"])
        for name, steps in documents(folder)
        for step in steps
        for call in step.get("tool_calls") or []
    }


def span_calls(folder):
    """Returns calls by id and arguments: parts in texts, numbered attributes, tool spans."""
    found = set()
    for _, span in everything(folder):
        texts = [text for text in span.values() if isinstance(text, str) and text[:1] in "[{"]
        parts = [part for text in texts for part in objects(json.loads(text))]
        calls = [
            (part["id"], part["arguments"]) for part in parts if part.get("type") == "tool_call"
        ]
        for name in span:
            if name.endswith(".tool_call.id"):
                arguments = span[name.removesuffix("id") + "function.arguments"]
                calls.append((span[name], json.loads(arguments)))
        if "gen_ai.tool.call.id" in span:
            calls.append((span["gen_ai.tool.call.id"], json.loads(span["input"])))
        found |= {(call_id, json.dumps(arguments)) for call_id, arguments in calls}
    return found


def swe_agent_calls(folder):
    """Returns the calls of the history; older dialects write commands into the text."""
    return {
        (name, number, call["id"])
        for name, value in documents(folder)
        for number, message in enumerate(value["history"])
        for call in message.get("tool_calls") or []
    }


def swe_smith_calls(folder):
    found = set()
    for name, value in documents(folder):
        for row, item in enumerate(value if isinstance(value, list) else [value]):
            for number, message in enumerate(item.get("messages") or item["history"]):
                if message["role"] == "assistant":
                    calls = message.get("tool_calls") or FUNCTION.findall(message["content"])
                    found |= numbered((name, row, number), calls)
    return found


def tau_bench_calls(folder):
    """Returns calls by position: ids repeat within a conversation."""
    return {
        (name, row, number, place)
        for name, value in documents(folder)
        for row, item in enumerate(value)
        for number, message in enumerate(item.get("traj", []))
        if isinstance(message, dict)
        for place, _ in enumerate(message.get("tool_calls") or [])
    }


def tau2_bench_calls(folder):
    return [item for _, item in everything(folder) if item.get("tool_calls")]


def toolbench_calls(folder):
    """Returns one per node of the search that chose a tool; messages repeat its path."""
    return [
        item
        for _, value in documents(folder)
        if isinstance(value, dict)
        for item in objects(value["tree"])
        if item.get("node_type") == "Action"
    ]


def xlam_calls(folder):
    """Returns the answers; rows of API-Bank repeat one another, and Hammer's prompts are text."""
    found = set()
    for name, value in documents(folder):
        for number, row in enumerate(value):
            if "output" in row:
                found |= numbered((name, number), json.loads(row["output"].strip("`\n")))
                continue
            wording = json.dumps(row["query"]) if isinstance(row["query"], list) else number
            found |= {(name, wording, place) for place, _ in enumerate(row["answers"])}
    return found


def antigravity_calls(folder):
    """Returns the calls of answers in transcripts; the databases of the folder have none."""
    return {
        (name, item["step_index"], number)
        for name, item in everything(folder)
        if item.get("type") == "PLANNER_RESPONSE"
        for number, _ in enumerate(item.get("tool_calls") or ())
    }


def droid_calls(folder):
    """Returns the calls of sessions; the output of `droid exec` is not read."""
    return {item["id"] for _, item in everything(folder) if item.get("type") == "tool_use"}


def kiro_calls(folder):
    """Returns the calls of lines and of the database's values."""
    lines = {
        item["data"]["toolUseId"] for _, item in everything(folder) if item.get("kind") == "toolUse"
    }
    return lines | {
        call["id"] for _, item in everything(folder) for call in item.get("tool_uses") or ()
    }
