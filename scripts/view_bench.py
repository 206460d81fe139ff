"""Measures `builder view` on a large dataset: start, index, memory, and each kind of page.

    python scripts/view_bench.py SAMPLES [--folder FOLDER] [--sharegpt]

Writes a synthetic dataset of that many samples into FOLDER (default: a temporary one, removed at
the end), unless it exists, and prints a Markdown table as in docs/report.md. `--sharegpt` writes
rows that the viewer has to convert. Reads /proc, so it needs Linux.
"""

import argparse
import http.client
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

PER_FILE = 250_000
WORDS = [
    "the", "file", "tool", "result", "error", "build", "test",
    "index", "search", "value", "path", "reads", "writes", "line",
]  # fmt: skip
PAGES = (
    ("the first page", ""),
    ("the last page", "?page=999999999"),
    ("two facets", "?format=format-3&tool=tool_17"),
    ("a source", "?source=session-77.jsonl"),
    ("longest first", "?sort=-length"),
    ("a rare text", "?text=" + quote("needle 500")),
    ("the same text again", "?text=" + quote("needle 500")),
    ("a frequent text", "?text=error"),
    ("one sample", "row?at=0.0"),
    ("a sample in the middle", "row?sort=-length&at={middle}"),
    ("go to the last number", "go?to={last}"),
)


def write_rows(folder: Path, count: int) -> None:
    """Writes data/ and meta/ as `build` lays them out; the text is drawn from a seed."""
    draw = random.Random(0)  # noqa: S311 - the same dataset every time
    for name in ("data", "meta"):
        (folder / name).mkdir(parents=True)
    files = -(-count // PER_FILE)
    for file in range(files):
        name = f"train-{file:05d}-of-{files:05d}.jsonl"
        numbers = range(file * PER_FILE, min((file + 1) * PER_FILE, count))
        with (folder / "data" / name).open("w") as data, (folder / "meta" / name).open("w") as meta:
            for number in numbers:
                row, about = sample(number, draw)
                data.write(json.dumps(row) + "\n")
                meta.write(json.dumps(about) + "\n")


def write_sharegpt(folder: Path, count: int) -> None:
    """Writes the same conversations as ShareGPT rows, without meta/."""
    draw = random.Random(0)  # noqa: S311 - the same dataset every time
    names = {"user": "human", "assistant": "gpt"}
    folder.mkdir(parents=True)
    with (folder / "rows.jsonl").open("w") as data:
        for number in range(count):
            row, _ = sample(number, draw)
            turns = [
                {"from": names[turn["role"]], "value": turn["content"]} for turn in row["messages"]
            ]
            turns[2]["from"] = "tool"
            data.write(json.dumps({"conversations": turns, "tools": json.dumps(row["tools"])}))
            data.write("\n")


def sample(number: int, draw: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    tool = f"tool_{draw.randrange(40)}"
    words = " ".join(draw.choices(WORDS, k=draw.randrange(40, 400)))
    call = f'<tool_call>\n{{"name": "{tool}", "arguments": {{"at": {number}}}}}\n</tool_call>'
    messages = [
        {"role": "user", "content": f"question {number}: needle {number % 1000}"},
        {"role": "assistant", "content": call},
        {"role": "user", "content": f"<tool_response>\n{words}\n</tool_response>"},
        {"role": "assistant", "content": f"answer {number}"},
    ]
    definition = {"type": "function", "function": {"name": tool, "parameters": {"type": "object"}}}
    about = {
        "id": f"{number:064x}",
        "source": f"session-{number // 3}.jsonl",
        "format": f"format-{number % 9}",
        "record": f"line {number}",
        "model": f"model-{number % 23}",
        "context": {"level": ("logged", "proven")[number % 2], "missing": []},
        "outcome": {"success": number % 5 > 0},
        "unit": "conversation",
        "changes": {"json_result": 1} if number % 4 else {},
        "pattern": ("single_call", "chain")[number % 2],
        "calls": 1,
        "assistant_turns": 2,
        "tokens": len(words) // 4 + 60,
        "spans": [[10, 20], [100, 120]],
    }
    return {"messages": messages, "tools": [definition]}, about


def memory(process: int) -> float:
    """Returns the resident memory of a process in MB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1000


def ask(url: str, path: str) -> tuple[float, str]:
    """Requests a page; returns the seconds it took and its content."""
    parts = urlsplit(url)
    started = time.perf_counter()
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=600)
    connection.request("GET", parts.path + path)
    body = connection.getresponse().read().decode()
    connection.close()
    return time.perf_counter() - started, body


def measure(folder: Path, count: int) -> None:
    command = [sys.executable, "-m", "builder", "view", str(folder), "--no-open", "--json"]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        rows = [("until it listens", time.perf_counter() - started)]
        rows.append(("the first page during indexing", ask(url, "")[0]))
        while "are indexed so far" in ask(url, "")[1]:
            time.sleep(0.5)
        rows.append(("until everything is indexed", time.perf_counter() - started))
        memory_indexed = memory(process.pid)
        places = {"middle": f"0.{min(count, PER_FILE) // 2}", "last": count - 1}
        for name, path in PAGES:
            took, body = ask(url, path.format(**places))
            rows.append((name, took))
            if "are searched" in body:
                searched_from = time.perf_counter()
                while "are searched" in ask(url, path)[1]:
                    time.sleep(0.2)
                rows.append(
                    (f"{name}: until all rows are searched", time.perf_counter() - searched_from)
                )
        print(f"| {count:,} samples | seconds |\n|---|---:|")
        for name, seconds in rows:
            print(f"| {name} | {seconds:.2f} |")
        at_end = memory(process.pid)
        print(
            f"\nMemory: {memory_indexed:,.0f} MB when all is indexed, {at_end:,.0f} MB at the end"
        )
        process.terminate()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("samples", type=int)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--sharegpt", action="store_true")
    options = parser.parse_args()
    count: int = options.samples
    kind = "sharegpt" if options.sharegpt else "samples"
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.folder or Path(scratch)) / f"{kind}-{count}"
        if not folder.exists():
            (write_sharegpt if options.sharegpt else write_rows)(folder, count)
        size = sum(path.stat().st_size for path in folder.rglob("*.jsonl"))
        print(f"{count:,} samples, {size / 1e6:,.0f} MB\n")
        measure(folder, count)


if __name__ == "__main__":
    main()
