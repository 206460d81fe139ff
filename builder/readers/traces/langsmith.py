"""Reads exported LangSmith runs, with child runs nested in them or as separate records.

Only runs of type llm log what the model saw (docs/formats/langsmith.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import Event, Ignored, Json
from builder.problem import Problem
from builder.readers import declared
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, name_of, unknown_code
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import collected, objects
from builder.readers.traces.any_vendor import (
    definitions,
    read_outcome,
    read_request,
    tools_of,
    with_system,
)
from builder.readers.traces.parts import PartNotes, decoded, is_empty, is_message
from builder.readers.traces.steps import ModelCall, Step, TraceBuffer
from builder.sources.source import Record, Source

_TYPES = frozenset(
    {"llm", "chain", "tool", "retriever", "prompt", "parser", "embedding", "chat_model"}
)
_CALLS = ("llm", "chat_model")
"""Types of runs that call a model; LangChain's own tracers use the second."""
_PAGES = ("runs", "data")
_NEW, _ENDED = "post", "patch"
"""Lists in the body of a batch that an SDK sends."""
_SESSIONS = ("thread_id", "session_id", "conversation_id")
_LATE = "the end of a run that began in another body"
_PEEKED = 20


def _recognise(source: Source) -> str | None:
    """Claims runs, and objects with lists of runs."""
    for value in source.peek.objects[:_PEEKED]:
        if _is_run(value):
            return "runs with run_type"
        if _page(value) is not None:
            return "lists of runs with run_type"
    return None


def read(source: Source) -> Iterator[Event]:
    """Yields the conversations of the source's traces and the outcome of its other records."""
    return collected(source.records(), Runs(source))


def _is_run(value: Json) -> bool:
    run = as_dict(value)
    named = any(isinstance(run.get(key), str) for key in ("id", "run_id", "dotted_order"))
    return (named or "inputs" in run) and as_str(run.get("run_type")) in _TYPES


def _page(value: dict[str, Json]) -> list[Json] | None:
    for key in (*_PAGES, _NEW):
        listed = value.get(key)
        if isinstance(listed, list) and any(map(_is_run, listed[:_PEEKED])):
            return listed
    # A body may have the ends of runs only.
    ended = value.get(_NEW) == [] and any(_key(as_dict(it)) for it in as_list(value.get(_ENDED)))
    return [] if ended else None


class Runs(TraceBuffer):
    """Collects runs into their traces; `types` are those that are known."""

    types = _TYPES

    def take(self, record: Record) -> Iterator[Event]:
        """Reads one record, and counts the records inside it."""
        value = as_dict(record.value)
        where = "" if record.where == "file" else record.where
        if isinstance(value.get("run_type"), str):
            yield from self.run(record.where, value, "", "")
        elif (listed := _page(value)) is not None:
            yield Ignored("page")
            ended = as_list(value.get(_ENDED)) if listed == value.get(_NEW) else []
            listed, alone = _completed(listed, ended)
            for item in self.source.counted(listed, f"{where}[{{}}]"):
                yield from self.take(item)
            for late in objects(self.source.counted(alone, f"{where} {_ENDED}[{{}}]")):
                yield late if isinstance(late, Problem) else Problem("no_request", late[0], _LATE)
        else:
            yield Ignored(unknown_code(value.get("type", "record")))

    def run(self, where: str, run: dict[str, Json], trace_id: str, parent: str) -> Iterator[Event]:
        """Yields a run and the runs inside it.

        `trace_id` and `parent` come from the enclosing run.
        """
        dotted = as_str(run.get("dotted_order"))
        name = name_of(run, "id", "run_id") or _id(dotted, -1)
        trace_id = as_str(run.get("trace_id")) or trace_id or _id(dotted, 0) or name
        parent = as_str(run.get("parent_run_id")) or parent or _id(dotted, -2)
        extra = as_dict(decoded(run.get("extra")))
        metadata = as_dict(decoded(extra.get("metadata")))
        session = name_of(metadata, *_SESSIONS) or ""
        kind = as_str(run.get("run_type"))
        facts = self.trace(trace_id)
        if not parent:
            facts.add("labels", [tag for tag in as_list(decoded(run.get("tags"))) if tag])
            facts.add("error", as_str(run.get("error")))
        facts.add("feedback", as_dict(decoded(run.get("feedback_stats"))))
        where = unique_name(f"run {name[:200]}" if name else where, self.names)
        pairs = _pairs(run) if kind in _CALLS else [None]
        self.source.count_records(len(pairs) - 1)  # each prompt of a batch is a record
        for number, pair in enumerate(pairs):
            step = Step(
                where=unique_name(f"{where} prompt {number}", self.names) if number else where,
                id=None if number else name,
                parent=parent or None,
                order=dotted or as_str(run.get("start_time")),
                code=kind if kind in self.types else unknown_code(kind),
                nests=kind == "tool",
                call=None if pair is None else _call(pair, run, extra, metadata),
                output=run.get("outputs") if kind == "chain" else None,
            )
            yield from self.add(trace_id, session, step)
        children = as_list(decoded(run.get("child_runs")))
        inside = where.replace("{", "{{").replace("}", "}}")
        counted = self.source.counted(children, f"{inside} child_runs[{{}}]")
        for item in objects(counted, "a run is "):
            if isinstance(item, Problem):
                yield item
            else:
                yield from self.run(*item, trace_id, name)


def _completed(runs: list[Json], ended: list[Json]) -> tuple[list[Json], list[Json]]:
    """Returns new runs with what was added when they ended, and the additions to other runs."""
    added = {key: as_dict(item) for item in ended if (key := _key(as_dict(item)))}
    whole = [
        {**run, **added.pop(key)} if isinstance(run, dict) and (key := _key(run)) in added else run
        for run in runs
    ]
    keys = [_key(as_dict(item)) for item in ended]
    alone = [item for item, key in zip(ended, keys, strict=True) if key in added or not key]
    return whole, alone


def _key(run: dict[str, Json]) -> str:
    return name_of(run, "id", "run_id") or _id(as_str(run.get("dotted_order")), -1)


def _id(dotted: str, at: int) -> str:
    segments = dotted.split(".") if dotted else []
    return segments[at].rpartition("Z")[2] if -len(segments) <= at < len(segments) else ""


def _pairs(run: dict[str, Json]) -> list[tuple[Json, Json] | None]:
    """Returns the input and output of each prompt of an llm run; a batch has several."""
    inputs, outputs = decoded(run.get("inputs")), decoded(run.get("outputs"))
    for key in ("messages", "prompts"):
        prompts = as_list(inputs, key)
        several = key == "prompts" or all(
            isinstance(prompt, list) and not is_message(prompt) for prompt in prompts
        )
        if len(prompts) > 1 and several:
            answers = as_list(outputs, "generations")
            listed = [answers[at : at + 1] for at in range(len(prompts))]
            return [
                ({**as_dict(inputs), key: [prompt]}, {"generations": list(answer)})
                for prompt, answer in zip(prompts, listed, strict=True)
            ]
    return [(inputs, outputs)]


def _is_chat(outputs: Json) -> bool:
    batch = as_list(next(iter(as_list(outputs, "generations")), None))
    return any("message" in as_dict(generation) for generation in batch)


def _call(
    pair: tuple[Json, Json], run: dict[str, Json], extra: dict[str, Json], metadata: dict[str, Json]
) -> ModelCall:
    notes, answer_notes = PartNotes(), PartNotes()
    inputs, outputs = pair
    request, outcome = read_request(inputs, notes), read_outcome(outputs, answer_notes)
    if "prompts" in as_dict(inputs) and _is_chat(outputs):
        notes.unreadable.append("flattened")  # all messages as one text without roles
        request = replace(request, messages=())
    failed = bool(run.get("error")) or run.get("status") == "error"
    fault = "error" if failed else None
    if "end_time" in run and run["end_time"] is None:
        fault = fault or "truncated"
    answers = tuple(answer.with_fault(fault) for answer in outcome.answers)
    params = as_dict(decoded(extra.get("invocation_params")))
    places = (
        request.tools,
        tools_of(params),
        tools_of(extra),
        tuple(notes.tools + answer_notes.tools) or None,
    )
    empty = next((listed for listed in places if listed is not None), None)
    tools = next((listed for listed in places if listed), empty)
    model = request.model or name_of(params, "model", "model_name")
    return ModelCall(
        messages=with_system(request.messages, outcome.instructions),
        outcome=replace(outcome, answers=answers),
        notes=notes,
        answer_notes=answer_notes,
        tools=None if tools is None else tuple(definitions(list(tools))),
        model=model or name_of(metadata, "ls_model_name"),
        failed=failed,
        error=as_str(run.get("error")),
        is_empty=is_empty(outputs),
        response=outcome.id,
        previous=outcome.previous or name_of(as_dict(inputs), "previous_response_id"),
    )


READER = declared("langsmith", recognise=_recognise, read=read)
