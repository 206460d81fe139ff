"""`builder build`: runs the main job and says what became of everything."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from builder.build import Built, build, normalize_options
from builder.config import Config
from builder.conversation import Json
from builder.engine import interrupt_on_sigterm
from builder.normalize import NormalizeOptions, remedy
from builder.shard import SourceResult
from builder.terminal import escaped

STORES = (
    ("Claude Code", "~/.claude/projects"),
    ("Codex", "~/.codex/sessions"),
)
"""Where agents keep their logs (the format references' sections "Where")."""


def run_build(
    config: Config, out: Path, *, workers: int, strict: bool, as_json: bool, quiet: bool
) -> int:
    """Build and print; the exit code of contract.md. Raises UsageError."""
    interrupt_on_sigterm()
    built = build(config, out, workers=workers, progress=_progress(quiet=quiet or as_json))
    ledger = built.ledger
    if built.changed_by_loader:
        for report in built.changed_by_loader[:20]:
            place = f"{report.file}:{report.line}"
            print(escaped(f"builder: {place} {report.findings[0].message}"), file=sys.stderr)
        detail = "what was written does not load as it was proven; nothing was put in place"
        print(f"builder: {len(built.changed_by_loader)} rows: {detail}", file=sys.stderr)
        if as_json:
            lost: dict[str, Json] = {"output": None, "as_loaded": len(built.changed_by_loader)}
            sys.stdout.write(json.dumps({**ledger.to_json(), **lost}) + "\n")
        return 1
    if as_json:
        sys.stdout.write(json.dumps({**ledger.to_json(), "output": str(out)}) + "\n")
    elif not quiet:
        _print(built, out, normalize_options(config))
    if built.bugs:
        print(
            f"builder: {built.bugs} conversations or sources failed in a way that is a bug of this"
            " program: see rejects.jsonl (internal, spec, structured, inverse) and report it",
            file=sys.stderr,
        )
    if not ledger.samples:
        print("builder: no sample could be built: see rejects.jsonl", file=sys.stderr)
        return 1
    rejected = ledger.rejected.total() + ledger.conversations_rejected.total()
    return 1 if built.bugs or (strict and rejected) else 0


def _progress(*, quiet: bool) -> Callable[[int], Callable[[SourceResult], None]]:
    """A bar over the sources on a terminal, nothing elsewhere."""

    def begin(sources: int) -> Callable[[SourceResult], None]:
        if quiet or not sys.stderr.isatty():
            return lambda _: None
        from tqdm import tqdm  # noqa: PLC0415 - only on a terminal

        bar = tqdm(total=sources, unit="file", file=sys.stderr, leave=False)
        samples = rejects = 0

        def step(result: SourceResult) -> None:
            nonlocal samples, rejects
            samples += sum(entry.code is None for entry in result.entries)
            rejects += len(result.rejects)
            bar.set_postfix(samples=samples, rejects=rejects, refresh=False)
            bar.update()
            if bar.n == sources:
                bar.close()

        return step

    return begin


def _print(built: Built, out: Path, options: NormalizeOptions) -> None:
    ledger = built.ledger
    print(f"{ledger.samples} samples in {out}, {built.tokens} tokens, every one proven")
    rows = (
        ("records", ledger.read, ledger.used, ledger.ignored, ledger.rejected),
        ("conversations", ledger.found, ledger.built, None, ledger.conversations_rejected),
        ("calls", ledger.calls_logged, ledger.calls_kept, None, ledger.calls_dropped),
    )
    for name, found, used, ignored, rejected in rows:
        print(f"  {name:14} {found:8} found {used:8} used", end="")
        if ignored:
            print(f" {ignored.total():8} ignored by design", end="")
        if name == "conversations" and ledger.duplicates:
            print(f" {ledger.duplicates:8} duplicates", end="")
        print(f" {rejected.total():8} {'dropped' if name == 'calls' else 'rejected'}")
    for name, _, _, _, rejected in rows:
        for code, count in sorted(rejected.items()):
            way = remedy(code, options) if name != "calls" else None
            print(f"  {name[:-1]:14} {code}: {count}" + (f"  (kept by {way})" if way else ""))
    print("  nothing was scanned for secrets or personal data")
    print(f"  what was not used, and why: {out / 'rejects.jsonl'}")


def list_stores(*, as_json: bool) -> int:
    """Without any input: the stores on this machine with the command for each; reads nothing."""
    found = [(name, path) for name, path in STORES if Path(path).expanduser().is_dir()]
    if as_json:
        stores = [{"name": name, "path": path} for name, path in found]
        sys.stdout.write(json.dumps({"stores": stores}) + "\n")
        return 0
    if not found:
        print("no logs of known agents found in the home folder; name a file or folder:")
        print("  builder build LOGS -o OUT")
    for name, path in found:
        print(f"{name}: {path}\n  builder build {path} -o out/{name.lower().replace(' ', '-')}")
    return 0
