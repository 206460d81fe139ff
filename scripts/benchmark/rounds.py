"""Runs commands in alternating rounds, and defines what all parts share."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from benchmark.cost import Cost, measure
from benchmark.logs import Copies, Corpus, make

ROOT = Path(__file__).parents[2]
CHILDREN = Path(__file__).parent / "children"
TINY = ROOT / "data" / "claude-code" / "parallel.jsonl"
"""A log of a few lines: the time a command takes for it is start-up."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line; `fast=False` hides gigatoken from it, `clear` is removed before each run."""

    line: Sequence[str]
    fast: bool = True
    clear: Path | None = None
    accepted: tuple[int, ...] = (0,)


Costs = dict[str, list[Cost]]
"""The costs of each round, by the command's name."""


def builder(*arguments: str | Path) -> list[str]:
    """Returns a command line of the program."""
    return [sys.executable, "-m", "builder", *map(str, arguments)]


def build(logs: Path, out: Path, workers: int, *more: str) -> list[str]:
    """Returns the command line of a build; a corpus may contain evaluation data, so allows it."""
    options = ("--workers", str(workers), "--allow-eval", "--json", *more)
    return builder("build", logs, "-o", out, *options)


def child(name: str, *arguments: str | Path) -> list[str]:
    """Returns the command line of a program in children/."""
    return [sys.executable, str(CHILDREN / f"{name}.py"), *map(str, arguments)]


@dataclass(slots=True)
class Bench:
    """The corpus, a scratch folder and the options, which all parts share.

    `fast` is the version of gigatoken, None if it is not installed.
    """

    corpus: Corpus
    scratch: Path
    copies: int
    rounds: int
    workers: int
    fast: str | None
    teich: Path | None
    _made: dict[int, Copies] = field(default_factory=dict)

    def environment(self, *, fast: bool) -> Mapping[str, str]:
        """Returns the environment of children: this tree's builder with the extra `fast`, or none.

        A package of another extra is hidden by a module of its name that cannot be imported.
        """
        hidden = [_hidden(self.scratch, name) for name in ("kingfisher_sdk", "gigatoken")]
        paths = [*map(str, hidden[:1] if fast else hidden), str(ROOT)]
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "TOKENIZERS_PARALLELISM": "false",
            "HF_HUB_OFFLINE": "1",
        }

    def copied(self, copies: int) -> Copies:
        """Returns the given number of copies of the corpus; they are written once."""
        if copies not in self._made:
            self._made[copies] = make(self.corpus.logs, copies, self.scratch / f"logs-{copies}")
        return self._made[copies]

    def run(self, command: Command) -> Cost:
        """Runs it once. Raises Failed."""
        if command.clear is not None:
            shutil.rmtree(command.clear, ignore_errors=True)
        environment = self.environment(fast=command.fast)
        return measure(command.line, environment, ROOT, command.accepted)

    def alternate(self, commands: dict[str, Command]) -> Costs:
        """Runs all commands in each round, in reverse order every other round. Raises Failed."""
        found: Costs = {name: [] for name in commands}
        for number in range(self.rounds):
            for name in reversed(commands) if number % 2 else commands:
                found[name].append(self.run(commands[name]))
                seconds = found[name][-1].seconds
                print(f"round {number + 1}: {name} {seconds:.2f} s", file=sys.stderr, flush=True)
        return found


Metric = Callable[[Cost], float | None]
"""Returns one value of a cost; None if it is unknown."""

seconds: Metric = attrgetter("seconds")
cpu: Metric = attrgetter("cpu")
peak: Metric = attrgetter("peak")


def median(costs: Iterable[Cost], of: Metric) -> float | None:
    """Returns the median of the known values; None if there are none."""
    known = [value for cost in costs if (value := of(cost)) is not None]
    return statistics.median(known) if known else None


def ratios(one: Sequence[Cost], other: Sequence[Cost], of: Metric) -> list[float]:
    """Returns the quotients one / other of the rounds in which both are known."""
    pairs = [(of(first), of(second)) for first, second in zip(one, other, strict=True)]
    return [first / second for first, second in pairs if first is not None and second]


def _hidden(scratch: Path, name: str) -> Path:
    """Returns a folder with a module that cannot be imported."""
    folder = scratch / f"without-{name}"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text('raise ImportError("hidden by scripts/bench.py")\n')
    return folder
