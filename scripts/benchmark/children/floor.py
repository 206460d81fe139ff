"""Measures the floor of verification: reads and renders every sample, compares nothing.

floor.py DATASET
"""

import json
import sys
from pathlib import Path

from builder.parallel.host import collect_seldom
from builder.qwen3.tokenizer import load


def main() -> None:
    collect_seldom()
    tokenizer = load().tokenizer
    for path in sorted(Path(sys.argv[1], "data").glob("*.jsonl")):
        with path.open("rb") as lines:
            for line in lines:
                row = json.loads(line)
                tokenizer.apply_chat_template(row["messages"], row["tools"], tokenize=False)


if __name__ == "__main__":
    main()
