"""Write the golden files of the reader cases anew: scripts/golden.py [READER…]; review the diff."""

import json
import sys
from pathlib import Path

from builder.inputs import find_sources
from builder.readers import readers
from builder.testing import check_reader, describe

ROOT = Path(__file__).parent.parent / "tests" / "readers"


def main() -> None:
    wanted = sys.argv[1:] or sorted(readers())
    for folder in sorted(path.parent for path in ROOT.glob("*/*/input")):
        if folder.parent.name not in wanted:
            continue
        events = {
            source.name: [
                describe(event) for event in check_reader(readers()[folder.parent.name], source)
            ]
            for source in find_sources(str(folder / "input"))
        }
        text = json.dumps(events, indent=1, ensure_ascii=False)
        (folder / "expected.json").write_text(text + "\n", encoding="utf-8")
        print(folder.relative_to(ROOT))


if __name__ == "__main__":
    main()
