"""Runs hostile inputs through every command for a given time: scripts/soak.py [--minutes N].

Each round takes logs of the readers' cases and of data/, corrupts them (bytes, JSON values, order,
truncation, nesting, sizes, hostile schemas), and passes the folder to build, verify, audit, export
and report, each in its own process. A round fails on a traceback, on a command that exceeds its
time limit, on an exit code that docs/cli.md does not name, and on a partial file. Failed inputs
stay in the folder that is printed; `--seed` repeats a run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SEEDS = [
    path
    for folder in (ROOT / "data", ROOT / "tests" / "readers")
    for path in sorted(folder.rglob("*"))
    if path.is_file() and path.suffix in (".json", ".jsonl", ".yaml", ".har", ".txt", ".traj")
]
SECONDS_PER_MB = 30
START_SECONDS = 30
"""Additional seconds that a command may take for imports, in each process."""
WAITS = 6
"""How many times longer than its limit a command may take on a busy machine."""

TOKENS = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_response>", "<think>", "</think>")
TEXTS = (
    "", " ", "\x00", "\x1b[31m" * 2000, "\ud83d\ude00" * 500, "\ufeff", "a\u0301" * 500,
    "\r\n" * 500,
    "&" * 5000, "<script>alert(1)</script>", "../../etc/passwd", "A" * 100_000, "{" * 5000,
    "=" * 3000 + "password", "eyJ" * 3000, *TOKENS, "".join(TOKENS) * 200,
)  # fmt: skip


def schemas() -> list[object]:
    """Returns JSON Schemas that are expensive to check, or refer to themselves or to a file."""
    doubled = {f"d{at}": {"anyOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(26)}
    return [
        {"$ref": "#/$defs/d0", "$defs": {**doubled, "d26": {"type": "string"}}},
        {"$ref": "#"},
        {"properties": {"a": {"pattern": "^(a+)+$"}}},
        {"enum": [{"x": at} for at in range(2000)]},
        {"$ref": "file:///etc/passwd"},
    ]


def nested(depth: int) -> object:
    value: object = "x"
    for at in range(depth):
        value = [value] if at % 2 else {"a": value}
    return value


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    found = [path]
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        found += places(item, (*path, key))
    return found


def put(value: object, path: tuple[object, ...], new: object) -> object:
    if not path:
        return new
    if isinstance(value, dict):
        return {k: put(v, path[1:], new) if k == path[0] else v for k, v in value.items()}
    assert isinstance(value, list)
    return [put(v, path[1:], new) if at == path[0] else v for at, v in enumerate(value)]


def corrupted_value(value: object, pick: random.Random) -> object:
    """Returns the value with some of its parts replaced."""
    for _ in range(pick.randint(1, 4)):
        spot = pick.choice(places(value)[:5000])
        new = pick.choice(
            [None, True, -1, 2**70, 1e308, [], {}, nested(pick.choice([3, 60, 300])),
             pick.choice(TEXTS), pick.choice(schemas())]
        )  # fmt: skip
        value = put(value, spot, new)
    return value


def corrupted(data: bytes, pick: random.Random) -> bytes:
    """Returns a corrupted copy of a file."""
    lines = data.splitlines(keepends=True)
    match pick.randrange(6):
        case 0:
            return data[: pick.randrange(len(data) + 1)]
        case 1:
            noise = bytearray(data)
            for _ in range(pick.randint(1, 50)):
                if noise:
                    noise[pick.randrange(len(noise))] = pick.randrange(256)
            return bytes(noise)
        case 2:
            pick.shuffle(lines)
            return b"".join(lines)
        case 3:
            return b"".join(lines * pick.choice([2, 10, 100]))[: 1 << 20]
        case _:
            made = []
            for line in lines if len(lines) > 1 else [data]:
                try:
                    value = json.loads(line)
                except ValueError:
                    made.append(line)
                    continue
                if pick.random() < 0.3:
                    value = corrupted_value(value, pick)
                made.append(json.dumps(value).encode() + b"\n")
            return b"".join(made)


def run(arguments: list[str], limit: float, log: Path) -> str | None:
    """Runs a command; returns a description of its failure, or None.

    `limit` is the CPU time in seconds of the command and its workers, as other programs may keep
    the machine busy. A command that takes more than `WAITS` times that in wall-clock time hangs;
    the log then contains its stack.
    """
    started = time.monotonic()
    before = os.times()
    process = subprocess.Popen(
        [sys.executable, "-m", "builder", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONFAULTHANDLER": "1"},
        start_new_session=True,
    )
    try:
        written, _ = process.communicate(timeout=limit * WAITS)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        written, _ = process.communicate()
        log.write_bytes(written)
        return f"took longer than {limit * WAITS:.0f} s"
    log.write_bytes(written)
    after = os.times()
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    if cpu > limit:
        return f"took {cpu:.0f} s of CPU time"
    if b"Traceback (most recent call last)" in written:
        return "a traceback"
    if process.returncode not in (0, 1, 2):
        return f"exit code {process.returncode}"
    if b"bug of this program" in written:
        return "a bug that the program noticed"
    seconds = time.monotonic() - started
    print(f"    {arguments[0]:8} exit {process.returncode}  {seconds:5.1f} s", flush=True)
    return None


def partial_files(folder: Path) -> list[str]:
    """Returns the files of an output folder that are not in its manifest or differ from it."""
    manifest = folder / "manifest.json"
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and ".state" not in path.relative_to(folder).parts
    }
    if not manifest.is_file():
        return sorted(found)
    listed = {item["path"]: item["bytes"] for item in json.loads(manifest.read_bytes())["files"]}
    wrong = found - listed.keys() - {"manifest.json"}
    wrong |= {name for name, size in listed.items() if (folder / name).stat().st_size != size}
    return sorted(wrong)


def one_round(seed: int, folder: Path) -> str | None:
    """Runs one round; returns a description of the failure, or None."""
    pick = random.Random(seed)  # noqa: S311 - a round must be repeatable
    logs = folder / "logs"
    logs.mkdir(parents=True)
    size = 0
    for number in range(pick.randint(1, 12)):
        original = pick.choice(SEEDS)
        data = corrupted(original.read_bytes(), pick)
        size += len(data)
        (logs / f"{number:02d}{original.suffix}").write_bytes(data)
    limit = START_SECONDS + SECONDS_PER_MB * max(1, size / (1 << 20))
    out, log = folder / "out", folder / "log.txt"
    exported, report = folder / "exported", folder / "report.html"
    foreign = pick.choice(sorted(logs.iterdir()))
    variant = pick.choice(["openai", "sharegpt", "verl"])
    commands = [
        ["build", str(logs), "-o", str(out), "--workers", pick.choice(["1", "2"])],
        ["verify", str(out), "--workers", "1"],
        ["audit", str(out), "--workers", "1"],
        ["export", str(out), "--to", variant, "-o", str(exported)],
        ["report", str(out), "-o", str(report)],
        ["verify", str(foreign), "--workers", "1"],
        ["audit", str(foreign), "--workers", "1"],
    ]  # fmt: skip
    print(f"round {seed}: {size} bytes", flush=True)
    for command in commands:
        if (fault := run(command, limit, log)) is not None:
            return f"{' '.join(command)}: {fault}"
        if command[0] == "build" and (wrong := partial_files(out) if out.exists() else []):
            return f"build: partial files {wrong}"
    left = [path.name for path in folder.iterdir() if path.name.startswith((".export", ".report"))]
    return f"left behind: {left}" if left else None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    options = parser.parse_args()
    end = time.monotonic() + options.minutes * 60
    failed = 0
    seed = options.seed
    while time.monotonic() < end:
        folder = Path(tempfile.mkdtemp(prefix=f"soak-{seed}-"))
        fault = one_round(seed, folder)
        if fault is None:
            shutil.rmtree(folder)
        else:
            failed += 1
            print(f"FAILED round {seed}: {fault}\n  see {folder}", flush=True)
        seed += 1
    print(f"{seed - options.seed} rounds, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
