"""Readers in separate packages, installed next to the project and found by entry point.

The wheels are made here: a build backend would have to be downloaded, and a wheel is four files.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile

import pytest
from support.hub.client import Client
from support.places import ROOT, TESTS

from builder.readers import readers, recognise, toolkit
from builder.sources.source import Source

TOYLOG = TESTS / "third_party" / "toylog"
LOG = TOYLOG / "example.toylog"
PAGE = (ROOT / "docs" / "readers.md").read_text(encoding="utf-8")
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
    """Builds the wheel that `pip wheel` would build from pyproject.toml and the named modules."""
    config = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))
    project = config["project"]
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    entries = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in listed.items())
        for group, listed in project["entry-points"].items()
    )
    modules = config["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    files = {name: (package / name).read_text(encoding="utf-8") for name in modules}
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
def acme(tmp_path_factory):
    """Returns the files of docs/readers.md, in a separate folder."""
    folder = tmp_path_factory.mktemp("acme")
    for name, text in re.findall(r"\*\*`([\w.]+)`\*\*\n\n```\w+\n(.*?)```", PAGE, re.DOTALL):
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory, acme):
    """Returns a folder in which both packages are installed."""
    folder = tmp_path_factory.mktemp("third_party")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    install += ["--disable-pip-version-check", "--target", str(folder / "site")]
    wheels = [str(make_wheel(package, folder)) for package in (TOYLOG, acme)]
    subprocess.run([*install, *wheels], check=True)
    return folder / "site"


@pytest.fixture(scope="module")
def python(site):
    """Runs Python with both packages installed, and returns what it prints."""

    def run(*arguments):
        path = os.pathsep.join([str(ROOT), str(site)])
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            cwd=site.parent,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def builder(site):
    """Runs builder's commands in a process with both packages installed."""
    client = Client(os.environ, site.parent, site)

    def run(*arguments):
        done = client.run(*arguments)
        assert done.code == 0, done.err
        return done

    yield run
    client.close()


@pytest.mark.slow
def test_they_are_listed_by_their_entry_points(builder):
    listed = builder("formats", "--json").reported
    assert listed["toylog"]["summary"] == "toy logs: text that begins with #toylog"
    assert {"acme", "openai-chat"} <= listed.keys()
    assert not {"acme", "toylog"} & readers().keys(), "not installed here"


@pytest.mark.slow
def test_it_passes_the_contract_suite(python):
    assert python("-c", CHECK, str(LOG)) == "1 Conversation\n"


@pytest.mark.slow
def test_build_uses_it(builder, tmp_path):
    out = tmp_path / "out"
    ledger = builder("build", LOG, "-o", out, "--json", "--workers", "1").reported
    assert ledger["calls"] == {"logged": 1, "kept": 1, "dropped": {}}
    assert ledger["records"]["used"] == 5
    meta = json.loads((out / "meta" / "train-00000-of-00001.jsonl").read_text(encoding="utf-8"))
    assert meta["format"] == "toylog"


# -- the reader of docs/readers.md -----------------------------------------------------------------


def test_the_page_writes_a_reader_in_about_40_lines(acme):
    code = (acme / "acme_reader.py").read_text(encoding="utf-8")
    assert len([line for line in code.splitlines() if line.strip()]) <= 45


@pytest.mark.slow
def test_the_test_of_the_page_passes(python, acme):
    assert "1 passed" in python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull,
                                "--rootdir", str(acme), str(acme))  # fmt: skip


@pytest.mark.slow
def test_rows_with_one_key_of_their_own_are_recognised(builder, acme):
    """By a generic reader if the package is not installed, else by its specific reader alone."""
    log = acme / "example.jsonl"
    assert list(recognise(Source(log.name, log))) == ["openai-chat"]
    visible = builder("formats", "--explain", log)
    assert visible.out.rstrip("\n") in PAGE


@pytest.mark.slow
def test_build_uses_the_reader_of_the_page(builder, acme, tmp_path):
    command = ["build", acme / "example.jsonl", "-o", tmp_path / "out"]
    built = builder(*command, "--json", "--workers", "1").reported
    assert built["samples"] == 2
    assert built["records"]["used"] == 2
    assert built["calls"]["kept"] == 1


def test_the_page_names_all_of_the_toolkit():
    table = PAGE[PAGE.index("## The toolkit") :]
    named = re.findall(r"`([A-Za-z_]+)`", table[table.index("|") :])
    assert sorted(named) == sorted(toolkit.__all__)
