"""Proposes the mapping of rows that hold a question, and the answer or calls to it, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from builder.conversation import Json
from builder.readers.mapping.calls import (
    CallShape,
    decoded,
    filtered,
    find_calls,
    find_tools,
    linked,
    part,
)
from builder.readers.mapping.check import key_paths
from builder.readers.mapping.columns import calls_in_columns
from builder.readers.mapping.names import is_usual, meaning, rank, snake
from builder.readers.mapping.proposal import Proposal, usual_path
from builder.readers.mapping.results import by_name_of_call, error_beside, result_beside
from builder.readers.mapping.spec import value_at
from builder.readers.toolkit.narrow import as_dict
from builder.readers.toolkit.thoughts import THOUGHT_KEYS
from builder.readers.toolkit.unknown_keys import has_words

_SESSIONS = ("conversation_id", "session_id", "thread_id", "chat_id", "dialog_id", "dialogue_id",
             "session", "conversation", "thread", "chat", "dialog", "dialogue", "conv", "sid",
             "convo")  # fmt: skip
"""Names of an id that the turns of one conversation share, and nothing else."""


def propose_rows(rows: Sequence[dict[str, Json]]) -> tuple[dict[str, Any], Proposal] | None:
    """Returns (section `conversation` without what it has once, proposal); None for other rows."""
    tools, names = find_tools(rows)
    taken = [tools] if tools is not None else []
    question = _column(rows, "prompt", "user", taken)
    if question is None:
        return None
    taken.append(question)
    answer = _column(rows, "answer", "assistant", taken)
    taken += [answer] if answer is not None else []
    columns = [{key: item for key, item in row.items() if key not in taken} for row in rows]
    call = find_calls(columns, names, role="", followed=True)
    if call is not None and call.evidence == 0 and (call.path is None or not names):
        call = None
    columns_path = calls_in_columns(rows, taken) if call is None else None
    answered = [path for path in (answer, call.path if call is not None else columns_path) if path]
    answered += [call.name] if call is not None and call.path is None else []
    asking = [row for row in rows if value_at(question, row) not in (None, "")]
    both = [row for row in asking if any(value_at(path, row) for path in answered)]
    if 2 * len(both) < len(asking) or not both:
        return None
    found = Proposal({"role": "role", "text": "text"})
    messages = [f"{{role: 'user', text: {question}}}"]
    if call is not None:
        messages += _called(rows, call, taken, found)
        if answer is not None and "results" not in found.section:
            found.decisions.append(
                f"conversation.messages: {answer!r} follows calls without results: where are these,"
                " or is it a part of the message with the calls?"
            )
    if columns_path is not None:
        messages += [
            f"{{role: 'assistant', calls: {columns_path}}}",
            f"{{role: 'tool', results: {columns_path} | [?result != null]}}",
        ]
        call_paths = {"name": "name", "arguments": "arguments", "id": "name"}
        found.section |= {"calls": "calls", "call": call_paths, "results": "results",
                          "result": {"text": "result", "id": "name"}}  # fmt: skip
    if answer is not None:
        messages.append(f"{{role: 'assistant', text: {answer}}}")
    path = f"[{', '.join(messages)}]"
    parts = [key for key in ("text", "calls", "results") if key in found.section]
    conversation = {"messages": path if len(parts) == 1 else f"{path}[?{' || '.join(parts)}]"}
    return conversation | _session(rows, question, found), found


def _column(
    rows: Sequence[dict[str, Json]], key: str, role: str, taken: Sequence[str]
) -> str | None:
    """Returns the column of questions or answers: by its name, or by the role that it names."""
    paths = dict.fromkeys(path for row in rows for path in key_paths(row) if "[" not in path)
    inside = Proposal(taken=[*taken])
    likely = []
    for path in paths:
        name = path.rpartition(".")[2]
        if path.count(".") > 1 or inside.is_taken(path):
            continue
        values = [value for row in rows if (value := value_at(path, row)) not in (None, "")]
        if not values or not all(isinstance(value, str) for value in values):
            continue
        if is_usual("arguments", path.rpartition(".")[0]) and not path.startswith("input"):
            continue
        is_named = is_usual(key, path) or (key == "prompt" and path == "q")
        is_role = meaning(name) == role and any(map(has_words, values))
        if is_named or (is_role and not is_usual("model", path)):
            likely.append((not is_named, rank(key, path), path.count("."), path))
    return min(likely)[-1] if likely else None


def _called(
    rows: Sequence[dict[str, Json]], call: CallShape, taken: list[str], found: Proposal
) -> list[str]:
    """Returns the messages with the calls of a row and with their results."""
    calls = call.path
    names = {"name": call.name, "arguments": call.arguments or "arguments"}
    if calls is None or calls.startswith("[@]"):
        columns = f"{{name: {call.name}, arguments: {call.arguments}}}"
        calls = f"[@][?{call.name} && {call.arguments} != null].{columns}"
        names = {"name": "name", "arguments": "arguments"}
        taken += [call.name, call.arguments or ""]
    else:
        taken.append(calls)
    found.section |= {"calls": "calls", "call": names}
    keys = dict.fromkeys(key for row in rows for key in row if key in THOUGHT_KEYS)
    thought = next((key for key in keys if isinstance(value_at(key, rows[0]), str)), None)
    if thought is not None:
        found.section["reasoning"] = "reasoning"
    reasoning = f", reasoning: {thought}" if thought is not None else ""
    messages = [f"{{role: 'assistant', calls: {calls}{reasoning}}}"]
    is_column = call.path is None or call.path.startswith("[@]")
    beside = None if is_column else result_beside(call)
    if beside is not None:
        result = {"text": beside} | error_beside(call)
        found.section |= {"results": "results", "result": result}
        if (
            own := usual_path(call.items, "call_id", inside=[call.name, names["arguments"]])
        ) is not None:
            names["id"] = found.section["result"]["id"] = own
        base = (
            calls if any(isinstance(value_at(calls, row), list) for row in rows) else f"[{calls}]"
        )
        return [*messages, f"{{role: 'tool', results: {filtered(base, f'{beside} != null')}}}"]
    results = usual_path(rows, "results", inside=taken) or _of_tools(rows, taken)
    if results is None or calls.startswith(f"{results}."):
        return messages
    inner = [decoded(value_at(results, row), results) for row in rows]
    values = [(value, path) for value, path in inner if value not in (None, "")]
    if not values:
        return messages
    path = results
    if by_name_of_call(rows, calls, call.name, results):
        path = f"values({values[0][1]})"
        values = [([*as_dict(value).values()], path) for value, _ in values]
    elif all(isinstance(value, list) for value, _ in values):
        path = values[0][1]
    else:
        path = f"[{results}][?@ != null && @ != '']"
    items = [one for value, _ in values for one in (value if isinstance(value, list) else [value])]
    found.section |= {"results": "results", "result": {"text": _text(items)}}
    if (ids := linked(call.name, call.items, items, (), call.arguments)) is not None:
        names["id"], found.section["result"]["id"] = ids
    return [*messages, f"{{role: 'tool', results: {path}}}"]


def _of_tools(rows: Sequence[dict[str, Json]], taken: Sequence[str]) -> str | None:
    """Returns a column whose name says that it has results of tools."""
    keys = dict.fromkeys(key for row in rows for key in row if key not in taken)
    return next((part(key) for key in keys if meaning(key) == "tool" and "_" in snake(key)), None)


def _text(results: Sequence[Json]) -> str:
    """Returns the path of the text in results that are all objects with one; else all of each."""
    objects = [one for one in results if isinstance(one, dict)]
    if len(objects) < len(results):
        return "@"
    path = usual_path(objects, "result_text")
    rest = {key for one in objects for key in one} - {path}
    is_known = all(is_usual("result_name", key) or is_usual("result_id", key) for key in rest)
    return path if path is not None and is_known else "@"


def _session(rows: Sequence[dict[str, Json]], question: str, found: Proposal) -> dict[str, str]:
    """Returns `session` and `order`, or `id`, of the rows.

    Rows of one session ask different questions; rows with one question are several answers to it.
    """
    name = usual_path(rows, "id", shared=True)
    if name is None or any(value_at(name, row) in (None, "") for row in rows):
        own = usual_path(rows, "id")
        return {} if own is None else {"id": own}
    asked = {(str(value_at(name, row)), str(value_at(question, row))) for row in rows}
    order = usual_path(rows, "order")
    if order is not None and any(value_at(order, row) is None for row in rows):
        order = None
    is_session = name.rpartition(".")[2] in _SESSIONS
    if len(asked) < len(rows) or not (is_session or order):
        return {"id": name}
    if not is_session:
        found.decisions.append(
            f"conversation.session: are rows with one {name!r} turns of one conversation, or is it"
            " the id of a row?"
        )
    return {"session": name} | ({"order": order} if order is not None else {})
