"""Compares what two versions of the builder write: `scripts/same_bytes.py BASE [FOLDER...]`.

Builds each folder of ../shared/corpus and of data/ (or those named) with the commit BASE and with
the working tree, and names each sample that differs in data/ or meta/, each reject that differs,
and the accounting. The output of BASE is kept in $SAME_BYTES_CACHE (default: .cache/same_bytes).
Exits with 1 if anything differs. Versions are left out of the comparison. ALL=1 prints every line.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT.parent / "shared" / "corpus"
BUILD = """
import sys, builder
for line in sys.stdin.read().splitlines():
    source, out = line.split("\\t")
    try:
        builder.build_dataset(source, out, fresh=True)
    except builder.UsageError as error:
        print(f"{source}: {error}", file=sys.stderr)
"""
VOLATILE = frozenset({"builder_version", "version"})
SHOWN = 40


def build(tree: Path, jobs: list[tuple[Path, Path]]) -> None:
    """Builds each (source, output folder) with the code of `tree`, in one process."""
    lines = "\n".join(f"{source}\t{out}" for source, out in jobs)
    env = os.environ | {"PYTHONPATH": str(tree)}
    subprocess.run(
        [sys.executable, "-c", BUILD], input=lines, text=True, env=env, cwd=tree, check=True
    )


def plain(value: Any) -> Any:
    """Returns the value without what differs between versions by design."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key not in VOLATILE}
    return [plain(item) for item in value] if isinstance(value, list) else value


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Returns {kind: {name of the row: row}} of a dataset folder; {} for each if there is none."""
    found: dict[str, dict[str, Any]] = {"data": {}, "meta": {}, "rejects": {}, "accounting": {}}
    ids: dict[tuple[str, int], str] = {}
    for path in sorted(folder.glob("meta/**/*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            row = json.loads(line)
            name = f"{row.get('source')} {row.get('record')} {str(row.get('id'))[:12]}"
            ids[path.stem, number] = name
            found["meta"][name] = plain(row)
    for path in sorted(folder.glob("data/**/*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            found["data"][ids.get((path.stem, number), f"{path.name}:{number}")] = line
    path = folder / "rejects.jsonl"
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            found["rejects"][line] = True
    path = folder / "manifest.json"
    if path.exists():
        manifest = json.loads(path.read_text(encoding="utf-8"))
        found["accounting"] = {"ledger": manifest["ledger"]}
    return found


def differences(name: str, base: Path, now: Path) -> list[str]:
    """Returns one line for each row of a folder that the two versions write differently."""
    one, other = rows(base), rows(now)
    lines = []
    for kind, before in one.items():
        after = other[kind]
        for row in sorted(before.keys() | after.keys()):
            if before.get(row) == after.get(row):
                continue
            what = "only now" if row not in before else "differs"
            what = "only before" if row not in after else what
            keys = ""
            if isinstance(before.get(row), dict) and isinstance(after.get(row), dict):
                changed = before[row].keys() | after[row].keys()
                different = (k for k in changed if before[row].get(k) != after[row].get(k))
                keys = ": " + ", ".join(sorted(different))
            lines.append(f"{name} {kind} {what}{keys}: {row[:200]}")
    return lines


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    base = subprocess.check_output(
        ["git", "rev-parse", "--short=12", f"{sys.argv[1]}^{{commit}}"], text=True, cwd=ROOT
    ).strip()
    kept = Path(os.environ.get("SAME_BYTES_CACHE", ROOT / ".cache" / "same_bytes")) / base
    places = {f"data/{path.name}": path for path in sorted((ROOT / "data").iterdir())}
    if CORPUS.is_dir():
        places |= {path.name: path for path in sorted(CORPUS.iterdir()) if path.is_dir()}
    unknown = set(sys.argv[2:]) - places.keys()
    if unknown:
        print(f"no such folder: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    wanted = {name: places[name] for name in sys.argv[2:] or places}
    missing = [(path, name) for name, path in wanted.items() if not (kept / name).exists()]
    with tempfile.TemporaryDirectory() as scratch:
        if missing:
            tree = Path(scratch) / "base"
            subprocess.run(
                ["git", "worktree", "add", "-q", "--detach", tree, base], check=True, cwd=ROOT
            )
            try:
                build(tree, [(path, Path(scratch) / "before" / name) for path, name in missing])
                for _, name in missing:
                    (kept / name).parent.mkdir(parents=True, exist_ok=True)
                    built = Path(scratch) / "before" / name
                    built.mkdir(parents=True, exist_ok=True)  # nothing, if the build was refused
                    shutil.copytree(built, kept / name)
            finally:
                subprocess.run(["git", "worktree", "remove", "--force", tree], check=True, cwd=ROOT)
        outs = {name: Path(scratch) / "now" / name for name in wanted}
        build(ROOT, [(path, outs[name]) for name, path in wanted.items()])
        lines = [line for name in wanted for line in differences(name, kept / name, outs[name])]
    for line in lines if os.environ.get("ALL") else lines[:SHOWN]:
        print(line)
    if len(lines) > SHOWN and not os.environ.get("ALL"):
        print(f"… and {len(lines) - SHOWN} more (ALL=1 prints them)")
    print(f"{len(wanted)} folders, {len(lines)} differences against {base}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
