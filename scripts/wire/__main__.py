"""Command line: python scripts/wire COMMAND AGENT [--version V…] [--scenario S…].

list: agents, versions, scenarios · install · run
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from wire import run
from wire.agents import Agent, agents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("list", "install", "run"))
    parser.add_argument("agent", nargs="*")
    parser.add_argument("--version", nargs="*")
    parser.add_argument("--scenario", nargs="*")
    options = parser.parse_args()
    known = agents()
    for name in options.agent or known:
        agent = known[name]
        for version in options.version or agent.versions:
            _run(options.command, agent, version, options.scenario or list(agent.scenarios))


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
            print(f"{agent.name} {version} {scenario}: {count} requests, exit {status}")


if __name__ == "__main__":
    main()
