"""Proposes the section `message.result` of a mapping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from builder.conversation import Json
from builder.readers.mapping.calls import (
    CallShape,
    decoded,
    filtered,
    has_ids,
    linked,
    objects_in,
    part,
    results_of_kind,
)
from builder.readers.mapping.check import key_paths
from builder.readers.mapping.names import is_usual, rank, snake
from builder.readers.mapping.proposal import Proposal, prose_paths, short_texts, usual_path
from builder.readers.mapping.spec import value_at
from builder.readers.toolkit.narrow import as_dict


def propose_results(
    messages: Sequence[Json], tools: Sequence[Json], call: CallShape | None, role: str,
    found: Proposal,
) -> None:  # fmt: skip
    """Proposes the paths of results: messages of role tool, beside a call, or in other messages."""
    results: Sequence[Json] = tools
    if tools and (nested := _nested(tools, call, role, found)) is not None:
        found.section["results"], results = nested
        found.section["result"] = (
            _result_paths(results, call, role, found)
            if all(isinstance(one, dict) for one in results)
            else {"text": "@"}
        )
        return
    if not tools and call is not None and (path := result_beside(call)) is not None:
        base = call.path if call.path is not None else "[@]"
        is_list = any(isinstance(value_at(base, one), list) for one in messages)
        base = filtered(base if is_list else f"[{base}]", f"{path} != null")
        found.section |= {"results": base, "result": {"text": path} | error_beside(call)}
        found.taken.append(path)
        if (own := _own_id(call)) is not None:
            found.section["call"]["id"] = found.section["result"]["id"] = own
        return
    if not tools:
        path, results = _result_lists(messages, call, role, found)
        if path is None:
            return
        found.section["results"] = path
        if "[" not in path:
            found.taken.append(path)
        if not all(isinstance(one, dict) for one in results):
            found.section["result"] = {"text": "@"}
            return
    found.section["result"] = _result_paths(results, call, role, found)


def _nested(
    tools: Sequence[Json], call: CallShape | None, role: str, found: Proposal
) -> tuple[str, list[Json]] | None:
    """Returns the path from messages of role tool to the results inside them, and the results.

    None if the messages are themselves results. An object is a result, and not the content of one,
    if everything in it is the text, the id, the name or the error of a result.
    """
    path = usual_path(tools, "results", inside=[role, *found.taken])
    if path is None:
        return None
    values = [decoded(value_at(path, one), path) for one in tools]
    if all(isinstance(value, dict) and has_ids(value) for value, _ in values):
        by_id = [one for value, _ in values for one in as_dict(value).values()]
        if not any(isinstance(one, dict) for one in by_id):
            found.taken.append(path)
            return f"values({values[0][1]})", by_id
    items = [
        one
        for value, _ in values
        if value is not None
        for one in (value if isinstance(value, list) else [value])
    ]
    if not items or not all(isinstance(one, dict) for one in items):
        return None
    is_list = any(isinstance(value, list) for value, _ in values)
    link = _link(call, items, role, found)
    if link is None and not is_list and _link(call, tools, role, found) is not None:
        return None  # the id stands in the message, beside the result
    own = [] if link is None else [link[0][1]]
    text = usual_path(items, "result_text", inside=own)
    rest = {key for one in items if isinstance(one, dict) for key in one} - {text, *own}
    is_known = all(is_usual("result_name", key) or is_usual("error", key) for key in rest)
    if text is None or not is_known:
        return None
    found.taken.append(path)
    place = next(place for value, place in values if value is not None)
    return (place if is_list else f"[{place}][?@ != null]"), items


def _result_lists(
    messages: Sequence[Json], call: CallShape | None, role: str, found: Proposal
) -> tuple[str | None, list[Json]]:
    """Returns the path from a message to its results, and the results."""
    if call is not None and call.path is not None and "[?" in call.path:
        typed = results_of_kind(messages, call.path.partition("[?")[0])
        if typed is not None:
            return typed
    path = usual_path(messages, "results", inside=found.taken)
    if path is None and call is not None:
        places: dict[str, list[Json]] = {}
        for message in messages:
            for place, items in objects_in(message):
                if not found.is_taken(place):
                    places.setdefault(place, []).extend(items)
        tied = (
            place
            for place, items in places.items()
            if linked(call.name, call.items, items, (role, *found.apart), None, found.conversations)
        )
        path = next(tied, None)
    if path is None:
        return None, []
    base = call.path if call is not None else None
    if call is not None and base and by_name_of_call(messages, base, call.name, path):
        found.taken.append(path)
        return f"values({path})", ["text"]
    values = [decoded(value_at(path, one), path)[0] for one in messages]
    if all(value is None or isinstance(value, list) for value in values):
        items = [one for value in values if isinstance(value, list) for one in value]
        if all(isinstance(one, dict) for one in items):
            return path, items
    found.taken.append(path)
    return f"[{path}][?@ != null]", ["text"]


def _result_paths(
    results: Sequence[Json],
    call: CallShape | None,
    role: str,
    found: Proposal,
) -> dict[str, str]:
    """Returns the paths from a result."""
    paths: dict[str, str] = {}
    link = _link(call, results, role, found)
    if link is not None:
        found.section |= link[1]
        found.section["call"]["id"], paths["id"] = link[0]
    for key, usual in (("name", "result_name"), ("error", "error"), ("text", "result_text")):
        path = usual_path(results, usual, inside=[role, *found.apart, *paths.values()])
        if path is not None and (key != "name" or _names_calls(results, path, call)):
            paths[key] = path
    if "error" not in paths and (failed := _failed(results)) is not None:
        paths["error"] = failed
    error = paths.get("error")
    if error is not None and any(isinstance(value_at(error, one), str) for one in results):
        paths["text"] = f"not_null({paths['text']}, {error})" if "text" in paths else error
    if "text" in paths and (inner := _only_key(results, paths["text"])) is not None:
        paths["text"] = inner
    if "text" not in paths:
        prose = [
            path
            for path in prose_paths(results) or short_texts(results)
            if path not in (role, *found.apart, *paths.values())
        ]
        paths |= {"text": prose[0]} if prose else {}
    return {key: paths[key] for key in ("text", "id", "name", "error") if key in paths}


def _only_key(results: Sequence[Json], path: str) -> str | None:
    """Returns the path of the text of results that are all objects with nothing else in them."""
    values = [value for one in results if (value := value_at(path, one)) is not None]
    keys = {key for value in values for key in as_dict(value)}
    if len(keys) != 1 or not all(isinstance(value, dict) for value in values):
        return None
    (key,) = keys
    return f"{path}.{part(key)}" if is_usual("result_text", key) else None


_FAILURES = ("error", "failed", "failure", "timeout", "exception")
_STATES = ("status", "state", "outcome", "result_status")
_SUCCESSES = ("ok", "success", "succeeded", "is_success")
_EXIT_CODES = ("exit_code", "exitcode", "returncode", "return_code")


def _failed(results: Sequence[Json]) -> str | None:
    """Returns the condition under which a result is an error, by a state that says so."""
    keys = dict.fromkeys(key for one in results for key in as_dict(one))
    for key in keys:
        name, path = snake(key), part(key)
        values = [value_at(path, one) for one in results]
        named = [text for text in _FAILURES if text in values]
        if name in _STATES and named:
            return " || ".join(f"{path} == '{text}'" for text in named)
        if name in _SUCCESSES and all(value in (None, True, False) for value in values):
            return f"{path} == `false`"
        if name in _EXIT_CODES and all(isinstance(value, int | None) for value in values):
            return f"{path} && {path} != `0`"
    return None


def _link(
    call: CallShape | None, results: Sequence[Json], role: str, found: Proposal
) -> tuple[tuple[str, str], dict[str, Any]] | None:
    """Returns the paths of the ids that link calls and results, and what they change of `message`.

    Where a call's id stands in the message beside the call, its paths start from the message.
    """
    if call is None:
        return None
    apart = (role, *found.apart)
    own, groups = call.arguments, found.conversations
    ids = linked(call.name, call.items, results, apart, own, groups)
    if ids is not None:
        return ids, {}
    path = found.section.get("calls")
    if path is None or "[" in path or len(call.items) > len(call.messages):
        return None  # several calls of a message cannot all have the id of the message
    if (ids := linked(path, call.messages, results, apart, None, groups)) is None:
        return None
    values = (decoded(value_at(path, one), path)[0] for one in call.messages)
    inner = f"{path}[0]" if any(isinstance(value, list) for value in values) else path
    names = {"name": f"{inner}.{call.name}", "arguments": f"{inner}.{call.arguments}"}
    return ids, {"calls": f"[@][?{path}]", "call": names}


def _names_calls(results: Sequence[Json], path: str, call: CallShape | None) -> bool:
    """Returns whether the values at a path are names of calls."""
    if call is None:
        return False
    names = {name for one in call.items if isinstance(name := value_at(call.name, one), str)}
    return all(value in names for one in results if (value := value_at(path, one)) is not None)


def result_beside(call: CallShape) -> str | None:
    """Returns the path, in a call, of its result."""
    own = (call.name, call.arguments)
    keys = dict.fromkeys(key for one in call.items for key in key_paths(one) if "." not in key)
    usual = [key for key in keys if is_usual("results", key) and key not in own and "[" not in key]
    return min(usual, key=lambda key: rank("results", key), default=None)


def by_name_of_call(messages: Sequence[Json], calls: str, name: str, results: str) -> bool:
    """Returns whether results stand in objects whose keys are the names of calls, in their order.

    `calls` and `results` are paths from messages, `name` is one from a call.
    """
    found = False
    for message in messages:
        value = decoded(value_at(results, message), results)[0]
        if value in (None, "", {}):
            continue
        made = decoded(value_at(calls, message), calls)[0]
        names = [value_at(name, one) for one in (made if isinstance(made, list) else [made])]
        if not isinstance(value, dict) or [*value] != names:
            return False
        found = True
    return found


def error_beside(call: CallShape) -> dict[str, str]:
    """Returns the path, in a call, of whether its result is an error, as `error`; {} if none is."""
    path = usual_path(call.items, "error", inside=[call.name, call.arguments or ""])
    path = path or _failed(call.items)
    return {} if path is None else {"error": path}


def _own_id(call: CallShape) -> str | None:
    """Returns the path of the id of a call with a usual name."""
    return usual_path(call.items, "call_id", inside=[call.name, call.arguments or ""])
