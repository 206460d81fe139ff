"""Commands on datasets take stores as `build` does: `memory://` stands for S3 and the others."""

import json

import fsspec
import pytest
from support.runs.builds import build, lines

from builder import cli, merge_datasets, push_dataset, verify_dataset

ROWS = [
    {"messages": [{"role": "user", "content": name}, {"role": "assistant", "content": "b"}]}
    for name in ("one", "two")
]


@pytest.fixture
def store(tmp_path):
    """Returns the file system, with two built datasets in it."""
    system = fsspec.filesystem("memory")
    for name, row in zip(("one", "two"), ROWS, strict=True):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(json.dumps(row) + "\n")
        assert build(tmp_path / name, inputs=[path]) == 0
        system.put(str(tmp_path / name), f"/sets/{name}", recursive=True)
    yield system
    system.rm("/", recursive=True)


def test_commands_read_and_write_stores(store, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    one, two, out = "memory://sets/one", "memory://sets/two", "memory://out"
    for command in (
        ["verify", one],
        ["verify", f"{one}/data/train-00000-of-00001.jsonl"],
        ["audit", one],
        ["report", one, "-o", f"{out}/report.html"],
        ["export", one, "--to", "trl", "-o", f"{out}/rows"],
        ["export", two, "--to", "atif", "-o", f"{out}/view"],
        ["merge", one, two, "-o", f"{out}/both"],
    ):
        assert cli.main([*command, "--quiet"]) == 0, command
    assert store.cat("/out/report.html").startswith(b"<!doctype html>")
    assert verify_dataset(f"{out}/both").samples == 2
    push = push_dataset(f"{out}/both", "o/n", options={"dry_run": True})
    assert [item for item, state in push.gates.items() if state == "closed"] == []
    capsys.readouterr()
    again = ["export", two, "--to", "messages", "-o", f"{out}/rows"]
    assert cli.main(again) == 2
    assert "'memory://out/rows': is not an empty folder; --fresh" in capsys.readouterr().err
    assert cli.main([*again, "--fresh", "--quiet"]) == 0
    assert [path for path in store.find("/out/rows") if path.endswith("parquet")] == []
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("memory")]


@pytest.mark.parametrize("command", ["verify", "audit", "export --to trl -o out"])
def test_a_dataset_that_does_not_exist_is_one_line(store, capsys, command):
    name, *more = command.split()
    assert cli.main([name, "memory://absent/x", *more]) == 2
    assert "dataset 'memory://absent/x': nothing was found" in capsys.readouterr().err


def test_a_place_that_does_not_exist_is_one_line(store, monkeypatch, capsys):
    def fails(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(type(store), "put_file", fails)
    capsys.readouterr()
    assert cli.main(["export", "memory://sets/one", "--to", "trl", "-o", "memory://no/where"]) == 2
    error = capsys.readouterr().err
    assert error == "builder: output 'memory://no/where': no such bucket or folder\n"


def test_a_merge_into_a_store_replaces_its_earlier_one(store, tmp_path):
    one, two = "memory://sets/one", "memory://sets/two"
    merge_datasets([one, two], "memory://out/both")
    merge_datasets([one], "memory://out/both")
    store.get("/out/both", str(tmp_path / "both"), recursive=True)
    (path,) = (tmp_path / "both" / "data").iterdir()
    assert [row["messages"][0]["content"] for row in lines(path)] == ["one"]
    assert verify_dataset(tmp_path / "both").ok
