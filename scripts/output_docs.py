"""Writes the lists of docs/output.md from the code; --check: fails if the page differs."""

import sys
from collections.abc import Iterator
from pathlib import Path

from builder.codes import code_texts
from builder.dataset.meta import Preference, SampleMeta
from builder.dataset.rejects import Reject
from builder.finding import AuditFinding
from builder.keys import keys_of
from builder.output.manifest import Manifest

PAGE = Path(__file__).parent.parent / "docs" / "output.md"
BEGIN, END = "<!-- table: {} -->\n", "<!-- end -->\n"


def keys_table(kind: type) -> Iterator[str]:
    for item in keys_of(kind):
        name = f"{item.kind.name}, or absent" if item.optional else item.kind.name
        yield f"- `{item.name}` ({name}): {item.meaning}\n"


def codes_table() -> Iterator[str]:
    for code, found in code_texts().items():
        has_none = found.remedy.startswith(("none", "report it"))
        remedy = "" if has_none else f". *Remedy:* {found.remedy}"
        yield f"- `{code}`: {found.meaning}{remedy}\n"


TABLES = {
    "meta": "".join(keys_table(SampleMeta)),
    "preferences": "".join(keys_table(Preference)),
    "rejects": "".join(keys_table(Reject)),
    "codes": "".join(codes_table()),
    "manifest": "".join(keys_table(Manifest)),
    "finding": "".join(keys_table(AuditFinding)),
}


def page(text: str) -> str:
    """Returns the page with its lists replaced. Raises ValueError if it lacks one."""
    for name, table in TABLES.items():
        begin = text.index(BEGIN.format(name)) + len(BEGIN.format(name))
        end = text.index(END, begin)
        text = text[:begin] + table + text[end:]
    return text


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    new = page(text)
    if "--check" in sys.argv:
        sys.exit("docs/output.md is out of date: run scripts/output_docs.py" if new != text else 0)
    PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
