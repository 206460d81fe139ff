"""Compares samples of what `builder capture` wrote with those of the recorded requests.

Both are of the same run (`run --proxied`): the proxy stood between the agent and the server.
Samples are equal if their messages, with weights, and their tools are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from wire.agents import Agent
from wire.compare import build
from wire.report import capture_of
from wire.run import root

_SHOWN = 3
"""Maximum number of differing samples that a line names."""


def compare_all(agent: Agent, version: str, scenarios: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yields a line for each scenario that was run through the proxy, and whether it is equal."""
    folder = root() / agent.name / version
    wanted = [name for name in scenarios if (folder / name / "captured").is_dir()]
    own = build({name: folder / name / "captured" for name in wanted}, folder / "from-proxied")
    recorded = build({name: capture_of(folder / name) for name in wanted}, folder / "from-captures")
    for name in wanted:
        one, other = _samples(own[name]), _samples(recorded[name])
        levels = Counter(meta["context"]["level"] for _, meta in own[name])
        only = [*(one - other).elements(), *(other - one).elements()]
        state = "differs" if only or not one else "equal"
        counts = f"{one.total()} and {other.total()} samples, {dict(levels)}"
        last = [json.loads(text)[0][-1]["content"][:60] for text in only[:_SHOWN]]
        yield (
            f"{agent.name} {version} {name}: {state}, {counts}" + f", {last}" * bool(last),
            (state == "equal"),
        )


def _samples(rows: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> Counter[str]:
    return Counter(
        json.dumps([sample["messages"], sample["tools"]], sort_keys=True) for sample, _ in rows
    )
