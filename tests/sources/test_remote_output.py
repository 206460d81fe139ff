"""Datasets in stores: the same bytes as in a folder; the manifest goes first, comes last."""

import json

import pytest
from support.logs.stores import stored
from support.runs.builds import build, files


def test_an_output_in_a_store_holds_the_same_bytes(store, cache, tmp_path):
    assert build(tmp_path / "here", "--workers", "1") == 0
    for _ in range(2):
        assert build("memory://out/set", "--workers", "1") == 0
        assert stored(store, "/out/set") == files(tmp_path / "here")
        left = [path for path in cache.rglob("*") if path.is_file() and ".state" not in path.parts]
        assert left == [], "only the state stays on this machine"


def test_the_manifest_goes_first_and_comes_last(store, cache, tmp_path, monkeypatch):
    assert build("memory://out", "--workers", "1") == 0
    steps = []
    put, remove = type(store).put_file, type(store).rm_file
    monkeypatch.setattr(
        type(store), "put_file", lambda self, a, b: (steps.append(("put", b)), put(self, a, b))
    )
    monkeypatch.setattr(
        type(store), "rm_file", lambda self, a: (steps.append(("remove", a)), remove(self, a))
    )
    (tmp_path / "c.yaml").write_text("output: {formats: [parquet]}")
    assert build("memory://out", "--workers", "1", "-c", tmp_path / "c.yaml") == 0
    steps = [step for step in steps if "/.state/" not in step[1]]
    assert steps[0] == ("remove", "/out/manifest.json")
    assert steps[-1] == ("put", "/out/manifest.json")
    assert ("remove", "/out/data/train-00000-of-00001.jsonl") in steps
    assert store.exists("/out/data/train-00000-of-00001.parquet")
    assert not store.exists("/out/data/train-00000-of-00001.jsonl")


@pytest.mark.slow
def test_an_interrupted_upload_leaves_no_manifest_and_resumes(
    store, cache, tmp_path, monkeypatch, capsys
):
    put = type(store).put_file

    def fail(self, here, there):
        if there.endswith("rejects.jsonl"):
            raise ConnectionError("no route")
        put(self, here, there)

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "put_file", fail)
        assert build("memory://out", "--workers", "1") == 2
    assert "no route; the same command resumes" in capsys.readouterr().err
    assert not store.exists("/out/manifest.json")
    assert build("memory://out", "--workers", "1") == 0
    assert build(tmp_path / "here", "--workers", "1") == 0
    assert stored(store, "/out") == files(tmp_path / "here")


def test_a_store_folder_of_another_program_is_left_alone(store, cache, capsys):
    store.pipe_file("memory://out/thesis.txt", b"x")
    assert build("memory://out", "--workers", "1") == 2
    assert "not made by build" in capsys.readouterr().err
    assert store.find("/out") == ["/out/thesis.txt"]


@pytest.mark.slow
def test_a_manifest_in_a_store_removes_no_other_files(store, cache):
    assert build("memory://out", "--workers", "1") == 0
    names = ["../thesis.txt", "/thesis.txt", ".state/made-by-builder", "kept.txt/../../thesis.txt"]
    store.pipe_file(
        "memory://out/manifest.json", json.dumps({"files": [{"path": n} for n in names]}).encode()
    )
    store.pipe_file("memory://thesis.txt", b"x")
    assert build("memory://out", "--workers", "1") == 0
    assert store.cat_file("/thesis.txt") == b"x"
