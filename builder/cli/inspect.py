"""Implements `builder inspect`: shows a file's format, and a conversation as rendered."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from pathlib import Path

from builder.build.prove import prepare, prove
from builder.cli.formats import print_overview
from builder.cli.output import Output
from builder.cli.terminal import RESET, TRAINED, colours, escaped, print_json
from builder.config import Config, load_mapping
from builder.conversation import Conversation, Ignored, Json, ToolCall, Used
from builder.normalize.captured import definitions_command
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions
from builder.normalize.remedies import remedy
from builder.output.aside import write_whole
from builder.problem import Problem, UsageError, nearest
from builder.qwen3.parity import Spans, counts
from builder.qwen3.tokenizer import target_for
from builder.readers import Reader, read_events, readers, recognise, unrecognised
from builder.readers.discovery import find_sources
from builder.readers.mapping.check import check_mapping
from builder.readers.mapping.read import SUGGESTION, mapped_reader
from builder.readers.mapping.suggest import suggest
from builder.readers.toolkit.narrow import as_dict, as_int
from builder.scrub.redact import Scrubber, derive_key
from builder.sources.copies import local_copy
from builder.sources.source import Source
from builder.text import counted
from builder.verify.verifier import Verifier

USABLE = 2
"""The worth of a source whose first conversation can be shown as a sample."""
FILES = 2000
"""Files of a folder that are examined: more would take minutes."""


@dataclass(slots=True)
class _Contents:
    """Counts over a source, and the requested conversation."""

    conversations: int = 0
    calls: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    chosen: Conversation | None = None


def run_inspect(
    path: str,
    *,
    index: int,
    format: str | None,  # noqa: A002 - the option's name
    mapping: Path | None,
    suggests: bool,
    config: Config,
    tokenizer: str,
    output: Output,
) -> int:
    """Prints the format of a file and one conversation as `build` converts it; returns 0.

    For a folder, prints the formats of its files, and shows the first usable conversation.
    `mapping` is a mapping file for the log; `suggests` proposes one and writes it. Raises
    UsageError if no reader recognises anything.
    """
    source, overview, unknown = _survey(path, config)
    with local_copy(source) as copy:
        if suggests:
            mapping = _suggested(copy, output)
        if mapping is not None:
            spec = load_mapping(mapping)
            check_mapping(str(mapping), spec, [copy])
            reader, reason = mapped_reader(spec), f"mapped by {mapping}"
        else:
            name, reason = _format(copy, format)
            reader = readers()[name]
        contents = _read(copy, reader, index, named=format is not None)
        key = derive_key([copy]) if config.audit.scrub.needs_key else b""
    if contents.chosen is None and contents.conversations:
        raise UsageError(
            f"--index {index}: there {'is' if contents.conversations == 1 else 'are'}"
            f" {counted(contents.conversations, 'conversation')}, numbered from 0"
        )
    result: dict[str, Json] = {
        "source": source.name,
        "format": reader.name,
        "reason": reason,
        "records": copy.records_read,
        "conversations": contents.conversations,
        "calls": contents.calls,
        "ignored": dict(sorted(contents.ignored.items())),
        "problems": [
            {"code": item.code, "where": item.where, "message": item.detail}
            for item in contents.problems
        ],
    }
    if overview is not None:
        result["files"] = {"formats": {**overview}, "unknown": unknown}
    if not output.as_json:
        if overview is not None:
            print_overview(path, overview, unknown)
        _print_counts(result, contents)
    if contents.chosen is not None:
        verifier = Verifier(target_for(tokenizer))
        summary, spans = _conversation(contents.chosen, config, verifier, key)
        if summary["tools_source"] in ("inferred", "mixed"):
            summary["capture"] = definitions_command(reader.name, contents.chosen.model)
        result["conversation"] = summary
        if not output.as_json:
            _print_conversation(summary, spans)
    if output.as_json:
        print_json(result)
    return 0


def _survey(path: str, config: Config) -> tuple[Source, dict[str, int] | None, int]:
    """Returns the source to show, {reader: files}, and how many files no reader recognises.

    For a folder, the source is the first recognised one with a conversation that is not rejected,
    else the first with a conversation, else the first one.
    For a single file there are no counts, and the file may be unrecognised. Raises UsageError if
    there is nothing to show.
    """
    sources = list(islice(find_sources(path), FILES))
    if len(sources) < 2:
        found = sources[0] if sources else None
        if not isinstance(found, Source):
            raise UsageError(f"{path}: {found.detail if found else 'no file'}")
        return found, None, 0
    first: Source | None = None
    worth = 0
    formats: Counter[str] = Counter()
    for source in sources:
        if isinstance(source, Problem):
            continue
        with local_copy(source) as copy:
            claims = recognise(copy)
            if len(claims) != 1:
                continue
            (name,) = claims
            formats[name] += 1
            if worth < USABLE and (one := _worth(copy, readers()[name], config)) > worth:
                worth, first = one, source
        first = first or source
    if first is None:
        raise UsageError(f"{path}: no reader recognises any of its {len(sources):,} files")
    return first, dict(sorted(formats.items())), len(sources) - formats.total()


def _worth(source: Source, reader: Reader, config: Config) -> int:
    """Returns USABLE if the first conversation can be normalised, 1 if not, 0 without one."""
    events = read_events(reader, source)
    first = next((event for event in events if isinstance(event, Conversation)), None)
    if first is None:
        return 0
    options: NormalizeOptions = replace(config.normalize, train=config.train)
    return USABLE if normalise(first, options).dialogue is not None else 1


def _format(source: Source, forced: str | None) -> tuple[str, str]:
    if forced is not None:
        if forced not in readers():
            raise UsageError(f"format {forced!r}: no such reader{nearest(forced, readers())}")
        return forced, "named with --format"
    claims = recognise(source)
    problem = source.peek.problem
    if not claims and source.peek.kind == "empty":
        broken = next(source.lines(), None)
        if not isinstance(broken, Problem):
            raise UsageError(f"{source.name}: is empty")
        problem = broken
    if not claims and problem is not None:
        raise UsageError(f"{source.name}: {problem.code}: {problem.detail}")
    if len(claims) != 1:
        if not claims:
            raise UsageError(f"{source.name}: {unrecognised(source)}; {SUGGESTION}")
        raise UsageError(
            f"{source.name}: claimed by {', '.join(claims)}; name a format with --format"
        )
    return next(iter(claims.items()))


def _suggested(source: Source, output: Output) -> Path:
    """Writes a proposed mapping into the current folder and returns its path. Raises UsageError."""
    path = Path(f"{Path(source.name).stem}.mapping.yaml")
    text = suggest(source)
    if text is None:
        raise UsageError(
            f"{source.name}: no conversation found: docs/mapping.md shows how to write a mapping"
        )
    if path.exists():
        raise UsageError(f"{path}: exists; use it with --mapping, or remove it")
    write_whole(path, text.encode())
    if not output.as_json:
        print(escaped(f"{path}:\n{text}"))
        print(f"Check it, then: builder build {source.name} --mapping {path} -o OUT\n")
    return path


def _read(source: Source, reader: Reader, index: int, *, named: bool) -> _Contents:
    contents = _Contents()
    for event in read_events(reader, source, named=named):
        match event:
            case Conversation():
                if contents.conversations == index:
                    contents.chosen = event
                contents.conversations += 1
                contents.calls += sum(
                    isinstance(part, ToolCall)
                    for message in event.messages
                    for part in message.parts
                )
            case Ignored(code=code, records=records):
                contents.ignored[code] += records
            case Problem():
                contents.problems.append(event)
            case Used():
                pass
    return contents


def _conversation(
    conversation: Conversation, config: Config, verifier: Verifier, key: bytes
) -> tuple[dict[str, Json], Spans]:
    """Returns the conversation for `--json`, and the spans of its trained text.

    For a unit smaller than a conversation, the text is that of the last sample, which contains the
    text of those before it. `key` is that of the build's replacements for personal data.
    """
    options: NormalizeOptions = replace(config.normalize, train=config.train)
    target, lengths = verifier.target, config.limits.lengths
    scrubber = Scrubber(config.audit.scrub, key, target.added_tokens)
    normalised, _ = prepare(conversation, options, lengths, target, scrubber)
    proofs = [] if normalised.dialogue is None else [*prove(normalised, options, lengths, verifier)]
    problems = [normalised.problem, *(proof.problem for proof in proofs)]
    problem = next((item for item in problems if item is not None), None)
    summary: dict[str, Json] = {
        "id": conversation.id,
        "record": conversation.record,
        "model": conversation.model,
        "changes": dict(normalised.changes),
        "tools_source": normalised.tools_source,
        "samples": sum(proof.problem is None for proof in proofs),
        "rejected": None,
    }
    if problem is not None:
        summary["rejected"] = {
            "code": problem.code,
            "message": problem.detail,
            "remedy": remedy(problem.code, options),
        }
    if not proofs:
        return summary, ()
    verdict = proofs[-1].verdict
    summary["text"] = verdict.text
    summary["spans"] = [list(span) for span in verdict.spans]
    summary["parity"] = {**counts(verdict.parity)}
    summary["tokens"] = verdict.tokens
    return summary, verdict.spans


def _print_counts(result: dict[str, Json], contents: _Contents) -> None:
    print(escaped(f"{result['source']}: {result['format']} ({result['reason']})"))
    records, conversations = as_int(result["records"]), contents.conversations
    print(f"{counted(records, 'record')}, {counted(conversations, 'conversation')},"
          f" {counted(contents.calls, 'call')}")  # fmt: skip
    for code, count in sorted(contents.ignored.items()):
        print(escaped(f"  ignored {code}: {count}"))
    for problem in contents.problems[:20]:
        print(escaped(f"  {problem.code} at {problem.where}: {problem.detail}"))


def _print_conversation(summary: dict[str, Json], spans: Spans) -> None:
    model = f"model {summary['model']}" if summary["model"] else "no model named"
    print(escaped(f"conversation {summary['id']} ({summary['record']}), {model}"))
    if changes := as_dict(summary["changes"]):
        print("  changes: " + ", ".join(f"{code} {n}" for code, n in changes.items()))
    if rejected := as_dict(summary["rejected"]):
        print(escaped(f"  rejected: {rejected['code']}: {rejected['message']}"))
        if rejected["remedy"]:
            print(f"  to keep it: {rejected['remedy']}")
    if summary.get("capture"):
        print(f"  tools inferred from the calls; this captures the real ones: {summary['capture']}")
    text = summary.get("text")
    if isinstance(text, str):
        print(f"  {summary['tokens']} tokens; trained text is marked\n")
        print(marked(text, spans))


def marked(text: str, spans: Spans) -> str:
    """Returns the text, escaped for a terminal, with the spans in colour or between ⟦ and ⟧."""
    begin, end = (TRAINED, RESET) if colours() else ("⟦", "⟧")
    borders = [0, *(border for span in spans for border in span), len(text)]
    pieces = [escaped(text[start:stop]) for start, stop in pairwise(borders)]
    return "".join(
        f"{begin}{piece}{end}" if number % 2 else piece for number, piece in enumerate(pieces)
    )
