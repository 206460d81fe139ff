"""Counts calls of Gemini, Converse, BFCL, Langfuse and LangChain logs over the raw JSON.

Each function returns identifiers of calls: a repeated call occurs once in the set.
"""

import json

from support.counts.calls import rows


def documents(path):
    """Returns the exchanges of a file: its lines, the items of its list, or a stream's lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        value = json.loads(text)
        return value if isinstance(value, list) else [value]
    if path.suffix == ".jsonl":
        return list(rows(path))
    return [[json.loads(line) for line in text.splitlines()]] if path.suffix == ".txt" else []


def inside(value):
    """Yields all objects in a value; the text of a stream is read line by line."""
    if isinstance(value, str) and value.startswith("data: "):
        for line in value.splitlines():
            if line.startswith("data: {"):
                yield from inside(json.loads(line[6:]))
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from inside(item)


def most(folder, kind):
    """Returns, for each kind of call, the largest number of them in one exchange of a file."""
    found = set()
    for path in sorted(folder.rglob("*")):
        for exchange in documents(path) if path.is_file() else ():
            counts: dict[str, int] = {}
            for what in filter(None, map(kind, inside(exchange))):
                counts[what] = counts.get(what, 0) + 1
                found.add((path.name, what, counts[what]))
    return found


def gemini_calls(folder):
    def kind(item):
        call = item.get("functionCall") or item.get("function_call")
        named = isinstance(call, dict) and call.get("name")
        return named and named + json.dumps(call.get("args") or {}, sort_keys=True)

    return most(folder, kind)


def converse_calls(folder):
    """Returns calls by id; InvokeModel has Anthropic's blocks."""

    def kind(item):
        call = item.get("toolUse")
        if item.get("type") == "tool_use":
            return item.get("id")
        return isinstance(call, dict) and call.get("toolUseId")

    return most(folder, kind)


def bfcl_calls(folder):
    """Returns each call of possible answers, over all turns."""
    found = set()
    for path in sorted(folder.glob("possible_answer*.json")):
        for row, item in enumerate(rows(path)):
            for turn, truth in enumerate(item["ground_truth"]):
                calls = truth if isinstance(truth, list) else [truth]
                found |= {(path.name, row, turn, place) for place, _ in enumerate(calls)}
    return found


def decoded(value):
    """Returns a value with JSON texts inside it decoded."""
    for _ in range(4):
        if isinstance(value, str) and value[:1] in ("[", "{", '"'):
            try:
                value = json.loads(value)
            except ValueError:
                break
    return value


def walk(value):
    value = decoded(value)
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from walk(item)


def langfuse_calls(folder):
    """Returns distinct (file, name, arguments) in inputs and outputs of generations."""
    found = set()
    for path in folder.glob("*.trace.json"):
        for step in json.loads(path.read_bytes())["observations"]:
            for item in walk([step["input"], step["output"]]) if is_generation(step) else ():
                call = item.get("function") or item.get("function_call")
                if not isinstance(call, dict):
                    kinds = ("tool_call", "function_call")
                    call = item if item.get("type") in kinds or "toolName" in item else {}
                name = call.get("name") or call.get("toolName")
                given = decoded(call.get("arguments", call.get("args", call.get("input"))))
                if name and "parameters" not in call:
                    found.add((path.name, name, json.dumps(given, sort_keys=True)))
    return found


def is_generation(step):
    return step["type"] == "GENERATION"


def langchain_calls(folder):
    """Returns calls by id: `tool_calls`, else blocks of the content."""
    found = set()
    for path in folder.glob("*.json"):
        for message in json.loads(path.read_bytes()):
            fields = message.get("data") or message.get("kwargs")
            blocks = fields["content"] if isinstance(fields["content"], list) else []
            used = [block for block in blocks if block.get("type") == "tool_use"]
            found |= {(call["id"], call["name"]) for call in fields.get("tool_calls") or used}
    return found
