"""Shows by key path which text of raw logs is in no conversation and in no rejected record.

    python scripts/unused_text.py FOLDER… [--top N] [--show] [--table]

Counts the strings of more than 20 characters in the files of each folder, also inside JSON texts,
by the path of their keys. Text counts as used if a conversation contains it, whether it is trained,
context or rejected, and as rejected if a reject names its record. What is left at the top of the
list is explained in docs/formats/coverage.md, or it is a fault. The raw files are read with
`json` alone, so that a fault of a reader cannot hide itself. `--show` also prints an example of
each path; `--table` prints the rows of the table in the documentation.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path

import yaml

from builder.api import find_sources, read
from builder.conversation import Conversation, Ignored
from builder.problem import BuilderError, Problem

LEAST = 20
"""Strings and lines of at most this many characters are names, ids and times."""

IDENTIFIER = re.compile(r"(?:data:[\w/.+-]+;base64,)?[\w.:/+=@%?&#,-]+")
"""Text without a space: ids, hashes, signatures, paths, addresses, encoded media."""

RECORD = re.compile(r"line (\d+)|\[(\d+)\]|interaction (\d+)")
STREAM = re.compile(r"(?:event|data): ?[{\w]")
INDEX = re.compile(r"^\d+$|[0-9a-f]{8}|^(?:toolu|call|msg|chatcmpl)_")


@dataclass
class Texts:
    """The lines of text that the conversations of a folder contain, and what they leave out."""

    lines: set[str] = field(default_factory=set)
    codes: Counter[str] = field(default_factory=Counter)
    rejected: set[tuple[str, str]] = field(default_factory=set)

    def add(self, value: object) -> None:
        """Adds all texts in a value, also those inside JSON texts."""
        self.lines.update(line for _, text in strings(value, ()) for line in long_lines(text))


def strings(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields (path, text) of each string in a value; JSON texts are opened."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from strings(item, (*path, "*" if INDEX.search(str(key)) else str(key)))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item, path)
    elif is_dataclass(value):
        for item in fields(value):
            yield from strings(getattr(value, item.name), (*path, item.name))
    elif isinstance(value, bytes):
        with contextlib.suppress(UnicodeDecodeError):  # other bytes are no text
            yield from strings(value.decode("utf-8"), path)
    elif isinstance(value, str):
        if value[:1] in "{[" and value[-1:] in "}]" and len(value) > LEAST:
            try:
                inner = json.loads(value)
            except (ValueError, RecursionError):
                pass
            else:
                yield from strings(inner, (*path, "()"))
                return
        if "\n" in value and STREAM.match(value):
            for line in value.splitlines():
                yield from strings(line.removeprefix("data:").strip(), (*path, "data:"))
            return
        yield path, value


def long_lines(text: str) -> Iterator[str]:
    """Yields the lines of a text that are longer than `LEAST`, without white space around them."""
    return (line for line in map(str.strip, text.splitlines()) if len(line) > LEAST)


def raw_values(path: Path) -> Iterator[tuple[str, object]]:
    """Yields (place of the record, value) of a file."""
    data = path.read_bytes()
    if data.startswith(b"SQLite format 3"):
        yield from _tables(path)
        return
    if b"\0" in data[:2000]:  # an archive: not measured
        return
    text = data.decode("utf-8", "replace")
    if path.suffix in (".yml", ".yaml"):
        yield from _cassette(text)
        return
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        pass
    else:
        values = whole if isinstance(whole, list) else [whole]
        yield from ((str(number), value) for number, value in enumerate(values))
        return
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            yield str(number), json.loads(line.removeprefix("data: "))
        except (ValueError, RecursionError):
            yield str(number), {"(text)": line}


def _cassette(text: str) -> Iterator[tuple[str, object]]:
    whole = yaml.load(text, Loader=yaml.CSafeLoader)
    lists = (whole.get(key) for key in ("interactions", "http_interactions"))
    for number, item in enumerate(next(filter(None, lists), [])):
        yield str(number), item


def _tables(path: Path) -> Iterator[tuple[str, object]]:
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as database:
        names = database.execute("select name from sqlite_master where type = 'table'").fetchall()
        for (name,) in names:
            cursor = database.execute(f'select * from "{name}"')  # noqa: S608 - a name of the file
            columns = [str(item[0]) for item in cursor.description]
            for row in cursor:
                yield "", {str(name): dict(zip(columns, row, strict=True))}


def read_folder(folder: Path) -> Texts:
    """Returns the texts of all conversations in a folder, and the codes of everything else."""
    found = Texts()
    for source in find_sources(folder):
        if isinstance(source, Problem):
            found.codes[f"reject {source.code}"] += 1
            continue
        name = source.name
        if name.endswith(("SOURCES.tsv", "README.md")):
            continue
        try:
            for event in read(source):
                _take(found, name, event)
        except BuilderError as error:
            found.codes[f"reject {'unrecognised' if 'recognises' in str(error) else 'file'}"] += 1
            found.rejected.add((name, "file"))
    return found


def _take(found: Texts, name: str, event: object) -> None:
    if isinstance(event, Conversation):
        found.add(event)
        for problem in event.problems:
            found.codes[f"reject {problem.code}"] += 1
        found.codes.update({f"change {code}": count for code, count in event.changes.items()})
    elif isinstance(event, Problem):
        found.codes[f"reject {event.code}"] += 1
        numbers = [next(filter(None, one)) for one in RECORD.findall(event.where)]
        found.rejected.add((name, numbers[0] if numbers else event.where))
    elif isinstance(event, Ignored):
        found.codes[f"ignored {event.code}"] += event.records


@dataclass
class Coverage:
    """Characters of the raw text: in all, used, rejected, identifiers, and the rest by path."""

    total: int = 0
    used: int = 0
    rejected: int = 0
    identifiers: int = 0
    left: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)


def measure(folder: Path) -> tuple[Coverage, Counter[str]]:
    """Returns the coverage of a folder, and the codes of what is left out."""
    texts = read_folder(folder)
    found = Coverage()
    names = {name for name, _ in texts.rejected}
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        if path.name in ("SOURCES.tsv", "README.md"):
            continue
        name = path.relative_to(folder).as_posix()
        own = {place for other, place in texts.rejected if _is_of(other, name)} if names else set()
        for place, value in raw_values(path):
            is_rejected = place in own or "file" in own
            for at, text in strings(value, ()):
                _count(found, texts, ".".join(at), text, is_rejected=is_rejected)
    return found, texts.codes


def _is_of(source: str, name: str) -> bool:
    return source == name or name.endswith(f"/{source}") or source.endswith(f"/{name}")


def _count(found: Coverage, texts: Texts, path: str, text: str, *, is_rejected: bool) -> None:
    for line in long_lines(text):
        found.total += len(line)
        if line in texts.lines:
            found.used += len(line)
        elif is_rejected:
            found.rejected += len(line)
        elif IDENTIFIER.fullmatch(line):
            found.identifiers += len(line)
        else:
            found.left[path] += len(line)
            found.examples.setdefault(path, line[:100])


def main() -> None:
    """Prints the coverage of each folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--top", type=int, default=8)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    for folder in options.folders:
        found, codes = measure(folder)
        total = max(found.total, 1)
        shares = [found.used, found.rejected, found.identifiers, sum(found.left.values())]
        percent = [f"{100 * share / total:.1f}" for share in shares]
        top = found.left.most_common(options.top)
        if options.table:
            paths = ", ".join(f"`{path}` {100 * count / total:.1f}" for path, count in top[:3])
            print(f"| {folder.name} | {found.total:,} | {' | '.join(percent)} | {paths} |")
            continue
        print(f"{folder.name}: {found.total:,} characters; used {percent[0]} %, rejected"
              f" {percent[1]} %, identifiers {percent[2]} %, left {percent[3]} %")  # fmt: skip
        print("  " + ", ".join(f"{code} {count}" for code, count in codes.most_common(12)))
        for path, count in top:
            print(f"  {100 * count / total:5.1f} %  {count:>9,}  {path}")
            if options.show:
                print(f"           {found.examples[path]!r}")


if __name__ == "__main__":
    main()
