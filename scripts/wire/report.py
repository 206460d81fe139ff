"""Runs the comparison over scenarios and writes the results as lines or as a Markdown table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from wire.agents import Agent
from wire.compare import Row, build, compare, read_exchanges
from wire.run import root

Result = tuple[str, str, str, Row]
"""Agent, version, scenario, comparison."""


def compare_all(
    agent: Agent, version: str, scenarios: Sequence[str], *, captures: bool = False
) -> Iterator[Result]:
    """Yields the comparison of each scenario that was run; all are built together."""
    folder = root() / agent.name / version
    wanted = [name for name in scenarios if (folder / name / "requests").is_dir()]
    sources = {}
    for name in wanted:
        path = capture_of(folder / name) if captures else folder / name / "logs"
        if path.exists():
            sources[path.name if captures else name] = path
    built = build(sources, folder / ("from-captures" if captures else "from-logs"))
    for name in wanted:
        samples = built.get(f"{name}.jsonl" if captures else name, [])
        yield (
            agent.name,
            version,
            name,
            compare(samples, read_exchanges(folder / name / "requests")),
        )


def capture_of(folder: Path) -> Path:
    """Writes the recorded exchanges of a run as one file of requests with their responses."""
    path = folder / f"{folder.name}.jsonl"
    with path.open("w", encoding="utf-8") as lines:
        for record in sorted((folder / "requests").glob("[0-9]*.json")):
            value = json.loads(record.read_text(encoding="utf-8"))
            exchange = {
                "url": f"http://127.0.0.1{value['path']}",
                "method": "POST",
                "status": value["status"],
                "request": value["request"],
                "response": value["response"],
            }
            lines.write(json.dumps(exchange, ensure_ascii=False) + "\n")
    return path


def lines(results: Sequence[Result], *, verbose: bool = False) -> Iterator[str]:
    """Yields a line for each result, followed by its differences if `verbose`."""
    for agent, version, scenario, row in results:
        levels = ", ".join(f"{n} {level}" for level, n in sorted(row.levels.items()))
        state = "equal" if row.is_equal() else "differs"
        counts = f"system {row.system} tools {row.tools} messages {row.messages}"
        others = f"unknown {row.unknown} missing {row.missing} false {row.false}"
        about = f"{agent} {version} {scenario}: {state}, {row.turns} turns"
        yield f"{about}, {counts}, {others}, {levels}"
        if verbose:
            yield from (f"    {note}" for note in row.notes)


def table(results: Sequence[Result]) -> Iterator[str]:
    """Yields the rows of the table in docs/context.md."""
    yield "| agent | version | scenario | turns | system | tools | messages | not learnt | level |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for agent, version, scenario, row in results:
        cells = [_cell(count, row.turns) for count in (row.system, row.tools, row.messages)]
        levels = ", ".join(f"{level} {n}" for level, n in sorted(row.levels.items()))
        left = str(row.missing or "")
        values = (agent, version, scenario, str(row.turns), *cells, left, levels)
        yield f"| {' | '.join(values)} |"


def _cell(count: int, turns: int) -> str:
    return "equal" if count == turns else f"{count} of {turns}"
