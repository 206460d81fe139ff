"""Regenerates the golden files of reader cases: scripts/golden.py [READER…]; review the diff."""

import json
import sys
import tempfile
from pathlib import Path

from builder.qwen3.tokenizer import load
from builder.readers import readers
from builder.testing import check_reader

TESTS = Path(__file__).parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from support.logs.cases import case_sources, rendered  # noqa: E402 - a module of the tests
from support.logs.described import describe  # noqa: E402 - as above


def main() -> None:
    wanted = sys.argv[1:] or sorted(readers())
    for folder in sorted(path.parent for path in (TESTS / "readers").glob("*/*/input")):
        if folder.parent.name not in wanted:
            continue
        reader = readers()[folder.parent.name]
        with tempfile.TemporaryDirectory() as scratch:
            events = {
                source.name: check_reader(reader, source)
                for source in case_sources(folder, Path(scratch))
            }
        described = {name: list(map(describe, found)) for name, found in events.items()}
        text = json.dumps(described, indent=1, ensure_ascii=False)
        (folder / "expected.json").write_text(text + "\n", encoding="utf-8")
        (folder / "rendered.txt").write_bytes(rendered(events, load()).encode())
        print(folder.relative_to(TESTS / "readers"))


if __name__ == "__main__":
    main()
