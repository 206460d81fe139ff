"""Measures start-up: the help of each command, and its work on a log of a few lines."""

from __future__ import annotations

from benchmark.rounds import TINY, Bench, Command, build, builder
from benchmark.tables import show_costs
from builder.cli.app import COMMANDS


def run(bench: Bench) -> None:
    """Measures and prints."""
    out, page, rows = (bench.scratch / f"tiny-{name}" for name in ("built", "page.html", "rows"))
    bench.run(Command(build(TINY, out, 1)))
    lines = {f"{name} --help".strip(): builder(*name.split(), "--help") for name in ("", *COMMANDS)}
    found = bench.alternate({name: Command(line) for name, line in lines.items()})
    show_costs("Start-up: --help", found)
    lines = {
        "formats": builder("formats"),
        "inspect": builder("inspect", TINY),
        "build": build(TINY, bench.scratch / "tiny-again", 1, "--fresh"),
        "verify": builder("verify", out, "-q"),
        "audit": builder("audit", out, "-q"),
        "report": builder("report", out, "-o", page),
        "export": builder("export", out, "--to", "openai", "-o", rows),
    }
    clear = {"export": rows}
    found = bench.alternate(
        {name: Command(line, clear=clear.get(name)) for name, line in lines.items()}
    )
    show_costs("Start-up: work on one log of a few lines", found)
