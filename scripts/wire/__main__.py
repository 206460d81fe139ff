"""Command line: python scripts/wire COMMAND AGENT [--version V…] [--scenario S…].

list: agents, versions, scenarios · install · run · compare: build samples from the logs of the
scenarios that were run and compare them with the requests (-v: each difference) · table: the same
as a Markdown table. `--captures`: the recorded requests and answers instead of the logs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from wire import report, run
from wire.agents import Agent, agents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("list", "install", "run", "compare", "table"))
    parser.add_argument("agent", nargs="*")
    parser.add_argument("--version", nargs="*")
    parser.add_argument("--scenario", nargs="*")
    parser.add_argument("--captures", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    known = agents()
    rows = []
    for name in options.agent or known:
        agent = known[name]
        for version in options.version or agent.versions:
            scenarios = options.scenario or list(agent.scenarios)
            if options.command in ("compare", "table"):
                rows += report.compare_all(agent, version, scenarios, captures=options.captures)
            else:
                _run(options.command, agent, version, scenarios)
    if options.command == "table":
        print("\n".join(report.table(rows)))
    elif options.command == "compare":
        print("\n".join(report.lines(rows, verbose=options.verbose)))
        sys.exit(not all(row.is_equal() for _, _, _, row in rows))


def _run(command: str, agent: Agent, version: str, scenarios: list[str]) -> None:
    if command == "list":
        print(agent.name, version, *scenarios)
    elif command == "install":
        print(run.install(agent, version))
    else:
        for scenario in scenarios:
            folder = run.run(agent, version, scenario)
            count = len(list((folder / "requests").glob("*.json")))
            status = (folder / "status").read_text().strip()
            print(f"{agent.name} {version} {scenario}: {count} requests, exit {status}", flush=True)


if __name__ == "__main__":
    main()
