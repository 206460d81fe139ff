"""Inspect AI's evaluation logs: `.eval` archives and `.json` files.

A record is a sample, or any member of an archive. Conversations are built from the model events:
the last request of a growing chain, with its answer, is a conversation; a request that does not
extend one (compaction, a sub-agent, a grader) begins another. Only the events contain tool
definitions. A sample's own `messages` supply the messages after its last answer, and all messages
if events were not logged. Source: docs/formats/inspect-ai.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from builder.conversation import Context, Conversation, Event, Ignored, Json, Message
from builder.jsonio import JsonFault, loads_leniently
from builder.problem import Problem
from builder.readers import Reader
from builder.readers.runs.inspect_ai.chains import Chains
from builder.readers.runs.inspect_ai.messages import Texts, read_message
from builder.readers.toolkit.chat_messages import unreadable_messages
from builder.readers.toolkit.comparison import calls, with_session_keys
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_or_none
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import logged_outcome, not_object
from builder.sources.source import Record, Source
from builder.sources.zip_file import first_name, member, members, sizes

NAME = "inspect-ai"

_START, _HEADER = "_journal/start.json", "header.json"
_SUBMIT = "submit"
"""The tool with which Inspect's agents end their run."""


def recognise(source: Source) -> str | None:
    """Claims archives that begin with Inspect's members, and objects with version, eval, status."""
    if source.peek.kind == "zip":
        name = first_name(source)
        known = name in (_START, _HEADER) or (name.startswith("samples/") and "_epoch_" in name)
        return f"an archive that begins with {name}" if known else None
    for item in source.peek.objects[:1]:
        if {"version", "eval", "status"} <= item.keys() and isinstance(item["eval"], dict):
            return "an object with version, status and eval"
    return None


@dataclass(frozen=True, slots=True)
class _Log:
    """Properties that all samples of a log share."""

    scope: str
    model: str | None = None
    task: str = ""


def item_sizes(source: Source) -> Sequence[int]:
    """Returns the sizes of an archive's members, which can be read separately."""
    return sizes(source) if source.peek.kind == "zip" else ()


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of each sample."""
    names: Counter[str] = Counter()
    if source.peek.kind == "zip":
        yield from _archive(source, names)
        return
    value = source.document()
    if isinstance(value, Problem):
        source.count_records()
        yield value
        return
    log = _log(as_dict(value, "eval"), source.name)
    samples = as_list(value, "samples")
    if not samples:
        source.count_records()
        yield Ignored("no_samples")
    for record in source.counted(samples, "samples[{}]"):
        yield from _sample(record, log, names)


def _archive(source: Source, names: Counter[str]) -> Iterator[Event]:
    # The header is the last member, and missing if the run was interrupted.
    start = member(source, _START)
    opening = _decode(source, start, _START) if isinstance(start, bytes) else None
    fields = {} if isinstance(opening, Problem) else as_dict(opening)
    log = _log(as_dict(fields.get("eval")), source.name)
    for name, data in members(source):
        value = data if isinstance(data, Problem) else _decode(source, data, name)
        if isinstance(value, Problem):
            yield value
        elif name.startswith("samples/"):
            yield from _sample(source.seen(name, value), log, names)
        else:
            yield Ignored("no_sample")


def _log(evaluation: dict[str, Json], scope: str) -> _Log:
    run = as_str(evaluation.get("run_id"))
    return _Log(
        f"{run} {evaluation.get('task_id')}" if run else scope,
        model=name_or_none(evaluation.get("model")),
        task=as_str(evaluation.get("task")),
    )


def _decode(source: Source, data: bytes, where: str) -> Json | Problem:
    """Returns the JSON value of a member; Inspect writes NaN and Infinity as scores."""
    try:
        value, exact = loads_leniently(data)
    except JsonFault as fault:
        return fault.at(where)
    source.is_exact = source.is_exact and exact
    return value


# -- one sample ----------------------------------------------------------------------------------


def _sample(record: Record, log: _Log, names: Counter[str]) -> Iterator[Event]:
    sample = record.value
    if not isinstance(sample, dict):
        yield not_object(record, "a sample is ")
        return
    transcript = as_dict(sample.get("transcript"))  # 2024: contains events and texts
    texts = Texts({**as_dict(transcript.get("content")), **as_dict(sample.get("attachments"))})
    logged = as_list(sample.get("events")) or as_list(transcript.get("events"))
    events = [as_dict(event) for event in logged]
    chains = Chains(texts, sample)
    for event, graded in _with_scope(events):
        if event.get("event") == "model":
            chains.take(event, graded=graded)
    chains.finish(
        [m for item in as_list(sample.get("messages")) for m in read_message(item, texts)]
    )
    outcome = _outcome(sample, log.task, texts)
    place = f"{sample.get('id')} epoch {sample.get('epoch')}"[:200]
    used = [chain for chain in chains.chains if chain.messages]
    if not used:
        yield Problem("no_messages", record.where, "the sample contains no messages")
    for number, chain in enumerate(used):
        problems = unreadable_messages(texts.lost, record.where)
        if chain.graded:
            detail = "a grader's request on the sample"
            problems = (Problem("grader", record.where, detail, records=0), *problems)
        scope = f"{log.scope} {place}"
        if not any(message.turn for message in chain.messages):
            scope += f" {number}"  # without ids, call keys are unique only in one conversation
        yield Conversation(
            id=unique_name(place if number == 0 else f"{place} part {number + 1}", names),
            record=record.where,
            messages=tuple(with_session_keys(NAME, chains.marked(chain), scope)),
            tools=tuple(chain.tools.values()) if chains.events else None,
            model=chain.model or log.model,
            records=1 if number == 0 else 0,
            problems=problems,
            changes=chain.changes,
            complete=_submits(chain.messages),
            context=Context("rendered") if chains.events else None,
            outcome=outcome,
        )


def _outcome(sample: dict[str, Json], task: str, texts: Texts) -> Mapping[str, Json] | None:
    """Returns the outcome as logged; None if there is none.

    score, feedback  objects with each scorer's value and explanation, by its name
    error            message of the error
    exit_status      type of the limit that ended the sample
    benchmark        the task
    """
    scores = as_dict(sample.get("scores"))
    if not scores and "score" in sample:  # before version 2: a single score without a name
        scores = {"score": sample["score"]}
    feedback = {name: texts.text(as_dict(one).get("explanation")) for name, one in scores.items()}
    values = {name: as_dict(one).get("value") for name, one in scores.items()}
    return logged_outcome(
        benchmark=task,
        error=texts.text(as_dict(sample.get("error")).get("message")),
        exit_status=as_str(sample, "limit", "type"),
        feedback={name: text for name, text in feedback.items() if text},
        score={name: value for name, value in values.items() if value is not None},
    )


def _with_scope(events: list[dict[str, Json]]) -> Iterator[tuple[dict[str, Json], bool]]:
    """Yields each event, and whether it happened while a scorer ran (spans, or the older steps)."""
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


def _submits(messages: list[Message]) -> bool:
    """Returns whether the last turn submits the answer with a call."""
    answers = [message for message in messages if message.role == "assistant"]
    return bool(answers) and any(call.name == _SUBMIT for call in calls(answers[-1]))


READER = Reader(
    name=NAME,
    summary="Inspect AI logs: .eval archives (deflate, zstd) and .json with eval, status, samples",
    evidence=("source", "files"),
    recognise=recognise,
    read=read,
    item_sizes=item_sizes,
)
