"""How fast, beside what a user does today: medians and ratios over alternating rounds.

    scripts/bench.py [LOGS…] [--copies 20] [--rounds 5] [--workers 2]

The input is made of LOGS (default: data/): each JSON log is copied, and in every copy the ids and
the long texts differ (by a digest of the copy's number, so that the same input comes again). Then,
one after the other in each round:

- H: `apply_chat_template(messages, tools=tools, tokenize=True)` in `datasets.map(num_proc)` over
  the finished samples
- build: the whole build from the raw logs
- verify: all checks of the finished samples; floor: their rendering by the template alone

Seconds are those of the clock, with start-up; CPU seconds and the peak of the largest process stand
beside them. Not part of the tests: timings depend on the machine.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LONG = 24
"""Strings of at least so many characters with a space in them are varied."""
UNIQUE = re.compile(
    r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}|(?<=_)[0-9A-Za-z]{20,}"
)

TODAY = """
import sys, datasets
from transformers import AutoTokenizer
datasets.disable_progress_bars()
data, tokenizer, workers, cache = sys.argv[1:]
tok = AutoTokenizer.from_pretrained(tokenizer)
rows = datasets.load_dataset(data, split="train", cache_dir=cache)
def ids(row):
    got = tok.apply_chat_template(row["messages"], tools=row["tools"] or None, tokenize=True)
    return {"ids": got["input_ids"]}
rows.map(ids, num_proc=int(workers), remove_columns=rows.column_names, load_from_cache_file=False)
"""

FLOOR = """
import sys, json
from pathlib import Path
from builder.qwen3.tokenizer import load
target = load()
for path in sorted(Path(sys.argv[1], "data").glob("*.jsonl")):
    for line in path.open("rb"):
        row = json.loads(line)
        target.render(row["messages"], row["tools"])
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one command and its children: seconds by the clock, CPU seconds, peak bytes."""

    seconds: float
    cpu: float
    peak: int


def cost(command: list[str]) -> Cost:
    started = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TOKENIZERS_PARALLELISM": "false"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(command)[:200]}")
    unit = 1 if sys.platform == "darwin" else 1024
    seconds = time.perf_counter() - started
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit)


def builder(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "builder", *arguments]


def varied(value: Any, number: int) -> Any:
    """A JSON value in which ids and long texts say which copy they are of."""
    if isinstance(value, dict):
        return {key: varied(item, number) for key, item in value.items()}
    if isinstance(value, list):
        return [varied(item, number) for item in value]
    if not isinstance(value, str):
        return value

    def other(found: re.Match[str]) -> str:
        digest = hashlib.sha256(f"{number} {found[0]}".encode()).hexdigest()
        fresh = iter(digest)
        return "".join(next(fresh, "0") if char.isalnum() else char for char in found[0])

    value = UNIQUE.sub(other, value)
    if len(value) >= LONG and " " in value and value.lstrip()[:1] not in "{[<":
        value += f" ({hashlib.sha256(f'{number} {value}'.encode()).hexdigest()[:12]})"
    return value


def make_input(logs: list[Path], copies: int, out: Path) -> int:
    """Copies of the JSON logs; returns their bytes."""
    size = 0
    for log in logs:
        paths = sorted(log.rglob("*.jsonl")) if log.is_dir() else [log]
        paths += sorted(log.rglob("*.json")) if log.is_dir() else []
        for path in paths:
            values = documents(path)
            for number in range(copies if values else 0):
                name = path.relative_to(log) if log.is_dir() else Path(path.name)
                target = out / log.name / f"{number:05d}" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                lines = [json.dumps(varied(value, number), ensure_ascii=False) for value in values]
                target.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")
                size += target.stat().st_size
    return size


def documents(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8")
        return (
            [json.loads(text)]
            if path.suffix == ".json"
            else list(map(json.loads, text.splitlines()))
        )
    except ValueError:
        return []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("logs", nargs="*", type=Path, default=[ROOT / "data"])
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        bench(chosen, Path(scratch))


def bench(chosen: argparse.Namespace, scratch: Path) -> None:
    logs, out, one = scratch / "logs", scratch / "out", scratch / "one"
    size = make_input(chosen.logs, chosen.copies, logs)
    workers = str(chosen.workers)
    subprocess.run(builder("build", str(logs), "-o", str(out), "-q"), check=True, cwd=ROOT)
    manifest = json.loads((out / "manifest.json").read_bytes())
    data = sum(item["bytes"] for item in manifest["files"] if item["path"].startswith("data/"))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(
        f"{size / 1e6:.1f} MB of logs ({chosen.copies} copies),"
        f" {manifest['ledger']['samples']} samples of {data / 1e6:.1f} MB,"
        f" {chosen.workers} workers, {chosen.rounds} rounds"
    )
    tokenizer = str(ROOT / "builder" / "qwen3" / "assets")
    cache = scratch / "cache"
    commands = {
        "H": [sys.executable, "-c", TODAY, str(out), tokenizer, workers, str(cache)],
        "build": builder("build", str(logs), "-o", str(one), "-q", "--fresh", "--workers", workers),
        "build, 1 worker": builder(
            "build", str(logs), "-o", str(one), "-q", "--fresh", "--workers", "1"
        ),
        "build again": builder("build", str(logs), "-o", str(out), "-q", "--workers", workers),
        "verify": builder("verify", str(out), "-q"),
        "floor": [sys.executable, "-c", FLOOR, str(out)],
        "audit": builder("audit", str(out), "-q"),
        "--help": builder("--help"),
    }
    found: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(chosen.rounds):
        for name, command in commands.items():
            shutil.rmtree(cache, ignore_errors=True)
            found[name].append(cost(command))
    show(found, size)


def show(found: dict[str, list[Cost]], size: int) -> None:
    seconds = {
        name: statistics.median(item.seconds for item in runs) for name, runs in found.items()
    }
    cpu = {name: statistics.median(item.cpu for item in runs) for name, runs in found.items()}
    print(f"\n{'':18}{'seconds':>9}{'CPU s':>9}{'peak MB':>9}")
    for name, runs in found.items():
        peak = max(item.peak for item in runs) / 1e6
        print(f"{name:18}{seconds[name]:9.2f}{cpu[name]:9.2f}{peak:9.0f}")
    print(f"\n{'ratio':34}{'seconds':>9}{'CPU s':>9}")
    for one, other in (
        ("build", "H"),
        ("verify", "H"),
        ("floor", "H"),
        ("build, 1 worker", "build"),
        ("build again", "build"),
        ("audit", "build"),
    ):
        ratio = seconds[one] / seconds[other], cpu[one] / cpu[other]
        print(f"{one + ' / ' + other:34}{ratio[0]:9.2f}{ratio[1]:9.2f}")
    over = (cpu["verify"] - cpu["floor"]) / cpu["floor"]
    print(f"{'(verify - floor) / floor':34}{'':9}{over:9.2f}")
    print(f"\nbuild: {size / 1e6 / cpu['build']:.2f} MB of logs a second of CPU")


if __name__ == "__main__":
    main()
