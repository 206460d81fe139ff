"""Compares samples with the requests that the agent sent, turn by turn and in order.

A sample's trained turn was answered by one recorded response. The sample's content before that turn
must equal the request: the same system text, the same tools, the same messages in the same places,
and nothing else. `normalize.untrained_turns: weight` is used, so that repeats and other untrained
turns are in the sample and are not compared as targets.
"""

from __future__ import annotations

import difflib
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from builder import build_dataset, load_config
from wire.shapes import Request, Tool, Turn, read_answer, read_request

_CALL = re.compile(r"<tool_call>\n(.*?)\n</tool_call>", re.DOTALL)
_RESPONSE = re.compile(r"<tool_response>\n(.*?)\n</tool_response>", re.DOTALL)
_BILLING = "x-anthropic-billing-header"
CONFIG = "normalize: {untrained_turns: weight}\naudit: {secrets: 'off', personal_data: 'off'}\n"


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a conversation.

    `role` is system, user, results or assistant; `texts` are the results one by one, else one text;
    `calls` are (name, arguments as sorted JSON).
    """

    role: str
    texts: tuple[str, ...]
    calls: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A recorded request and its answer."""

    number: int
    request: Request
    items: tuple[Item, ...]
    answer: Item


@dataclass
class Row:
    """The comparison of one scenario, counted by trained turns.

    turns      trained turns of the samples
    answered   recorded responses
    missing    recorded answers that are a target in no sample
    unknown    trained turns that no recorded response explains
    system, tools, messages  turns whose system text, tools and messages equal the request
    levels     turns by the level that meta/ states for their sample
    false      turns that differ from the request although their level is proven or rendered
    notes      the first difference of each turn that differs
    """

    turns: int = 0
    answered: int = 0
    missing: int = 0
    unknown: int = 0
    system: int = 0
    tools: int = 0
    messages: int = 0
    levels: Counter[str] = field(default_factory=Counter)
    false: int = 0
    notes: list[str] = field(default_factory=list)

    def is_equal(self) -> bool:
        """Returns whether every trained turn is a recorded answer and has its request's context."""
        equal = self.turns == self.system == self.tools == self.messages
        return equal and not self.unknown


def _arguments(value: Any) -> str:
    """Returns arguments as text with sorted keys; a custom tool's raw text is its one argument."""
    value = {"input": value} if isinstance(value, str) else value
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _joined(items: Sequence[Item]) -> tuple[Item, ...]:
    """Returns the items with adjacent user texts joined by a blank line, as in a sample."""
    found: list[Item] = []
    for item in items:
        if found and item.role == found[-1].role == "user":
            found[-1] = Item("user", ("\n\n".join([*found[-1].texts, *item.texts]),))
        else:
            found.append(item)
    return tuple(found)


def request_items(turns: Sequence[Turn]) -> tuple[Item, ...]:
    """Returns a request's messages: late system messages as the user's, blank texts omitted.

    Results are in the order of their calls, as in a sample.
    """
    found: list[Item] = []
    asked: list[str] = []
    pending: list[tuple[str, str]] = []
    for turn in turns:
        if turn.role == "assistant":
            asked = [part.id for part in turn.parts if part.kind == "call"]
        given = [part for part in turn.parts if part.kind == "result"]
        results = tuple((part.id, part.text) for part in given)
        texts = [
            part.text if part.kind == "text" else "[image]"
            for part in turn.parts
            if part.kind == "media" or (part.kind == "text" and part.text.strip())
        ]
        if turn.role == "assistant":
            found.append(answer_item(turn))
            continue
        if results and found and found[-1].role == "results":
            pending += results
            found.pop()
        elif results:
            pending = list(results)
        if results:
            pending.sort(key=lambda item: asked.index(item[0]) if item[0] in asked else len(asked))
            found.append(Item("results", tuple(text for _, text in pending)))
        if texts:
            found.append(Item("user", ("\n\n".join(texts),)))
    return _joined(found)


def answer_item(turn: Turn) -> Item:
    """Returns an answer with its texts joined, and its calls; thoughts are not compared."""
    texts = [part.text for part in turn.parts if part.kind == "text" and part.text.strip()]
    calls = [(p.name, _arguments(p.value)) for p in turn.parts if p.kind == "call"]
    return Item("assistant", ("\n\n".join(texts).strip("\n"),), tuple(calls))


def sample_items(messages: Sequence[dict[str, Any]]) -> tuple[Item, ...]:
    """Returns the messages of a sample after the system message."""
    return _joined([_sample_item(message) for message in messages if message["role"] != "system"])


def _sample_item(message: dict[str, Any]) -> Item:
    content = message["content"]
    if message["role"] == "assistant":
        calls = [json.loads(text) for text in _CALL.findall(content)]
        named = tuple((call["name"], _arguments(call["arguments"])) for call in calls)
        text = content.split("<tool_call>")[0] if calls else content
        return Item("assistant", (text.strip("\n"),), named)
    if content.startswith("<tool_response>") and content.endswith("</tool_response>"):
        return Item("results", tuple(_RESPONSE.findall(content)))
    return Item("user", (content,))


def first_difference(wanted: Sequence[Item], found: Sequence[Item]) -> str:
    """Returns where two conversations differ first, or "" if they are equal."""
    for at, (old, new) in enumerate(zip(wanted, found, strict=False)):
        if old == new:
            continue
        if old.role != new.role:
            return f"message {at}: {new.role} where {old.role} was sent: {_short(new)}"
        return f"message {at} ({old.role}): {_changed(old, new)}"
    if len(wanted) > len(found):
        return f"message {len(found)} was sent and is missing: {_short(wanted[len(found)])}"
    if len(wanted) < len(found):
        return f"message {len(wanted)} was not sent: {_short(found[len(wanted)])}"
    return ""


def _short(item: Item) -> str:
    return repr("|".join(item.texts)[:90])


def _changed(old: Item, new: Item) -> str:
    before, after = "\n".join(old.texts), "\n".join(new.texts)
    if before == after:
        return f"calls {old.calls!r:.80} became {new.calls!r:.80}"
    diff = difflib.ndiff(before.split("\n"), after.split("\n"))
    lines = [line for line in diff if line[:1] in "+-"]
    return " ".join(repr(line[:90]) for line in lines[:4])


def read_exchanges(folder: Path) -> list[Exchange]:
    """Returns the recorded requests that the model answered."""
    found = []
    for path in sorted(folder.glob("[0-9]*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        request = read_request(record["path"], record["request"])
        if record["response"] is None:
            continue
        answer = answer_item(read_answer(request.api, record["response"]))
        request = _with_leading_system(request)
        found.append(Exchange(int(path.stem), request, request_items(request.turns), answer))
    return found


def _with_leading_system(request: Request) -> Request:
    """Moves system and developer messages before the first turn into the system text.

    A sample has one system text, in which the normaliser joins them.
    """
    texts = [*request.system]
    turns = list(request.turns)
    while turns and turns[0].role in ("system", "developer"):
        texts += [part.text for part in turns.pop(0).parts if part.text.strip()]
    return replace(request, system=tuple(texts), turns=tuple(turns))


def build(
    sources: dict[str, Path], folder: Path, options: str = CONFIG
) -> dict[str, list[tuple[dict[str, Any], dict[str, Any]]]]:
    """Builds a dataset from each log or capture; returns samples and meta lines by name.

    Separate datasets, because equal samples of several scenarios would be merged into one.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = folder / "config.yaml"
    config.write_text(options)
    found: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for name, path in sources.items():
        dataset = folder / name
        build_dataset([path], dataset, config=load_config(config))
        rows, metas = _rows(dataset / "data"), _rows(dataset / "meta")
        found[name] = list(zip(rows, metas, strict=True))
    return found


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
            yield json.loads(line)


def compare(
    samples: Sequence[tuple[dict[str, Any], dict[str, Any]]], exchanges: Sequence[Exchange]
) -> Row:
    """Compares every trained turn of the samples with the request that it answered."""
    row = Row(answered=len(exchanges))
    learnt: set[int] = set()
    for sample, meta in samples:
        messages = sample["messages"]
        for at, message in enumerate(messages):
            if message["role"] != "assistant" or not message.get("weight", 1):
                continue
            row.turns += 1
            level = meta["context"]["level"]
            row.levels[level] += 1
            before = sample_items(messages[:at])
            item = _sample_item(message)
            same = [e for e in exchanges if _is_answer(e.answer, item)]
            if not same:
                row.unknown += 1
                row.notes.append(f"no response is this turn: {message['content'][:90]!r}")
                continue
            best = min(same, key=lambda e: (e.number in learnt, _distance(e.items, before)))
            learnt.add(best.number)
            _count(row, sample, before, best, meta)
    row.missing = len(exchanges) - len(learnt)
    return row


def _is_answer(answer: Item, turn: Item) -> bool:
    """Returns whether a response is the turn, to whose arguments agents may have added defaults."""
    if answer.texts != turn.texts or len(answer.calls) != len(turn.calls):
        return False
    return all(
        name == logged_name and _contains(json.loads(logged), json.loads(arguments))
        for (name, arguments), (logged_name, logged) in zip(answer.calls, turn.calls, strict=True)
    )


def _contains(logged: Any, sent: Any) -> bool:
    if isinstance(logged, dict) and isinstance(sent, dict):
        return all(key in logged and logged[key] == value for key, value in sent.items())
    return bool(logged == sent)


def _distance(wanted: Sequence[Item], found: Sequence[Item]) -> int:
    equal = sum(old == new for old, new in zip(wanted, found, strict=False))
    return max(len(wanted), len(found)) - equal


def _count(
    row: Row, sample: dict[str, Any], before: Sequence[Item], sent: Exchange, meta: dict[str, Any]
) -> None:
    first = sample["messages"][0]
    system = first["content"] if first["role"] == "system" else ""
    texts = [text for text in sent.request.system if not text.startswith(_BILLING)]
    same_system = system == "\n\n".join(texts)
    grown = bool(meta["changes"].get("tools_added_later"))
    visible = [tool for tool in sent.request.tools if not tool.deferred]
    same_tools = _has_tools(sample["tools"], visible, grown=grown)
    difference = first_difference(sent.items, before)
    row.system += same_system
    row.tools += same_tools
    row.messages += not difference
    if difference:
        row.notes.append(f"request {sent.number}: {difference}")
    if not same_tools:
        row.notes.append(f"request {sent.number}: other tools")
    same = same_system and same_tools and not difference
    if not same and meta["context"]["level"] in ("proven", "rendered"):
        row.false += 1


def _has_tools(defined: Sequence[dict[str, Any]], sent: Sequence[Tool], *, grown: bool) -> bool:
    """Returns whether a sample defines the tools sent, verbatim; if `grown`, later ones too."""
    by_name = {tool["function"]["name"]: tool["function"] for tool in defined}
    if not grown and len(by_name) != len(sent):
        return False
    return all(
        tool.name in by_name
        and (by_name[tool.name].get("description") or "") == (tool.description or "")
        and (by_name[tool.name].get("parameters") or {}) == (tool.schema or {})
        for tool in sent
    )
