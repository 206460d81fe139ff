"""Lists what the secret rules find in a folder of real logs, as digests instead of text.

    python scripts/corpus_hits.py FOLDER [--show] [--list FILE]

Prints the digest of each hit that is not in the list (default: tests/secrets/corpus_hits.txt).
`--show` also prints the text found, for review: it is written to the terminal and nowhere else.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from builder.jsonio import JsonFault, loads
from builder.scrub.texts import value_strings
from builder.secrets.secrets import named_secret, secrets_in

LIST = Path(__file__).resolve().parents[1] / "tests" / "secrets" / "corpus_hits.txt"


def texts(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yields (place, key or "", text) of a JSON, JSONL or text file."""
    data = path.read_bytes()
    if b"\0" in data[:2000]:
        return
    if path.suffix == ".json":
        try:
            yield from (("", name, text) for name, text in value_strings(loads(data)))
            return
        except (JsonFault, RecursionError):
            pass
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            found = value_strings(loads(line))
        except (JsonFault, RecursionError):
            found = [("", line.decode("utf-8", "replace"))]
        yield from ((str(number), name, text) for name, text in found)


def hits(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yields (digest of path, place and secret; path; secret with its surroundings)."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name == "SOURCES.tsv":
            continue
        name = path.relative_to(folder).as_posix()
        written = [*texts(path)]
        found = secrets_in([text for _, _, text in written])
        for (place, member, text), found_here in zip(written, found, strict=True):
            spans = [(hit.start, hit.end) for hit in found_here]
            if not spans and member and named_secret(member, text):
                spans = [(0, len(text))]
            for start, end in spans:
                key = f"{name}\n{place}\n{text[start:end]}"
                before, after = text[max(0, start - 50) : start], text[end : end + 20]
                around = f"{before}«{text[start:end]}»{after}"
                yield hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:32], name, around


def listed(path: Path = LIST) -> dict[str, str]:
    """Returns {digest: verdict}: `true` for text written as a secret, else `false`."""
    lines = path.read_text(encoding="ascii").splitlines()
    return dict(line.split()[::-1] for line in lines if line and not line.startswith("#"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", type=Path, default=LIST)
    parser.add_argument("--show", action="store_true", help="show what was found")
    options = parser.parse_args()
    known = listed(options.list) if options.list.exists() else {}
    new = 0
    for digest, name, around in hits(options.folder):
        if digest not in known:
            new += 1
            print(f"unseen {digest}" + (f"  {name}: {around!r}" if options.show else ""))
    print(f"{new} hits that are not listed, {len(known)} listed", file=sys.stderr)


if __name__ == "__main__":
    main()
