"""Compares the samples of an agent's logs with those of captures of the same sessions.

A trained turn is in both if the whole sample up to its end is equal in both: roles, contents except
weights, and tools. A turn that only one of them has is listed with the reason, as far as the
requests show it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wire.agents import Agent
from wire.compare import CONFIG, build
from wire.mock_server import asks_for_summary
from wire.report import capture_of
from wire.run import root
from wire.shapes import read_request

_CONFIG = CONFIG.replace("{", "{mask: [], ", 1)
"""Captures do not show which turns the user took back."""
_SUMMARY = "Respond with TEXT ONLY"

_SHOWN = 3
"""Maximum number of differing turns that a line names."""

_Turn = tuple[str, str]
"""The messages of a sample up to a trained turn, and its tools, both as JSON."""


@dataclass
class Agreement:
    """The trained turns of one scenario.

    both       turns in logs and captures
    captures   turns in captures only, by the reason why no log has them
    logs       turns in logs only: the context differs, or no capture explains them
    """

    both: int = 0
    captures: Counter[str] = field(default_factory=Counter)
    logs: list[str] = field(default_factory=list)


def agree_all(
    agent: Agent, version: str, scenarios: Sequence[str]
) -> Iterator[tuple[str, Agreement]]:
    """Yields the agreement of each scenario that was run."""
    folder = root() / agent.name / version
    wanted = [name for name in scenarios if (folder / name / "logs").is_dir()]
    sources = {name: folder / name / "logs" for name in wanted}
    logs = build(sources, folder / "from-logs", _CONFIG)
    captures = {f"{name}.jsonl": capture_of(folder / name) for name in wanted}
    captured = build(captures, folder / "from-captures", _CONFIG)
    for name in wanted:
        yield name, _agreement(logs[name], captured[f"{name}.jsonl"], folder / name / "requests")


def _agreement(
    logs: Sequence[tuple[dict[str, Any], dict[str, Any]]],
    captured: Sequence[tuple[dict[str, Any], dict[str, Any]]],
    requests: Path,
) -> Agreement:
    one = Counter(turn for sample, _ in logs for turn in _turns(sample))
    other = Counter(turn for sample, _ in captured for turn in _turns(sample))
    reasons = dict(_side_requests(requests))
    found = Agreement(both=(one & other).total())
    for messages, _ in (other - one).elements():
        found.captures[reasons.get(_text_of(messages), "context")] += 1
    found.logs += [_last_of(messages) for messages, _ in (one - other).elements()]
    return found


def _turns(sample: Mapping[str, Any]) -> Iterator[_Turn]:
    tools = json.dumps(sorted(sample["tools"], key=json.dumps), sort_keys=True)
    pairs: list[tuple[str, str]] = []
    for message in sample["messages"]:
        pairs.append((message["role"], message["content"]))
        if message["role"] == "assistant" and message.get("weight") != 0:
            yield json.dumps(pairs), tools


def _last_of(messages: str) -> str:
    pairs: list[list[str]] = json.loads(messages)
    return pairs[-1][1]


def _text_of(messages: str) -> str:
    """Returns the last turn without its calls."""
    return _last_of(messages).partition("<tool_call>")[0].strip("\n")


def _side_requests(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields the texts of answers that an agent does not keep as turns, each with the reason.

    Answers without text are not distinguished.
    """
    for path in sorted(folder.glob("[0-9]*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        blocks = (record["response"] or {}).get("content")
        if not isinstance(blocks, list):
            continue
        text = "\n\n".join(block["text"] for block in blocks if block.get("type") == "text")
        if not text:
            continue
        request = read_request(record["path"], record["request"])
        if asks_for_summary(request) or any(
            _SUMMARY in turn.texts() for turn in request.turns[-2:]
        ):
            yield text, "summary"
        elif not request.tools:
            yield text, "side request"
        elif record.get("received") is False:
            yield text, "not received"


def proxied(agent: Agent, version: str, scenarios: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yields a line for each scenario that was run through the proxy, and whether it is equal.

    What `builder capture` wrote is compared with the requests that the server recorded.
    """
    folder = root() / agent.name / version
    wanted = [name for name in scenarios if (folder / name / "captured").is_dir()]
    own = build({name: folder / name / "captured" for name in wanted}, folder / "from-proxied")
    recorded = build({name: capture_of(folder / name) for name in wanted}, folder / "from-captures")
    for name in wanted:
        one, other = (
            Counter(turn for sample, _ in found[name] for turn in _turns(sample))
            for found in (own, recorded)
        )
        only = [_last_of(messages)[:60] for messages, _ in ((one - other) + (other - one))]
        equal = bool(one) and not only
        levels = dict(Counter(meta["context"]["level"] for _, meta in own[name]))
        counts = f"{one.total()} and {other.total()} turns, {levels}"
        shown = f", {only[:_SHOWN]}" * bool(only)
        state = "equal" if equal else "differs"
        yield f"{agent.name} {version} {name}: {state}, {counts}{shown}", equal


def table(version: str, results: Sequence[tuple[str, Agreement]]) -> str:
    """Returns the row of one version for docs/context.md."""
    captures: Counter[str] = Counter()
    for _, found in results:
        captures += found.captures
    reasons = ("summary", "side request", "not received", "context")
    differ = [name for name, found in results if found.logs or found.captures["context"]]
    cells = [
        version,
        len(results),
        sum(found.both for _, found in results),
        *(captures[reason] for reason in reasons),
        sum(len(found.logs) for _, found in results),
        ", ".join(differ) or "none",
    ]
    return f"| {' | '.join(map(str, cells))} |"
