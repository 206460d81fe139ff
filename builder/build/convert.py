"""Converts one chunk of the input from bytes to verified samples.

Samples are written to a file as they are made, so memory is bounded by the longest conversation.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from builder.audit.failures import pattern
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
from builder.codes import option_of
from builder.conversation import LEVELS, REPEAT, Conversation, Event, Ignored, Json, Used, lowest
from builder.dataset.meta import EQUAL, SampleMeta, TokenDifference
from builder.ledger import call_keys
from builder.normalize.joined import JoinedAnswers, SeenAnswers
from builder.normalize.normalise import Normalised
from builder.normalize.options import LengthOptions, NormalizeOptions, SharedTools, Unit
from builder.normalize.remedies import remedy
from builder.normalize.tool_use import ToolUse
from builder.normalize.tools import calls_undefined, for_log
from builder.normalize.units import TrainingExample
from builder.problem import Problem, UsageError
from builder.qwen3.flat import flat_turn
from builder.qwen3.render import counts
from builder.readers import Reader, read_events, readers, recognise, unrecognised
from builder.readers.mapping.read import mapped_reader
from builder.readers.mapping.spec import MappingSpec
from builder.scrub.redact import Scrubber
from builder.select.alternatives import Alternative
from builder.select.choice import session_digest
from builder.select.table import ConversationEntry, SampleEntry
from builder.sources.source import Source
from builder.sources.stream import STREAM_ERRORS, stream_problem
from builder.text import clean, map_strings
from builder.verify.verifier import TokenComparison, Verifier

# -- saves the events that a scan has read from a source -------------------------------------------

_UNWRITABLE = (OSError, pickle.PicklingError, AttributeError, RecursionError, TypeError)
"""Exceptions for a full disk, very deep events, and objects of a third-party reader."""


@dataclass(frozen=True, slots=True)
class _End:
    """The end of the events: the records of the source, and its siblings (`Source.siblings`)."""

    records: int
    siblings: dict[str, tuple[int, int] | None]


@dataclass(frozen=True, slots=True)
class Spool:
    """The events of one source in a file, which exists only once it is complete."""

    path: Path

    def record(self, format_name: str, source: Source, events: Iterator[Event]) -> Iterator[Event]:
        """Yields the events and saves them; if that fails, no file remains."""
        unfinished = self.path.with_suffix(f".{os.getpid()}")
        stream: BinaryIO | None = None
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            stream = unfinished.open("wb")
        is_complete = False
        try:
            is_saved = _dump(format_name, stream)
            for event in events:
                is_saved = is_saved and _dump(event, stream)
                yield event
            is_complete = is_saved and _dump(_End(source.records_read, source.siblings), stream)
        finally:
            if stream is not None:
                with contextlib.suppress(OSError):  # such as a full disk
                    stream.close()
                    if is_complete:
                        unfinished.replace(self.path)
                    else:
                        unfinished.unlink()

    def format_name(self) -> str | None:
        """Returns the name of the source's format; None if no scan has saved its events."""
        try:
            with self.path.open("rb") as stream:
                name = _load(stream)
        except OSError:
            return None
        assert isinstance(name, str), "it is written first"
        return name

    def replay(self, source: Source) -> Iterator[Event]:
        """Yields the saved events; then the source has the records and siblings that were read."""
        with self.path.open("rb") as stream:
            _load(stream)
            while not isinstance(event := _load(stream), _End | str):
                yield event
        assert isinstance(event, _End), "it is written last"
        source.count_records(event.records)
        source.siblings.update(event.siblings)

    def discard(self) -> None:
        """Removes the file."""
        self.path.unlink(missing_ok=True)


def _dump(value: Event | str | _End, stream: BinaryIO | None) -> bool:
    """Writes a value; returns whether that succeeded."""
    if stream is None:
        return False
    try:
        pickle.dump(value, stream, pickle.HIGHEST_PROTOCOL)
    except _UNWRITABLE:
        return False
    return True


def _load(stream: BinaryIO) -> Event | str | _End:
    loaded: Event | str | _End = pickle.load(stream)  # noqa: S301 - written by this run
    return loaded


# -- describes a sample in its line of meta/ -------------------------------------------------------

_OF_TEXT = frozenset({"text", "call", "system", "retokenised", "end"})
"""Causes of a difference to recorded tokens that a placeholder may have."""


@dataclass(frozen=True, slots=True)
class Converted:
    """The data that the samples of one conversation share; `license`: its terms."""

    conversation: Conversation
    normalised: Normalised
    unit: Unit
    license: str | None


def _sample_meta(converted: Converted, proof: VerifiedExample, writer: ResultWriter) -> SampleMeta:
    """Returns the sample's line in meta/, without preference pairs.

    `changes` are those of the whole conversation and of the sample. `context`, `assistant_turns`,
    `parity` and `spans` describe the sample's targets.
    """
    conversation, normalised = converted.conversation, converted.normalised
    scrubber, summary = writer.scrubber, writer.summary
    example, sample, verdict = proof.example, proof.sample, proof.verdict
    counted = Counter(normalised.changes) + Counter(example.changes)
    changes = dict(sorted(counted.items()))
    reasoning = normalised.reasoning
    if reasoning == "kept" and not any(turn.reasoning for turn in example.dialogue.turns):
        reasoning = "dropped" if changes.get("reasoning_dropped") else "none"
    context = lowest(proof.contexts)
    assert context is not None, "a sample has a target"
    outcome = conversation.outcome
    failed = normalised.failed_in(example.dialogue, example.origins)
    model = next((name for name in reversed(proof.models) if name), None)
    return SampleMeta(
        id=sample.id,
        source=scrubber.file_name(summary.name),
        format=summary.format,
        record=scrubber.text(conversation.record),
        conversation=scrubber.text(conversation.id),
        model=model and scrubber.text(model),
        license=converted.license,
        context=context,
        outcome=None if outcome is None else _scrubbed_outcome(outcome, scrubber),
        unit=converted.unit,
        tools_source=normalised.tools_source,
        reasoning=reasoning,
        changes=changes,
        pattern=pattern(example.dialogue, failed),
        schema_violations=sum(item.code == "schema" for item in verdict.warnings),
        calls=verdict.calls,
        assistant_turns=len(verdict.spans),
        parity=counts(verdict.parity),
        chars=len(verdict.text),
        tokens=verdict.tokens,
        trained_tokens=verdict.trained_tokens,
        tokens_by_part=verdict.tokens_by_part,
        render_sha256=verdict.render_sha256,
        spans=verdict.spans,
        agent_version=scrubber.text(conversation.version or ""),
        cut=normalised.cut or "",
        failed_turns=_failed_turns(example, normalised),
        untrained_turns=_untrained_turns(example, normalised),
        failed_calls=failed,
        token_counts=verdict.token_counts,
        **_recorded(verdict.recorded, counted, scrubber),
    )


def _failed_turns(example: TrainingExample, normalised: Normalised) -> dict[str, int]:
    """Returns {failure: trained turns with a call that failed so}."""
    failed: Counter[str] = Counter()
    for at in example.targets:
        failed.update({code for code in normalised.failures[example.origins[at]] if code})
    return dict(sorted(failed.items()))


def _untrained_turns(example: TrainingExample, normalised: Normalised) -> dict[str, int]:
    """Returns {reason: turns with weight 0}; a target of the dialogue is one of another sample."""
    answers = (turn for turn in example.dialogue.turns if turn.role == "assistant")
    codes = Counter(
        normalised.untrained[origin] or REPEAT
        for turn, origin in zip(answers, example.origins, strict=True)
        if not turn.trained
    )
    return dict(sorted(codes.items()))


def _recorded(
    comparison: TokenComparison | None, changes: Mapping[str, int], scrubber: Scrubber
) -> dict[str, Any]:
    """Returns the keys of meta/ about the tokens in the log.

    The recorded token of a text that was redacted is not shown, since it may be part of a secret.
    """
    if comparison is None:
        return {}
    if comparison.at is None:
        return {"tokens_recorded": EQUAL}
    cause, recorded = comparison.cause, scrubber.text(comparison.recorded)
    if changes.keys() & {"secret_redacted", "pseudonymised"} and cause in _OF_TEXT:
        cause, recorded = "redacted", ""
    difference = TokenDifference(
        cause=cause, sample=scrubber.text(comparison.sample), recorded=recorded
    )
    return {"tokens_recorded": f"differ at {comparison.at}", "tokens_difference": difference}


def _scrubbed_outcome(outcome: Mapping[str, Json], scrubber: Scrubber) -> Mapping[str, Json] | None:
    """Returns the outcome as logged, without secrets, limited in depth and length."""

    def cleaned(text: str) -> str:
        return scrubber.text(clean(text, Counter()))

    try:
        scrubbed = map_strings(dict(outcome), cleaned)
    except KeyError:  # two keys contain the same secret, or are two spellings of a name
        return None
    return scrubbed if isinstance(scrubbed, dict) else None


_DEFAULT_LENGTHS = LengthOptions()


@dataclass(frozen=True, slots=True)
class Task:
    """A source, or a chunk of one, with the options of its input.

    `mapping` describes a log of the user's own, in place of a `format`. `origin` identifies the
    source in the run; its chunks share it. `weight` is the share of its conversations to select.
    `joined` is what other sources of the run say about its answers, known in a second pass.
    """

    source: Source
    options: NormalizeOptions
    origin: str
    format: str = "auto"
    mapping: MappingSpec | None = None
    license: str | None = None
    lengths: LengthOptions = _DEFAULT_LENGTHS
    weight: float = 1.0
    joined: JoinedAnswers | None = None


def sole_reader(task: Task) -> Reader | None:
    """Returns the reader of a task; None unless exactly one reader claims its source."""
    if task.mapping is not None:
        return mapped_reader(task.mapping)
    names = _reader_names(task)
    return readers()[names[0]] if len(names) == 1 else None


def _reader_names(task: Task) -> list[str]:
    return [task.format] if task.format != "auto" else list(recognise(task.source))


def process_source(
    task: Task,
    verifier: Verifier,
    writer: ResultWriter,
    spool: Spool | None = None,
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
    is_later_chunk = source.window is not None and source.window.start > 0
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
    names = _reader_names(task)
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
    meta = _sample_meta(converted, proof, writer)
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
