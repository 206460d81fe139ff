"""Each pattern of the room of secrets says what it matches, with an example that it matches.

The rules of the tables have examples of their own (test_secret_rules.py).
"""

import ast
import importlib
import re

import pytest
from support.places import ROOT

EVIDENT = 24
"""Code points of a pattern up to which it speaks for itself: `[0-9]`."""
EXEMPT = {
    "prefilter": "its patterns are for patterns",
    "rules": "so are its patterns",
    "secrets._SEALED": "no example fits into a line",
    "quotes._SINGLE": "its marks look like others",
}
MODULES = sorted(path.stem for path in (ROOT / "builder" / "secrets").glob("[!_]*.py"))


def patterns(name):
    """Yields (name, pattern, text that documents it or "") of the patterns of a module."""
    module = importlib.import_module(f"builder.secrets.{name}")
    body = ast.parse((ROOT / "builder" / "secrets" / f"{name}.py").read_text("utf-8")).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            pattern = getattr(module, node.targets[0].id)
            is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if isinstance(pattern, re.Pattern):
                yield node.targets[0].id, pattern, after.value.value if is_text else ""


def has_example(pattern, text):
    r"""Returns whether the pattern matches one of the examples, in which `\n` may be a newline."""
    written = re.findall("`([^`]+)`", text)
    read = [it.replace("\\n", "\n").replace("\\t", "\t") for it in written]
    return any(map(pattern.search, [*written, *read]))


@pytest.mark.parametrize("name", [it for it in MODULES if it not in EXEMPT])
def test_each_pattern_has_an_example(name):
    without = [
        f"{name}.{it}"
        for it, pattern, text in patterns(name)
        if len(pattern.pattern) > EVIDENT and not has_example(pattern, text)
    ]
    assert [it for it in without if it not in EXEMPT] == []
