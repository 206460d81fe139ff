"""The choice of the engine, where Ray is not installed or not asked for."""

import subprocess
import sys

from test_build import build


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
