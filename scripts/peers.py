"""Compares what this program and its peers read of the same logs (docs/peers.md).

    python scripts/peers.py LOGS... [--venv FOLDER]

LOGS are folders of sessions (.json, .jsonl). The peers (PEERS) are installed into FOLDER, a
temporary environment by default; agent-trajectory also needs Node 20. Each file is given to each
peer by itself (in `datasets`, one that fails ends the load of a whole folder). Calls, definitions
and texts are counted in the files themselves.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from builder import convert_traces_to_training_data, recognise, verify_dataset
from builder.problem import BuilderError

PEERS = ("datasets==5.2.0", "teich==0.3.6", "agent-trajectory==0.4.3", "agentpile==0.3.1")
NAMES = ("builder", "datasets with Teich", "agent-trajectory", "agentpile")
_CALLS = ("tool_use", "function_call", "custom_tool_call", "toolCall", "tool_call")
_OWN_CALLS = ({"id", "name", "args"}, {"toolCallId", "name", "arguments"})
_LONG, _SAME = 200, 100
"""Characters of a text that is compared, and of its beginning."""

RUN = r"""
import json, sys
from pathlib import Path

def teich(file, source):
    from datasets.packaged_modules.json.json import parse_traces_info
    from teich import convert_traces_to_training_data
    rows = convert_traces_to_training_data(Path(file))
    parse_traces_info(Path(file).read_text(encoding="utf-8").splitlines())
    return [{"messages": row["messages"], "tools": row["tools"]} for row in rows]

def trajectory(file, source):
    from trajectory import normalize_transcript
    found = normalize_transcript(source=source, transcript=Path(file).read_text(encoding="utf-8"))
    messages = []
    for one in found["records"]:
        calls = [{"id": call["id"], "type": "function",
                  "function": {"name": call["name"], "arguments": call["args"]}}
                 for call in one.get("tool_calls") or ()]
        if one["role"] in ("system", "user", "assistant", "tool"):
            messages.append({**one, **({"tool_calls": calls} if calls else {})})
    return [{"messages": messages, "tools": []}]

def agentpile(file, source):
    import agentpile
    return agentpile.to_chat(agentpile.load(file), arguments="dict")

peers = {"datasets with Teich": teich, "agent-trajectory": trajectory, "agentpile": agentpile}
for line in sys.stdin:
    file, source = json.loads(line)
    for name, read in peers.items():
        try:
            rows, error = read(file, source), None
        except Exception as fault:
            rows, error = [], f"{type(fault).__name__}: {fault}"[:200]
        print(json.dumps({"peer": name, "file": file, "rows": rows, "error": error}), flush=True)
"""


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yields all objects inside a value, outer ones first."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from objects(inner)


def decoded(texts: list[str]) -> list[Any]:
    """Returns the values of the texts that are JSON."""
    values = []
    for text in texts:
        with contextlib.suppress(ValueError):
            values.append(json.loads(text))
    return values


class Truth:
    """What a file holds, whatever its format: calls by id, definitions, and long texts."""

    def __init__(self, file: Path) -> None:
        self.calls: dict[str, str] = {}
        self.tools: set[str] = set()
        self.texts: defaultdict[str, set[str]] = defaultdict(set)
        text = file.read_text(encoding="utf-8", errors="replace")
        values = decoded([text]) or decoded(text.splitlines())
        for value in values:  # the progress of a sub-agent repeats its calls
            if not isinstance(value, dict) or value.get("type") != "progress":
                for one in objects([value]):
                    self._take(one)

    def _take(self, one: dict[str, Any]) -> None:
        call_id = one.get("call_id") or one.get("id") or one.get("toolCallId")
        is_call = one.get("type") in _CALLS or any(keys <= one.keys() for keys in _OWN_CALLS)
        if is_call and isinstance(call_id, str) and one.get("name"):
            self.calls[call_id] = str(one["name"])
        if isinstance(one.get("name"), str) and not one.keys().isdisjoint(
            ("input_schema", "parameters", "inputSchema")
        ):
            self.tools.add(one["name"])
        for text in one.values():
            if isinstance(text, str) and len(text) >= _LONG:
                self.texts[text.strip()[:_SAME]].add(text.strip())

    def is_cut(self, text: str) -> bool:
        """Returns whether a text begins like one of the file, and all such are longer."""
        whole = self.texts.get(text.strip()[:_SAME], ())
        return (
            len(text) >= _LONG
            and bool(whole)
            and all(len(one) > len(text.strip()) + 20 for one in whole)
        )


def count(rows: list[dict[str, Any]], truth: Truth, counts: Counter[str]) -> None:
    """Adds what the rows of one file hold."""
    counts["files"] += bool(rows)
    counts["calls of the files"] += len(truth.calls)
    known = truth.tools | {*truth.calls.values()}
    for row in rows:
        names: dict[str, str] = {}
        for message in row["messages"]:
            for call in message.get("tool_calls") or ():
                names[call.get("id")] = call["function"]["name"]
                counts["calls"] += call["function"]["name"] in known
            text = message.get("content")
            counts["cut"] += isinstance(text, str) and truth.is_cut(text)
            if message["role"] == "tool":
                by_id = names.get(message.get("tool_call_id"))
                counts["results"] += 1
                counts["named"] += message.get("name", by_id) == by_id is not None
        for tool in row.get("tools") or ():
            counts["invented"] += tool["function"]["name"] not in known


def rows_of(file: Path) -> list[dict[str, Any]]:
    """Returns our rows of a file, also of what is around a broken line."""
    with warnings.catch_warnings(action="ignore"):
        return convert_traces_to_training_data(file, skip_invalid_lines=True)


def source_of(file: Path) -> str:
    """Returns the format of a file, which agent-trajectory asks its caller for."""
    try:
        return next(iter(recognise(file)), "")
    except BuilderError:
        return ""


def verified(rows: list[dict[str, Any]], folder: Path) -> int:
    """Returns how many of the rows `verify` passes as they are."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return verify_dataset(path).proven if rows else 0


def peer_python(folder: Path) -> Path:
    """Returns the Python of the environment of the peers, which is made if it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS], check=True)
    return python


def table(read: dict[str, list[tuple[Path, list[dict[str, Any]]]]], folder: Path) -> Iterator[str]:
    """Yields the lines of the table."""
    yield (
        "| | files | calls | results with their tool | definitions that no log has |"
        " texts cut | rows that verify passes |"
    )
    yield "|---|---|---|---|---|---|---|"
    for name in NAMES:
        counts: Counter[str] = Counter()
        every = [row for _, rows in read[name] for row in rows]
        for file, rows in read[name]:
            count(rows, Truth(file), counts)
        yield (
            f"| {name} | {counts['files']} of {len(read[name])}"
            f" | {counts['calls']:,} of {counts['calls of the files']:,}"
            f" | {counts['named']:,} of {counts['results']:,} | {counts['invented']:,}"
            f" | {counts['cut']:,} | {verified(every, folder):,} of {len(every):,} |"
        )


def main() -> None:
    """Prints the table, and why peers could not read files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--venv", type=Path)
    given = parser.parse_args()
    files = sorted(
        file
        for logs in given.logs
        for file in logs.rglob("*")
        if file.suffix in (".json", ".jsonl")
    )
    read: dict[str, list[tuple[Path, list[dict[str, Any]]]]] = defaultdict(list)
    errors: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as made:
        asked = "".join(json.dumps([str(file), source_of(file)]) + "\n" for file in files)
        python = peer_python(given.venv or Path(made) / "venv")
        answers = subprocess.run(
            [python, "-c", RUN], input=asked, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        for file in files:
            read["builder"].append((file, rows_of(file)))
        for line in answers:
            answer = json.loads(line)
            read[answer["peer"]].append((Path(answer["file"]), answer["rows"]))
            if answer["error"]:
                errors[f"{answer['peer']}: {answer['error'][:100]}"] += 1
        print(*table(read, Path(made)), sep="\n")
    for error, number in errors.most_common(12):
        print(number, error)


if __name__ == "__main__":
    main()
