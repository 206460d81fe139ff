"""The structure of the package (docs/architecture.md): which room may import which.

The test parses the imports in the source, including those inside functions.
"""

import ast
import re
from collections import defaultdict
from functools import cache

import pytest
from support.places import ROOT

ORDER = (
    "secrets", "distribution", "brief", "problem", "codes", "credentials", "conversation",
    "jsonio", "keys", "finding", "sample", "ledger", "paths", "options", "text", "parallel",
    "sources", "readers", "collect", "capture", "qwen3",
    "normalize", "scrub", "dataset", "output", "verify", "trainers", "audit", "gates", "export",
    "report", "view", "select", "config", "card", "build", "push", "given", "api", "testing", "cli",
    "__main__",
)  # fmt: skip
"""From the ground up: a room imports only rooms listed before it."""

PACKAGE = ROOT / "builder"


@cache
def modules():
    """Returns {dotted name below builder: (its import statements, its public classes)}."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        statements, classes = [], []
        todo = [ast.parse(path.read_text(encoding="utf-8"))]
        while todo:
            for node in ast.iter_child_nodes(todo.pop()):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    statements.append(node)
                elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
                    todo.append(node)  # an expression contains neither
                    if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                        classes.append(node.name)
        found[name] = (statements, classes)
    return found


@cache
def imports(name):
    """Returns the modules below builder that a module imports."""
    found = set()
    for node in modules()[name][0]:
        for alias in node.names:
            other = alias.name
            if isinstance(node, ast.ImportFrom):
                other = f"{node.module}.{alias.name}"
                if other.removeprefix("builder.") not in modules():
                    other = str(node.module)  # the name is a part of the module
            if other.split(".")[0] == "builder":
                found.add(other.partition(".")[2])
    return found


def room(name):
    return name.split(".")[0]


def test_every_room_is_in_the_plan():
    assert {room(name) for name in modules() if name} == set(ORDER)


def test_the_documentation_names_every_room_after_those_that_it_imports():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page[page.index("| room |") : page.index("## A build")]
    rows = [
        set(re.findall(r"`(\w+)/?`", line.split("|")[1])) for line in table.splitlines() if line
    ]
    line_of = {name: number for number, row in enumerate(rows) for name in row}
    assert set(line_of) == {name for name in ORDER if name != "__main__"}
    assert sum(map(len, rows)) == len(line_of), "each is in one line"
    wrong = {
        (name, other)
        for name in modules()
        for other in map(room, imports(name))
        if room(name) in line_of and other and line_of[other] > line_of[room(name)]
    }
    assert not wrong


def test_the_guide_names_every_family_of_readers():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    packages = {path.parent for path in (PACKAGE / "readers").glob("*/__init__.py")}
    names = {path.relative_to(ROOT).as_posix() for path in packages}
    assert names <= set(re.findall(r"`(builder/[\w/]+?)/`", page))


def test_rooms_import_only_rooms_below_them():
    wrong = sorted(
        f"{name} imports {other}"
        for name in modules()
        if name
        for other in imports(name)
        if ORDER.index(room(other)) > ORDER.index(room(name))
    )
    assert not wrong, "\n".join(wrong)


FAMILIES = ("toolkit", "api")
"""Of the readers, from the ground up: each imports only those before it, and the core."""


NAMED = re.compile(r"`(builder(?:\.\w+)+)`")


def unknown_names(path):
    """Yields the dotted names in a module's texts that are no module and nothing that one defines.

    A module's own name counts as well: it sends the reader nowhere. A package's may be a group of
    entry points.
    """
    own = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for name in NAMED.findall(path.read_text(encoding="utf-8")):
        module, rest = name, ""
        while module.removeprefix("builder").lstrip(".") not in modules():
            module, _, rest = module.rpartition(".")
        place = ROOT.joinpath(*module.split("."))
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        defined = rf"^(?:(?:async )?def |class )?{rest}\b(?! import)"
        if name == own or (rest and not re.search(defined, file.read_text("utf-8"), re.MULTILINE)):
            yield name


def test_docstrings_send_the_reader_to_what_exists():
    wrong = {(str(path), name) for path in PACKAGE.rglob("*.py") for name in unknown_names(path)}
    assert not wrong


def test_shared_families_of_readers_import_no_other_family():
    own = {path.name for path in (PACKAGE / "readers").iterdir() if (path / "__init__.py").exists()}
    for at, family in enumerate(FAMILIES):
        others = own - {*FAMILIES[: at + 1]}
        wrong = [
            f"{name} imports {other}"
            for name in modules()
            if name.startswith(f"readers.{family}.")
            for other in imports(name)
            if other.startswith("readers.") and other.split(".")[1] in others
        ]
        assert not wrong, "\n".join(wrong)


def test_the_room_of_secrets_imports_nothing_of_the_house():
    own = {name for name in modules() if room(name) == "secrets"}
    assert own
    assert not {other for name in own for other in imports(name)} - own


def test_no_module_imports_itself_through_others():
    edges = {name: imports(name) - {name} for name in modules()}
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
    for name, (_, classes) in modules().items():
        for one in classes:
            places[one].append(name)
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert not twice


def test_what_tests_share_is_in_the_rooms_of_support():
    tests = ROOT / "tests"
    flat = {path.name for path in tests.glob("*.py") if not path.name.startswith("test_")}
    assert flat == {"conftest.py"}
    support = {path.name for path in (tests / "support").iterdir() if path.suffix == ".py"}
    assert support == {"__init__.py", "places.py"}
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rooms = {path.parent.name for path in (tests / "support").glob("*/__init__.py")}
    assert rooms == set(re.findall(r"`support/(\w+)/`", page))


def test_no_two_test_modules_have_one_name():
    """pytest imports them by their names alone, and refuses the second in a run of both."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)
