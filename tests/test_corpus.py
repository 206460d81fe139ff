"""On real logs, where they lie beside the project: recognised, accounted for, proven, repeatable.

The number of calls is counted by independent means, a few lines a format over the raw JSON.
"""

import json

import pytest

from builder import cli


def rows(path):
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


def claude_calls(folder):
    """Calls by the id of their line and their own."""
    return {
        (row["uuid"], block["id"])
        for path in folder.rglob("*.jsonl")
        for row in rows(path)
        if row.get("type") == "assistant"
        for block in row["message"]["content"]
        if block["type"] == "tool_use"
    }


def codex_calls(folder):
    kinds = {"function_call", "custom_tool_call", "local_shell_call"}
    return {
        (path.name, (row.get("payload") or {})["call_id"])
        for path in folder.rglob("*.jsonl")
        for row in rows(path)
        if (row.get("payload") or {}).get("type") in kinds
    }


def sharegpt_calls(folder):
    """One for each function_call turn, or each of its list, and each part of type tool_call."""
    found = []
    documents = [*folder.rglob("*.json"), *folder.rglob("*.jsonl")]
    for path in documents:
        listed = list(rows(path)) if path.suffix == ".jsonl" else json.loads(path.read_bytes())
        for row in listed if isinstance(listed, list) else []:
            for turn in row.get("conversations", []):
                if turn["from"] == "function_call":
                    value = json.loads(turn["value"])
                    found += value if isinstance(value, list) else [value]
            for message in row.get("messages", []):
                found += [p for p in message["content"] if p["type"] == "tool_call"]
    return found


FOLDERS = {
    "claude-code/real_projects": claude_calls,
    "claude-code/misc": None,
    "claude-code/simonw": None,
    "claude-code/tail-claude": None,
    "codex": codex_calls,
    "openai-chat": None,
    "sharegpt": sharegpt_calls,
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_real_logs(shared, tmp_path, name):
    folder = shared / "corpus" / name
    manifests = []
    for run in ("one", "two"):
        out = tmp_path / run
        workers = "1" if run == "one" else "2"
        assert (
            cli._run(["build", str(folder), "-o", str(out), "--quiet", "--workers", workers]) == 0
        )
        manifest = json.loads((out / "manifest.json").read_bytes())
        del manifest["run"]
        manifests.append(manifest)
    assert manifests[0] == manifests[1], "a second run gives other bytes"
    ledger = manifests[0]["ledger"]
    assert "internal" not in ledger["records"]["rejected"]
    assert "internal" not in ledger["conversations"]["rejected"]
    assert cli._run(["verify", str(tmp_path / "two"), "--quiet"]) == 0
    count = FOLDERS[name]
    if count is not None:
        assert ledger["calls"]["logged"] == len(count(folder))


def test_claude_code_keeps_the_answered_calls_of_the_real_projects(shared, tmp_path):
    folder = shared / "corpus" / "claude-code" / "real_projects"
    assert cli._run(["build", str(folder), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    calls = json.loads((tmp_path / "out" / "manifest.json").read_bytes())["ledger"]["calls"]
    assert calls["logged"] == 544
    assert calls["kept"] >= 0.98 * 544


def test_no_injected_text_is_a_users_words(shared, tmp_path):
    folder = shared / "corpus" / "claude-code" / "real_projects"
    assert cli._run(["build", str(folder), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    markers = (
        "<command-name>",
        "<system-reminder>",
        "<local-command",
        "<ide_",
        "<bash-",
        "Caveat: ",
    )
    for row in rows(tmp_path / "out" / "data" / "train-00000-of-00001.jsonl"):
        for message in row["messages"]:
            if message["role"] == "user" and not message["content"].startswith("<tool_response>"):
                assert not any(marker in message["content"] for marker in markers)
