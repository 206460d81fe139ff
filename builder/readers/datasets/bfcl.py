"""Reads BFCL (Berkeley Function-Calling Leaderboard) v1-v4: questions, definitions, answers.

It is a benchmark: every conversation is marked as evaluation data. Source: docs/formats/bfcl.md.
"""

from __future__ import annotations

import contextlib
import fnmatch
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from builder.conversation import (
    Conversation,
    Event,
    Ignored,
    Json,
    Message,
    Part,
    ToolCall,
    Unparsed,
)
from builder.jsonio import JsonFault, dumps
from builder.problem import Problem
from builder.readers import declared
from builder.readers.datasets.text_rows import python_call
from builder.readers.toolkit.chat_messages import content
from builder.readers.toolkit.narrow import as_dict, as_list, as_str, one_or_many
from builder.readers.toolkit.places import unique_name
from builder.readers.toolkit.rows import not_object
from builder.sources.listing import Listing
from builder.sources.source import Record, Source


def _is_store(folder: Listing) -> bool:
    patterns = ("BFCL_v*.json", "gorilla_openfunctions_v*.json")
    return folder.is_dir("possible_answer") and any(
        fnmatch.filter(folder.names(), pattern) for pattern in patterns
    )


def _recognise(source: Source) -> str | None:
    for member in source.members or (source,):
        for row in member.peek.objects:
            if _is_question(row):
                return "entries of question turns with functions or classes"
            if _is_answer(row):
                return "ids with ground truths"
    return None


def _is_question(row: dict[str, Json]) -> bool:
    listed = [as_dict(item) for item in one_or_many(row.get("function"))]
    described = all("name" in item and "parameters" in item for item in listed)
    context = ("function" in row and described) or "involved_classes" in row
    return "id" in row and context and bool(_asked(row.get("question")))


def _asked(question: Json) -> list[Json]:
    """Returns the turns of a question, which are lists of messages; [] if it has none.

    In v1 a question is the text of the only message.
    """
    if isinstance(question, str):
        return [[{"role": "user", "content": question}]]
    turns = as_list(question)
    return turns if all(isinstance(turn, list) for turn in turns) else []


def _is_answer(row: dict[str, Json]) -> bool:
    named = isinstance(row.get("id"), str) and row.keys() <= {"id", "ground_truth", "source"}
    return named and isinstance(row.get("ground_truth"), list)


def read(source: Source) -> Iterator[Event]:
    """Yields a conversation for each entry, joined with its answer by id."""
    answers: dict[str, tuple[str, Json]] = {}
    questions: list[tuple[str, dict[str, Json]]] = []
    for where, item in _records(source):
        if isinstance(item, Problem):
            yield replace(item, where=where)
            continue
        row = as_dict(item.value)
        name = as_str(row.get("id"))
        if _is_question(row):
            questions.append((where, row))
        elif _is_answer(row) and name not in answers:
            answers[name] = (where, row["ground_truth"])
        elif _is_answer(row):
            yield Ignored("repeated_answer")
        elif "name" in row and "parameters" in row:
            yield Ignored("definition")  # the documentation of a class of functions
        elif isinstance(item.value, dict):
            yield Problem("unknown_shape", where, "neither an entry nor a ground truth")
        else:
            yield not_object(item, "the row is ")
    names: Counter[str] = Counter()
    for where, row in questions:
        answer = answers.pop(as_str(row["id"]), None)
        truth = answer[1] if answer else row.get("ground_truth")
        yield _conversation(where, row, truth, names, 2 if answer else 1)
    for name, (where, truth) in answers.items():
        yield _conversation(where, {"id": name, "question": []}, truth, names, 1)


def _records(source: Source) -> Iterator[tuple[str, Record | Problem]]:
    for item in source.records() if not source.members else ():
        yield item.where, item
    for member in source.members:
        if member.peek.kind in ("json", "jsonl"):
            for item in member.records():
                yield f"{member.name} {item.where}", item


def _conversation(
    where: str, row: dict[str, Json], truth: Json, names: Counter[str], records: int
) -> Conversation | Problem:
    changes: Counter[str] = Counter()
    messages: list[Message] = []
    turns = _asked(row.get("question"))
    answers = _turns(truth)
    for index in range(max(len(turns), len(answers))):
        for item in as_list(turns[index]) if index < len(turns) else []:
            message = as_dict(item)
            parts = content(message.get("content"))
            messages.append(Message(as_str(message.get("role"))[:40], parts))
        if index < len(answers) and (calls := _calls(answers[index], changes)):
            messages.append(Message("assistant", tuple(calls), turn=str(index)))
    if not messages:
        return Problem("no_messages", where, "neither questions nor answers", records=records)
    problems: list[Problem] = []
    if not turns:
        problems.append(Problem("no_request", where, "an answer without its entry", records=0))
    elif truth is None:
        problems.append(Problem("no_response", where, "an entry without its answer", records=0))
    functions = row.get("function")
    name = row.get("id")
    return Conversation(
        id=unique_name(str(name) if isinstance(name, str | int) and name != "" else where, names),
        record=where,
        messages=tuple(messages),
        tools=None if functions is None else tuple(one_or_many(functions)),
        records=records,
        problems=tuple(problems),
        changes=changes,
        complete=True,
        evaluation=True,
        outcome={"benchmark": "BFCL"},
    )


def _turns(truth: Json) -> list[Json]:
    """Returns the ground truth of each turn; a list of objects is that of a single turn."""
    items = as_list(truth)
    return items if any(isinstance(item, list) for item in items) else [items] if items else []


def _calls(items: Json, changes: Counter[str]) -> list[Part]:
    calls: list[Part] = []
    for item in as_list(items):
        if isinstance(item, str):
            calls.append(_python_call(item))
        elif isinstance(item, dict) and len(item) == 1:
            name, accepted = next(iter(item.items()))
            is_call = name and isinstance(accepted, dict)
            arguments = _first(as_dict(accepted), changes)
            calls.append(
                ToolCall(name, arguments) if is_call else Unparsed(dumps(item), "bad_call")
            )
        else:
            calls.append(Unparsed(dumps(item), "bad_call"))
    return calls


def _first(accepted: dict[str, Json], changes: Counter[str]) -> dict[str, Json]:
    chosen: dict[str, Json] = {}
    for name, values in accepted.items():
        if not isinstance(values, list):
            chosen[name] = values
            continue
        if len(values) != 1:
            changes["alternatives"] += 1
        if values and "" not in values:
            chosen[name] = _nested(values[0], changes)
    return chosen


def _nested(value: Json, changes: Counter[str]) -> Json:
    """Returns a value with each of its objects reduced to one accepted object."""
    if isinstance(value, dict) and value and all(isinstance(x, list) for x in value.values()):
        return dict(_first(value, changes))
    if isinstance(value, list):
        return [_nested(item, changes) if isinstance(item, dict) else item for item in value]
    return value


def _python_call(text: str) -> Part:
    """Parses a call in Python syntax; arguments without names stay text in parentheses."""
    body = text.strip()
    with contextlib.suppress(JsonFault):
        call, end = python_call(body, 0, [])
        if end == len(body):
            return call
    name, _, rest = body.partition("(")
    is_call = rest.endswith(")") and all(map(str.isidentifier, name.split(".")))
    return ToolCall(name, body[len(name) :]) if is_call else Unparsed(text, "bad_call")


READER = declared("bfcl", recognise=_recognise, read=read, is_store=_is_store)
