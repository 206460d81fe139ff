"""The identity of a run names all that a result depends on, and nothing else."""

import ast
from importlib.metadata import packages_distributions

from support.places import ROOT
from test_rooms import imports, modules, room

from builder.build import identity

TRANSPORT = {"huggingface-hub", "fsspec", "backports.zstd"}
"""Distributions that fetch or unpack bytes, and leave them as they are."""


def modules_of_tasks():
    """Returns the modules that a task imports, directly or through others, and all readers."""
    todo = ["build.run", *(name for name in modules() if name.startswith("readers"))]
    found = set()
    while todo:
        name = todo.pop()
        if name and name not in found:
            found.add(name)
            todo += [name.rpartition(".")[0], *imports(name)]
    return found & modules().keys()


def test_no_result_depends_on_a_room_that_is_left_out():
    rooms = {room(name) for name in modules_of_tasks()}
    assert rooms.isdisjoint(name.removesuffix(".py") for name in identity.OTHER_ROOMS)
    assert all((ROOT / "builder" / name).exists() for name in identity.OTHER_ROOMS)


def test_the_distributions_that_tasks_import_are_listed():
    names = set()
    for name in modules_of_tasks():
        for node in modules()[name][0]:
            whole = (
                [node.module] if isinstance(node, ast.ImportFrom) else [x.name for x in node.names]
            )
            names |= {(item or "").partition(".")[0] for item in whole}
    owners = packages_distributions()
    found = {one for name in names - {"builder"} for one in owners.get(name, ())}
    used = {one.lower().replace("_", "-") for one in found}
    assert used <= {*identity.PACKAGES, *TRANSPORT}
    assert "phonenumberslite" in used


def test_data_files_count_and_pages_of_the_report_do_not(tmp_path):
    for name in ("scrub/words.txt", "scrub/rules.py", "report/codes.py", "cli/app.py", "x.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [path.relative_to(tmp_path).as_posix() for path in identity.result_files(tmp_path)]
    assert found == ["scrub/rules.py", "scrub/words.txt", "x.toml"]
    names = {path.name for path in identity.result_files(ROOT / "builder")}
    assert {"tokens.toml", "contexts.toml", "redact.py"} <= names
