"""Implements `builder push`: prints the changes, the upload, and what was read back."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict

from builder.api import push_dataset
from builder.cli.command import Output, command
from builder.cli.terminal import escaped, print_json, warn
from builder.cli.tokenizer import say_tokenizer
from builder.conversation import Json
from builder.credentials import hide
from builder.parallel.host import interrupt_on_sigterm
from builder.problem import nearest
from builder.push.gates import PushFile
from builder.push.hub import Retries
from builder.push.job import NO_LOGIN, PushOptions, PushReport
from builder.push.upload import Changes

SHOWN = 50
"""Files of a kind that are listed; the rest is counted (`--json` lists all)."""


_STATES = {"open": "passed", "closed": "failed", "not checked": "not checked"}
"""{state of a gate in `--json`: what it means}."""


@command()
def push(
    dataset: str,
    repo: str,
    dry_run: bool = False,
    public: bool = False,
    revision: str = "main",
    create_pr: bool = False,
    tag: str | None = None,
    prune: bool = False,
    allow: list[str] | None = None,
    tokenizer: str | None = None,
    *,
    output: Output,
) -> int:
    """Publish a built dataset on the Hugging Face Hub after it passes the gates; read it back."""
    chosen = PushOptions(
        public=public,
        revision=revision,
        create_pr=create_pr,
        tag=tag,
        prune=prune,
        allow=tuple(allow or ()),
        tokenizer=tokenizer,
        dry_run=dry_run,
    )
    return run_push(dataset, repo, chosen, output=output)


def run_push(
    dataset: str,
    repo: str,
    chosen: PushOptions,
    *,
    output: Output,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Pushes and prints; returns 0 after a dry run, or if the copy on the Hub is equal."""
    if not output.in_words or not sys.stderr.isatty():
        from huggingface_hub.utils.tqdm import disable_progress_bars  # noqa: PLC0415 - heavy

        disable_progress_bars()
    interrupt_on_sigterm()
    retries = Retries(report=_warn, sleep=sleep)

    def show(planned: PushReport) -> None:
        if output.in_words:
            _print_changes(planned, chosen)
        if planned.removed and not output.in_words:
            # Removals are reported even with --quiet.
            _warn(f"removed on the Hub: {', '.join(planned.removed)}")

    say_tokenizer(dataset, chosen.tokenizer, None, output)
    report = push_dataset(dataset, repo, options=chosen, on_changes=show, retries=retries)
    for code in (code for code in chosen.allow if code not in report.overruled):
        shut = [item.code for item in report.refused if item.by_name]
        _warn(f"--allow {code}: no failed gate has this name{nearest(code, shut) if shut else ''}")
    for item in report.refused:
        how = f" (--allow {item.code} overrules it)" if item.by_name else ""
        _warn(f"{item.code}: {item.message}{how}")
    for problem in (report.arrival.problems if report.arrival else [])[:20]:
        _warn(f"read back: {problem}")
    if report.error:
        _warn(report.error)
    if report.refused:
        _warn("nothing was pushed")
    if output.as_json:
        print_json(_as_json(report, retries))
    elif not output.quiet:
        _print_end(report)
    return 0 if report.is_done else 1


def _warn(text: str) -> None:
    warn(hide(text))


def _print_changes(report: PushReport, chosen: PushOptions) -> None:
    changes = report.changes
    print(escaped(f"{report.repo}, {chosen.revision} ({_state(report, chosen)})"))
    for code, message in report.overruled.items():
        print(escaped(f"  overruled  {code}: {message}"))
    if chosen.dry_run:
        for state, words in _STATES.items():
            if names := [name for name, value in report.gates.items() if value == state]:
                print(f"  {'gates':10} {words}: {', '.join(names)}")
    if changes is None:
        _print_paths("file", _sizes(report.files))
    else:
        kept = [file.path for file in changes.extra if file.path not in report.removed]
        _print_paths("add", _sizes(changes.add))
        _print_paths("update", _sizes(changes.update))
        _print_paths("remove", report.removed)
        _print_paths("only on the Hub", kept)
        print(f"  {'equal':10} {len(changes.equal)} files")
    if chosen.dry_run:
        print("dry run: nothing was changed")
    sys.stdout.flush()


def _state(report: PushReport, chosen: PushOptions) -> str:
    """Describes the repository before the push."""
    survey = report.survey
    if survey is None:
        why = "a gate failed" if report.refused else f"{NO_LOGIN}: `hf auth login`, or HF_TOKEN"
        return f"not looked at, {why}"
    kind = "public" if chosen.public else "private"
    state = f"{kind}, at {survey.head[:12]}" if survey.head else f"would be created, {kind}"
    return (
        f"{state}, the branch would be created" if survey.head and not survey.has_branch else state
    )


def _sizes(files: Sequence[PushFile]) -> list[str]:
    return [f"{file.path}  {file.size} bytes" for file in files]


def _print_paths(title: str, paths: Sequence[str]) -> None:
    for path in paths[:SHOWN]:
        print(escaped(f"  {title:10} {path}"))
    if len(paths) > SHOWN:
        print(f"  {title:10} … and {len(paths) - SHOWN} more")


def _print_end(report: PushReport) -> None:
    done, arrival = report.uploaded, report.arrival
    if done is None:
        return
    commits = f"{done.commits} commits" if done.commits != 1 else "1 commit"
    print(escaped(f"{done.files} files, {done.bytes} bytes sent in {commits}: {done.commit}"))
    if done.revision.startswith("refs/pr/"):
        number = done.revision.removeprefix("refs/pr/")
        print(escaped(f"pull request {number} of {report.repo}"))
    if arrival is None:
        return
    rows = f"{'all' if arrival.is_whole else 'the first'} {arrival.rows} rows loaded"
    print(
        f"read back: {arrival.files} files ({arrival.bytes} bytes) by size and hash, {rows},"
        f" {arrival.renderings} of them rendered to the verified text"
    )


def _as_json(report: PushReport, retries: Retries) -> dict[str, Json]:
    changes, done, arrival = report.changes, report.uploaded, report.arrival
    result: dict[str, Json] = {
        "repo": report.repo,
        "gates": {**report.gates},
        "files": [file.path for file in report.files],
        "refused": [{"code": item.code, "message": item.message} for item in report.refused],
        "overruled": [*report.overruled],
        "error": hide(report.error) if report.error else None,
        "attempts": retries.attempts,
        "waits": [*retries.waits],
    }
    if changes is not None:
        result |= _changes_json(changes, report.removed)
    if done is not None:
        result |= {
            "commit": done.commit,
            "revision": done.revision,
            "created": done.created,
            "commits": done.commits,
            "sent": {"files": done.files, "bytes": done.bytes},
        }
    if arrival is not None:
        result["read_back"] = asdict(arrival)
    return result


def _changes_json(changes: Changes, removed: Sequence[str]) -> dict[str, Json]:
    only_there = [file.path for file in changes.extra if file.path not in removed]
    return {
        "add": [file.path for file in changes.add],
        "update": [file.path for file in changes.update],
        "equal": [file.path for file in changes.equal],
        "removed": [*removed],
        "only_there": [*only_there],
    }
