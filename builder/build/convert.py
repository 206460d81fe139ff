"""Converts one chunk of the input from bytes to verified samples.

Samples are written to a file as they are made, so memory is bounded by the longest conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from builder.build.meta import Converted, sample_meta
from builder.build.preferences import (
    Corrected,
    abandonment,
    alternative,
    digested_definitions,
    line_digest,
    prefix_digests,
)
from builder.build.prove import VerifiedExample, prepare, prove
from builder.build.results import ResultWriter
from builder.build.shared import tools_listed
from builder.build.spool import Spool
from builder.build.task import Task, reader_names, sole_reader
from builder.codes import option_of
from builder.conversation import LEVELS, Conversation, Event, Ignored, Used
from builder.ledger import call_keys
from builder.normalize.joined import SeenAnswers
from builder.normalize.normalise import Normalised
from builder.normalize.options import SharedTools
from builder.normalize.remedies import remedy
from builder.normalize.tool_use import ToolUse
from builder.normalize.tools import calls_undefined, for_log
from builder.problem import Problem, UsageError
from builder.qwen3.flat import flat_turn
from builder.readers import Reader, read_events, readers, unrecognised
from builder.select.alternatives import Alternative
from builder.select.choice import session_digest
from builder.select.table import ConversationEntry, SampleEntry
from builder.sources.stream import STREAM_ERRORS, stream_problem
from builder.verify.verifier import Verifier


def process_source(
    task: Task, verifier: Verifier, writer: ResultWriter, spool: Spool | None = None
) -> None:
    """Reads, normalises, scrubs, flattens and verifies a source; writes the results to `writer`.

    From the first session that lacks tool definitions on, the source is only scanned as long as
    those of the agent's other sessions are not known (`ResultSummary.is_scan`); its events are
    saved in `spool` for the second pass.

    Raises OSError only if the result cannot be written.
    """
    source, summary, options = task.source, writer.summary, task.options
    counts_tools = False
    may_look = options.shared_tools is None and options.missing_tools == "untrained"
    events: Iterator[Event] = iter(())
    if spool is not None and (name := spool.format_name()) is not None:
        summary.format = name
        events = spool.replay(source)
    elif (reader := _reader(task, writer)) is not None:
        summary.format = reader.name
        counts_tools = reader.is_agent and options.shared_tools is None
        events = read_events(reader, source, named=task.format != "auto")
        if counts_tools and spool is not None:
            events = spool.record(reader.name, source, events)
    if summary.format is not None:
        tool_use = ToolUse(summary.tool_use)
        for conversation in _joined(_conversations(events, writer), task, writer):
            if options.captured:
                own = for_log(options, summary.format, conversation)
                task = replace(task, options=own)
            if counts_tools:
                summary.is_scan |= tool_use.take(conversation, task.options.supplied_tools)
                if summary.is_scan:
                    continue
            elif may_look and conversation.recorded and calls_undefined(conversation):
                shared = SharedTools(source=tools_listed(readers()[str(summary.format)], source))
                options = replace(options, shared_tools=shared)
                task = replace(task, options=replace(task.options, shared_tools=shared))
                may_look = False
            _conversation(conversation, task, verifier, writer)
    if spool is not None and not summary.is_scan:
        spool.discard()
    ledger = summary.ledger
    is_later_chunk = source.chunk is not None and source.chunk.start > 0
    if not source.records_read and (summary.rejects or not is_later_chunk):
        # A file without records counts as one, so that it cannot vanish from the ledger.
        source.count_records()
        if not summary.rejects:
            ledger.ignored["empty_file"] += 1
        else:
            ledger.rejected[str(writer.first_code)] += 1
    ledger.read = source.records_read
    missing = ledger.read - (ledger.used + ledger.ignored.total() + ledger.rejected.total())
    if summary.bugs and missing > 0:
        ledger.rejected["internal"] += missing


def _reader(task: Task, writer: ResultWriter) -> Reader | None:
    """Returns the reader for the source; if there is none, writes the reject and returns None."""
    source = task.source
    if not source.members:
        try:
            with source.open() as stream:
                stream.read(1)
        except STREAM_ERRORS as error:
            writer.reject(stream_problem(error, "file"))
            return None
    if source.peek.kind == "empty":
        return None
    if (reader := sole_reader(task)) is not None:
        return reader
    names = reader_names(task)
    if names:
        detail = f"claimed by {', '.join(names)}: name one with `inputs[].format`"
        writer.reject(Problem("ambiguous", "file", detail))
    else:
        problem = source.peek.problem
        writer.reject(problem or Problem("unrecognised", "file", unrecognised(source)))
    return None


def _conversations(events: Iterator[Event], writer: ResultWriter) -> Iterator[Conversation]:
    """Yields the conversations among the events; counts the records of all events."""
    ledger = writer.summary.ledger
    try:
        for event in events:
            match event:
                case Conversation():
                    ledger.used += event.records
                    ledger.found += 1
                    yield event
                case Used(records=records):
                    ledger.used += records
                case Ignored(code=code, records=records):
                    ledger.ignored[code] += records
                case Problem():
                    ledger.rejected[event.code] += event.records
                    writer.reject(event)
    except Exception as error:  # an exception is a bug of the reader; the other sources continue
        writer.summary.bugs += 1
        detail = f"bug in the reader: {type(error).__name__}: {error}"[:300]
        writer.reject(Problem("internal", "file", detail))


def _joined(
    conversations: Iterator[Conversation], task: Task, writer: ResultWriter
) -> Iterator[Conversation]:
    """Yields the conversations with what other sources say of them; notes their answers if unknown.

    Only answers in captures and in the logs of agents are noted (`builder.normalize.joined`).
    """
    if task.joined is not None:
        yield from map(task.joined.applied_to, conversations)
        return
    seen = SeenAnswers()
    is_agent = task.mapping is None and readers()[str(writer.summary.format)].is_agent
    for conversation in conversations:
        if is_agent or conversation.recorded:
            seen.take(conversation)
        yield conversation
    writer.summary.answers = seen.to_json(writer.scrubber.text)


def _conversation(
    conversation: Conversation, task: Task, verifier: Verifier, writer: ResultWriter
) -> None:
    """Converts one conversation and writes its entry and its samples."""
    scrubber, name = writer.scrubber, writer.summary.format
    assert name is not None, "set with the reader"
    keys = call_keys(conversation, format=name, source=task.origin)
    samples: list[SampleEntry] = []
    prefixes: tuple[bytes, ...] = ()
    in_samples: set[int] = set()
    dropped: Mapping[int, str] = {}
    tools_source = "none"
    without_secrets = False
    code: str | None = None
    is_recoverable = False
    ended: str | None = None
    terms = scrubber.text(task.license or conversation.license or "") or None
    abandoned: Alternative | None = None
    pairs = Corrected(verifier.target.style)
    try:
        normalised, without_secrets = prepare(
            conversation, task.options, task.lengths, verifier.target, scrubber
        )
        dropped, tools_source, ended = normalised.dropped, normalised.tools_source, normalised.cut
        dialogue = normalised.dialogue
        if dialogue is None:
            assert normalised.problem is not None, "a rejected conversation has a reason"
            code = _note(normalised.problem, conversation, writer)
            is_recoverable = remedy(conversation, code, task.options) is not None
        else:
            definitions = digested_definitions(dialogue.tools, tools_source, task.options.tools)
            messages = ((*flat_turn(turn), turn.trained) for turn in dialogue.turns)
            prefixes = prefix_digests(messages, definitions)
            converted = Converted(conversation, normalised, task.options.unit, terms)
            for proof in prove(normalised, task.options, task.lengths, verifier):
                if proof.problem is not None:
                    noted = _note(proof.problem, conversation, writer)
                    writer.summary.ledger.leave_out(noted)
                    code = code or noted
                    is_recoverable = option_of(code) is not None
                    continue
                in_samples.update(proof.example.origins)
                samples.append(_write_sample(converted, proof, prefixes, pairs, writer))
        if (reason := abandonment(conversation)) is not None:
            abandoned = alternative(
                conversation, reason, task.options, task.lengths, verifier.target, scrubber
            )
    except (OSError, UsageError):
        raise  # a fault of the disk or the installation, not of the log
    except Exception as error:  # a bug of ours in one conversation; the others continue
        writer.summary.bugs += 1
        code = "internal"
        detail = f"bug: {type(error).__name__}: {error}"[:300]
        writer.reject(Problem(code, conversation.record, detail))
    kept = _calls_of(normalised, in_samples) if in_samples else frozenset()
    # A call that is neither kept nor dropped is in a sample that was rejected with `code`.
    outcomes = tuple(
        (key, None if ordinal in kept else dropped.get(ordinal, code))
        for ordinal, key in enumerate(keys)
    )
    writer.entry(
        ConversationEntry(
            code,
            tuple(samples),
            b"".join(prefixes),
            outcomes,
            tools_source,
            session_digest(conversation.id, name, task.origin),
            terms,
            alternative=abandoned,
            left_out=tuple(sorted(pairs.left_out.items())),
            is_recoverable=is_recoverable,
            cut=ended,
            without_secrets=without_secrets,
        )
    )


def _write_sample(
    converted: Converted,
    proof: VerifiedExample,
    prefixes: Sequence[bytes],
    pairs: Corrected,
    writer: ResultWriter,
) -> SampleEntry:
    """Writes a proven sample with its line of meta/; returns its description for the entry."""
    meta = sample_meta(converted, proof, writer)
    models = tuple(name and writer.scrubber.text(name) for name in proof.models)
    corrected = tuple(pairs.of(proof, converted.normalised, meta.record))
    several = models if len(models) > 1 else ()
    meta = replace(meta, models=several, preferences=corrected)
    writer.sample(proof.sample.line + b"\n", meta.line + b"\n")
    origins = proof.example.origins
    calls = _calls_of(converted.normalised, origins)
    levels = Counter(item.level for item in proof.contexts)
    missing = Counter(code for item in proof.contexts for code in item.missing)
    return SampleEntry(
        prefixes[origins[-1]],
        proof.verdict.tokens,
        (min(calls), max(calls) + 1) if calls else (0, 0),
        tuple(levels[level] for level in LEVELS),
        tuple(sorted(missing.items())),
        is_weighted=bool(proof.sample.weights),
        pairs=len(corrected),
        models=models,
        recorded=meta.compared,
        line=line_digest(proof.sample),
    )


def _calls_of(normalised: Normalised, answers: Collection[int]) -> frozenset[int]:
    """Returns the ordinals in the conversation of the calls in these assistant turns."""
    assert normalised.dialogue is not None, "it has samples"
    ordinals = iter(sorted(normalised.kept))
    turns = [turn for turn in normalised.dialogue.turns if turn.role == "assistant"]
    kept = [[next(ordinals) for _ in turn.calls] for turn in turns]
    return frozenset(ordinal for at in answers for ordinal in kept[at])


def _note(problem: Problem, conversation: Conversation, writer: ResultWriter) -> str:
    """Writes a reject for a conversation; returns the code."""
    message = f"{problem.detail} ({problem.where})"
    writer.reject(Problem(problem.code, conversation.record, message))
    writer.summary.bugs += problem.code in ("spec", "structured", "inverse")
    return problem.code
