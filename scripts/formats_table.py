"""Writes the table of formats in docs/formats.md from the readers; --check: fails if it differs."""

import sys
from pathlib import Path

from builder.readers import Reader, candidates, readers

PAGE = Path(__file__).parent.parent / "docs" / "formats.md"
BEGIN = "<!-- formats: made by scripts/formats_table.py -->\n"
END = "<!-- end of formats -->\n"


def table() -> str:
    modules = {one.name: origin for origin, one in candidates() if isinstance(one, Reader)}
    rows = [
        f"| `{name}` | {reader.summary} | {', '.join(reader.evidence)} | {reader.checked or ''} "
        f"| {other_name(name, modules[name])} |\n"
        for name, reader in readers().items()
    ]
    head = (
        "| format | what it reads, and how it is recognised | evidence | checked with | module |\n"
        "|---|---|---|---|---|\n"
    )
    return head + "".join(rows)


def other_name(name: str, module: str) -> str:
    """Returns the module below builder.readers, or "" if it is called as its format."""
    own = module.removeprefix("builder.readers.").removesuffix(".reader")
    return "" if own.rpartition(".")[2] == name.replace("-", "_") else f"`{own}`"


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    new = head + BEGIN + table() + END + tail
    if "--check" in sys.argv:
        sys.exit("docs/formats.md: the table of formats is out of date" if new != text else 0)
    PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
