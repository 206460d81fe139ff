"""Pushes under faults, in one process: each with its own dataset, so nothing is cached.

Run by scripts/push_faults.py, which prints the table, and by the tests, which check it. The waits
of the client itself are shortened; everything else is the released client.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from support.hub.faults import CUT, LATE, LOST, RESET, Fault
from support.hub.server import Hub
from support.hub.state import READER, STRANGER, WRITER
from support.hub.xet import Storage

LFS, XET = "lfs", "xet"
BOTH = (LFS, XET)
LARGE = 4000  # bytes from which a file counts as a large object here


@dataclass
class Scenario:
    """A push of a new dataset to its own repository; `faults` occur on the way.

    paths   of uploads that it runs on: only what an upload does, and what follows it, differs
    before  files (of someone else) that are already on the Hub, None: no repository
    code    the expected exit code
    commits that the push makes
    """

    name: str
    faults: list[Fault] = field(default_factory=list)
    paths: tuple[str, ...] = (LFS,)
    options: tuple[str, ...] = ()
    before: dict[str, bytes] | None = None
    token: str = WRITER
    meanwhile: dict[str, bytes] | None = None
    ignored: tuple[str, ...] = ()
    code: int = 0
    commits: int = 1


@dataclass(frozen=True)
class Outcome:
    """The outcome. `twice`: bytes of file content that the server received more than once."""

    scenario: str
    path: str
    code: int
    attempts: int
    waits: list[float]
    commits: int
    duplicates: int
    twice: int
    equal: bool
    text: str


def scenarios() -> Iterator[Scenario]:
    yield Scenario("no fault", paths=BOTH)
    for step in ("look", "tree", "create", "validate", "preupload", "commit"):
        kind: str | int
        for kind in (429, 500, RESET, LOST):
            paths = BOTH if step == "commit" else (LFS,)
            yield Scenario(f"{step}: {kind}", [_fault(step, kind)], paths)
    for path, steps in ((LFS, ("batch", "put", "verify")), (XET, ("token", "xorb", "shard"))):
        for step in steps:
            cut: list[str | int] = [CUT] if step == steps[1] else []
            for kind in (429, 500, RESET, *cut, LOST):
                yield Scenario(f"{step}: {kind}", [_fault(step, kind)], (path,))
    for kind in (500, RESET):
        yield Scenario(f"resolve (reading back): {kind}", [_fault("resolve", kind)], BOTH)
    for step, options in (
        ("branch", ("--revision", "dev")),
        ("tag", ("--tag", "v1")),
        ("pull", ("--create-pr",)),
    ):
        yield Scenario(f"{step}: lost", [_fault(step, LOST)], options=options)
    for step in ("create", "commit"):
        yield Scenario(f"{step}: 500, but done", [Fault(step, LATE)], BOTH)
    yield Scenario("commit: 500 for ever", [Fault("commit", 500, 99)], BOTH, code=1, commits=0)
    last = [Fault("commit", 500, 4), Fault("commit", LOST)]
    yield Scenario("commit: 500 four times, then lost", last, BOTH)
    yield Scenario("put: 507 for ever", [Fault("put", 507, 99)], (LFS,), code=1, commits=0)
    asked = Fault("commit", 429, retry_after=9999)
    yield Scenario("commit: 429, wait 9999 s", [asked], BOTH, code=1, commits=0)
    yield Scenario("wrong token", token=STRANGER, code=2, commits=0)
    yield Scenario("no permission", token=READER, before={}, code=2, commits=0)
    other = {"README.md": b"mine", "notes.txt": b"keep"}
    yield Scenario("other content there", before=other, code=1, commits=0)
    yield Scenario("other content, --allow", before=other, options=("--allow", "other-content"))
    yield Scenario("stale data there", before={"data/old.jsonl": b"{}\n"}, code=1, commits=0)
    yield Scenario("stale data, --prune", before={"data/old.jsonl": b"{}\n"}, options=("--prune",))
    yield Scenario("another file changed meanwhile", before={}, meanwhile={"notes.txt": b"x"})
    same = {"README.md": b"theirs"}
    yield Scenario("the same file meanwhile", before={}, meanwhile=same, code=1, commits=0)
    yield Scenario("kept out by .gitignore", before={}, ignored=("rejects.jsonl",), code=1)


def _fault(step: str, kind: str | int) -> Fault:
    return Fault(step, kind, retry_after=2 if kind == 429 else None)


def environment(path: str, endpoint: str, home: str) -> dict[str, str]:
    """Returns the environment that the client reads at import."""
    return {
        **{key: value for key, value in os.environ.items() if key != "HF_TOKEN"},
        "HF_ENDPOINT": endpoint,
        "HF_HOME": home,
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_XET": "1" if path == LFS else "0",
        "HF_XET_CLIENT_RETRY_BASE_DELAY": "10ms",
    }


def run_all(path: str, wanted: Callable[[Scenario], bool] = lambda _: True) -> Iterator[Outcome]:
    """Runs every scenario of a path (one path per process: the client reads it at import)."""
    with Hub(lfs_from=LARGE) as hub, tempfile.TemporaryDirectory() as home:
        os.environ.update(environment(path, hub.url, home))
        _no_waiting()
        dataset = Path(home) / "dataset"
        _build(dataset)
        for number, scenario in enumerate(scenarios()):
            if path in scenario.paths and wanted(scenario):
                _forget(hub, Path(home))
                yield _run(hub, scenario, path, dataset, f"team/d{number}")


def _no_waiting() -> None:
    from huggingface_hub.utils import _http

    vars(_http)["time"] = SimpleNamespace(sleep=lambda _: None)


def _forget(hub: Hub, home: Path) -> None:
    """Clears what both sides remember of the bytes of an earlier push."""
    with contextlib.suppress(ImportError):  # clients before 2 keep no session
        from huggingface_hub.utils._xet import abort_xet_session

        abort_xet_session()
    shutil.rmtree(home / "xet", ignore_errors=True)
    hub.objects.clear()
    hub.received.clear()
    hub.xet = Storage()


def _build(out: Path) -> None:
    from builder import cli

    question = "Is it? " * (LARGE // 28)  # four rows are a large file
    rows = [
        {
            "messages": [
                {"role": "user", "content": f"{n} {question}"},
                {"role": "assistant", "content": "yes"},
            ]
        }
        for n in range(8)
    ]
    logs = out.with_suffix(".jsonl")
    logs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert cli.main(["build", str(logs), "-o", str(out), "--workers", "1", "--quiet"]) == 0


def _run(hub: Hub, scenario: Scenario, path: str, dataset: Path, repo: str) -> Outcome:
    from builder.cli.push import run_push
    from builder.push.job import PushOptions

    os.environ["HF_TOKEN"] = scenario.token
    if scenario.before is not None:
        hub.add_repo(repo, scenario.before).ignored.update(scenario.ignored)
    hub.faults = list(scenario.faults)
    if scenario.meanwhile is not None:
        files = scenario.meanwhile
        hub.faults.append(Fault("commit", run=lambda: hub.change(repo, files)))
    made = hub.commits_made
    flags = scenario.options
    options = PushOptions(
        allow=("unaudited", *(["other-content"] if "other-content" in flags else [])),
        prune="--prune" in flags,
        revision="dev" if "--revision" in flags else "main",
        tag="v1" if "--tag" in flags else None,
        create_pr="--create-pr" in flags,
    )
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code, reported = _push(run_push, str(dataset), repo, options)
        if reported is None:
            reported = json.loads(out.getvalue())
    commits = hub.commits_made - made
    there = hub.repos[repo].tree(reported.get("revision", "main")) if repo in hub.repos else {}
    files = json.loads((dataset / "manifest.json").read_bytes())["files"]
    equal = all(
        item["path"] in there
        and hub.content(there[item["path"]]) == (dataset / item["path"]).read_bytes()
        for item in files
        if item["path"] != "README.md"  # it names the gate that was overruled
    )
    return Outcome(
        scenario.name,
        path,
        code,
        reported.get("attempts", 0),
        reported.get("waits", []),
        commits,
        max(0, commits - scenario.commits),
        hub.twice(),
        equal,
        err.getvalue() + out.getvalue() + str(reported),
    )


def _push(run_push, dataset: str, repo: str, options) -> tuple[int, dict[str, Any] | None]:
    from builder.cli.command import Output
    from builder.problem import UsageError

    try:
        return run_push(
            dataset, repo, options, output=Output(as_json=True), sleep=lambda _: None
        ), None
    except UsageError as error:
        return 2, {"error": str(error)}
