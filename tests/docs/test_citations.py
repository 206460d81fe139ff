"""What a docstring or a comment cites is here for its reader: a page of docs/ that ships."""

import ast
import io
import re
import tokenize

from support.places import ROOT

OF_OTHERS = {
    ".aider.chat.history.md": "a log of Aider",
    "docs/api.md": "of Ollama",
    "AGENTS.md": "read by agents",
    "CLAUDE.md": "read by Claude Code",
}
"""Pages and files of other projects, which are public."""

PLACES = ("", "docs", "docs/formats", "builder/qwen3")


def texts(source):
    """Yields (line, text) of each docstring and comment."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def missing(source):
    """Yields (line, page) of each page that is cited and does not ship."""
    for line, text in texts(source):
        for page in re.findall(r"[\w./-]+\.md\b", text):
            shipped = any((ROOT / place / page).is_file() for place in PLACES)
            if not shipped and page not in OF_OTHERS:
                yield line, page


def test_the_rule_finds_docstrings_and_comments():
    source = '"""See contract.md."""\nx = 1  # docs/none.md\n"""docs/verify.md, atif.md"""\n'
    assert list(missing(source)) == [(1, "contract.md"), (2, "docs/none.md")]


def test_every_page_that_is_cited_ships():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {page}"
        for folder in ("builder", "scripts", "tests")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if b".md" in path.read_bytes()
        for line, page in missing(path.read_text(encoding="utf-8"))
    ]
    assert found == []
