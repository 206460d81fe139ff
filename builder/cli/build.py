"""Implements `builder build`: runs the build and prints a summary."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from builder.api import EngineName, build_dataset, installed_logs
from builder.api.progress import ignore
from builder.audit.counts import Counts
from builder.audit.notes import EVALUATION_RUN, UNREAD
from builder.build.engine import preloading
from builder.card.result import BuildResult, nothing_in, review_applied
from builder.cli.accounting import print_ledger, print_rejects
from builder.cli.command import Output, command
from builder.cli.terminal import (
    BAD,
    BOLD,
    DIM,
    GOOD,
    BuildProgress,
    escaped,
    painted,
    print_json,
    warn,
    wrapped,
)
from builder.cli.tokenizer import BY_DEFAULT
from builder.codes import DUPLICATE, is_on_request, meaning
from builder.config import Config, load_config, override
from builder.conversation import Json
from builder.dataset.meta import EQUAL
from builder.distribution import install_line
from builder.finding import GateAction
from builder.ledger import Ledger, ranked
from builder.normalize.remedies import option_for, with_options
from builder.options import Preset
from builder.output.folder import RemoteOutput
from builder.output.manifest import MANIFEST, Manifest, TokenizerEntry
from builder.parallel.host import interrupt_on_sigterm
from builder.parallel.pool import default_workers, prepare_for
from builder.paths import UserPath
from builder.problem import UsageError
from builder.qwen3.reference import EMBEDDED
from builder.report.advice import SHOWN, THOUGHTS, Advice
from builder.sources.store import is_url, local_path
from builder.text import counted


@command()
def build(
    inputs: list[str] | None = None,
    all_logs: bool = False,
    out: str | None = None,
    model: str | None = None,
    config: Path | None = None,
    preset: Preset | None = None,
    settings: list[str] | None = None,
    tools: list[str] | None = None,
    system: list[str] | None = None,
    definitions: list[str] | None = None,
    format: str | None = None,  # noqa: A002 - the option's name
    mapping: Path | None = None,
    tokenizer: str | None = None,
    chat_template: str | None = None,
    workers: int | None = None,
    engine: EngineName = "local",
    review: str | None = None,
    fresh: bool = False,
    allow_eval: bool = False,
    strict: bool = False,
    plan: bool = False,
    *,
    output: Output,
) -> int:
    """Turn logs into a dataset: read, normalize, verify and write."""
    if all_logs:
        if inputs:
            raise UsageError("build: --all takes the logs of this machine: name no INPUT with it")
        inputs = [str(place) for _, place in installed_logs()]
        if not inputs:
            raise UsageError(f"build: --all: {_NO_LOGS}")
    paths = {
        "verify.tokenizer": tokenizer,
        "verify.chat_template": chat_template,
        "select.review": review,
    }
    keys: dict[str, object] = {"verify.model": model, "normalize.allow_eval": allow_eval}
    keys |= {key: UserPath(path) for key, path in paths.items() if path is not None}
    chosen = override(
        load_config(config, preset, settings or (), keys=keys),
        inputs=inputs or (),
        format=format,
        mapping=str(mapping) if mapping is not None else None,
        tools=[UserPath(item) for item in (*(tools or ()), *(definitions or ()))],
        system=[UserPath(item) for item in (*(system or ()), *(definitions or ()))],
    )
    if not chosen.inputs:
        return _list_stores(output)
    if plan:
        from builder.cli.plan import print_plan  # noqa: PLC0415 - rarely used

        return print_plan(chosen, workers or default_workers(), output)
    if not out:
        raise UsageError("build: -o FOLDER is missing: where should the dataset go?")
    if engine == "local":
        import_module("builder.build.build")  # workers that are forked from this process share it
        prepare_for(chosen.paths, workers or default_workers(), preloading(chosen.verify.target))
    interrupt_on_sigterm()
    progress = BuildProgress(visible=output.in_words)
    out = local_path(out)
    try:
        built = build_dataset(
            [],
            out,
            config=chosen,
            workers=workers or (None if engine == "ray" else default_workers()),
            engine=engine,
            fresh=fresh,
            on_progress=progress,
            on_message=ignore if output.quiet else warn,
        )
    finally:
        progress.close()
    here = RemoteOutput(out).local_folder if is_url(out) else Path(out)
    return summarise(built, chosen, out, here, strict=strict, output=output)


def summarise(
    built: BuildResult,
    config: Config,
    out: str,
    here: Path,
    *,
    strict: bool,
    output: Output,
    kept_by: str = "kept by",
) -> int:
    """Prints a summary; returns the exit code. `here` is the local copy of `out`.

    `kept_by` introduces the option that would keep what was rejected.
    """
    ledger = built.ledger
    is_written = bool(built.writer.files) and (here / MANIFEST).is_file() and built.is_in_place
    if output.as_json:
        result: dict[str, Json] = {**built.as_json(), "output": out if is_written else None}
        if built.changed_by_loader:
            result["as_loaded"] = len(built.changed_by_loader)
        print_json(result)
    elif not output.quiet:
        _print(built, out, config, here, output, kept_by)
    for report in built.changed_by_loader[:5]:
        place = f"{report.file}:{report.line}" if report.line else report.file
        warn(f"not as `datasets` loads it: {place} {report.findings[0].message}")
    if built.bugs:
        warn(
            f"{counted(built.bugs, 'failure')} of this program, not of the logs:"
            " see rejects.jsonl (internal, spec, structured, inverse) and report it"
        )
    rejected = ledger.rejected.total() + ledger.conversations_rejected.total()
    if not ledger.samples:
        rejects = f"{out.rstrip('/')}/rejects.jsonl"
        reasons, where = built.reasons, f"{rejects} says why"
        if not is_written and ledger.found:
            where = "the previous content of the folder is kept"
        elif not is_written:
            nothing = nothing_in(ledger, config)
            reasons = [reason for reason in reasons if reason != nothing]
            where = nothing if ledger.read else f"{nothing}; {LISTED}"
        for reason in reasons:
            warn(reason)
        warn(f"no sample could be built: {where}")
        return 1
    return 1 if built.bugs or (strict and (rejected or built.changed_by_loader)) else 0


def _print(
    built: BuildResult, out: str, config: Config, here: Path, output: Output, kept_by: str
) -> None:
    """Prints the four lines, how to improve the dataset, what is left out, and what is next.

    That is at most LINES lines of at most WIDTH characters, and more with `-v`.
    """
    ledger = built.ledger
    if not ledger.samples:
        print_rejects(ledger, kept_by, verbose=True)
        return
    verbose = output.verbose
    tokens = counted(built.tokens, "token")
    entry = Manifest.of(here).tokenizer
    if entry.missing:
        tokens = f"about {tokens} (estimated: the tokenizer does not fit)"
    head = [painted(counted(ledger.samples, "sample"), BOLD), tokens, f"for {_trained(entry)}"]
    if built.context_levels:
        head.insert(1, counted(built.context_levels.total(), "trained turn"))
    lines = [f"{escaped(out)}: {', '.join(head)}", ""]
    for item in built.judgements:
        style = BAD if item.is_wrong else GOOD if item.is_complete else ""
        lines += wrapped(f"  {item.name:9}  ", item.text, " " * 13, style)
    lines += _advice(built.advice, verbose=verbose)
    folder = escaped(out.rstrip("/"))
    end = [""]
    rejects = here / "rejects.jsonl"
    counts = built.audit.counts if built.audit is not None else Counts()
    if left := left_out(ledger, counts.changes["reasoning_dropped"]):
        where = f" {folder}/rejects.jsonl" if rejects.is_file() and rejects.stat().st_size else ""
        end += wrapped("", f"Left out: {left}.{where}", "  ")
    for at, line in enumerate(() if is_url(out) else _next(out.rstrip("/"), config)):
        end.append(f"{painted('Next:', BOLD) if at == 0 else '     '} {escaped(line)}")
    topics = {item.topic for item in (built.advice if verbose else built.advice[:SHOWN])}
    notes = [line for note in facts(built, config, topics) for line in wrapped("  ", note, "    ")]
    room = LINES - len(lines) - len(end) - 1
    if verbose:
        notes += [line for note in _details(built) for line in wrapped("  ", note, "    ")]
    elif len(notes) > room:
        hint = painted(f"  {folder}/report.html or -v: more", DIM)
        notes = [*notes[: room - 1], hint] if room > 0 else []
    for line in (*lines, *([""] if notes else []), *notes):
        print(line)
    if verbose:
        print(f"\n{painted('accounting', BOLD)}")
        print_ledger(ledger, verbose=True)
        print_rejects(ledger, kept_by, verbose=True)
    for line in end:
        print(line)


def _trained(entry: TokenizerEntry) -> str:
    """Returns the name of the model that the dataset is for."""
    if entry.model or (entry.name, entry.template_name) != (EMBEDDED, "Qwen3"):
        return entry.model.rpartition("/")[2] or entry.template_name or entry.name
    return BY_DEFAULT


def _next(folder: str, config: Config) -> tuple[str, str]:
    """Returns the commands to look at a dataset, and to train on it."""
    tokenizer = config.verify.tokenizer.written
    is_default = tokenizer == Config().verify.tokenizer.written
    named = "" if is_default else f" --tokenizer {shlex.quote(tokenizer)}"
    place, rows = shlex.quote(folder), shlex.quote(f"{folder}-trl")
    return f"builder view {place}{named}", f"builder export {place} --to trl -o {rows}{named}"


def left_out(ledger: Ledger, thoughts: int = 0) -> str:
    """Returns what of the logs is not in the dataset, with the most frequent reasons; or "".

    `thoughts` are the turns whose thought is left out.
    """
    parts = []
    _, conversations, *_ = ledger.accounts
    for codes, words in ((conversations.rejected, "{} ({})"), (ledger.cut, "the end of {} ({})")):
        if total := sum(codes.values()):
            code = ranked(codes)[0][0]
            reason = re.split(r": (?!\[)|; |, so ", meaning(code).replace("`", ""))[0] or code
            more = ", and other reasons" if len(codes) > 1 else ""
            parts.append(words.format(counted(total, "conversation"), reason + more))
    ignored = conversations.ignored
    if nothing := sum(count for code, count in ignored.items() if not is_on_request(code)):
        parts.append(f"{counted(nothing, 'conversation')} with nothing to train")
    if requested := sum(ignored.values()) - nothing:
        parts.append(f"{counted(requested, 'conversation')} left out on request")
    if copies := max(ledger.duplicates, ledger.samples_left_out[DUPLICATE]):
        parts.append(counted(copies, "duplicate"))
    if thoughts:
        parts.append(counted(thoughts, "thought"))
    files = ledger.rejected["unrecognised"]
    if files:
        parts.append(f"{counted(files, 'file')} that no reader recognises")
    if records := ledger.rejected.total() - files:
        parts.append(f"{counted(records, 'record')} that could not be read")
    return ", ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _advice(advice: Sequence[Advice], *, verbose: bool) -> Iterator[str]:
    """Yields how to improve the dataset, the largest effect first.

    Unless `verbose`, that is the first findings, each with its best remedy.
    """
    if not advice:
        return
    yield ""
    yield painted("To improve it", BOLD)
    shown = advice if verbose else advice[:SHOWN]
    for number, item in enumerate(shown, start=1):
        text = f"{item.finding} {item.detail}".rstrip() if verbose else item.finding
        yield from wrapped(f"  {number}. ", text, "     ")
        for remedy in item.remedies if verbose else item.remedies[:1]:
            price = f" ({remedy.price})" if remedy.price else ""
            end = ":" if remedy.commands else ""
            yield from wrapped("     → ", f"{with_options(remedy.text)}{price}{end}", "       ")
            for line in remedy.commands:
                yield f"       {escaped(line)}"  # unwrapped, to be pasted
    others = counted(len(advice) - len(shown), "more point") if len(advice) > len(shown) else ""
    remedies = "other remedies" if any(len(item.remedies) > 1 for item in shown) else ""
    if not verbose and (others or remedies):
        more = " and ".join(filter(None, (others, remedies)))
        yield painted(f"  {more}: report.html, or -v", DIM)


LISTED = "builder build alone lists the logs of agents on this machine"
_MANY_TOKENS = 1_000_000
LINES = 25
"""Lines of a summary without `-v`."""
UNMARKED = {"query": "only the turns after the last question", "turn": "only the last turn"}
"""{unit: what it trains}, where a sample without weights does not train all its turns."""


def facts(built: BuildResult, config: Config, topics: Collection[str] = ()) -> Iterator[str]:
    """Yields facts about the dataset that the user should know, with remedies.

    What advice on one of the topics says is left out.
    """
    audited = built.audit
    personal = []
    for item in audited.findings if audited is not None else ():
        is_changed = item.gate is GateAction.change
        if item.audit in topics and not is_changed:
            continue
        if item.audit == "secrets" and is_changed:
            places = counted(item.count, "secret")
            yield f"{places} in {counted(item.samples, 'sample')} replaced by placeholders"
        elif item.audit == "secrets":
            why = f"{option_for('audit.secrets: redact')} replaces them"
            if config.audit.scrub.secrets == "redact":
                why = "results of password generators, see docs/audit.md"
            count = f"{item.code}: {item.count:,} in {counted(item.samples, 'sample')}"
            yield f"{count}, left in place ({why})"
        elif item.audit == "personal_data" and not is_changed:
            personal.append(f"{item.code} {item.count:,}")
        elif item.code == EVALUATION_RUN:
            what = f"{item.code}: {counted(item.samples, 'sample')} from {item.message}"
            yield f"{what} (docs/select.md: how to leave them out)"
        elif item.code == UNREAD:
            yield f"{item.message}, in {counted(item.samples, 'sample')} (docs/context.md)"
    if personal:
        listed = ", ".join(personal)
        how = option_for("audit.personal_data: pseudonymise")
        yield f"personal data left in place: {listed} ({how})"
    counts = audited.counts if audited is not None else Counts()
    if replaced := counts.changes["pseudonymised"]:
        where = counted(replaced, "place")
        yield f"personal data, such as names of users, replaced by stand-ins in {where}"
    if built.is_weighted:
        why = ", ".join(f"{code} {count:,}" for code, count in ranked(counts.untrained))
        most = counts.untrained.total()
        have = f"{counted(most, 'turn')} in data/ {'has' if most == 1 else 'have'}"
        yield (
            f'{have if why else "some turns have"} "weight": 0, which must not be trained'
            f"{f' ({why})' if why else ''}: builder export writes them for each trainer"
            " (docs/export.md)"
        )
    if counts.windows:
        yield (
            f"{counted(counts.windows, 'sample')} with"
            f" {counted(counts.window_turns, 'trained turn')} lack earlier turns: the price of"
            " windows (limits.too_long: split)"
        )
    if trained := UNMARKED.get(config.normalize.unit):
        yield (
            f"normalize.unit: {config.normalize.unit} trains {trained} of a sample; where no turn"
            ' has a "weight", those before have no mark, either: builder export masks them'
            " (docs/export.md)"
        )
    if applied := review_applied(built):
        yield f"{applied} (docs/select.md)"
    if (thinking := counts.thinking) and THOUGHTS not in topics:
        turns = counted(built.context_levels.total(), "trained turn")
        yield f"{thinking:,} of {turns} {'has' if thinking == 1 else 'have'} a thought"
    yield from _splits(built, config)
    yield from _recorded(built)
    if built.tokens > _MANY_TOKENS and find_spec("gigatoken") is None:
        yield f"builds are two to three times as fast with `{install_line('fast')}`"


def _splits(built: BuildResult, config: Config) -> Iterator[str]:
    """Yields how many samples each split has, and each split that was wanted and has none."""
    if len(built.splits) > 1:
        sizes = ", ".join(f"{name} {size:,}" for name, size in built.splits.items())
        yield f"samples by split: {sizes}"
    for name, share in (("validation", config.split.validation), ("test", config.split.test)):
        if share and name not in built.data_files:
            drawn = f"none of {counted(built.ledger.built, 'conversation')} was drawn"
            yield f"no {name} samples: {drawn} (split.{name}: {share}, or another split.seed)"


def _recorded(built: BuildResult) -> Iterator[str]:
    compared = built.tokens_recorded
    if not compared.total():
        return
    differ = {code: count for code, count in compared.items() if code != EQUAL}
    text = (
        f"tokens recorded in the log: those of {compared[EQUAL]:,} of"
        f" {counted(compared.total(), 'sample')} are equal"
    )
    if differ:
        causes = ", ".join(f"{code} {count:,}" for code, count in ranked(differ))
        text += f"; the others differ ({causes}): see meta.tokens_recorded and docs/parity.md"
    yield text


def _details(built: BuildResult) -> Iterator[str]:
    if built.tools_sources["shared"]:
        samples = counted(built.tools_sources["shared"], "sample")
        yield f"tool definitions of other sessions or requests in these logs in {samples}"
    counts = built.audit.counts if built.audit is not None else Counts()
    if counts.trained_share is not None:
        tokens = f"{counts.trained_tokens:,} tokens ({counts.trained_share:.0%})"
        yield f"{tokens} are trained, the rest is context"
    if lost := ", ".join(f"{words} {turns:,}" for words, turns in built.unshowable):
        yield f"what these logs cannot show, by trained turns: {lost} (docs/context.md)"


def _list_stores(output: Output) -> int:
    """Lists the logs that agents keep on this machine, with a command for each agent."""
    stores: dict[str, list[str]] = {}
    for agent, place in installed_logs():
        stores.setdefault(agent, []).append(UserPath(str(place)).published)
    if output.as_json:
        rows = [{"name": name, "path": path} for name, paths in stores.items() for path in paths]
        print_json({"stores": rows})
        return 0
    if not stores:
        print(f"{_NO_LOGS}:\n  builder build LOGS -o OUT")
    elif not output.quiet:
        print("Build all of these logs into one dataset:\n  builder build --all -o out/mine\n")
        print("Or those of one agent:")
        for agent, paths in stores.items():
            written = " ".join(map(_quoted, paths))
            print(f"{agent}: {', '.join(paths)}")
            print(f"  builder build {written} -o out/{agent.lower().replace(' ', '-')}")
    return 0


_NO_LOGS = "no logs of known agents found on this machine; name a file or folder"


def _quoted(path: str) -> str:
    return "~/" + shlex.quote(path[2:]) if path.startswith("~/") else shlex.quote(path)
