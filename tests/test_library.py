"""The public API: its names, its documentation run as written, its cost."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from support.places import DATA, ROOT

import builder

PAGE = ROOT / "docs" / "library.md"
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    """In order, in one namespace, as a reader of the page would run it."""
    shutil.copytree(DATA, tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 5
    namespace = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), namespace)
    printed = capsys.readouterr().out
    assert "no such file or folder" in printed
    assert namespace["built"].ledger.samples == namespace["summary"].samples > 0
    assert namespace["exported"].rows == namespace["exported"].equal > 0


def test_the_cells_of_the_notebook_run(tmp_path, monkeypatch, capsys):
    """In order, in the folder where Jupyter starts, without Jupyter."""
    shutil.copytree(DATA, tmp_path / "data")
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "docs")
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    namespace = {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "commit it without outputs"
            exec(compile(source, cell["id"], "exec"), namespace)
        for target in re.findall(r"\]\(([\w.]+)\)", source):
            assert (NOTEBOOK.parent / target).exists(), target
    assert namespace["summary"].proven == namespace["ledger"].samples == len(namespace["rows"]) > 0
    assert namespace["exported"].equal == namespace["exported"].rows > 0
    printed = capsys.readouterr().out
    for expected in (
        "claude-code",
        "trained: 'I",
        "match inference, non-thinking",
        "conversations: {",
    ):
        assert expected in printed


def test_every_public_name_exists_and_is_documented():
    page = PAGE.read_text(encoding="utf-8")
    table = page[page.index("## The API") :]
    named = set(re.findall(r"`([A-Za-z_]+)`", table)) - {"Json", "Part"}
    assert named == set(builder.__all__) - {"Json", "Part"}
    for name in builder.__all__:
        assert getattr(builder, name) is not None
    with pytest.raises(AttributeError, match="no_such"):
        builder.no_such  # noqa: B018


def test_importing_the_package_imports_nothing_else():
    code = "import builder, sys; print([n for n in sys.modules if n.startswith('builder.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_progress_is_reported_for_every_input(tmp_path):
    seen = []
    builder.build_dataset([DATA / "codex"], tmp_path / "out", on_progress=seen.append)
    reads = [item for item in seen if item.phase == "read"]
    assert [item.done for item in reads] == list(range(len(reads)))
    assert {item.total for item in reads} == {len(reads) - 1}
    assert reads[-1].bytes == reads[-1].total_bytes > 0
    assert [*dict.fromkeys(item.phase for item in seen)] == ["read", "write", "audit", "report"]


def test_a_source_that_no_reader_recognises_is_the_callers_mistake():
    source = builder.Source("x", data=b"plain words")
    with pytest.raises(builder.UsageError, match="no reader recognises it"):
        builder.read(source)
    with pytest.raises(builder.UsageError, match="did you mean 'codex'"):
        builder.read(source, "codexx")
