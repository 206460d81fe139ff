"""Tests that the verifier detects faults: mutates correct samples in one place and verifies them.

    scripts/mutate.py [DATASET…] [--each N] [--chat-template FILE]

DATASET is a folder made by `builder build` or a JSONL file of proven samples; by default the logs
in data/ are built, once without and once with thoughts. Each kind of mutation in scripts/mutations/
is applied to at most N samples that it fits (default 25, 0: all). Every mutated sample must be
reported under one of the mutation's codes, no unchanged sample may be reported, and without DATASET
every kind must fit some sample. Otherwise the exit code is 1. With --chat-template the target has
this text; if it writes calls as XML, the kinds of `mutations.xml` replace those of JSON calls.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mutations import calls, meant, rows, xml
from mutations.edits import Mutation, Row

from builder import cli
from builder.dataset.forms import read_sample, targets
from builder.jsonio import loads
from builder.qwen3.flat import to_dialogue
from builder.qwen3.reference import EMBEDDED, with_template
from builder.qwen3.tokenizer import load
from builder.sample import Sample
from builder.verify.dataset import verify_dataset
from builder.verify.verifier import Verifier

DATA = Path(__file__).parents[1] / "data"


@dataclass(frozen=True, slots=True)
class Line:
    """An unchanged sample: its decoded line and its training unit."""

    row: Row
    unit: str


@dataclass(slots=True)
class Tally:
    """The results of one kind: samples mutated, mutations caught, and the codes reported."""

    applied: int = 0
    caught: int = 0
    codes: Counter[str] = field(default_factory=Counter)

    def add(self, found: set[str], fitting: frozenset[str]) -> None:
        """Counts one mutated sample and the codes that were found in it."""
        self.applied += 1
        self.caught += bool(found & fitting)
        self.codes.update(sorted(found))


def lines_of(dataset: Path) -> Iterator[Line]:
    """Returns the samples of a built folder or a JSONL file."""
    if dataset.is_file():
        yield from (Line(json.loads(line), "conversation") for line in lines_in(dataset))
        return
    for data in sorted((dataset / "data").glob("*.jsonl")):
        for line, about in zip(lines_in(data), lines_in(dataset / "meta" / data.name), strict=True):
            yield Line(json.loads(line), json.loads(about)["unit"])


def lines_in(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def mutated(mutation: Mutation, lines: list[Line], most: int) -> Iterator[tuple[Line, Row]]:
    """Yields (line, mutated row) of samples that the mutation fits, spread over all lines."""
    found = 0
    step = max(1, len(lines) // most) if most else 1
    for line in (line for start in range(step) for line in lines[start::step]):
        row = mutation.change(copy.deepcopy(line.row))
        if row is not None and json.dumps(row) != json.dumps(line.row):
            yield line, row
            found += 1
        if most and found == most:
            return


def found_alone(verifier: Verifier, items: list[tuple[str, Row]]) -> list[set[str]]:
    """Returns the codes that `builder verify` finds in each (unit, row)."""
    codes: list[set[str]] = [set() for _ in items]
    with tempfile.TemporaryDirectory() as scratch:
        for unit in sorted({unit for unit, _ in items}):
            places = [at for at, (of, _) in enumerate(items) if of == unit]
            path = Path(scratch) / f"{unit}.jsonl"
            path.write_text("".join(json.dumps(items[at][1]) + "\n" for at in places))
            for report in verify_dataset(str(path), verifier, unit):
                found = {finding.code for finding in report.findings}
                codes[places[report.line - 1]] = found | ({"converted"} if report.form else set())
    return codes


def found_against_dialogue(verifier: Verifier, line: Line, row: Row) -> set[str]:
    """Returns the codes that `build` would report for this row and the line's dialogue."""
    original, written = read_sample(line.row), read_sample(loads(json.dumps(row)))
    assert isinstance(original, Sample)
    assert isinstance(written, Sample)
    dialogue = to_dialogue(original, verifier.target.style)
    verdict = verifier.check(written, dialogue, targets(written, line.unit))
    return {finding.code for finding in verdict.findings}


def tally(verifier: Verifier, lines: list[Line], most: int) -> dict[str, Tally]:
    """Returns the tally of every kind by its name."""
    tallies: dict[str, Tally] = {}
    as_json = verifier.target.style.dialect.plain
    for mutation in (*(calls.KINDS if as_json else xml.KINDS), *rows.KINDS):
        kind = tallies[mutation.name] = Tally()
        items = [(line.unit, row) for line, row in mutated(mutation, lines, most)]
        for codes in found_alone(verifier, items):
            kind.add(codes, mutation.codes)
    unwritten = frozenset() if verifier.target.style.tools.exact else meant.UNWRITTEN
    for mutation in (*meant.KINDS, *(() if as_json else xml.MEANT)):
        if mutation.name in unwritten:
            continue
        kind = tallies[mutation.name] = Tally()
        for line, row in mutated(mutation, lines, most):
            kind.add(found_against_dialogue(verifier, line, row), mutation.codes)
    return tallies


def build_data(out: Path, template: str | None = None) -> Iterator[Path]:
    """Builds the logs in data/, without and with thoughts; returns the folders."""
    for reasoning in ("drop", "keep"):
        config = out / f"{reasoning}.yaml"
        config.write_text(f"inputs: [{{path: {DATA}}}]\nnormalize: {{reasoning: {reasoning}}}\n")
        folder = out / reasoning
        command = ["build", "-c", str(config), "-o", str(folder), "--workers", "1", "-q"]
        code = cli.main([*command, *(["--chat-template", template] if template else [])])
        assert code == 0, "data/ could not be built"
        yield folder


def show(tallies: dict[str, Tally]) -> None:
    width = max(map(len, tallies))
    for name, kind in tallies.items():
        codes = ", ".join(f"{code} {count}" for code, count in kind.codes.most_common())
        print(f"{name:{width}} {kind.applied:6} mutated {kind.caught:6} caught   {codes}")


def run(datasets: list[Path], most: int, template: str | None = None, *, complete: bool) -> int:
    verifier = Verifier(load(with_template(EMBEDDED, template)))
    lines = [line for dataset in datasets for line in lines_of(dataset)]
    codes = found_alone(verifier, [(line.unit, line.row) for line in lines])
    alarms = sum(map(bool, codes))
    tallies = tally(verifier, lines, most)
    show(tallies)
    applied = sum(kind.applied for kind in tallies.values())
    caught = sum(kind.caught for kind in tallies.values())
    unused = [name for name, kind in tallies.items() if not kind.applied]
    if unused:
        print(f"fits nowhere: {', '.join(unused)}")
    kinds = len(tallies) - len(unused)
    print(f"{caught} of {applied} mutated samples caught, {kinds} kinds of mutation")
    print(f"{alarms} false alarms in {len(lines)} unchanged samples")
    return 1 if caught < applied or alarms or not lines or (complete and unused) else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("dataset", nargs="*", type=Path)
    parser.add_argument("--each", type=int, default=25, help="samples a kind; 0: all")
    parser.add_argument("--chat-template", help="the text of another target, with its tokenizer")
    options = parser.parse_args()
    template = options.chat_template
    if options.dataset:
        return run(options.dataset, options.each, template, complete=False)
    with tempfile.TemporaryDirectory() as scratch:
        folders = list(build_data(Path(scratch), template))
        return run(folders, options.each, template, complete=template is None)


if __name__ == "__main__":
    sys.exit(main())
