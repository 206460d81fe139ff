"""Counts the lines and tokens of each room and compares them with tests/size.toml.

`scripts/size.py` prints the rooms; with `--lower`, it writes the numbers that have fallen to the
file. Exits with 1 if a room is larger than its number. Lines are those of the files; tokens are
Python's, without comments and docstrings. Tables, mappings and templates are counted in lines.
"""

import ast
import io
import sys
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NUMBERS = ROOT / "tests" / "size.toml"
SKIPPED = frozenset({
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
})  # fmt: skip
DATA = frozenset({".toml", ".yaml", ".yml", ".html", ".j2", ".jinja", ".css", ".js"})
Size = dict[str, int]


def tokens(text: str) -> int:
    """Returns the number of tokens of a module without comments and docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = sum(
        ast.get_docstring(node, clean=False) is not None
        for node in ast.walk(ast.parse(text))
        if isinstance(node, documented)
    )
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type not in SKIPPED for token in found) - docstrings


def room(path: Path) -> str:
    """Returns the room of a file: a folder of builder/, or of builder/readers/."""
    parts = path.relative_to(ROOT).parts
    if parts[0] != "builder":
        return parts[0]
    depth = 3 if parts[1] == "readers" else 2
    return "/".join(parts[:depth] if len(parts) > depth else parts[: depth - 1])


def sizes() -> dict[str, Size]:
    """Returns {room: {lines, tokens, data}}, with the whole of builder/ as `whole`."""
    found: dict[str, Counter[str]] = {"whole": Counter()}
    for folder in ("builder", "tests", "scripts"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix == ".py":
                text = path.read_text(encoding="utf-8")
                size = Counter(lines=text.count("\n"), tokens=tokens(text))
            elif path.suffix in DATA and folder == "builder":
                size = Counter(data=path.read_text(encoding="utf-8").count("\n"))
            else:
                continue
            for name in (room(path), "whole") if folder == "builder" else (room(path),):
                found.setdefault(name, Counter()).update(size)
    return {name: dict(size) for name, size in sorted(found.items())}


def mean_line() -> float:
    """Returns the mean characters of a line of builder/ that is not blank."""
    lines = [
        line
        for path in sorted((ROOT / "builder").rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    return sum(map(len, lines)) / len(lines)


def grown(now: dict[str, Size], allowed: dict[str, Size]) -> list[str]:
    """Returns a sentence for each number that is higher than allowed."""
    return [
        f"{name}: {count:,} {what}, at most {allowed.get(name, {}).get(what, 0):,} are allowed"
        for name, size in now.items()
        for what, count in size.items()
        if count > allowed.get(name, {}).get(what, 0)
    ]


def write(now: dict[str, Size]) -> None:
    """Writes the numbers that hold from now on."""
    lines = ["# The most that each room may have (scripts/size.py). The numbers only fall."]
    for name, size in now.items():
        numbers = ", ".join(f"{what} = {count}" for what, count in sorted(size.items()))
        lines.append(f'"{name}" = {{ {numbers} }}')
    NUMBERS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    now = sizes()
    allowed = tomllib.loads(NUMBERS.read_text(encoding="utf-8")) if NUMBERS.exists() else now
    for name, size in now.items():
        print(f"{name:20}", *(f"{count:9,} {what}" for what, count in size.items()))
    problems = grown(now, allowed)
    print(*problems, sep="\n")
    if "--lower" in sys.argv[1:] and not problems:
        write(now)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
