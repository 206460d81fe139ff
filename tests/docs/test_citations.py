"""What a docstring or a comment cites ships, or is a public source that is named."""

import ast
import io
import re
import tokenize

import pytest
from support.places import ROOT

DOCUMENT = re.compile(
    r"(?P<repository>(?<![\w./-])(?!docs/)[\w-]+/[\w.-]+[ ])?"
    r"(?P<path>(?<![\w./-])[\w./-]*\w\.(?:md|rst|ipynb))(?![\w-])"
    r"(?P<headings>(?:(?:,| and|:)? ?\"[A-Z][^\"]+\")*)"
)
"""A document, the public repository that has it, if it is not ours, and the headings meant."""

SOURCE = re.compile(r"\bSources?: (.+?)(?=\.\s|\.?$|;)")
NAMED = re.compile(
    r"\bdocs/|https?://|\bRFC \d|[\w.-]+/[\w.-]+|\d\.\d|`|\w[._]\w|\w[a-z][A-Z]|"
    r"documentation \"|standard$"
)
"""A page, an address, a repository or a file, a version, or a name in code."""

ADDRESS = re.compile(r"https?://\S+")


CITING = re.compile(r"\.(?:md|rst|ipynb)\b|\bSources?:|\b[Tt]he[\s#]+(?:specification|contract)\b")
"""What a module contains that cites anything."""

COMMENTED = re.compile(r"#.*(?:\.md|\.rst|\.ipynb|Source|specification|contract)")
UNNAMED = re.compile(r"\b[Tt]he (specification|contract)\b(?! \(docs/)")


def texts(source):
    """Yields each docstring and each run of comment lines, as one line, if any may cite."""
    if not CITING.search(source):
        return  # parsing all modules takes two seconds
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield " ".join(text.split())
    if not COMMENTED.search(source):
        return  # reading tokens takes most of the time
    lines, last = [], 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1 and lines:
                yield " ".join(lines)
                lines = []
            lines.append(token.string.lstrip("#: "))
            last = token.start[0]
    if lines:
        yield " ".join(lines)


def headings(path):
    found = re.findall(r"^#+ +(.+?) *$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {heading.replace("`", "") for heading in found}


def faults(text):
    """Yields what a text cites and nobody can open."""
    for cited in DOCUMENT.finditer(ADDRESS.sub("", text)):
        path, page = cited["path"], ROOT / cited["path"]
        if cited["repository"] or path.startswith("."):  # `.name` is a file of the reader's program
            continue
        if not page.is_file():
            yield f"{path} does not ship"
            continue
        for heading in re.findall(r"\"([^\"]+)\"", cited["headings"]):
            if heading.replace("`", "") not in headings(page):
                yield f"{path} has no heading {heading!r}"
    yield from (f"nobody knows which {name} this is" for name in UNNAMED.findall(text))
    for source in SOURCE.findall(text):
        if not NAMED.search(source):
            yield f"nobody knows which source this is: {source}"


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ('"""Reads rows.\n\nSource: contract.md.\n"""', "contract.md does not ship"),
        ("# as docs/contract.md requires", "docs/contract.md does not ship"),
        ('"""Source: docs/audit.md, "No such heading"."""', "docs/audit.md has no heading"),
        ('"""Source: docs/audit.md and\nverify.md."""', "verify.md does not ship"),
        ("x = 1  # a rule\n# of\n# notes/claude.md", "notes/claude.md does not ship"),
        ('"""Source: the specification, part two."""', "nobody knows which source"),
        ("# as the contract requires", "nobody knows which contract"),
        ('def f():\n    x: int\n    """See openhands.md."""', "openhands.md does not ship"),
    ],
)
def test_a_citation_that_cannot_be_opened_is_a_fault(source, fault):
    assert [found for text in texts(source) for found in faults(text) if fault in found]


@pytest.mark.parametrize(
    "source",
    [
        '"""Source: docs/readers.md; ollama/ollama docs/api.md, "Generate"."""',
        "# https://example.org/notes/contract.md",
        '"""Source: RFC 4180."""',
        'NAME = "contract.md"',
    ],
)
def test_public_sources_and_names_in_code_are_none(source):
    assert not [found for text in texts(source) for found in faults(text)]


def test_what_is_cited_ships_or_is_public():
    wrong = [
        f"{path.relative_to(ROOT)}: {fault}"
        for folder in ("builder", "scripts", "tests")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for text in texts(path.read_text(encoding="utf-8"))
        for fault in faults(text)
    ]
    assert wrong == []
