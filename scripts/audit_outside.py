"""Measures which secrets a build misses, planted in forms from outside sources (planted_forms.py).

    python scripts/audit_outside.py [--seed N] [--each N] [--keep FOLDER]

Each secret is planted once, in its own log: in a user turn, an answer, an argument of a call
(a command, the text of a file), a tool response or a tool definition, in four formats. Some logs
are corrupted, so that details of rejects quote them. The logs are built, reported and exported, and
each file is searched for each secret, verbatim and as escaped by JSON and HTML.
"""

from __future__ import annotations

import argparse
import gzip
import html
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from planted_forms import ANYWHERE, BARE, PLACES, TOKENS, UNMARKED, draw

from builder import cli

PER_FILE = 20
EXPORTS = ("messages", "messages-str", "tools-in-system")


class Planted(NamedTuple):
    """A secret, its form, and the text that contains it."""

    form: str
    secret: str
    text: str


def planted(pick: random.Random, each: int) -> Iterator[Planted]:
    """Yields the secrets of all forms: tokens in `each` places, and every place once."""
    for name, token in TOKENS.items():
        places = ANYWHERE if name in UNMARKED else (*ANYWHERE, *BARE)
        issuer = name.split()[0].replace(".", "")
        for place in pick.sample(places, each):
            value, marked = draw(token, pick)
            text = place.format(value, name=issuer, NAME=issuer.upper())
            yield Planted(name, marked[0] if marked else value, text)
    for form in PLACES:
        for template in form.texts:
            text, secrets = draw(template, pick)
            yield from (Planted(form.name, secret, text) for secret in secrets)


def conversation(text: str, number: int, pick: random.Random) -> dict[str, Any]:
    """Returns a conversation in OpenAI's form; `number` decides where it contains the text."""
    where = number % 7
    noise = " ".join(pick.choices(("check", "the", "service", "again", "please", "now"), k=8))
    argument: dict[str, Any] = {"command": text if where == 2 else "ls -l"}
    if where == 3:
        argument = {"path": "/srv/app/settings", "content": f"# settings\n{text}\n# end\n"}
    description = f"Runs a command. Example: {text}" if where == 6 else "Runs a command."
    parameters = {"type": "object", "properties": {key: {"type": "string"} for key in argument}}
    return {
        "messages": [
            {"role": "user", "content": f"{noise} {number}\n{text if where == 0 else ''}"},
            {
                "role": "assistant",
                "content": f"I look.\n{text}" if where == 1 else None,
                "tool_calls": [
                    {
                        "id": f"call_{number}",
                        "type": "function",
                        "function": {"name": "run", "arguments": json.dumps(argument)},
                    }
                ],
            },
            {
                "role": "tool",
                "tool_call_id": f"call_{number}",
                "content": {4: f"$ cat file\n{text}\n$", 5: json.dumps({"out": text})}.get(
                    where, "ok"
                ),
            },
            {"role": "assistant", "content": f"Done with {number}."},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "run", "description": description, "parameters": parameters},
            }
        ],
    }


def anthropic(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the conversation as a request to Anthropic's API with its response."""
    user, call, result, answer = row["messages"]
    function = call["tool_calls"][0]["function"]
    used = {"type": "tool_use", "id": "toolu_1", "name": "run"}
    blocks: list[dict[str, Any]] = [{**used, "input": json.loads(function["arguments"])}]
    if call["content"]:
        blocks.insert(0, {"type": "text", "text": call["content"]})
    returned = {"type": "tool_result", "tool_use_id": "toolu_1", "content": result["content"]}
    tool = row["tools"][0]["function"]
    return {
        "request": {
            "model": "claude-sonnet-4",
            "max_tokens": 100,
            "messages": [
                {"role": "user", "content": user["content"]},
                {"role": "assistant", "content": blocks},
                {"role": "user", "content": [returned]},
            ],
            "tools": [
                {
                    "name": "run",
                    "description": tool["description"],
                    "input_schema": tool["parameters"],
                }
            ],
        },
        "response": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4",
            "content": [{"type": "text", "text": answer["content"]}],
            "stop_reason": "end_turn",
        },
    }


def claude_code(row: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Returns the conversation as lines of a Claude Code session."""
    request = anthropic(row)
    messages = [
        *request["request"]["messages"],
        {"role": "assistant", "content": request["response"]["content"]},
    ]
    lines: list[dict[str, Any]] = []
    for at, message in enumerate(messages):
        lines.append(
            {
                "parentUuid": f"{number}-{at - 1}" if at else None,
                "isSidechain": False,
                "userType": "external",
                "cwd": "/srv/app",
                "sessionId": f"session-{number}",
                "version": "2.0.1",
                "type": message["role"],
                "message": {**message, "model": "claude-sonnet-4", "id": f"msg_{number}_{at}"}
                if message["role"] == "assistant"
                else message,
                "uuid": f"{number}-{at}",
                "timestamp": f"2025-11-01T10:00:{at:02d}.000Z",
            }
        )
    return lines


def sharegpt(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the conversation in ShareGPT's form with function calls."""
    user, call, result, answer = row["messages"]
    function = call["tool_calls"][0]["function"]
    value = {"name": "run", "arguments": json.loads(function["arguments"])}
    return {
        "conversations": [
            {"from": "human", "value": user["content"] + (call["content"] or "")},
            {"from": "function_call", "value": json.dumps(value)},
            {"from": "observation", "value": result["content"]},
            {"from": "gpt", "value": answer["content"]},
        ],
        "tools": json.dumps([tool["function"] for tool in row["tools"]]),
    }


def write_logs(folder: Path, items: list[Planted], pick: random.Random) -> None:
    """Writes the logs in four formats; one line in twelve is corrupted."""
    for number, item in enumerate(items):
        row = conversation(item.text, number, pick)
        kind = number // 7 % 4
        name = f"{('openai', 'anthropic', 'claude', 'sharegpt')[kind]}-{number // PER_FILE:03d}"
        rows: list[Any] = [row]
        if kind == 1:
            rows = [anthropic(row)]
        elif kind == 2:
            name = f"claude-{number:04d}"
            rows = claude_code(row, number)
        elif kind == 3:
            rows = [sharegpt(row)]
        with (folder / f"{name}.jsonl").open("a", encoding="utf-8") as file:
            if number % 12 == 5 and kind == 0:
                row["messages"][1]["tool_calls"][0]["function"]["arguments"] = item.text
            lines = [json.dumps(line) for line in rows]
            if number % 12 == 7:
                lines[0] = lines[0][:-1]  # truncated: the detail of the reject may quote it
            file.writelines(f"{line}\n" for line in lines)


def run(*arguments: str) -> None:
    """Runs a command of the builder in this process."""
    code = cli.main([*arguments])
    assert code in (0, 1), f"{arguments[0]} ended with {code}"


def contents(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields (name, text) of every file, including the contents of Parquet files."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or ".state" in path.parts:
            continue
        data = path.read_bytes()
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".parquet":
            from pyarrow import parquet  # noqa: PLC0415 - the only use

            data = json.dumps(parquet.read_table(path).to_pylist(), default=str).encode()
        elif path.suffix == ".gz":
            data = gzip.decompress(data)
        yield name, data.decode("utf-8", "replace")


def spellings(secret: str) -> set[str]:
    """Returns a secret verbatim, as escaped by JSON once and twice, and as escaped by HTML."""
    once = json.dumps(secret)[1:-1]
    twice = json.dumps(once)[1:-1]
    return {secret, once, twice, html.escape(secret), html.escape(once)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=3, help="places of each token")
    parser.add_argument("--keep", type=Path, help="an empty folder for logs and output")
    options = parser.parse_args()
    pick = random.Random(options.seed)  # noqa: S311 - no real secrets
    items = list(planted(pick, options.each))
    with tempfile.TemporaryDirectory() as temporary:
        work = options.keep or Path(temporary)
        logs, out = work / "logs", work / "out"
        logs.mkdir()
        write_logs(logs, items, pick)
        for name, secrets in (("kept", "off"), ("out", "redact")):
            config = work / f"{name}.yaml"
            config.write_text(f"audit: {{secrets: {secrets}, near_duplicates: report}}\n")
            run("build", str(logs), "-o", str(work / name), "-c", str(config), "--quiet")
        run("report", str(out), "-o", str(out / "report-again.html"))
        for target in EXPORTS:
            run("export", str(out), "--to", target, "-o", str(work / "exports" / target))
        kept = "".join(text for _, text in contents(work / "kept"))
        written = dict(contents(out)) | dict(contents(work / "exports"))
        reached = [item for item in items if any(it in kept for it in spellings(item.secret))]
        left: dict[Planted, list[str]] = {}
        for item in reached:
            forms = spellings(item.secret)
            names = [name for name, text in written.items() if any(it in text for it in forms)]
            if names:
                left[item] = names
    kinds = len({item.form for item in reached})
    print(f"{len(items)} secrets planted, {len(reached)} of {kinds} forms reach a dataset")
    gone = 1 - len(left) / len(reached)
    print(f"{gone:.4f} gone from every one of {len(written)} files, {len(left)} left")
    for item, names in left.items():
        print(f"  {item.form}: in {', '.join(names[:4])}: {item.text[:160]!r}")
    print(Counter(item.form for item in left).most_common(10) if left else "")
    return 0 if gone >= 0.99 else 1


if __name__ == "__main__":
    sys.exit(main())
