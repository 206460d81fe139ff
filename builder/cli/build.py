"""Implements `builder build`: runs the build and prints a summary."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from builder.api import EngineName, build_dataset
from builder.audit.benchmarks import EVALUATION_RUN
from builder.audit.result import GateAction
from builder.card.built import Built
from builder.cli.output import Output
from builder.cli.progress import BuildProgress
from builder.cli.terminal import (
    BOLD,
    DIM,
    GOOD,
    WARNING,
    aligned,
    counted,
    escaped,
    painted,
    print_json,
    warn,
)
from builder.config import Config
from builder.conversation import LEVELS, MISSING, Json
from builder.ledger import Ledger, ranked
from builder.normalize.remedies import record_remedy, remedy
from builder.output.manifest import MANIFEST
from builder.output.remote import RemoteOutput
from builder.parallel.pool import default_workers
from builder.parallel.signals import interrupt_on_sigterm
from builder.paths import UserPath
from builder.readers import installed_logs
from builder.readers.toolkit.narrow import UNKNOWN_TYPE
from builder.sources.store import is_url, local_path


def run_build(
    config: Config,
    out: str,
    *,
    engine: EngineName,
    workers: int | None,
    ray_address: str | None,
    fresh: bool,
    strict: bool,
    output: Output,
) -> int:
    """Builds and prints a summary; returns the exit code. Raises UsageError."""
    interrupt_on_sigterm()
    progress = BuildProgress(visible=output.in_words)
    out = local_path(out)
    try:
        built = build_dataset(
            [],
            out,
            config=config,
            workers=workers or (0 if engine == "ray" else default_workers()),
            engine=engine,
            ray_address=ray_address,
            fresh=fresh,
            on_progress=progress,
            on_message=_ignore if output.quiet else warn,
        )
    finally:
        progress.close()
    here = RemoteOutput(out).local_folder if is_url(out) else Path(out)
    return summarise(built, config, out, here, strict=strict, output=output)


def _ignore(_: str) -> None:
    """Prints no message."""


def summarise(
    built: Built, config: Config, out: str, here: Path, *, strict: bool, output: Output
) -> int:
    """Prints a summary; returns the exit code. `here` is the local copy of `out`."""
    ledger = built.ledger
    is_written = bool(built.writer.files) and (here / MANIFEST).is_file() and not built.reasons
    if output.as_json:
        result: dict[str, Json] = {**ledger.to_json(), "output": out if is_written else None}
        if built.changed_by_loader:
            result["as_loaded"] = len(built.changed_by_loader)
        print_json(result)
    elif not output.quiet:
        _print(built, out, config, here)
    for report in built.changed_by_loader[:5]:
        place = f"{report.file}:{report.line}" if report.line else report.file
        warn(f"not as `datasets` loads it: {place} {report.findings[0].message}")
    if built.bugs:
        warn(
            f"{built.bugs} conversations or sources failed in a way that is a bug of this program:"
            " see rejects.jsonl (internal, spec, structured, inverse) and report it"
        )
    rejected = ledger.rejected.total() + ledger.conversations_rejected.total()
    if not ledger.samples:
        where = "see rejects.jsonl" if is_written else _nothing_in(ledger, config)
        if not is_written and ledger.found:
            where = "the previous content of the folder is kept"
        for reason in built.reasons:
            warn(reason)
        if rejected > len(built.reasons) and not is_written:
            warn(f"and {rejected - len(built.reasons)} more")
        warn(f"no sample could be built: {where}")
        return 1
    return 1 if built.bugs or (strict and (rejected or built.changed_by_loader)) else 0


def _nothing_in(ledger: Ledger, config: Config) -> str:
    """Explains why the inputs contain no conversation."""
    empty = ledger.ignored["empty_file"]
    if not ledger.read:
        return "the inputs contain no file"
    if not empty:
        return "nothing in the inputs is a conversation"
    if empty < ledger.read:
        files = f"{counted(empty, 'file')} {'is' if empty == 1 else 'are'} empty"
        return f"nothing in the inputs is a conversation; {files}"
    names = ", ".join(item.path.written for item in config.inputs[:5])
    what = "is empty" if empty == 1 else f"{empty:,} files, all of them empty"
    return escaped(f"{names}: {what}")


def _print(built: Built, out: str, config: Config, here: Path) -> None:
    ledger = built.ledger
    if not ledger.samples:
        _print_rejects(ledger, config)
        return
    proven = painted("each proven against the chat template", GOOD)
    head = painted(counted(ledger.samples, "sample"), BOLD)
    print(f"{head} in {escaped(out)}, {counted(built.tokens, 'token')}, {proven}")
    _print_ledger(ledger)
    _print_rejects(ledger, config)
    for line in facts(built, config):
        print(f"  {line}")
    rejects = here / "rejects.jsonl"
    if rejects.is_file() and rejects.stat().st_size:
        print(
            painted(f"  unused data, with reasons: {escaped(out.rstrip('/'))}/rejects.jsonl", DIM)
        )


SHOWN_TYPES = 5


def _print_ledger(ledger: Ledger) -> None:
    ignored, rejected = ledger.ignored.total(), ledger.conversations_rejected.total()
    dropped = ledger.calls_dropped.total()
    table = [
        ("", "found", "used", "ignored", "duplicate", "rejected"),
        ("records", ledger.read, ledger.used, ignored, None, ledger.rejected.total()),
        ("conversations", ledger.found, ledger.built, None, ledger.duplicates, rejected),
        ("calls", ledger.calls_logged, ledger.calls_kept, None, None, dropped),
    ]
    filled = [column for column in zip(*table, strict=True) if any(column[1:])]
    rows = [[_cell(cell) for cell in row] for row in zip(*filled, strict=True)]
    for number, line in enumerate(aligned(rows)):
        print("  " + (painted(line, DIM) if number == 0 else line))
    unknown = [item for item in ledger.ignored.most_common() if item[0].startswith(UNKNOWN_TYPE)]
    if unknown:
        listed = ((escaped(code.removeprefix(UNKNOWN_TYPE)), n) for code, n in unknown)
        shown = [f"{name} {n:,}" for name, n in islice(listed, SHOWN_TYPES)]
        more = ", …" if len(unknown) > SHOWN_TYPES else ""
        print(f"  records of unknown types, ignored: {', '.join(shown)}{more}")


def _cell(value: str | int | None) -> str:
    return f"{value:,}" if isinstance(value, int) else value or ""


def _print_rejects(ledger: Ledger, config: Config) -> None:
    """Prints rejects and dropped calls by code, with the option that would keep them."""
    conversation_remedy = partial(remedy, options=config.normalize)
    for title, codes, remedy_of in (
        ("records rejected", ledger.rejected, record_remedy),
        ("conversations rejected", ledger.conversations_rejected, conversation_remedy),
        ("calls dropped", ledger.calls_dropped, None),
    ):
        if not codes.total():
            continue
        print(f"  {painted(title, WARNING)}")
        width = max(map(len, codes))
        for code, count in ranked(codes):
            kept = remedy_of(code) if remedy_of is not None else None
            note = f"   kept by {kept}" if kept else ""
            print(f"    {code:{width}}  {count:>8,}{note}")


def facts(built: Built, config: Config) -> Iterator[str]:
    """Yields facts about the dataset that the user should know, with remedies."""
    found = built.audit
    for item in found.findings if found is not None else ():
        is_changed = item.gate is GateAction.change
        if item.audit == "secrets" and is_changed:
            places = counted(item.count, "secret")
            yield f"{places} in {counted(item.samples, 'sample')} replaced by placeholders"
        elif item.audit == "secrets":
            why = "audit.secrets: redact replaces them"
            if config.audit.scrub.secrets == "redact":
                why = "results of password generators, see docs/audit.md"
            count = f"{item.code}: {item.count:,} in {counted(item.samples, 'sample')}"
            yield f"{count}, left in place ({why})"
        elif item.audit == "personal_data" and not is_changed:
            yield (
                f"{item.code}: {item.count:,} in {counted(item.samples, 'sample')}, left in place"
                " (audit.personal_data: pseudonymise replaces them)"
            )
        elif item.code == EVALUATION_RUN:
            what = f"{item.code}: {counted(item.samples, 'sample')} from {item.message}"
            yield f"{what} (docs/select.md: how to leave them out)"
    yield from _tools(built)
    if built.is_weighted:
        yield (
            'some samples contain turns with "weight": 0, which must not be trained: builder export'
            " writes them for each trainer (docs/export.md)"
        )
    yield from _parity(built, config)
    levels = built.context_levels
    if levels.total():
        shares = ", ".join(f"{levels[name]:,} {name}" for name in LEVELS if levels[name])
        missing = ranked(built.context_missing)
        codes = ", ".join(f"{name} {count:,}" for name, count in missing if name in MISSING)
        note = f"; missing: {codes}" if codes else ""
        yield f"context of the trained turns: {shares}{note} (docs/context.md)"


def _tools(built: Built) -> Iterator[str]:
    sources = built.tools_sources
    if inferred := sources["inferred"] + sources["mixed"]:
        yield (
            f"tool definitions inferred from calls in {counted(inferred, 'sample')}: supply the"
            " real ones with --tools FILE (inputs[].tools) where you have them"
        )
    if sources["shared"]:
        samples = counted(sources["shared"], "sample")
        yield f"tool definitions of other sessions of the same agent and version in {samples}"


def _parity(built: Built, config: Config) -> Iterator[str]:
    mode = config.verify.options.mode
    trained = built.audit.facts.trained if built.audit is not None else None
    if trained is not None:
        yield f"{trained:.0%} of the text is trained, the rest is context"
    count = built.audit.facts.parity.get(mode) if built.audit is not None else None
    if count is not None:
        text = (
            f"{count.in_parity:,} of {count.trained:,} trained turns have the bytes of {mode}"
            " inference"
        )
        if count.in_parity != count.trained and config.normalize.unit != "turn":
            text += " (normalize.unit: turn makes it all of them; docs/parity.md)"
        yield text


def list_stores(output: Output) -> int:
    """Lists the logs that agents keep on this machine, with a command for each agent."""
    stores: dict[str, list[str]] = {}
    for agent, place in installed_logs():
        stores.setdefault(agent, []).append(UserPath(str(place)).published)
    if output.as_json:
        rows = [{"name": name, "path": path} for name, paths in stores.items() for path in paths]
        print_json({"stores": rows})
        return 0
    if not stores:
        print("no logs of known agents found on this machine; name a file or folder:")
        print("  builder build LOGS -o OUT")
    for agent, paths in stores.items():
        written = " ".join(map(_quoted, paths))
        print(f"{agent}: {', '.join(paths)}")
        print(f"  builder build {written} -o out/{agent.lower().replace(' ', '-')}")
    return 0


def _quoted(path: str) -> str:
    """Returns the path for a shell, which still expands a leading `~`."""
    return "~/" + shlex.quote(path[2:]) if path.startswith("~/") else shlex.quote(path)
