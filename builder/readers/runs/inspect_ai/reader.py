"""Inspect AI's evaluation logs: `.eval` archives and `.json` files.

A record is a sample; of an archive, each member. Source: inspect-ai.md "Inspect". The model events
are the truth: the last request of a chain that only grew, with its answer, is a conversation; a
request that does not extend one (compaction, a sub-agent, a grader) begins another. Tool
definitions are logged there alone. A sample's own `messages` lend what followed its last answer,
and stand alone where events were not logged.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from builder.conversation import Conversation, Event, Ignored, Json, Message, ToolCall
from builder.jsonio import MAX_DEPTH, JsonFault, depth, loads
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.runs.inspect_ai.messages import Texts, digests, read_message
from builder.readers.toolkit.call_keys import with_session_keys
from builder.readers.toolkit.chat_messages import unknown_parts
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none
from builder.readers.toolkit.places import unique_name
from builder.sources.archive import first_name, member, members, sizes
from builder.sources.source import STREAM_ERRORS, Record, Source, stream_problem

NAME = "inspect-ai"

_START, _HEADER = "_journal/start.json", "header.json"
_SUBMIT = "submit"
"""The tool by which Inspect's agents end their run."""
MAX_REFERENCES = 100_000
"""Messages that the references of one model event may name."""


def recognise(source: Source) -> str | None:
    """Claim archives that begin as Inspect writes them, and objects with version, eval, status."""
    if source.peek.kind == "zip":
        name = first_name(source)
        known = name in (_START, _HEADER) or (name.startswith("samples/") and "_epoch_" in name)
        return f"an archive that begins with {name}" if known else None
    for item in source.peek.objects[:1]:
        if {"version", "eval", "status"} <= item.keys() and isinstance(item["eval"], dict):
            return "an object with version, status and eval"
    problem = source.peek.problem  # scores may be NaN, which is no JSON
    if problem is not None and problem.code == "number":
        keys = (b'"version"', b'"status"', b'"eval"')
        if all(key in source.head for key in keys):
            return "version, status and eval, with numbers that are no JSON"
    return None


@dataclass(frozen=True, slots=True)
class _Log:
    """What a log says of all its samples."""

    scope: str
    model: str | None = None


def item_sizes(source: Source) -> Sequence[int]:
    """The members of an archive: a sample is one, and is read with the log's beginning alone."""
    return sizes(source) if source.peek.kind == "zip" else ()


def read(source: Source) -> Iterator[Event]:
    """The conversations of each sample."""
    names: Counter[str] = Counter()
    if source.peek.kind == "zip":
        yield from _archive(source, names)
        return
    value = _document(source)
    if isinstance(value, Problem):
        source.count_records()
        yield value
        return
    log = _log(as_dict(as_dict(value).get("eval")), source.name)
    samples = as_list(as_dict(value).get("samples"))
    if not samples:
        source.count_records()
        yield Ignored("no_samples")
    for record in source.counted(samples, "samples[{}]"):
        yield from _sample(record, log, names)


def _archive(source: Source, names: Counter[str]) -> Iterator[Event]:
    # The header comes last, and not at all if the run was interrupted.
    start = member(source, _START)
    about = _decode(start, _START) if isinstance(start, bytes) else None
    told = None if isinstance(about, Problem) else about
    log = _log(as_dict(as_dict(told).get("eval")), source.name)
    for name, data in members(source):
        value = data if isinstance(data, Problem) else _decode(data, name)
        if isinstance(value, Problem):
            yield value
        elif name.startswith("samples/"):
            yield from _sample(Record(name, value), log, names)
        else:
            yield Ignored("no_sample")


def _log(evaluation: dict[str, Json], scope: str) -> _Log:
    run = as_str(evaluation.get("run_id"))
    return _Log(
        f"{run} {evaluation.get('task_id')}" if run else scope,
        model=name_or_none(evaluation.get("model")),
    )


def _document(source: Source) -> Json | Problem:
    value = source.document()
    if not isinstance(value, Problem) or value.code != "number":
        return value
    try:
        data = source.whole()
    except STREAM_ERRORS as error:
        return stream_problem(error, "file")
    return _decode(data, "file")


def _decode(data: bytes, where: str) -> Json | Problem:
    """The JSON value; with NaN and Infinity in it, since Inspect writes them as scores."""
    try:
        return loads(data)
    except JsonFault as fault:
        if fault.code != "number":
            return fault.at(where)
    try:
        value: Json = json.loads(data)
    except (ValueError, RecursionError) as error:
        return Problem("number", where, str(error)[:200])
    if depth(value) > MAX_DEPTH:
        return Problem("too_deep", where, f"nested deeper than {MAX_DEPTH}")
    return value


# -- one sample ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Chain:
    """A conversation so far: its messages, and the tools of the requests."""

    messages: list[Message]
    model: str | None
    tools: dict[str, Json] = field(default_factory=dict)
    graded: bool = False


def _sample(record: Record, log: _Log, names: Counter[str]) -> Iterator[Event]:
    sample = record.value
    if not isinstance(sample, dict):
        yield Problem("not_object", record.where, f"a sample is a {type(sample).__name__}")
        return
    transcript = as_dict(sample.get("transcript"))  # 2024: events and texts lie one deeper
    texts = Texts({**as_dict(transcript.get("content")), **as_dict(sample.get("attachments"))})
    events = [
        as_dict(e) for e in as_list(sample.get("events")) or as_list(transcript.get("events"))
    ]
    chains = _Chains(texts)
    for event, graded in _with_scope(events):
        if event.get("event") == "model":
            chains.take(event, _pool(sample), graded=graded)
    chains.finish(
        [m for item in as_list(sample.get("messages")) for m in read_message(item, texts)]
    )
    place = f"{sample.get('id')} epoch {sample.get('epoch')}"[:200]
    found = [chain for chain in chains.chains if chain.messages]
    if not found:
        yield Problem("no_messages", record.where, "the sample holds no messages")
    for number, chain in enumerate(found):
        problems = unknown_parts(texts.unknown, record.where)
        if chain.graded:
            detail = "a grader's request on the sample"
            problems = (Problem("grader", record.where, detail, records=0), *problems)
        # Without ids, calls are known by their number in the one conversation.
        scope = f"{log.scope} {place}" + (
            "" if any(m.turn for m in chain.messages) else f" {number}"
        )
        yield Conversation(
            id=unique_name(place if number == 0 else f"{place} part {number + 1}", names),
            record=record.where,
            messages=tuple(with_session_keys(NAME, chain.messages, scope)),
            tools=tuple(chain.tools.values()) if chains.events else None,
            model=chain.model or log.model,
            records=1 if number == 0 else 0,
            problems=problems,
            complete=_submits(chain.messages),
        )


def _pool(sample: dict[str, Json]) -> list[Json]:
    """The messages that model events name by their positions; the older name is the second."""
    data = as_dict(sample.get("events_data"))
    return as_list(data.get("messages")) or as_list(sample.get("message_pool"))


def _with_scope(events: list[dict[str, Json]]) -> Iterator[tuple[dict[str, Json], bool]]:
    """Each event, and whether it happened while a scorer ran (spans, or the older steps)."""
    inside: dict[str, bool] = {}
    steps: list[bool] = []
    for event in events:
        grading = event.get("type") in ("scorer", "scorers")
        match event.get("event"):
            case "span_begin":
                above = inside.get(as_str(event.get("parent_id")), False)
                inside[as_str(event.get("id"))] = grading or above
            case "step" if event.get("action") == "begin":
                steps.append(grading or bool(steps and steps[-1]))
            case "step" if steps:
                steps.pop()
        span = inside.get(as_str(event.get("span_id")), False)
        yield event, span or bool(steps and steps[-1])


class _Chains:
    """The conversations of a sample, as its model events extend them."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.chains: list[_Chain] = []
        self.events = 0
        self._ends: dict[bytes, _Chain] = {}
        self._seen: set[bytes] = set()
        self._pooled: dict[int, list[Message]] = {}

    def take(self, event: dict[str, Json], pool: list[Json], *, graded: bool) -> None:
        """Add a model event: extend the chain that its request repeats, or begin one."""
        output = as_dict(event.get("output"))
        choices = as_list(output.get("choices"))
        if not choices:
            return  # an error; the request is repeated
        self.events += 1
        choice = as_dict(choices[0])
        messages = self._request(event, pool)
        before = len(messages)
        messages += read_message(
            choice.get("message"), self.texts, as_str(choice.get("stop_reason"))
        )
        marks = digests(messages)
        end = marks[-1]
        if end in self._seen:
            return
        asked = reversed(marks[: before + 1])
        chain = next((self._ends[mark] for mark in asked if mark in self._ends), None)
        if chain is None or chain.graded != graded:
            chain = _Chain([], None, graded=graded)
            self.chains.append(chain)
        else:
            self._ends = {mark: one for mark, one in self._ends.items() if one is not chain}
        chain.messages = messages
        chain.model = name_or_none(output.get("model")) or name_or_none(event.get("model"))
        for tool in as_list(self.texts.value(event.get("tools"))):
            chain.tools.setdefault(as_str(as_dict(tool).get("name")), tool)
        self._ends[end] = chain
        self._seen.update(marks)

    def _request(self, event: dict[str, Json], pool: list[Json]) -> list[Message]:
        items = as_list(event.get("input"))
        messages = [message for item in items for message in read_message(item, self.texts)]
        for reference in as_list(event.get("input_refs")):
            ends = [end for end in as_list(reference) if isinstance(end, int)]
            start, stop = ends if len(ends) == 2 else (0, 0)
            for at in range(max(start, 0), min(stop, len(pool))):
                if len(messages) >= MAX_REFERENCES:
                    self.texts.unknown.append("references without end")
                    return messages
                if at not in self._pooled:
                    self._pooled[at] = read_message(pool[at], self.texts)
                messages += self._pooled[at]
        return messages

    def finish(self, final: list[Message]) -> None:
        """Add the sample's last messages: the end of a chain, or all there is."""
        marks = digests(final)
        chain = next((self._ends[mark] for mark in reversed(marks) if mark in self._ends), None)
        if chain is not None:
            chain.messages = [*chain.messages, *final[marks.index(digests(chain.messages)[-1]) :]]
        elif not self.chains and final:
            self.chains.append(_Chain(final, None))


def _submits(messages: list[Message]) -> bool:
    """Whether the last turn hands in the answer by a call."""
    answers = [message for message in messages if message.role == "assistant"]
    return bool(answers) and any(
        isinstance(part, ToolCall) and part.name == _SUBMIT for part in answers[-1].parts
    )


READER = Reader(
    name=NAME,
    summary="Inspect AI logs: .eval archives (deflate, zstd) and .json with eval, status, samples",
    recognise=recognise,
    read=read,
    item_sizes=item_sizes,
)
