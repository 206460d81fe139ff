"""A reader in a package of its own, installed beside the project and found by its entry point.

The wheel is made here: a build backend would have to be downloaded, and its form is four files.
"""

import json
import os
import subprocess
import sys
import tomllib
import zipfile

import pytest
from places import TESTS

PACKAGE = TESTS / "third_party" / "toylog"
LOG = PACKAGE / "example.toylog"
CHECK = """
import sys
from pathlib import Path
from builder.readers import readers
from builder.sources.source import Source
from builder.testing import check_reader
events = check_reader(readers()["toylog"], Source("example", Path(sys.argv[1])))
print(len(events), type(events[0]).__name__)
"""


def make_wheel(package, folder):
    """The wheel that `pip wheel` would build from the package's pyproject.toml and modules."""
    project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    entries = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in listed.items())
        for group, listed in project["entry-points"].items()
    )
    files = {path.name: path.read_text(encoding="utf-8") for path in package.glob("*.py")}
    info = f"{stem}.dist-info"
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    files[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    files[f"{info}/entry_points.txt"] = entries
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    wheel = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Runs Python with the package installed, and gives what it prints."""
    folder = tmp_path_factory.mktemp("third_party")
    target = folder / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    install += ["--disable-pip-version-check", "--target", str(target)]
    subprocess.run([*install, str(make_wheel(PACKAGE, folder))], check=True)

    def run(*arguments):
        path = os.pathsep.join([str(TESTS.parent), str(target)])
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": path},
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_it_is_listed_by_its_entry_point(python):
    listed = json.loads(python("-m", "builder", "formats", "--json"))
    assert listed["toylog"] == "toy logs: text that begins with #toylog"
    assert "openai-chat" in listed


def test_it_passes_the_contract_suite(python):
    assert python("-c", CHECK, str(LOG)) == "1 Conversation\n"


def test_build_uses_it(python, tmp_path):
    out = tmp_path / "out"
    ledger = json.loads(
        python("-m", "builder", "build", str(LOG), "-o", str(out), "--json", "--workers", "1")
    )
    assert ledger["calls"] == {"logged": 1, "kept": 1, "dropped": {}}
    assert ledger["records"]["used"] == 5
    meta = json.loads((out / "meta" / "train-00000-of-00001.jsonl").read_text(encoding="utf-8"))
    assert meta["format"] == "toylog"


def test_it_is_absent_where_it_is_not_installed():
    from builder.readers import readers

    assert "toylog" not in readers()
