"""Inspects a log: its format, its contents, and one conversation as a build converts it."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from builder.brief import brief
from builder.build.plan import normalize_options
from builder.build.prove import prepare, prove
from builder.build.shared import ToolSharing
from builder.capture.commands import agent_command, definitions_command, logs_command
from builder.config.load import load_mapping
from builder.config.sections import Config
from builder.conversation import Conversation, Ignored, Json, Used
from builder.ledger import call_keys
from builder.normalize.normalise import normalise
from builder.normalize.options import NormalizeOptions
from builder.normalize.remedies import remedy
from builder.problem import OptionError, Problem, UsageError, nearest
from builder.qwen3.render import counts
from builder.qwen3.tokenizer import target_for
from builder.readers import Reader, may_be_mapped, read_events, readers, recognise, unrecognised
from builder.readers.discovery import find_sources
from builder.readers.mapping.read import check_mapping, mapped_reader
from builder.readers.mapping.spec import MappingSpec
from builder.readers.mapping.suggest import examined_keys, suggest
from builder.scrub.redact import Scrubber, derive_key
from builder.sources.listing import local_copy
from builder.sources.source import Source, file_version
from builder.text import counted, first_names
from builder.verify.verifier import Verdict, Verifier

# -- chooses the file of a folder that `builder inspect` shows -------------------------------------

_USABLE = 2
"""The worth of a source whose first conversation can be shown as a sample."""
_FILES = 2000
"""Files of a folder that are examined: more would take minutes."""
SHARED = 64 << 20
"""Bytes of the files of a folder that are read to infer tools from all of them, as a build does."""
_FIRST = 20
"""Conversations of each file of a folder that are tried."""


@dataclass(frozen=True, slots=True)
class _ChosenSource:
    """A local copy of the source to show.

    index    the number of the conversation to show in it; None: the first usable one
    formats  of a folder: {reader: its sources}; None: it is a file
    unknown  of a folder: the names of the files that no reader recognises
    """

    source: Source
    index: int | None
    formats: Mapping[str, Sequence[Source]] | None = None
    unknown: Sequence[str] = ()

    @property
    def files(self) -> dict[str, int] | None:
        """The number of files of each reader; None if it is a file."""
        if self.formats is None:
            return None
        return {name: len(self.formats[name]) for name in sorted(self.formats)}

    def shares(self, reader: str) -> bool:
        """Returns whether all sources of the reader are small enough to infer tools from them."""
        return sum(map(_size, (self.formats or {}).get(reader, ()))) <= SHARED

    def sharing(self, reader: str) -> Sequence[Source]:
        """Returns the sources to infer tools from."""
        sources = (self.formats or {}).get(reader, ())
        return sources if sources and self.shares(reader) else (self.source,)


@contextmanager
def chosen(
    path: str, options: NormalizeOptions, index: int | None = None, *, is_mapped: bool = False
) -> Iterator[_ChosenSource]:
    """Yields the source of a path to show; `index` is the number of a conversation in the path.

    For a folder and no number, the source is the first recognised one with a conversation that is
    not rejected among its first, else the first with a conversation, else the first one. For a
    single file there are no counts, and it may be unrecognised. `is_mapped`: the first file that
    no reader recognises, for a mapping, if there is one. Raises UsageError if there is nothing to
    show.
    """
    sources = list(islice(find_sources(path), _FILES))
    if len(sources) < 2:
        only = sources[0] if sources else None
        if not isinstance(only, Source):
            raise UsageError(f"{path}: {only.detail if only else 'no file'}")
        with local_copy(only) as copy:
            yield _ChosenSource(copy, index)
        return
    first: Source | None = None
    most = passed = before = 0
    formats: defaultdict[str, list[Source]] = defaultdict(list)
    unknown: list[str] = []
    unread: Source | None = None
    for source in sources:
        if isinstance(source, Problem):
            continue
        with local_copy(source) as copy:
            claims = recognise(copy)
            if len(claims) != 1:
                unknown.append(copy.name)
                unread = unread or (source if may_be_mapped(copy) else None)
                continue
            (name,) = claims
            formats[name].append(source)
            if index is not None:
                if first is None:
                    before, passed = passed, passed + _count(copy, readers()[name])
                    first = source if index < passed else None
                continue
            if most < _USABLE and (one := _worth(copy, readers()[name], options)) > most:
                most, first = one, source
        first = first or source
    if is_mapped and unread is not None:
        with local_copy(unread) as copy:
            yield _ChosenSource(copy, index)
        return
    if first is None and formats:
        raise _no_such(index, passed)
    if first is None:
        how = "" if unread is None else f"; `builder inspect {shlex.quote(path)} --suggest-mapping`"
        how += " proposes a mapping for the first (docs/mapping.md)" if how else ""
        names = f" ({first_names(unknown)})" if unknown else ""
        files = counted(len(sources), "file")
        raise UsageError(f"{path}: no reader recognises any of its {files}{names}{how}")
    with local_copy(first) as copy:
        own = None if index is None else index - before
        yield _ChosenSource(copy, own, formats, unknown)


def _count(source: Source, reader: Reader) -> int:
    return sum(isinstance(event, Conversation) for event in read_events(reader, source))


def _no_such(index: int | None, conversations: int) -> OptionError:
    """Returns the error for a number of a conversation that does not exist."""
    is_are = "is" if conversations == 1 else "are"
    there = f"there {is_are} {counted(conversations, 'conversation')}, numbered from 0"
    return OptionError("index", f" {index}: {there}")


def _size(source: Source) -> int:
    paths = (item.path for item in source.members or (source,))
    return sum(version[0] for path in paths if path and (version := file_version(path)))


def _worth(source: Source, reader: Reader, options: NormalizeOptions) -> int:
    """Returns _USABLE if one of the first conversations can be normalised, 1 if not, 0 without."""
    events = read_events(reader, source)
    worth = 0
    for event in islice((event for event in events if isinstance(event, Conversation)), _FIRST):
        if normalise(event, options).dialogue is not None:
            return _USABLE
        worth = 1
    return worth


_INFERRED = ("inferred", "mixed")
"""Sources of tools of which some are not in the log."""
_CANDIDATES = 1000
"""Conversations of a source that are tried for one that can be shown as a sample."""


@dataclass(frozen=True, slots=True)
class InspectedConversation:
    """A conversation as a build converts it.

    index    its number in the source, from 0
    id, record, model   as in the log
    changes, tools_source  those of `Normalised`
    samples  the number of its verified samples
    problem  why it, or one of its samples, is rejected; `remedy` is the option that keeps it
    definitions_command  the command that captures the tools; None: they are known, or it is not
    verdict  that on its last sample, which contains the text of those before it; None: no sample
    shares   whether inferred tools are those that a build infers; else they are those of this file
    """

    index: int
    id: str
    record: str
    model: str | None
    changes: Mapping[str, int]
    tools_source: str
    samples: int
    problem: Problem | None = None
    remedy: str | None = None
    definitions_command: str | None = None
    verdict: Verdict | None = None
    shares: bool = True

    def __repr__(self) -> str:
        """Returns the conversation, its samples or its problem in one line."""
        code = self.problem and self.problem.code
        return brief(self, index=self.index, id=self.id, samples=self.samples, problem=code)

    def to_json(self) -> dict[str, Json]:
        """Returns the conversation as `builder inspect --json` prints it."""
        names = ("index", "id", "record", "model", "changes", "tools_source", "samples")
        result: dict[str, Json] = {name: getattr(self, name) for name in names}
        result["rejected"] = None
        if self.problem is not None:
            result["rejected"] = {
                "code": self.problem.code,
                "message": self.problem.detail,
                "remedy": self.remedy,
            }
        if self.verdict is not None:
            result |= {
                "text": self.verdict.text,
                "spans": [list(span) for span in self.verdict.spans],
                "parity": {**counts(self.verdict.parity)},
                "tokens": self.verdict.tokens,
            }
        if self.tools_source in _INFERRED:
            result |= {"capture": self.definitions_command, "tools_of_all_files": self.shares}
        return result


@dataclass(slots=True)
class Inspection:
    """The format and the contents of a source, and one of its conversations.

    source   its name; `reason` says why it is of this format
    calls    the number of calls in its conversations, each counted once, as a build does
    ignored  the records that are ignored by design, by code
    formats  of a folder: the number of files of each format; None: it is a file
    unknown  of a folder: the names of the files that no reader recognises
    conversation  the one that was asked for, else the first usable one, else the first one;
                  None: the source has none
    skipped  the conversations that were tried and cannot be used, by code
    """

    source: str
    format: str
    reason: str
    records: int = 0
    conversations: int = 0
    calls: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    formats: Mapping[str, int] | None = None
    unknown: Sequence[str] = ()
    conversation: InspectedConversation | None = None
    skipped: Counter[str] = field(default_factory=Counter)

    def __repr__(self) -> str:
        """Returns the source, its format and its counts in one line."""
        counts = {"conversations": self.conversations, "problems": len(self.problems)}
        return brief(self, source=self.source, format=self.format, **counts)

    def to_json(self) -> dict[str, Json]:
        """Returns the inspection as `builder inspect --json` prints it."""
        names = ("source", "format", "reason", "records", "conversations", "calls")
        result: dict[str, Json] = {name: getattr(self, name) for name in names}
        result["ignored"] = dict(sorted(self.ignored.items()))
        result["problems"] = [
            {"code": item.code, "where": item.where, "message": item.detail}
            for item in self.problems
        ]
        if self.formats is not None:
            result |= {"files": {"formats": {**self.formats}, "unknown": len(self.unknown)}}
        if self.conversation is not None:
            result |= {"conversation": self.conversation.to_json(), "skipped": {**self.skipped}}
        return result


class SuggestedMapping(NamedTuple):
    """A proposed mapping for a source: the YAML of a mapping file."""

    source: str
    text: str

    def __repr__(self) -> str:
        """Returns the source, the lines and the open decisions in one line."""
        lines, questions = self.text.count("\n"), self.text.count("# Decide")
        return brief(self, f"{lines} lines", f"{questions} to decide", source=self.source)


def inspect_log(
    path: str,
    config: Config,
    tokenizer: str,
    *,
    index: int | None = None,
    format: str | None = None,  # noqa: A002 - the option's name
    mapping: MappingSpec | str | None = None,
) -> Inspection:
    """Inspects a file, or the first usable one of a folder.

    `index` is the number of the conversation to show (None: the first usable one), in a folder
    that among the conversations of all its files. `format` names a reader, `mapping` is the mapping
    of the log, or its file. Raises UsageError if no reader recognises anything, or if there is no
    such conversation, reader or mapping.
    """
    target = target_for(tokenizer)
    options = normalize_options(config, target)
    with chosen(path, options, index, is_mapped=mapping is not None) as choice:
        source = choice.source
        if mapping is not None:
            name = mapping if isinstance(mapping, str) else "mapping"
            spec = load_mapping(Path(mapping)) if isinstance(mapping, str) else mapping
            check_mapping(name, spec, [source])
            reader = mapped_reader(spec)
            reason = f"mapped by {name}" if isinstance(mapping, str) else "mapped"
        else:
            name, reason = _format(source, format, path)
            reader = readers()[name]
        inspected = Inspection(
            source.name, reader.name, reason, formats=choice.files, unknown=choice.unknown
        )
        before = source.records_read  # in a folder, a conversation was looked for in it
        key = derive_key([source]) if config.audit.scrub.needs_key else b""
        sharing = ToolSharing(options, reader, source, choice.sharing(reader.name))
        shares = choice.shares(reader.name)
        converter = _Converter(path, config, Verifier(target), key, sharing, shares=shares)
        _read(source, reader, choice.index, inspected, converter, named=format is not None)
        inspected.records = source.records_read - before
    if inspected.conversation is None and inspected.conversations:
        raise _no_such(index, inspected.conversations)
    return inspected


def suggest_mapping(path: str, config: Config) -> SuggestedMapping:
    """Proposes a mapping for the source that `inspect_log` shows.

    Raises UsageError if there is none, if nothing in it is like a conversation, or if a reader
    reads it.
    """
    options = config.normalize
    with chosen(path, options, is_mapped=True) as choice:
        source = choice.source
        claims = recognise(source)
        for name in claims if len(claims) == 1 else ():
            if _worth(source, readers()[name], options) == _USABLE:
                why = f"the reader {name!r} reads it, so it needs no mapping"
                raise UsageError(f"{source.name}: {why}")
        if not claims and not may_be_mapped(source):
            raise UsageError(f"{source.name}: {_why_unread(source, path)}")
        text = suggest(source)
        if text is None:
            how = "docs/mapping.md shows how to write a mapping"
            keys = ", ".join(examined_keys(source))
            among = f" in its keys ({keys})" if keys else ""
            raise UsageError(f"{source.name}: no conversation found{among}: {how}")
        return SuggestedMapping(source.name, text)


def _why_unread(source: Source, path: str) -> str:
    problem = source.peek.problem
    if source.peek.kind == "empty":
        broken = next(source.lines(), None)
        if not isinstance(broken, Problem):
            return "is empty"
        problem = broken
    return unrecognised(source, path) if problem is None else f"{problem.code}: {problem.detail}"


def _format(source: Source, forced: str | None, path: str) -> tuple[str, str]:
    if forced is not None:
        if forced not in readers():
            raise UsageError(f"format {forced!r}: no such reader{nearest(forced, readers())}")
        return forced, "named by the caller"
    claims = recognise(source)
    if len(claims) != 1:
        if not claims:
            raise UsageError(f"{source.name}: {_why_unread(source, path)}")
        raise UsageError(
            f"{source.name}: claimed by {', '.join(claims)}; name one with {{format}}",
            format="NAME",
        )
    return next(iter(claims.items()))


def _read(
    source: Source,
    reader: Reader,
    index: int | None,
    inspected: Inspection,
    converter: _Converter,
    *,
    named: bool,
) -> None:
    """Counts the contents of a source, and converts the conversation to show."""
    is_found = False
    calls: set[bytes] = set()
    for event in read_events(reader, source, named=named):
        match event:
            case Conversation():
                number = inspected.conversations
                if number == index or (index is None and not is_found and number < _CANDIDATES):
                    shown = converter.converted(event, number)
                    is_found = bool(shown.samples) or number == index
                    if is_found or inspected.conversation is None:
                        inspected.conversation = shown
                    if not is_found and shown.problem is not None:
                        inspected.skipped[shown.problem.code] += 1
                inspected.conversations += 1
                calls.update(call_keys(event, format=reader.name, source=source.name))
            case Ignored(code=code, records=records):
                inspected.ignored[code] += records
            case Problem():
                inspected.problems.append(event)
            case Used():
                pass
    inspected.calls = len(calls)


@dataclass(frozen=True, slots=True)
class _Converter:
    """Converts conversations as a build does.

    `path` is that of the logs. `key` is that of the build's replacements for personal data.
    `shares`: see `InspectedConversation`.
    """

    path: str

    config: Config
    verifier: Verifier
    key: bytes
    sharing: ToolSharing
    shares: bool

    def converted(self, conversation: Conversation, index: int) -> InspectedConversation:
        """Returns the conversation, which has this number in its source."""
        shared = self.sharing.of(conversation)
        options = replace(self.sharing.options, shared_tools=shared)
        target, lengths = self.verifier.target, self.config.limits
        scrubber = Scrubber(self.config.audit.scrub, self.key, target.added_tokens)
        normalised, _ = prepare(conversation, options, lengths, target, scrubber)
        proofs = []
        if normalised.dialogue is not None:
            proofs = [*prove(normalised, options, lengths, self.verifier)]
        problems = [normalised.problem, *(proof.problem for proof in proofs)]
        problem = next((item for item in problems if item is not None), None)
        return InspectedConversation(
            index,
            conversation.id,
            conversation.record,
            conversation.model or next((m.model for m in conversation.messages if m.model), None),
            dict(normalised.changes),
            normalised.tools_source,
            samples=sum(proof.problem is None for proof in proofs),
            problem=problem,
            remedy=None if problem is None else remedy(conversation, problem.code, options),
            definitions_command=self._command(conversation)
            if normalised.tools_source in _INFERRED
            else None,
            verdict=proofs[-1].verdict if proofs else None,
            shares=self.shares,
        )

    def _command(self, conversation: Conversation) -> str | None:
        agent = self.sharing.reader.name
        if conversation.version and agent_command(agent):
            return logs_command([self.path])
        return definitions_command(agent, conversation.model)
