"""Makes the input: copies of a corpus with different ids and texts in each copy.

The differences depend only on the number of the copy, so the same corpus gives the same input. Each
copy has different ids (also in file names), and one word of each longer text differs. Texts that
are equal within a copy stay equal. Tool definitions differ between copies too, so that nothing
cached for one copy helps with the next.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.problem import Problem
from builder.readers import recognise
from builder.readers.discovery import find_sources

LONG = 10
"""Texts of at least this many characters are varied."""
UNIQUE = re.compile(
    r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}|(?<=[_-])[0-9A-Za-z]{20,}"
)
WORD = re.compile(r"(?<= )(?!true |false |null )[a-z]{4,}(?= )")
EVENT = re.compile(r"^data: (?=[{\[])", re.MULTILINE)
"""Lines of a recorded stream of server-sent events that contain JSON."""
ONE_LINE: tuple[dict[str, Any], ...] = ({"separators": (",", ":")}, {})
INDENTED: tuple[dict[str, Any], ...] = ({"indent": 1}, {"indent": 2}, {"indent": 4})
"""Styles of JSON; copies are written in the style of the original, to have the same size."""


@dataclass(frozen=True, slots=True)
class Log:
    """A file of the corpus: its path, its name relative to its root, its format."""

    path: Path
    root: str
    name: str
    format: str

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.path.stat().st_size


@dataclass(slots=True)
class Corpus:
    """The files that exactly one reader recognises, and the others."""

    logs: list[Log]
    left_out: list[Path]

    @property
    def size(self) -> int:
        """The size of all logs in bytes."""
        return sum(log.size for log in self.logs)

    def of(self, format: str) -> list[Log]:  # noqa: A002 - its name everywhere
        """Returns the logs of one format."""
        return [log for log in self.logs if log.format == format]


def survey(roots: Iterable[Path]) -> Corpus:
    """Returns the contents of the files and folders, in order of their names."""
    corpus = Corpus([], [])
    for root in roots:
        base = root if root.is_dir() else root.parent
        for source in find_sources(str(root)):
            if isinstance(source, Problem) or source.path is None:
                continue
            claims = recognise(source)
            for member in source.members or (source,):
                for path in _with_journal(member.path):
                    if len(claims) != 1:
                        corpus.left_out.append(path)
                        continue
                    name = path.relative_to(base).as_posix()
                    corpus.logs.append(Log(path, root.resolve().name, name, next(iter(claims))))
    return corpus


def _with_journal(path: Path | None) -> list[Path]:
    """Returns the file, and the files that SQLite keeps next to it."""
    if path is None:
        return []
    return [
        path,
        *(companion for end in ("-wal", "-shm") if (companion := Path(f"{path}{end}")).exists()),
    ]


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies: their folder, size, number of files, and numbers of verbatim copies by suffix."""

    folder: Path
    size: int
    files: int
    unvaried: Counter[str]


def make(logs: Iterable[Log], copies: int, folder: Path) -> Copies:
    """Writes the copies."""
    size = files = 0
    unvaried: Counter[str] = Counter()
    for log in logs:
        data = log.path.read_bytes()
        write = _copier(data)
        if write is None:
            unvaried[log.path.suffix] += 1
        for number in range(copies):
            target = folder / log.root / f"{number:05d}" / _ids(log.name, number)
            target.parent.mkdir(parents=True, exist_ok=True)
            copy = data if write is None else write(number)
            target.write_bytes(copy)
            size += len(copy)
            files += 1
    return Copies(folder, size, files, unvaried)


def _copier(data: bytes) -> Callable[[int], bytes] | None:
    """Returns a function from a copy's number to its bytes; None if the data is not text."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    pieces: list[tuple[Any, dict[str, Any] | None]] = []
    value, style = _parsed(text)
    if style is not None:
        pieces.append((value, style))
    else:
        pieces.extend(
            (line if style is None else value, style)
            for line in text.split("\n")
            for value, style in [_parsed(line)]
        )
    if any(style is not None for _, style in pieces):
        return lambda number: "\n".join(_written(pieces, number)).encode("utf-8", "surrogatepass")
    return lambda number: _text(text, number).encode()


def _written(pieces: list[tuple[Any, dict[str, Any] | None]], number: int) -> Iterator[str]:
    for value, style in pieces:
        yield value if style is None else _dumped(varied(value, number), style)


def _parsed(text: str) -> tuple[Any, dict[str, Any] | None]:
    """Returns (value, style it is written in); (None, None) if not a JSON object or list."""
    if text.lstrip()[:1] not in ("{", "["):
        return None, None
    try:
        value = json.loads(text)
        shapes = INDENTED if "\n" in text.strip() else ONE_LINE
        styles = [{**shape, "ensure_ascii": text.isascii()} for shape in shapes]
        return value, min(styles, key=lambda style: abs(len(_dumped(value, style)) - len(text)))
    except (ValueError, RecursionError):
        return None, None


def _dumped(value: Any, style: dict[str, Any]) -> str:
    text = json.dumps(value, **style)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate can only be written as an escape
        return json.dumps(value, **{**style, "ensure_ascii": True})
    return text


def varied(value: Any, number: int) -> Any:
    """Returns a JSON value with ids and texts specific to the copy; of keys only ids change."""
    if isinstance(value, dict):
        return {_ids(key, number): varied(item, number) for key, item in value.items()}
    if isinstance(value, list):
        return [varied(item, number) for item in value]
    return _text(value, number) if isinstance(value, str) else value


def _text(text: str, number: int) -> str:
    if text[:1] in ("{", "["):
        value, style = _parsed(text)
        if style is not None:  # JSON in JSON: arguments, recorded bodies
            return _dumped(varied(value, number), style)
    if EVENT.search(text):
        return "\n".join(_event(line, number) for line in text.split("\n"))
    text = _ids(text, number)
    if len(text) < LONG or text[:1] in ("<", "["):
        return text
    words = list(WORD.finditer(text))
    if not words:
        return text
    at = words[-1].end()
    digest = hashlib.sha256(f"{number} {text}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:at]}-{digest[:8]}{text[at:]}"


def _event(line: str, number: int) -> str:
    if not line.startswith("data: "):
        return line
    value, style = _parsed(line[6:])
    return line if style is None else "data: " + _dumped(varied(value, number), style)


def _ids(text: str, number: int) -> str:
    def other(found: re.Match[str]) -> str:
        fresh = iter(hashlib.sha256(f"{number} {found[0]}".encode()).hexdigest())
        return "".join(next(fresh, "0") if char.isalnum() else char for char in found[0])

    return UNIQUE.sub(other, text)
