"""Command line: python scripts/wire COMMAND AGENT [--version V…] [--scenario S…].

list: agents, versions, scenarios · install · run · compare: builds samples from the logs of the
scenarios that were run and compares them with the requests (-v: each difference) · table: the same
as a Markdown table · agree: compares samples of the logs with those of the captures of the same
sessions, as a table with the differences · proxied: compares samples of what `builder capture`
wrote with samples of the requests that the server recorded. `--captures`: uses the recorded
requests and answers instead of the logs. `--proxied`: lets the requests of a run pass through
`builder capture`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from wire import agreement, report, run
from wire.agents import Agent, agents

_COMMANDS = ("list", "install", "run", "compare", "table", "agree", "proxied")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=_COMMANDS)
    parser.add_argument("agent", nargs="*")
    parser.add_argument("--version", nargs="*")
    parser.add_argument("--scenario", nargs="*")
    parser.add_argument("--captures", action="store_true")
    parser.add_argument("--proxied", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    known = agents()
    rows: list[report.Result] = []
    equal = True
    for name in options.agent or known:
        agent = known[name]
        for version in options.version or agent.versions:
            scenarios = options.scenario or list(agent.scenarios)
            if options.command in ("compare", "table"):
                rows += report.compare_all(agent, version, scenarios, captures=options.captures)
            elif options.command == "agree":
                equal &= _agree(agent, version, scenarios)
            elif options.command == "proxied":
                for line, is_equal in agreement.proxied(agent, version, scenarios):
                    print(line)
                    equal &= is_equal
            else:
                _run(options.command, agent, version, scenarios, proxied=options.proxied)
    if options.command == "table":
        print("\n".join(report.table(rows)))
    elif options.command == "compare":
        print("\n".join(report.lines(rows, verbose=options.verbose)))
        equal = all(row.is_equal() for _, _, _, row in rows)
    sys.exit(not equal)


def _agree(agent: Agent, version: str, scenarios: list[str]) -> bool:
    results = list(agreement.agree_all(agent, version, scenarios))
    print(agreement.table(version, results))
    for name, found in results:
        for text in found.logs:
            print(f"    {name}: only in the samples of logs: {text[:80]!r}")
        if found.captures["context"]:
            print(f"    {name}: only in the samples of captures: {found.captures['context']}")
    return not any(found.logs or found.captures["context"] for _, found in results)


def _run(command: str, agent: Agent, version: str, scenarios: list[str], *, proxied: bool) -> None:
    if command == "list":
        print(agent.name, version, *scenarios)
    elif command == "install":
        print(run.install(agent, version))
    else:
        for scenario in scenarios:
            folder = run.run(agent, version, scenario, proxied=proxied)
            count = len(list((folder / "requests").glob("*.json")))
            status = (folder / "status").read_text().strip()
            print(f"{agent.name} {version} {scenario}: {count} requests, exit {status}", flush=True)


if __name__ == "__main__":
    main()
