"""The choice of the engine, where Ray is not installed or not asked for."""

import os
import subprocess
import sys

import pytest
from test_build import build

from builder import engine
from builder.normalize import NormalizeOptions
from builder.shard import Task
from builder.source import Source


def test_without_ray_the_line_says_how_to_install_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert build(tmp_path / "out", "--engine", "ray") == 2
    error = capsys.readouterr().err
    assert "pip install 'toolcall-dataset-builder[ray]'" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_address_of_a_cluster_is_for_ray_alone(tmp_path, capsys):
    assert build(tmp_path / "out", "--ray-address", "auto") == 2
    assert "--engine ray" in capsys.readouterr().err


def test_what_is_not_asked_for_is_not_imported(tmp_path):
    code = (
        "import sys; from builder import cli; from test_build import build;"
        f"assert build({str(tmp_path / 'out')!r}, '--workers', '1') == 0;"
        "print([name for name in ('ray', 's3fs', 'botocore') if name in sys.modules])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd="tests",
        env={"PYTHONPATH": ".."},
    )
    assert said.stdout == "[]\n"


@pytest.fixture
def tasks(tmp_path):
    """Parts of 1, 1, 1, 9, 1 MB; a store, a part in memory, one that is gone; then of 1, 1."""

    def file(name, size):
        path = tmp_path / name
        path.touch()
        os.truncate(path, size << 20)  # a store's folder has a size too, which is small
        return Source(name, path)

    sources = [file(f"{at}", size) for at, size in enumerate((1, 1, 1, 9, 1))]
    sources += [Source("store", tmp_path, members=[file("member", 1)]), Source("memory", data=b"")]
    sources += [Source("gone", tmp_path / "gone"), file("8", 1), file("9", 1)]
    return [Task(source, NormalizeOptions(), source.name) for source in sources]


@pytest.mark.parametrize(
    ("start", "most", "wanted"),
    [
        (0, 32, [[0, 1, 2, 3], [4, 5], [6], [7, 8, 9]]),
        (0, 2, [[0, 1], [2, 3], [4, 5], [6], [7, 8], [9]]),
        (3, 1, [[3], [4], [5], [6], [7], [8], [9]]),
        (10, 32, []),
    ],
)
def test_small_parts_go_together_and_each_goes_once(monkeypatch, tasks, start, most, wanted):
    monkeypatch.setattr(engine, "BATCH_BYTES", 10 << 20)
    found = engine._batches(tasks, start, most)
    assert [list(batch) for batch in found] == wanted
