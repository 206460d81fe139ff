"""Logs for tests of complete runs: files of JSONL conversations, and one with a broken line."""

import json


def row(name, turns=1):
    """Returns a line with a conversation of so many turns; the name makes it unique."""
    content = [
        {"role": role, "content": f"{name} {turn} {role}"}
        for turn in range(turns)
        for role in ("user", "assistant")
    ]
    return json.dumps({"messages": content, "tools": []}) + "\n"


def write_logs(folder, rows):
    """Writes twelve files with so many conversations each, and bad.jsonl."""
    folder.mkdir(exist_ok=True)
    for name in range(12):
        text = "".join(row(f"{name}.{number}", 1 + number % 3) for number in range(rows))
        (folder / f"{name:02d}.jsonl").write_text(text)
    (folder / "bad.jsonl").write_text(row("x") + "{broken\n")
    return folder
