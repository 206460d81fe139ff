"""`builder build`: runs the main job and says what became of everything."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from builder.build.convert import Task
from builder.build.engine import Done, Engine, local
from builder.build.job import build
from builder.build.results import ResultSummary
from builder.card.built import Built
from builder.cli.terminal import escaped
from builder.config import Config
from builder.conversation import Json
from builder.normalize import remedy
from builder.output.remote import RemoteOutput
from builder.parallel.pool import default_workers
from builder.parallel.signals import interrupt_on_sigterm
from builder.paths import expand_home
from builder.problem import UsageError
from builder.sources.source import Source
from builder.sources.store import is_url, local_path

STORES = (
    ("Claude Code", "~/.claude/projects"),
    ("Codex", "~/.codex/sessions"),
)
"""Where agents keep their logs (the format references' sections "Where")."""


def run_build(
    config: Config,
    out: str,
    *,
    engine: contextlib.AbstractContextManager[Engine],
    fresh: bool,
    strict: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Build and print; the exit code of contract.md. Raises UsageError."""
    interrupt_on_sigterm()
    progress = _progress(quiet=quiet or as_json)
    remote = RemoteOutput(out) if is_url(out) else None
    here = remote.here if remote is not None else Path(local_path(out))
    with engine as running:
        if remote is not None:
            remote = replace(remote, shares=running.name == "ray")
            remote.check()
        built = build(config, here, engine=running, fresh=fresh, progress=progress, remote=remote)
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
        sys.stdout.write(json.dumps({**ledger.to_json(), "output": out}) + "\n")
    elif not quiet:
        _print(built, out, config)
    if built.bugs:
        print(
            f"builder: {built.bugs} conversations or sources failed in a way that is a bug of this"
            " program: see rejects.jsonl (internal, spec, structured, inverse) and report it",
            file=sys.stderr,
        )
    rejected = ledger.rejected.total() + ledger.conversations_rejected.total()
    if not ledger.samples:
        where = (
            "see rejects.jsonl"
            if ledger.found or rejected
            else "nothing in the inputs is a conversation"
        )
        print(f"builder: no sample could be built: {where}", file=sys.stderr)
        return 1
    return 1 if built.bugs or (strict and rejected) else 0


def start(
    name: str, *, workers: int | None, ray_address: str | None
) -> contextlib.AbstractContextManager[Engine]:
    """What runs the job, once it is entered. Raises UsageError then, or for options that clash."""
    if name == "ray":
        from builder.build.ray_engine import RayOptions, on_ray  # noqa: PLC0415 - an optional extra

        return on_ray(RayOptions(ray_address, workers))
    if ray_address is not None:
        raise UsageError("--ray-address: is for --engine ray")
    return contextlib.nullcontext(local(workers or default_workers()))


def _progress(*, quiet: bool) -> Callable[[list[Task]], Done]:
    """A bar over the bytes of the input on a terminal, nothing elsewhere."""

    def begin(tasks: list[Task]) -> Done:
        if quiet or not sys.stderr.isatty():
            return lambda _task, _summary: None
        from tqdm import tqdm  # noqa: PLC0415 - only on a terminal

        sizes = {id(task): _size(task.source) for task in tasks}
        total = sum(sizes.values())
        bar = tqdm(total=total, unit="B", unit_scale=True, file=sys.stderr, leave=False)
        samples = rejects = 0
        left = len(tasks)

        def step(task: Task, summary: ResultSummary) -> None:
            nonlocal samples, rejects, left
            samples += summary.samples
            rejects += summary.rejects
            left -= 1
            bar.set_postfix(samples=samples, rejects=rejects, refresh=False)
            bar.update(sizes[id(task)])
            if not left:
                bar.close()

        return step

    return begin


def _size(source: Source) -> int:
    if source.window is not None:
        return source.window.bytes
    sizes = 0
    for item in source.members or (source,):
        if item.remote is not None:
            sizes += item.remote.size
        with contextlib.suppress(OSError):
            sizes += item.path.stat().st_size if item.path is not None else 0
    return sizes


def _print(built: Built, out: str, config: Config) -> None:
    options = config.normalize
    ledger = built.ledger
    proven = ", every one proven" if ledger.samples else ""
    print(f"{ledger.samples} samples in {out}, {built.tokens} tokens{proven}")
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
    print(f"  {config.audit.scrub.told}")
    print(f"  what was not used, and why: {out.rstrip('/')}/rejects.jsonl")


def list_stores(*, as_json: bool) -> int:
    """Without any input: the stores on this machine with the command for each; reads nothing."""
    found = [(name, path) for name, path in STORES if expand_home(path).is_dir()]
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
