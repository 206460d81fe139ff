"""Proposes mappings of rows without known names: pairs, two texts, a column for each tool."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from builder.conversation import Json
from builder.readers.mapping.calls import objects_in, part
from builder.readers.mapping.check import key_paths
from builder.readers.mapping.names import is_usual
from builder.readers.mapping.proposal import Proposal, usual_path
from builder.readers.mapping.spec import value_at
from builder.readers.toolkit.narrow import as_dict
from builder.readers.toolkit.unknown_keys import has_words

_RESULTS = ("result", "output", "response", "observation", "return")
_PAIR = 2


def propose_pairs(rows: Sequence[dict[str, Json]]) -> tuple[dict[str, Any], Proposal] | None:
    """Returns the mapping of rows with a list of [question, answer] pairs."""
    for path in dict.fromkeys(path for row in rows for path in key_paths(row) if "[" not in path):
        values = [value for row in rows if (value := value_at(path, row)) is not None]
        pairs = [pair for value in values if isinstance(value, list) for pair in value]
        if not pairs or not all(map(_is_pair, pairs)):
            continue
        turn = "{role: 'user', text: [0]}, {role: 'assistant', text: [1]}"
        found = Proposal({"role": "role", "text": "text"})
        found.decisions.append(
            f"conversation.messages: is the first of each pair in {path!r} the user's?"
        )
        return {"messages": f"{path}[*].[{turn}][] | [?text]"} | _id(rows, path), found
    return None


def _is_pair(value: Json) -> bool:
    if not isinstance(value, list) or len(value) != _PAIR:
        return False
    return all(one is None or isinstance(one, str) for one in value) and any(map(has_words, value))


def propose_two_texts(rows: Sequence[dict[str, Json]]) -> tuple[dict[str, Any], Proposal] | None:
    """Returns the mapping of rows, or of the items of their lists, with exactly two texts."""
    if (texts := _two_texts(rows)) is not None:
        messages, found = texts
        return {"messages": messages} | _id(rows, ""), found
    lists: dict[str, list[Json]] = {}
    for row in rows:
        for path, items in objects_in(row):
            if isinstance(value_at(path, row), list):
                lists.setdefault(path, []).extend(items)
    for path, items in lists.items():
        if (texts := _two_texts([as_dict(one) for one in items])) is not None:
            messages, found = texts
            return {"messages": f"{path}[].{messages}[]"} | _id(rows, path), found
    return None


def _two_texts(rows: Sequence[dict[str, Json]]) -> tuple[str, Proposal] | None:
    texts = [
        key
        for key in dict.fromkeys(key for row in rows for key in row)
        if any(isinstance(row.get(key), str) and has_words(row[key]) for row in rows)
        and not is_usual("system", key)
    ]
    whole = all(isinstance(row.get(key), str) and row[key] for row in rows for key in texts)
    if len(texts) != _PAIR or not whole:
        return None
    question, answer = map(part, texts)
    found = Proposal({"role": "role", "text": "text"})
    found.decisions.append(
        f"conversation.messages: is {question!r} the user's text and {answer!r} the answer?"
    )
    return f"[{{role: 'user', text: {question}}}, {{role: 'assistant', text: {answer}}}]", found


def _id(rows: Sequence[dict[str, Json]], inside: str) -> dict[str, str]:
    own = usual_path(rows, "id", inside=(inside,))
    return {} if own is None else {"id": own}


def calls_in_columns(rows: Sequence[dict[str, Json]], taken: Collection[str]) -> str | None:
    """Returns a path to calls whose arguments stand in a column named like the tool.

    The result stands beside them, e.g. `search` and `search_result`. The calls have a name, which
    also is their id, arguments and a result.
    """
    keys = [key for key in dict.fromkeys(key for row in rows for key in row) if key not in taken]
    calls = []
    for key in keys:
        values = [value for row in rows if (value := row.get(key)) is not None]
        results = [f"{key}_{end}" for end in _RESULTS if f"{key}_{end}" in keys]
        if results and key.isidentifier() and all(isinstance(value, dict) for value in values):
            result = part(results[0])
            calls.append(
                f"{part(key)} && {{name: '{key}', arguments: {part(key)}, result: {result}}}"
            )
    return f"[{', '.join(calls)}][?@]" if calls else None
