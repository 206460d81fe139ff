"""Proposes a mapping for a file of unknown format, from the names and values of its keys.

The proposal is a beginning that its user checks: it is written to a file, with the first
conversation that it gives shown next to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from builder.conversation import Json
from builder.jsonio import loads_text
from builder.problem import Problem
from builder.readers.mapping.check import key_paths
from builder.readers.mapping.read import mapped_records
from builder.readers.mapping.spec import MappingSpec, MessagePaths, value_at
from builder.readers.toolkit.thoughts import THOUGHT_KEYS
from builder.sources.source import Source
from builder.sources.sqlite_file import tables

_RECORDS = 300
"""Records that are examined."""

_ROLES = {
    "user": ("user", "human", "customer", "client", "person", "prompt", "question", "input",
             "request", "caller", "me", "user_message", "human_message", "query"),
    "assistant": ("assistant", "ai", "bot", "agent", "model", "gpt", "llm", "completion", "answer",
                  "response", "reply", "output", "assistant_message", "ai_message", "generation"),
    "system": ("system", "instructions", "instruction", "system_prompt", "developer"),
    "tool": ("tool", "function", "observation", "tool_result", "tool_output", "result",
             "function_result", "tool_response", "function_call_output", "function_response",
             "tool_message"),
    "call": ("tool_call", "function_call", "tool_use", "action", "call", "tool_request"),
    "skip": ("event", "status", "debug", "info", "metric", "heartbeat", "log", "usage", "ui"),
}  # fmt: skip
_MEANING = {name: role for role, names in _ROLES.items() for name in names}

_NAMES: Mapping[str, Sequence[str]] = {
    "role": ("role", "from", "sender", "author", "speaker", "type", "kind", "who", "event",
             "source", "actor", "by", "direction", "participant"),
    "text": ("content", "text", "message", "value", "body", "utterance", "output", "data", "parts",
             "msg", "payload", "result"),
    "calls": ("tool_calls", "calls", "function_calls", "actions", "tool_uses", "toolCalls",
              "function_call", "tool_call", "invocations", "tools_called"),
    "call_name": ("name", "tool", "tool_name", "function", "action", "fn", "toolName",
                  "function_name"),
    "arguments": ("arguments", "args", "input", "parameters", "params", "kwargs", "tool_input",
                  "tool_args", "inputs", "payload"),
    "call_id": ("id", "call_id", "tool_call_id", "callId", "toolCallId", "tool_use_id"),
    "result_id": ("tool_call_id", "call_id", "callId", "toolCallId", "tool_use_id", "in_reply_to",
                  "id"),
    "results": ("tool_results", "results", "observations", "tool_outputs", "toolResults",
                "function_results"),
    "result_text": ("output", "result", "content", "text", "observation", "value", "response",
                    "body", "data"),
    "result_name": ("name", "tool", "tool_name", "function", "toolName"),
    "error": ("is_error", "error", "isError", "failed"),
    "id": ("conversation_id", "session_id", "thread_id", "chat_id", "trace_id", "run_id",
           "dialog_id", "dialogue_id", "conversationId", "sessionId", "threadId", "session",
           "conversation", "thread", "run", "chat", "id", "uuid"),
    "order": ("seq", "index", "step", "position", "turn", "turn_index", "n", "timestamp", "ts",
              "created_at", "createdAt", "time", "date"),
    "system": ("system", "system_prompt", "systemPrompt", "instructions", "system_message"),
    "tools": ("tools", "functions", "tool_definitions", "available_tools", "tool_schemas",
              "toolDefinitions"),
    "model": ("model", "model_name", "model_id", "modelName", "engine", "llm"),
    "stop": ("finish_reason", "stop_reason", "stopReason", "finishReason"),
    "license": ("license", "licence"),
}  # fmt: skip
"""Names that logs use, the likeliest first."""

_OUTCOMES = ("reward", "score", "success", "resolved", "rating", "feedback", "passed", "label")
_PAIRS = (("prompt", "completion"), ("prompt", "response"), ("question", "answer"),
          ("instruction", "output"), ("input", "output"), ("query", "response"),
          ("user", "assistant"), ("request", "reply"), ("human", "ai"))  # fmt: skip


def suggest(source: Source) -> str | None:
    """Returns a mapping for the source as YAML; None if nothing in it looks like a conversation."""
    query, records_path, records = _records(source)
    rows = [record for record in records if isinstance(record, dict)]
    if not rows:
        return None
    found = _in_records(rows) or _as_records(rows) or _pairs(rows)
    if found is None:
        return None
    import yaml  # noqa: PLC0415 - all modules of readers are imported to find the readers

    head: dict[str, Any] = {"query": query} if query else {}
    head |= {"records": records_path} if records_path else {}
    text = yaml.safe_dump(head | found, sort_keys=False, allow_unicode=True, width=100)
    return f"# Proposed for {source.name}: check it (docs/mapping.md).\n{text}"


def _records(source: Source) -> tuple[str | None, str | None, list[Json]]:
    """Returns (query, path of the records, the first records) of a source."""
    if source.peek.kind == "sqlite":
        names = tables(source)
        likely = sorted(names, key=lambda name: (-_likeness(names[name]), name))
        if not likely:
            return None, None, []
        query = f'SELECT * FROM "{likely[0]}"'  # noqa: S608 - shown to the user, who runs it
        return query, None, _first(source, MappingSpec(MessagePaths(), query=query))
    if source.peek.kind == "json":
        document = source.document()
        if isinstance(document, dict) and not _lists(document, depth=0):
            for path in key_paths(document):
                items = value_at(path, document)
                if path.endswith("[]") and isinstance(items, list) and _lists(items[0], depth=0):
                    return None, path, items[:_RECORDS]
    return None, None, _first(source, MappingSpec(MessagePaths()))


def _first(source: Source, spec: MappingSpec) -> list[Json]:
    records = mapped_records(spec, source.unread_copy())
    return [item.value for item in islice(records, _RECORDS) if not isinstance(item, Problem)]


def _likeness(columns: Iterable[str]) -> int:
    return sum(any(name in _NAMES[key] for name in columns) for key in ("role", "text", "id"))


def _lists(record: Json, depth: int = 2) -> dict[str, list[Json]]:
    """Returns {path: items} of the lists of messages in a record."""
    found: dict[str, list[Json]] = {}
    if not isinstance(record, dict):
        return found
    for key, value in record.items():
        name = _part(key)
        decoded = loads_text(value) if isinstance(value, str) and value[:1] in "[{" else value
        path = f"json({name})" if decoded is not value else name
        if isinstance(decoded, list) and _role_key(decoded) is not None:
            found[path] = decoded
        elif isinstance(decoded, dict) and depth:
            found |= {f"{path}.{rest}": items for rest, items in _lists(decoded, depth - 1).items()}
    return found


def _part(key: str) -> str:
    return key if key.isidentifier() else '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _role_key(messages: Sequence[Json]) -> tuple[str, dict[str, str]] | None:
    """Returns the path of the role in messages and what its values mean; None: there is none.

    A role has few values, which include names for the user and for the assistant.
    """
    rows = [item for item in messages if isinstance(item, dict)]
    paths = dict.fromkeys(path for row in rows for path in key_paths(row) if path.count(".") < 2)
    ranked = sorted(paths, key=lambda path: (_rank("role", path), path.count(".")))
    for path in ranked:
        values = Counter(value for row in rows if isinstance(value := value_at(path, row), str))
        meanings = {value: _meaning(value) for value in values}
        if {"user", "assistant"} <= set(meanings.values()) and len(values) <= 24:
            return path, {value: role for value, role in sorted(meanings.items()) if role}
    return None


def _meaning(value: str) -> str:
    name = value.strip().lower().replace("-", "_").replace(" ", "_").replace(".", "_")
    return _MEANING.get(name) or _MEANING.get(name.partition("_")[0], "")


def _rank(key: str, path: str) -> int:
    """Returns the position of a path's last name among the usual names; their number if none."""
    names = _NAMES[key]
    last = path.rpartition(".")[2].strip('"[]')
    return names.index(last) if last in names else len(names)


def _in_records(records: Sequence[dict[str, Json]]) -> dict[str, Any] | None:
    """Returns the mapping of records with a list of messages each."""
    lists: dict[str, list[Json]] = {}
    for record in records:
        for path, items in _lists(record).items():
            lists.setdefault(path, []).extend(items)
    if not lists:
        return None
    path = max(lists, key=lambda name: len(lists[name]))
    conversation = {"messages": path, **_top(records)}
    if (name := _named(records, "id")) is not None:
        conversation["id"] = name
    return {"conversation": conversation, "message": _message(lists[path])}


def _as_records(records: Sequence[dict[str, Json]]) -> dict[str, Any] | None:
    """Returns the mapping of records that are messages, grouped by a key."""
    if _role_key(records) is None:
        return None
    name = _named(records, "id", shared=True)
    if name is None:
        return None
    conversation: dict[str, Any] = {"id": name}
    order = _named(records, "order")
    if order is not None and all(value_at(order, record) is not None for record in records):
        conversation["order"] = order
    return {"conversation": conversation | _top(records), "message": _message(records)}


def _pairs(records: Sequence[dict[str, Json]]) -> dict[str, Any] | None:
    """Returns the mapping of records with a question and an answer under two keys."""
    for question, answer in _PAIRS:
        if any(isinstance(row.get(question), str) and row.get(answer) for row in records):
            messages = (
                f"[{{role: 'user', text: {question}}}, {{role: 'assistant', text: {answer}}}]"
            )
            conversation = {"messages": messages, **_top(records)}
            if (name := _named(records, "id")) is not None:
                conversation["id"] = name
            return {"conversation": conversation, "message": {"role": "role", "text": "text"}}
    return None


def _top(records: Sequence[dict[str, Json]]) -> dict[str, Any]:
    """Returns the paths of what a conversation has once."""
    found: dict[str, Any] = {}
    for key in ("system", "tools", "model", "license"):
        if (path := _named(records, key)) is not None:
            found[key] = path
    outcome = {key: key for key in _OUTCOMES if any(row.get(key) is not None for row in records)}
    return found | ({"outcome": outcome} if outcome else {})


def _named(
    rows: Sequence[Json], key: str, *, shared: bool = False, inside: Sequence[str] = ()
) -> str | None:
    """Returns the likeliest path for a key: one that occurs; `shared`: with repeated values."""
    objects = [row for row in rows if isinstance(row, dict)]
    paths = dict.fromkeys(path for row in objects for path in key_paths(row) if "[" not in path)
    usual = [
        path
        for path in paths
        if _rank(key, path) < len(_NAMES[key])
        and path.count(".") <= 1
        and not any(path == other or path.startswith(f"{other}.") for other in inside)
    ]
    for path in sorted(usual, key=lambda path: (_rank(key, path), path.count("."))):
        values = [str(value) for row in objects if (value := value_at(path, row)) is not None]
        if values and (not shared or len({*values}) < len(values)):
            return path
    return None


def _message(messages: Sequence[Json]) -> dict[str, Any]:
    """Returns the paths of a message."""
    found = _role_key(messages)
    assert found is not None, "the messages were chosen by their roles"
    role, meanings = found
    unusual = {value: name for value, name in meanings.items() if value != name}
    result: dict[str, Any] = {"role": role} | ({"roles": unusual} if unusual else {})
    by_role: dict[str, list[Json]] = {}
    for item in messages:
        value = value_at(role, item)
        by_role.setdefault(meanings.get(value if isinstance(value, str) else "", ""), []).append(
            item
        )
    answers = by_role.get("assistant", [])
    if (text := _text([*answers, *by_role.get("user", [])], role)) is not None:
        result["text"] = text
    thoughts = (key for key in sorted(THOUGHT_KEYS) if any(value_at(key, one) for one in answers))
    if (thought := next(thoughts, None)) is not None:
        result["reasoning"] = thought
    result |= _calls(answers, by_role.get("call", []), role)
    result |= _results(messages, by_role.get("tool", []), role)
    for key in ("model", "stop"):
        if (path := _named(answers, key, inside=(role,))) is not None:
            result[key] = path
    return result


def _text(rows: Sequence[Json], role: str) -> str | None:
    """Returns the path of the text: a usual name, else the key with the longest texts."""
    usual = _named(rows, "text", inside=(role,))
    if usual is not None:
        return usual
    lengths: Counter[str] = Counter()
    for row in rows:
        for path in key_paths(row):
            if path != role and isinstance(value := value_at(path, row), str):
                lengths[path] += len(value)
    return max(lengths, key=lambda path: lengths[path]) if lengths else None


def _calls(answers: Sequence[Json], calls: Sequence[Json], role: str) -> dict[str, Any]:
    """Returns the paths of calls: in a list of an answer, or messages of their own."""
    found: dict[str, Any] = {}
    if not calls:
        path = _named(answers, "calls", inside=(role,))
        if path is None:
            return found
        found["calls"] = path
        values = (loads_text(value_at(path, answer)) for answer in answers)
        calls = [one for value in values for one in (value if isinstance(value, list) else [value])]
    call = _paths(calls, {"name": "call_name", "arguments": "arguments", "id": "call_id"}, role)
    return found | ({"call": call} if call else {})


def _results(messages: Sequence[Json], tools: Sequence[Json], role: str) -> dict[str, Any]:
    """Returns the paths of results: messages of role tool, or lists in other messages."""
    found: dict[str, Any] = {}
    results = tools
    if not tools:
        path = _named(messages, "results", inside=(role,))
        if path is None:
            return found
        found["results"] = path
        values = (loads_text(value_at(path, message)) for message in messages)
        results = [one for value in values if isinstance(value, list) for one in value]
    names = {"text": "result_text", "id": "result_id", "name": "result_name", "error": "error"}
    paths = _paths(results, names, role)
    return found | ({"result": paths} if paths else {})


def _paths(rows: Sequence[Json], names: Mapping[str, str], role: str) -> dict[str, str]:
    """Returns {key: path} of what occurs in the rows; each path serves one key."""
    found: dict[str, str] = {}
    for key, usual in names.items():
        path = _named(rows, usual, inside=(role, *found.values()))
        if path is not None and _is_scalar(rows, path, key):
            found[key] = path
    return found


def _is_scalar(rows: Sequence[Json], path: str, key: str) -> bool:
    """Returns whether the values suit the key: a name and an id are texts or numbers."""
    if key not in ("name", "id"):
        return True
    values = [value for row in rows if (value := value_at(path, row)) is not None]
    return all(isinstance(value, str | int) for value in values)
