"""The structure of the package (docs/architecture.md): which room may import which.

The test parses the imports in the source, including those inside functions.
"""

import ast
from collections import defaultdict
from functools import cache

import pytest
from places import ROOT

ORDER = (
    "problem", "options", "credentials", "finding", "conversation", "jsonio", "sample", "ledger",
    "paths", "text", "parallel", "sources", "readers", "qwen3", "normalize", "scrub",
    "dataset", "output", "verify", "trainers", "audit", "export", "report", "select", "config",
    "card", "build", "push", "api", "testing", "cli", "__main__",
)  # fmt: skip
"""From the ground up: a room imports only rooms listed before it."""

PACKAGE = ROOT / "builder"


@cache
def modules():
    """Returns {dotted name below builder: its parsed source}."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imports(name):
    """Returns the modules below builder that a module imports."""
    for node in ast.walk(modules()[name]):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module.split(".")[0] == "builder":
                inside = node.module.partition(".")[2]
                for alias in node.names:
                    whole = f"{inside}.{alias.name}".strip(".")
                    yield whole if whole in modules() else inside
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "builder":
                    yield alias.name.partition(".")[2]


def room(name):
    return name.split(".")[0]


def test_every_room_is_in_the_plan():
    assert {room(name) for name in modules() if name} == set(ORDER)


def test_rooms_import_only_rooms_below_them():
    wrong = sorted(
        f"{name} imports {other}"
        for name in modules()
        if name
        for other in imports(name)
        if room(other) != room(name) and ORDER.index(room(other)) > ORDER.index(room(name))
    )
    assert not wrong, "\n".join(wrong)


def test_no_module_imports_itself_through_others():
    edges = {name: set(imports(name)) - {name} for name in modules()}
    state = {}

    def visit(name, path):
        state[name] = "open"
        for other in sorted(edges.get(name, ())):
            if state.get(other) == "open":
                pytest.fail(" -> ".join([*path[path.index(other) :], other]))
            if other not in state:
                visit(other, [*path, other])
        state[name] = "done"

    for name in sorted(edges):
        if name not in state:
            visit(name, [name])


def test_no_public_class_name_occurs_twice():
    places = defaultdict(list)
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert not twice
